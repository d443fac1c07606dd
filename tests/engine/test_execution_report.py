"""The execution report: strategies, attempts, pauses, durations, and the words for what became of each task."""

from __future__ import annotations

from typing import Any

import pytest

from chronex.engine.commands.dead_letters import drop_dead_letter, replay_dead_letter
from chronex.engine.execution_report import MOST_TRIES, Report, report_of
from chronex.engine.orders import Launch, RunHook
from chronex.model.job import Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import FailureStrategy, RetryPolicy, TaskMode
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import AttemptState, OccurrenceState
from tests.kit.machine import FIRST, ONE, START, TWO, SteppedEngine

SECOND = 1_000
EXIT_3 = {"reason": Reason(ReasonCode.EXIT_CODE, "exit code 3"), "exit_code": 3}
LATE = {"reason": Reason(ReasonCode.TIMEOUT, "stopped after 2s")}


def report(machine: SteppedEngine, nominal: int = FIRST) -> Report:
    """As it is read later, by `chronex report`."""
    occurrence = machine.occurrence(nominal)
    return machine.read(lambda reading: report_of(reading, reading.version_run(occurrence), occurrence))


def test_attempts_have_their_times_their_pauses_and_their_reasons_and_the_task_its_sums() -> None:
    retry = RetryPolicy(max=2, interval_ms=30 * SECOND, backoff=2, max_interval_ms=None, jitter=0)
    machine = SteppedEngine("0 * * * *", retry=retry, on_complete="say end")
    hour = FIRST + 59 * 60 * SECOND
    now = hour
    (launch,) = machine.tick(now)
    orders: Any = ()
    for ran_ms, state, end in ((2_000, "failed", EXIT_3), (3_000, "timeout", LATE), (1_000, "success", {})):
        machine.store.update(machine.engine.started(launch.attempt, None, "", now + 5))
        orders = machine.end(launch, state, now + 5 + ran_ms, **end)
        pause_ms = 30_000 if state == "failed" else 60_000
        now += 5 + ran_ms + pause_ms
        if state != "success":
            (launch,) = machine.tick(now)
    told = report(machine, hour)
    (task,) = told.tasks
    assert [
        (one.number, one.status, one.duration_ms, one.pause_ms, one.reason, one.exit_code) for one in task.tries
    ] == [
        (1, "failed", 2_000, None, "exit code 3", 3),
        (2, "timed_out", 3_000, 30_005, "stopped after 2s", None),
        (3, "succeeded", 1_000, 60_005, "", None),
    ]
    assert [one.started_ms for one in task.tries] == [hour + 5, hour + 32_010, hour + 95_015]
    assert (task.status, task.attempts, task.earlier_tries) == ("succeeded", 3, 0)
    assert (task.duration_ms, task.running_ms, task.pausing_ms) == (96_015, 6_000, 90_010)
    assert (told.status, told.duration_ms, told.wait_ms) == ("completed", 96_015, 0)
    totals = told.totals
    assert (totals.attempts, totals.retries, totals.running_ms, totals.pausing_ms) == (3, 2, 6_000, 90_010)
    (hook,) = orders
    assert isinstance(hook, RunHook)
    (called,) = hook.report.tasks
    assert (called, hook.report.totals) == (task, totals), "the hook is given the same document"


def test_each_task_tells_the_strategy_that_held_for_it() -> None:
    own = Task(name="own", run=("true",), on_failure=FailureStrategy.CONTINUE)
    machine = SteppedEngine(tasks=(ONE, own), failure=FailureStrategy.FAIL_FAST)
    machine.tick(FIRST)
    told = report(machine)
    assert (told.on_failure, [task.on_failure for task in told.tasks]) == ("fail_fast", ["fail_fast", "continue"])


@pytest.mark.parametrize(
    ("ends", "statuses", "status"),
    [
        ([("success", {}), ("success", {})], ["succeeded", "succeeded"], "completed"),
        ([("success", {}), ("failed", EXIT_3)], ["succeeded", "failed"], "failed"),
        ([("failed", EXIT_3)], ["failed", "canceled"], "failed"),
        ([("timeout", LATE)], ["timed_out", "canceled"], "failed"),
        ([("crashed", {"retryable": False})], ["crashed", "canceled"], "failed"),
        ([("canceled", {"reason": Reason(ReasonCode.CANCELED)})], ["canceled", "canceled"], "canceled"),
        ([("success", {})], ["succeeded", "running"], "running"),
        ([], ["running", "waiting"], "running"),
    ],
)
def test_the_status_is_a_word_that_people_use(ends: list[Any], statuses: list[str], status: str) -> None:
    machine = SteppedEngine(tasks=(ONE, TWO), retry=RetryPolicy(max=0))
    launches = machine.tick(FIRST)
    for number, (state, more) in enumerate(ends):
        launches = machine.launches_after(launches[0], state, FIRST + 1 + number, **more)
    told = report(machine)
    assert ([task.status for task in told.tasks], told.status) == (statuses, status)
    assert told.totals.failed == sum(one in ("failed", "timed_out", "crashed") for one in statuses)


def test_a_completed_occurrence_with_failures_says_so() -> None:
    machine = SteppedEngine(failure=FailureStrategy.CONTINUE, retry=RetryPolicy(max=0))
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 1, **EXIT_3)
    assert (report(machine).status, report(machine).state, report(machine).errors) == (
        "completed_with_errors",
        "completed",
        1,
    )


def test_a_task_that_waits_for_its_retry_says_so() -> None:
    machine = SteppedEngine(retry=RetryPolicy(max=1, interval_ms=60_000))
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 1, **EXIT_3)
    assert [task.status for task in report(machine).tasks] == ["waiting_for_retry"]


def test_an_occurrence_that_outlived_its_deadline_and_its_owner_timed_out() -> None:
    machine = SteppedEngine(execution_timeout_ms=1_000)
    (launch,) = machine.tick(FIRST)
    machine.store.update(machine.engine.started(launch.attempt, ProcessIdentity(7, "boot", 5), "", FIRST))
    machine.boot("node-2")
    machine.engine.take_over(lambda process: process.pid == 2, FIRST + 120_000)
    told = report(machine)
    assert (told.state, told.status, told.tasks[0].status) == ("failed_stale", "timed_out", "timed_out")


@pytest.mark.parametrize(
    ("command", "since_then"), [(replay_dead_letter, "replayed: occ_"), (drop_dead_letter, "dropped by ann")]
)
def test_what_is_done_with_a_dead_letter_later_does_not_change_what_it_was(command: Any, since_then: str) -> None:
    machine = SteppedEngine(retry=RetryPolicy(max=0))
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 1, **EXIT_3)
    before = report(machine).tasks[0]
    machine.ask(command, machine.run(FIRST).id)
    after = report(machine).tasks[0]
    assert (after.status, after.reason, after.exit_code) == (before.status, before.reason, before.exit_code)
    assert (before.since_then, after.since_then[: len(since_then)]) == ("", since_then)


def test_a_task_that_was_tried_for_ever_is_told_by_its_last_attempts() -> None:
    machine = SteppedEngine("0 0 1 1 *", start=START - 1, retry=RetryPolicy(max=None, interval_ms=1_000, jitter=0))
    now = START
    (launch,) = machine.tick(now)
    for _ in range(MOST_TRIES + 4):
        machine.end(launch, AttemptState.FAILED, now + 1, **EXIT_3)
        now += 601_000  # past the longest pause
        (launch,) = (order for order in machine.engine.tick(now, START - 1).orders if isinstance(order, Launch))
    (task,) = report(machine, START).tasks
    assert (task.attempts, len(task.tries), task.earlier_tries) == (MOST_TRIES + 5, MOST_TRIES, 5)
    assert task.tries[-1].number == MOST_TRIES + 5


def test_without_the_version_the_report_has_what_the_records_know() -> None:
    machine = SteppedEngine(tasks=(TWO, ONE), mode=TaskMode.PARALLEL)
    machine.tick(FIRST)
    occurrence = machine.occurrence(FIRST)
    assert occurrence.state is OccurrenceState.RUNNING
    told = machine.read(lambda reading: report_of(reading, None, occurrence))
    assert sorted(task.task for task in told.tasks) == ["one", "two"]
    assert (told.on_failure, told.tasks[0].on_failure) == ("", None)
