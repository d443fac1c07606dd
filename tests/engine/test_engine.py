"""One tick at a time: what is decided, what is recorded, what is ordered."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from chronex.engine.checked_ends import answered
from chronex.engine.decisions import MOST_PLANNED
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Cancel, Launch
from chronex.engine.plan import FEW_LISTED, MANY_DUE, MOST_CATCH_UP, MOST_COUNTED, MOST_LISTED, TOO_MANY
from chronex.engine.update import Change, apply_jobs
from chronex.model.job import Job
from chronex.model.occurrence import ProcessIdentity, occurrence_id
from chronex.model.policies import (
    Cadence,
    CrashCheck,
    CrashPolicy,
    FailureStrategy,
    OverlapPolicy,
    RecoveryPolicy,
    RecoveryStrategy,
    RetryPolicy,
    TaskMode,
)
from chronex.model.reasons import Reason, ReasonCode, free_text
from chronex.model.records import Node
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage import journal
from chronex.storage.keys import OCCURRENCE
from chronex.storage.records import Reading, Records
from chronex.testing import HOUR, MINUTE, SECOND, ProcessOutcome, SimulatedMachine
from tests.kit.machine import FIRST, ONE, START, THREE, TWO, SteppedEngine, steady
from tests.verify.assertion import assert_verified


def test_nothing_happens_before_the_first_instant() -> None:
    stepped = SteppedEngine()
    assert stepped.tick(FIRST - 1) == []
    assert stepped.engine.tick(FIRST - 1, START).next_ms == FIRST


def test_an_instant_is_claimed_recorded_and_ordered_in_one_tick_and_never_again() -> None:
    stepped = SteppedEngine()
    (launch,) = stepped.tick(FIRST)
    assert (launch.occurrence.nominal_ms, launch.attempt.number, launch.task.name) == (FIRST, 1, "one")
    assert stepped.occurrence(FIRST).state is OccurrenceState.RUNNING
    assert stepped.occurrence(FIRST).owner == "node-1"
    assert stepped.tick(FIRST) == []


def test_success_completes_the_occurrence() -> None:
    stepped = SteppedEngine()
    (launch,) = stepped.tick(FIRST)
    stepped.end(launch, AttemptState.SUCCESS, FIRST + 500, exit_code=0, task_state={"seen": "42"})
    assert stepped.occurrence(FIRST).state is OccurrenceState.COMPLETED
    assert stepped.event_names()[-2:] == ["TaskRunCompleted", "OccurrenceCompleted"]
    kept = stepped.store.view(lambda tx: Reading(tx).task_state("job", "one", "seen"))
    assert kept is not None
    assert kept.value == "42"


def test_an_end_that_comes_twice_changes_nothing() -> None:
    stepped = SteppedEngine()
    (launch,) = stepped.tick(FIRST)
    stepped.end(launch, AttemptState.SUCCESS, FIRST + 500)
    assert stepped.end(launch, AttemptState.FAILED, FIRST + 900) == ()
    assert stepped.occurrence(FIRST).state is OccurrenceState.COMPLETED


def test_tasks_run_one_after_the_other() -> None:
    stepped = SteppedEngine(tasks=(ONE, TWO))
    (first,) = stepped.tick(FIRST)
    (second,) = stepped.end(first, AttemptState.SUCCESS, FIRST + 1)
    assert isinstance(second, Launch)
    assert second.task.name == "two"
    stepped.end(second, AttemptState.SUCCESS, FIRST + 2)
    assert stepped.occurrence(FIRST).state is OccurrenceState.COMPLETED


def test_fail_fast_cancels_the_tasks_behind() -> None:
    stepped = SteppedEngine(tasks=(ONE, TWO))
    (first,) = stepped.tick(FIRST)
    assert stepped.end(first, AttemptState.FAILED, FIRST + 1, reason=free_text("exit 3"), exit_code=3) == ()
    assert stepped.run(FIRST).state is RunState.DLQ
    assert stepped.run(FIRST, "two").state is RunState.CANCELED
    assert str(stepped.occurrence(FIRST).reason) == "one: exit 3"


def test_parallel_tasks_start_together_and_fail_fast_stops_the_others_but_not_one_that_continues() -> None:
    steady = replace(THREE, on_failure=FailureStrategy.CONTINUE)
    stepped = SteppedEngine(tasks=(ONE, TWO, steady), mode=TaskMode.PARALLEL)
    launches = {launch.task.name: launch for launch in stepped.tick(FIRST)}
    assert set(launches) == {"one", "two", "three"}
    orders = stepped.end(launches["one"], AttemptState.FAILED, FIRST + 1)
    assert [o.attempt.task for o in orders if isinstance(o, Cancel)] == ["two"]
    stepped.end(launches["two"], AttemptState.CANCELED, FIRST + 2, reason=Reason(ReasonCode.PEER_FAILED))
    assert stepped.occurrence(FIRST).state is OccurrenceState.RUNNING
    stepped.end(launches["three"], AttemptState.SUCCESS, FIRST + 3)
    assert stepped.occurrence(FIRST).state is OccurrenceState.FAILED


def test_a_failed_run_is_tried_again_after_its_pause() -> None:
    stepped = SteppedEngine("0 0 * * *", retry=steady(1, 5000))
    midnight = START + 24 * 60 * MINUTE
    (launch,) = stepped.tick(midnight)
    stepped.end(launch, AttemptState.FAILED, midnight + 1000)
    assert stepped.run(midnight).next_attempt_ms == midnight + 6000
    assert stepped.tick(midnight + 5999) == []
    (again,) = stepped.tick(midnight + 6000)
    assert again.attempt.number == 2
    stepped.end(again, AttemptState.FAILED, midnight + 7000)
    assert stepped.run(midnight).state is RunState.DLQ


def test_a_stored_job_without_a_task_fails_and_says_why() -> None:
    stepped = SteppedEngine("* * * * * {max:2}", tasks=())
    assert stepped.tick(FIRST) == []
    occurrence = stepped.occurrence(FIRST)
    assert (occurrence.state, occurrence.reason) == (OccurrenceState.FAILED, Reason(ReasonCode.NO_TASKS))
    counters = stepped.stored().progress.counters
    assert (counters.completed, counters.failed, counters.failures_in_a_row) == (0, 1, 1)


def test_an_exit_code_that_is_not_to_be_retried_goes_to_the_dead_letters_at_once() -> None:
    stepped = SteppedEngine(retry=RetryPolicy(max=5))
    (launch,) = stepped.tick(FIRST)
    stepped.end(launch, AttemptState.FAILED, FIRST + 1, retryable=False)
    assert stepped.run(FIRST).state is RunState.DLQ


@pytest.mark.parametrize(
    ("policy", "state"),
    [(OverlapPolicy.SKIP, OccurrenceState.SKIPPED), (OverlapPolicy.QUEUE, OccurrenceState.QUEUED)],
)
def test_an_occurrence_due_while_an_earlier_one_runs(policy: OverlapPolicy, state: OccurrenceState) -> None:
    stepped = SteppedEngine(overlap=policy)
    stepped.tick(FIRST)
    assert stepped.tick(FIRST + MINUTE) == []
    assert stepped.occurrence(FIRST + MINUTE).state is state


def test_the_queue_moves_when_the_running_one_ends() -> None:
    stepped = SteppedEngine(overlap=OverlapPolicy.QUEUE)
    (launch,) = stepped.tick(FIRST)
    stepped.tick(FIRST + MINUTE)
    (following,) = stepped.end(launch, AttemptState.SUCCESS, FIRST + MINUTE + 1)
    assert isinstance(following, Launch)
    assert following.occurrence.nominal_ms == FIRST + MINUTE


def test_what_an_end_lets_out_of_the_queue_starts_when_that_is_decided_and_not_before_it_is_due() -> None:
    """The end waited for the store; meanwhile the next instant came and was queued."""
    stepped = SteppedEngine(overlap=OverlapPolicy.QUEUE)
    (launch,) = stepped.tick(FIRST)
    due, decided = FIRST + MINUTE, FIRST + MINUTE + 30
    stepped.tick(due)
    stepped.engine.read_clock = lambda: decided
    (following,) = stepped.launches_after(launch, AttemptState.SUCCESS, due - 600)
    assert (following.occurrence.started_ms, following.attempt.created_ms) == (decided, decided)
    assert (stepped.occurrence(FIRST).finished_ms, stepped.occurrence(due).started_ms) == (due - 600, decided)
    assert_verified(stepped.store, has_daemon=False)


def test_cancel_running_stops_the_old_one_and_starts_the_new_one_when_it_is_gone() -> None:
    stepped = SteppedEngine(overlap=OverlapPolicy.CANCEL_RUNNING)
    (launch,) = stepped.tick(FIRST)
    (cancel,) = stepped.engine.tick(FIRST + MINUTE, START).orders
    assert isinstance(cancel, Cancel)
    assert cancel.attempt.id == launch.attempt.id
    (following,) = stepped.end(launch, AttemptState.CANCELED, FIRST + MINUTE + 1, reason=cancel.reason)
    assert isinstance(following, Launch)
    assert stepped.occurrence(FIRST).state is OccurrenceState.CANCELED


def test_cancel_running_is_up_to_date_after_the_pool_was_full() -> None:
    """Another job has the only slot for half a minute; then the newest instant runs, not the one of half a minute ago."""
    per_second = Job(id="per-second", schedule="* * * * * *", tasks=(ONE,), overlap=OverlapPolicy.CANCEL_RUNNING)
    long = Job(id="long", schedule="@once 2027-01-01T00:00:00.5Z", tasks=(ONE,))
    outcome = {"long": ProcessOutcome(30 * SECOND), "per-second": ProcessOutcome(HOUR)}
    machine = SimulatedMachine([per_second, long], slots=1, outcome=lambda launch: outcome[launch.job.id])
    machine.run_for(MINUTE)
    first, *others = machine.occurrences("per-second")
    lags = [one.started_ms - one.due_ms for one in others if one.started_ms is not None]
    assert len(lags) > 25
    assert max(lags) < SECOND
    skipped = [one for one in (first, *others) if one.state is OccurrenceState.SKIPPED]
    assert 25 < len(skipped) < 31
    assert [one.reason for one in skipped] == [
        Reason(ReasonCode.GAVE_WAY, occurrence_id("per-second", one.nominal_ms + SECOND)) for one in skipped
    ]


def test_cancel_running_waits_for_one_that_does_not_stop_at_once_with_the_newest_only() -> None:
    stepped = SteppedEngine(overlap=OverlapPolicy.CANCEL_RUNNING)
    (launch,) = stepped.tick(FIRST)
    for minute in (1, 2, 3):
        stepped.tick(FIRST + minute * MINUTE)
    (following,) = stepped.launches_after(launch, AttemptState.CANCELED, FIRST + 3 * MINUTE + 1)
    assert following.occurrence.nominal_ms == FIRST + 3 * MINUTE
    assert [stepped.occurrence(FIRST + minute * MINUTE).state for minute in (1, 2)] == [OccurrenceState.SKIPPED] * 2


def test_max_counts_executions_and_ends_the_schedule() -> None:
    stepped = SteppedEngine("* * * * * {max:2}")
    for minute in range(1, 5):
        for launch in stepped.tick(START + minute * MINUTE):
            stepped.end(launch, AttemptState.FAILED, START + minute * MINUTE + 1)
    fired = [o for o in stepped.store.view(lambda tx: Reading(tx).occurrences("job")) if o.started_ms]
    assert len(fired) == 2


def test_a_paused_job_skips_with_the_name_of_who_paused_it() -> None:
    stepped = SteppedEngine()
    job = stepped.store.view(lambda tx: Reading(tx).job("job"))
    assert job is not None
    stepped.store.update(lambda tx: Records(tx, START).put(job.progressed(paused=True, paused_by="ada")))
    assert stepped.tick(FIRST) == []
    assert str(stepped.occurrence(FIRST).reason) == "paused by ada"


def test_jitter_is_drawn_once_and_the_run_waits_for_it() -> None:
    stepped = SteppedEngine("* * * * * {jitter:30s}")
    stepped.tick(FIRST)
    due = stepped.occurrence(FIRST).due_ms
    assert FIRST < due < FIRST + 30_000
    assert stepped.tick(due - 1) == []
    assert len(stepped.tick(due)) == 1


def test_a_fixed_delay_counts_from_the_end_of_the_run() -> None:
    stepped = SteppedEngine("@every 60s", cadence=Cadence.FIXED_DELAY)
    (launch,) = stepped.tick(FIRST)
    stepped.end(launch, AttemptState.SUCCESS, FIRST + 10_000)
    assert stepped.tick(FIRST + MINUTE) == []
    assert len(stepped.tick(FIRST + 10_000 + MINUTE)) == 1


def test_a_successor_takes_up_what_a_dead_node_left() -> None:
    stepped = SteppedEngine()
    (launch,) = stepped.tick(FIRST)
    dead = Node(id="node-1", process=ProcessIdentity(1, "boot", 1))
    stepped.store.update(lambda tx: Records(tx, FIRST).put(dead))
    stepped.store.update(stepped.engine.started(launch.attempt, ProcessIdentity(77, "boot", 5), "", FIRST))
    successor = Engine(stepped.store, "node-2", 10, Random(1))
    orders, adopted = successor.take_over(lambda identity: identity.pid == 77, FIRST + 1000)
    assert (orders, [attempt.id for attempt in adopted]) == ((), [launch.attempt.id])
    # The orphan counts for the overlap policy; once it is gone, its end is recorded by the successor.
    assert successor.tick(FIRST + MINUTE, START).orders == ()
    gone = AttemptEnd(AttemptState.CRASHED, free_text("its exit code is not known"))
    stepped.store.update(successor.ended(adopted[0], gone, FIRST + MINUTE + 1))
    (again,) = successor.tick(FIRST + MINUTE + 1, START).orders
    assert isinstance(again, Launch)
    assert again.attempt.number == 2


def test_an_attempt_that_died_with_its_node_is_tried_again_but_not_for_ever() -> None:
    stepped = SteppedEngine("0 0 1 1 *")
    new_year = START + 365 * 24 * 60 * MINUTE
    orders = stepped.tick(new_year)
    launches, engine = 1, stepped.engine
    for number in range(1, 8):
        for launch in orders:
            stepped.store.update(engine.started(launch.attempt, ProcessIdentity(90, "boot", number), "", new_year))
        dead = Node(id=f"node-{number}", process=ProcessIdentity(number, "boot", 1))
        stepped.store.update(lambda tx, node=dead: Records(tx, new_year).put(node))  # type: ignore[misc]
        engine = Engine(stepped.store, f"node-{number + 1}", 10, Random(1))
        engine.take_over(lambda identity: False, new_year + number)
        orders = [one for one in engine.tick(new_year + number, new_year).orders if isinstance(one, Launch)]
        launches += len(orders)
    assert launches == 4
    assert stepped.run(new_year).state is RunState.DLQ


@pytest.mark.parametrize("on_crash", list(CrashPolicy))
@pytest.mark.parametrize("adopted", [True, False], ids=["adopted", "gone"])
def test_on_crash_holds_for_a_child_that_was_adopted_as_for_one_that_was_gone(
    on_crash: CrashPolicy, adopted: bool
) -> None:
    stepped = SteppedEngine("0 0 1 1 *", on_crash=on_crash, retry=steady(3, 1000))
    new_year = START + 365 * 24 * 60 * MINUTE
    (launch,) = stepped.tick(new_year)
    stepped.store.update(stepped.engine.started(launch.attempt, ProcessIdentity(77, "boot", 5), "", new_year))
    dead = Node(id="node-1", process=ProcessIdentity(1, "boot", 1))
    stepped.store.update(lambda tx: Records(tx, new_year).put(dead))
    successor = Engine(stepped.store, "node-2", 10, Random(1))
    _, orphans = successor.take_over(lambda identity: adopted and identity.pid == 77, new_year + 1)
    for orphan in orphans:
        unknown = AttemptEnd(AttemptState.CRASHED, free_text("its exit code is not known"))
        stepped.store.update(successor.ended(orphan, unknown, new_year + 2))
    again = [order for order in successor.tick(new_year + 5_000, START).orders if isinstance(order, Launch)]
    assert len(again) == (1 if on_crash is CrashPolicy.RETRY else 0)
    assert stepped.run(new_year).state is (RunState.RUNNING if again else RunState.DLQ)


@pytest.mark.parametrize(
    ("code", "state"),
    [(0, RunState.SUCCESS), (1, RunState.RUNNING), (None, RunState.DLQ)],
    ids=["done", "not done", "no answer"],
)
def test_a_check_says_whether_a_child_that_is_gone_had_done_its_work(code: int | None, state: RunState) -> None:
    stepped = SteppedEngine("0 0 1 1 *", on_crash=CrashCheck(("test", "-e", "done")), retry=steady(3, 1000))
    new_year = START + 365 * 24 * 60 * MINUTE
    (launch,) = stepped.tick(new_year)
    stepped.store.update(stepped.engine.started(launch.attempt, ProcessIdentity(77, "boot", 5), "", new_year))
    dead = Node(id="node-1", process=ProcessIdentity(1, "boot", 1))
    stepped.store.update(lambda tx: Records(tx, new_year).put(dead))
    for number in (2, 3):  # the first of them dies before its check has answered
        successor = Engine(stepped.store, f"node-{number}", 10, Random(1))
        _, (orphan,) = successor.take_over(lambda _identity: False, new_year + number)
        node = Node(id=f"node-{number}", process=ProcessIdentity(number, "boot", 1))
        stepped.store.update(lambda tx, node=node: Records(tx, new_year).put(node))  # type: ignore[misc]
        assert stepped.run(new_year).state is RunState.RUNNING
    unknown = AttemptEnd(AttemptState.CRASHED, Reason(ReasonCode.OWNER_DIED))
    stepped.store.update(successor.ended(orphan, answered(unknown, code, "said"), new_year + 9))
    again = [order for order in successor.tick(new_year + 5_000, START).orders if isinstance(order, Launch)]
    assert len(again) == (1 if code == 1 else 0)
    assert stepped.run(new_year).state is state


def test_an_attempt_that_never_started_is_tried_again_as_often_as_it_takes() -> None:
    stepped = SteppedEngine("0 0 1 1 *", on_crash=CrashPolicy.FAIL)
    new_year = START + 365 * 24 * 60 * MINUTE
    stepped.tick(new_year)
    for number in range(1, 8):
        dead = Node(id=f"node-{number}", process=ProcessIdentity(number, "boot", 1))
        stepped.store.update(lambda tx, node=dead: Records(tx, new_year).put(node))  # type: ignore[misc]
        successor = Engine(stepped.store, f"node-{number + 1}", 10, Random(1))
        successor.take_over(lambda identity: False, new_year + number)
        (again,) = successor.tick(new_year + number, new_year).orders
        assert isinstance(again, Launch)
        assert again.attempt.number == number + 1


def test_applying_the_same_jobs_again_changes_nothing() -> None:
    stepped = SteppedEngine()
    before = stepped.store.view(lambda tx: Reading(tx).job("job"))
    assert [c.change for c in apply_jobs(stepped.store, [stepped.job], START + 5)] == [Change.UNCHANGED]
    assert stepped.store.view(lambda tx: Reading(tx).job("job")) == before


def test_an_edited_schedule_gets_a_version_and_never_fires_at_once() -> None:
    stepped = SteppedEngine("0 0 * * *")
    noon = START + 12 * 60 * MINUTE
    edited = replace(stepped.job, schedule="0 * * * *")
    assert [c.change for c in apply_jobs(stepped.store, [edited], noon + 5)] == [Change.CHANGED]
    assert stepped.tick(noon + 5) == []
    job = stepped.store.view(lambda tx: Reading(tx).job("job"))
    assert job is not None
    assert (job.version, job.progress.next_ms) == (2, noon + 60 * MINUTE)


def test_a_job_that_is_gone_keeps_its_history_and_starts_nothing() -> None:
    stepped = SteppedEngine("* * * * * {jitter:30s}")
    stepped.tick(FIRST)
    assert [c.change for c in apply_jobs(stepped.store, [], FIRST)] == [Change.REMOVED]
    assert stepped.tick(FIRST + MINUTE) == []
    assert stepped.occurrence(FIRST).state is OccurrenceState.CANCELED


SECONDLY = "* * * * * *"
TEN_YEARS = 10 * 366 * 24 * 60 * MINUTE


def waiting(stepped: SteppedEngine, state: OccurrenceState) -> list[int]:
    found = stepped.store.view(lambda tx: Reading(tx).occurrences("job", limit=10_000))
    return [one.nominal_ms for one in found if one.state is state]


@pytest.mark.parametrize(
    "recovery",
    [
        RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL),
        RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=1_000_000),
        RecoveryPolicy(RecoveryStrategy.BOUNDED, max_age_ms=TEN_YEARS),
    ],
    ids=["execute_all", "bounded by a million", "bounded by ten years"],
)
def test_ten_years_of_seconds_owe_a_thousand_runs_and_the_others_are_one_span(recovery: RecoveryPolicy) -> None:
    stepped = SteppedEngine(SECONDLY, recovery=recovery)
    now = START + TEN_YEARS + 1
    tick = stepped.engine.tick(now, awake_since_ms=now)
    assert (len(tick.orders), tick.has_more) == (1, False)
    assert len(waiting(stepped, OccurrenceState.QUEUED)) == MOST_CATCH_UP - 1
    (event,) = [
        event for _, event in stepped.store.view(lambda tx: journal.tail(tx, 0, 10_000)) if event.data.get("count")
    ]
    first_kept = now - 1 - (MOST_CATCH_UP - 1) * 1000
    assert (event.name, event.reason) == ("OccurrencesMissed", TOO_MANY)
    assert event.data == {"from_ms": START + 1000, "to_ms": first_kept - 1000, "count": MOST_COUNTED, "is_more": True}
    older = stepped.occurrence(first_kept).older
    assert older is not None
    assert (older.from_ms, older.to_ms, older.reason) == (START + 1000, first_kept - 1000, TOO_MANY)


def test_downtime_after_downtime_never_catches_up_with_more_than_a_thousand() -> None:
    stepped = SteppedEngine(SECONDLY, recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL))
    for outage in range(1, 6):
        now = START + outage * 3_600_000 + 1
        stepped.engine.tick(now, awake_since_ms=now)
        assert len(waiting(stepped, OccurrenceState.QUEUED)) <= MOST_CATCH_UP
    assert stepped.occurrence(now - 1).reason == TOO_MANY


def test_a_tick_takes_no_more_jobs_once_it_has_planned_enough() -> None:
    stepped = SteppedEngine()
    jobs = [Job(id=f"job-{n}", schedule=SECONDLY, tasks=(ONE,)) for n in range(20)]
    apply_jobs(stepped.store, jobs, START)
    now, ticks, planned = START + TEN_YEARS, 0, 0
    while True:
        tick = stepped.engine.tick(now, awake_since_ms=now)
        before, planned = planned, len(stepped.store.view(lambda tx: tx.scan(OCCURRENCE, None, 1_000_000)))
        assert planned - before < MOST_PLANNED + MOST_CATCH_UP
        ticks += 1
        if not tick.has_more:
            break
    assert (ticks, planned) == (4, 20 * 501)


def test_where_many_jobs_come_back_at_once_few_instants_of_each_have_records() -> None:
    stepped = SteppedEngine()
    apply_jobs(stepped.store, [Job(id=f"job-{n:03}", schedule=SECONDLY, tasks=(ONE,)) for n in range(120)], START)
    now = START + TEN_YEARS
    while stepped.engine.tick(now, awake_since_ms=now).has_more:
        pass
    listed = stepped.store.view(lambda tx: Reading(tx).occurrences("job-000", limit=1_000))
    assert len(listed) == FEW_LISTED + 1  # and the one that is due just now
    assert listed[-1].older is not None
    records = len(stepped.store.view(lambda tx: tx.scan(OCCURRENCE, None, 1_000_000)))
    assert records < 120 * (FEW_LISTED + 1) + MANY_DUE * MOST_LISTED


def test_a_random_interval_that_slept_long_runs_once_and_goes_on_with_its_chain() -> None:
    stepped = SteppedEngine("@every 1s-3s")
    now = START + 12 * 3_600_000
    launches: list[Launch] = []
    while True:
        tick = stepped.engine.tick(now, awake_since_ms=now)
        launches += [order for order in tick.orders if isinstance(order, Launch)]
        job = stepped.store.view(lambda tx: Reading(tx).job("job"))
        assert job is not None
        if job.progress.next_ms is None or job.progress.next_ms > now:
            break
    assert len(launches) == 1
    assert now - 3_000 <= launches[0].occurrence.nominal_ms == job.progress.cursor_ms
    spans = [
        e.data for _, e in stepped.store.view(lambda tx: journal.tail(tx, 0, 10_000)) if e.name == "OccurrencesMissed"
    ]
    assert len(spans) == 3
    assert spans[0]["from_ms"] <= START + 3_000
