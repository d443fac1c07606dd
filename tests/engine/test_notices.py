"""Notices: which ends and which times write one, and that their number is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from chronex.engine.notices import (
    HANDED_OUT_MS,
    LONGEST_KEPT_MS,
    MOST_HOOKS,
    MOST_WAITING,
    PAUSES_MS,
    after_try,
    note_late,
    overdue,
    put_notice,
    waiting,
)
from chronex.engine.orders import Launch, Order, RunHook
from chronex.model.job import Call, Job
from chronex.model.policies import NotifyPolicy, OverlapPolicy
from chronex.model.reasons import NO_REASON
from chronex.model.records import Notice
from chronex.model.states import AttemptState
from chronex.storage import keys
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from tests.kit.machine import FIRST, START, SteppedEngine

MINUTE, HOUR = 60_000, 3_600_000
OK, BAD = AttemptState.SUCCESS, AttemptState.FAILED


def notices(machine: SteppedEngine) -> list[Notice]:
    return machine.read(lambda reading: reading.scan(keys.NOTICE, Notice))


def kinds(machine: SteppedEngine) -> list[str]:
    return [notice.kind for notice in notices(machine)]


def run(machine: SteppedEngine, *ends: str) -> None:
    """One occurrence each minute that ends so."""
    for number, state in enumerate(ends):
        (launch,) = machine.tick(FIRST + number * MINUTE)
        machine.end(launch, state, FIRST + number * MINUTE + 1)


@pytest.mark.parametrize(
    ("policy", "ends", "written"),
    [
        (NotifyPolicy("x"), [OK, OK], []),
        (NotifyPolicy("x"), [BAD], ["failing"]),
        (NotifyPolicy("x"), [BAD, BAD, BAD], ["failing"]),
        (NotifyPolicy("x"), [BAD, OK, OK], ["failing", "recovered"]),
        (NotifyPolicy("x"), [BAD, OK, BAD], ["failing", "recovered", "failing"]),
        (NotifyPolicy("x", after_failures=3), [BAD, BAD, OK], []),
        (NotifyPolicy("x", after_failures=3), [BAD, BAD, BAD, BAD, OK], ["failing", "recovered"]),
        (NotifyPolicy("x", on_recovery=False), [BAD, OK], ["failing"]),
        (None, [BAD, OK], []),
    ],
)
def test_an_end_writes_a_notice(policy: NotifyPolicy | None, ends: list[str], written: list[str]) -> None:
    machine = SteppedEngine(notify=policy)
    run(machine, *ends)
    assert kinds(machine) == written


def test_a_notice_says_which_occurrence_and_how_many_failures() -> None:
    machine = SteppedEngine(notify=NotifyPolicy("x", after_failures=2))
    run(machine, BAD, BAD)
    (notice,) = notices(machine)
    assert (notice.job, notice.nominal_ms, notice.failures) == ("job", FIRST + MINUTE, 2)
    assert notice.reason


# -- late --------------------------------------------------------------------------------------------------------

HOURLY = "0 * * * *"
FIRST_HOUR = START + HOUR


def late_since(machine: SteppedEngine, now: int) -> int | None:
    job = machine.stored()
    return machine.read(lambda reading: overdue(reading, job, now))


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        ({}, FIRST_HOUR + 10 * MINUTE - 1, None),
        ({}, FIRST_HOUR + 10 * MINUTE, FIRST_HOUR),
        ({}, FIRST_HOUR + 3 * HOUR, FIRST_HOUR + 2 * HOUR),
        ({"expect_within_ms": None}, FIRST_HOUR + HOUR, None),
        ({"enabled": False}, FIRST_HOUR + HOUR, None),
    ],
)
def test_the_latest_instant_that_should_have_completed(
    changes: dict[str, Any], now: int, expected: int | None
) -> None:
    policy: dict[str, Any] = {"expect_within_ms": 10 * MINUTE, **changes}
    machine = SteppedEngine(HOURLY, **policy)
    assert late_since(machine, now) == expected


@pytest.mark.parametrize(("state", "expected"), [(OK, None), (BAD, FIRST_HOUR)])
def test_only_work_that_completed_counts(state: str, expected: int | None) -> None:
    machine = SteppedEngine(HOURLY, expect_within_ms=10 * MINUTE)
    (launch,) = machine.tick(FIRST_HOUR)
    machine.end(launch, state, FIRST_HOUR + 1)
    assert late_since(machine, FIRST_HOUR + 10 * MINUTE) == expected


@pytest.mark.parametrize(("notify", "written"), [(NotifyPolicy("x"), ["late"]), (None, [])])
def test_lateness_is_recorded_once_with_an_event_and_a_notice(
    notify: NotifyPolicy | None, written: list[str]
) -> None:
    machine = SteppedEngine(HOURLY, expect_within_ms=10 * MINUTE, notify=notify)
    now = FIRST_HOUR + 10 * MINUTE
    first, second = (machine.store.update(lambda tx: note_late(Records(tx, now), "job")) for _ in range(2))
    assert (first, second) == (True, False)
    assert machine.stored().progress.late_ms == FIRST_HOUR
    assert machine.event_names().count("JobLate") == 1
    assert kinds(machine) == written


def test_a_job_that_is_gone_is_not_late() -> None:
    machine = SteppedEngine(HOURLY)
    assert not machine.store.update(lambda tx: note_late(Records(tx, START), "other"))


@pytest.mark.parametrize(
    ("late_ms", "state", "written"),
    [
        (FIRST_HOUR, OK, ["on_time"]),
        (FIRST_HOUR - HOUR, OK, ["on_time"]),  # a later occurrence than the late one
        (FIRST_HOUR + HOUR, OK, []),  # an earlier one than the late one
        (FIRST_HOUR, BAD, []),
    ],
)
def test_a_late_job_is_on_time_when_the_late_occurrence_or_a_later_one_completes(
    late_ms: int, state: str, written: list[str]
) -> None:
    machine = SteppedEngine(HOURLY, notify=NotifyPolicy("x", after_failures=9))
    (launch,) = machine.tick(FIRST_HOUR)
    late = machine.stored().progressed(late_ms=late_ms).progress
    machine.store.update(lambda tx: Records(tx, FIRST_HOUR).put(late))
    machine.end(launch, state, FIRST_HOUR + 1)
    assert kinds(machine) == written
    assert machine.stored().progress.late_ms == (None if written else late_ms)


# -- those that wait ---------------------------------------------------------------------------------------------


def test_a_notice_waits_until_its_next_try() -> None:
    machine = SteppedEngine()

    def put(tx: Transaction) -> None:
        for number, next_ms in enumerate((0, START, START + 1)):
            notice = Notice(job="job", kind="late", at_ms=START + number, next_ms=next_ms)
            Records(tx, START).put(notice)

    machine.store.update(put)
    due = machine.read(lambda reading: waiting(reading, START, 10))
    assert [notice.next_ms for notice in due] == [0, START]
    assert len(machine.read(lambda reading: waiting(reading, START, 1))) == 1


def test_no_more_than_the_bound_wait() -> None:
    machine = SteppedEngine()
    job = Job(id="job", schedule="@daily")

    def put(tx: Transaction) -> None:
        for number in range(MOST_WAITING + 5):
            put_notice(Records(tx, START + number), job, "failing", START + number, NO_REASON, 1)

    machine.store.update(put)
    assert len(notices(machine)) == MOST_WAITING


# -- hooks -------------------------------------------------------------------------------------------------------

HOOKED: Any = {"on_start": ("say", "start"), "on_complete": "say end"}


def hooks_of(orders: tuple[Order, ...]) -> list[RunHook]:
    return [order for order in orders if isinstance(order, RunHook)]


def told(orders: tuple[Order, ...]) -> list[tuple[str, str, int]]:
    """The occurrence's state, the id without the occurrence, and which call it is."""
    return [(o.report.state, o.report.delivery.partition("/")[2], o.report.call) for o in hooks_of(orders)]


def settle(machine: SteppedEngine, hook: RunHook, problem: str, now: int) -> None:
    """The call of the hook has ended so."""
    assert hook.notice is not None
    machine.store.update(after_try(hook.notice, problem, now))


def ended_once(machine: SteppedEngine, at: int = FIRST) -> RunHook:
    """One occurrence starts, its `on_start` is settled, and it ends; its `on_complete` is ordered and not called."""
    orders = machine.engine.tick(at, START).orders
    for hook in hooks_of(orders):
        settle(machine, hook, "", at)
    (launch,) = (order for order in orders if isinstance(order, Launch))
    (hook,) = hooks_of(machine.end(launch, OK, at + 1))
    return hook


def next_life(machine: SteppedEngine, now: int) -> tuple[Order, ...]:
    """The node dies, and the next one begins."""
    machine.boot("node-2")
    orders, _ = machine.engine.take_over(lambda process: process.pid == 2, now)
    return orders


def asked(machine: SteppedEngine, now: int) -> tuple[Order, ...]:
    update = machine.engine.hooks_due(now)
    return () if update is None else machine.store.update(update)


def test_a_hook_whose_node_died_before_it_called_it_is_called_by_the_next_one_with_the_same_id() -> None:
    machine = SteppedEngine(**HOOKED)
    first = ended_once(machine)
    assert kinds(machine) == ["on_complete"], "recorded with the end"
    assert asked(machine, FIRST + 2) == (), "its node is alive and has it in hand"
    (again,) = hooks_of(next_life(machine, FIRST + 3))
    assert again.report == first.report
    assert told((again,)) == [("completed", "on_complete", 1)]
    settle(machine, again, "", FIRST + 4)
    assert kinds(machine) == []
    assert hooks_of(next_life(machine, FIRST + 5)) == []


def test_a_start_whose_hook_was_not_called_is_followed_by_the_hook_and_then_by_the_task() -> None:
    machine = SteppedEngine(**HOOKED)
    machine.engine.tick(FIRST, START)
    orders = next_life(machine, FIRST + 1)
    assert told(orders) == [("running", "on_start", 1)]
    assert len(machine.tick(FIRST + 1)) == 1, (
        "the attempt that never began is tried again, after the hook was ordered"
    )


def test_a_hook_that_fails_is_called_again_after_growing_pauses_and_then_given_up() -> None:
    machine = SteppedEngine(**HOOKED)
    hook, now = ended_once(machine), FIRST + 1
    for number, pause_ms in enumerate(PAUSES_MS):
        settle(machine, hook, "exit code 3", now)
        assert asked(machine, now + pause_ms - 1) == ()
        now += pause_ms
        (hook,) = hooks_of(asked(machine, now))
        assert told((hook,)) == [("completed", "on_complete", number + 2)]
        assert asked(machine, now) == (), "it is in hand"
    settle(machine, hook, "exit code 3", now)
    assert kinds(machine) == []
    failed = [event for event in machine.events() if event.name == "HookFailed"]
    assert [(event.data["try"], event.data["given_up"]) for event in failed] == [
        (1, False), (2, False), (3, False), (4, False), (5, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wait_ms", "calls"),
    [
        (HANDED_OUT_MS - 2, 0),
        (HANDED_OUT_MS, 1),  # its node hangs
        (-HOUR, 1),  # the clock was set back since
    ],
)
def test_a_hook_of_which_nothing_is_heard_is_called_again(wait_ms: int, calls: int) -> None:
    machine = SteppedEngine(**HOOKED)
    ended_once(machine)
    assert len(hooks_of(asked(machine, FIRST + 1 + wait_ms))) == calls


@pytest.mark.parametrize(("problem", "left"), [("exit code 3", ["on_complete"]), ("", [])])
def test_a_late_word_of_the_first_caller_counts_where_it_is_good(problem: str, left: list[str]) -> None:
    """Another node has taken the hook over meanwhile, and calls it now."""
    machine = SteppedEngine(**HOOKED)
    first = ended_once(machine)
    (again,) = hooks_of(next_life(machine, FIRST + 3))
    settle(machine, first, problem, FIRST + 4)
    assert notices(machine) == [again.notice] * len(left)
    assert kinds(machine) == left


def test_a_hook_that_still_fails_after_a_day_is_given_up() -> None:
    machine = SteppedEngine(**HOOKED)
    hook = ended_once(machine)
    settle(machine, hook, "no", FIRST + 1 + LONGEST_KEPT_MS)
    assert kinds(machine) == []


def test_a_function_that_this_node_has_not_is_left_to_others_for_a_day() -> None:
    machine = SteppedEngine(on_complete=Call("tell"))
    ended_once(machine)
    machine.boot("node-2")
    machine.engine.has_function = lambda _target: False
    orders, _ = machine.engine.take_over(lambda process: process.pid == 2, FIRST + 2)
    assert (hooks_of(orders), kinds(machine)) == ([], ["on_complete"])
    asked(machine, FIRST + 1 + LONGEST_KEPT_MS)
    assert kinds(machine) == []
    assert str(machine.events()[-1].reason) == "no scheduler has the function 'tell'"


def test_a_hook_whose_occurrence_is_gone_is_given_up_with_an_event() -> None:
    machine = SteppedEngine(**HOOKED)
    ended_once(machine)
    machine.store.update(lambda tx: Records(tx, FIRST + 2).delete(keys.occurrence_key("job", FIRST)))
    assert hooks_of(next_life(machine, FIRST + 3)) == []
    assert kinds(machine) == []
    assert "HookFailed" in machine.event_names()


def test_hooks_that_nobody_takes_are_bounded_and_leave_room_for_notices() -> None:
    machine = SteppedEngine("* * * * * *", on_complete="say end", notify=NotifyPolicy("x"))
    orders = [ended_once(machine, START + number * 1_000) for number in range(1, MOST_HOOKS + 3)]
    assert len(kinds(machine)) == MOST_HOOKS
    assert [order.notice is None for order in orders[-3:]] == [False, True, True], "called once all the same"
    (launch,) = machine.tick(START + (MOST_HOOKS + 3) * 1_000)
    machine.end(launch, BAD, START + (MOST_HOOKS + 3) * 1_000 + 1)
    assert "failing" in kinds(machine)


def test_two_occurrences_that_end_in_one_millisecond_have_a_notice_each() -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.ALLOW, on_complete="say end")
    (one,) = machine.tick(FIRST)
    (two,) = machine.tick(FIRST + MINUTE)
    for launch in (one, two):
        machine.end(launch, OK, FIRST + MINUTE + 1)
    assert kinds(machine) == ["on_complete", "on_complete"]
