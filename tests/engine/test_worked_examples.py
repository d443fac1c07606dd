"""The worked examples of the specifications, with their own numbers; specs/conformance.md names them row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

import chronex
from chronex.engine.commands import trigger
from chronex.engine.engine import Engine
from chronex.engine.orders import Cancel, Launch, RunHook
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence, ProcessIdentity
from chronex.model.policies import (
    FailureStrategy,
    OverlapPolicy,
    RecoveryPolicy,
    RecoveryStrategy,
    RetryPolicy,
    TaskMode,
)
from chronex.model.states import AttemptState, OccurrenceState
from chronex.testing import DAY, HOUR, MINUTE, SimulatedMachine
from tests.kit.machine import FIRST, ONE, START, THREE, TWO, SteppedEngine, steady

TASK = (Task(name="main", run=("true",)),)
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


# -- schedules ---------------------------------------------------------------------------------------------


def test_a_daily_schedule_that_begins_at_two_runs_first_on_the_next_day() -> None:
    expression = chronex.parse("0 5 * * * {from:2027-01-01T14:00:00}")
    assert expression.next(NEW_YEAR + timedelta(hours=14)) == NEW_YEAR + timedelta(days=1, hours=5)
    assert expression.next(NEW_YEAR) == NEW_YEAR + timedelta(days=1, hours=5)


@pytest.mark.parametrize(
    "text", ["0 9 * * MON-FRI", "@daily", "@once 2027-03-01T00:00:00Z", "R/2027-01-01T00:00/P1M"]
)
def test_a_tag_changes_no_instant(text: str) -> None:
    plain, tagged = chronex.parse(text), chronex.parse(f"{text} {{tag:monthly+report}}")
    assert list(plain.upcoming(NEW_YEAR, limit=20)) == list(tagged.upcoming(NEW_YEAR, limit=20))


def test_jobs_on_one_schedule_run_side_by_side() -> None:
    stepped = SteppedEngine()
    jobs = [Job(id=name, schedule="0 * * * *", tasks=(ONE,)) for name in ("a", "b", "c")]
    apply_jobs(stepped.store, jobs, START)
    assert [launch.job.id for launch in stepped.tick(START + HOUR)] == ["a", "b", "c"]


def test_a_job_that_is_switched_off_does_not_fire() -> None:
    stepped = SteppedEngine(enabled=False)
    assert [stepped.tick(FIRST + minute * MINUTE) for minute in range(3)] == [[], [], []]
    assert stepped.read(lambda reading: reading.occurrences("job")) == []


@pytest.mark.parametrize(
    ("window", "state"), [("1ms", OccurrenceState.SKIPPED), ("2m", OccurrenceState.RUNNING)], ids=["short", "long"]
)
def test_what_stagger_and_jitter_delay_beyond_the_window_is_skipped(window: str, state: OccurrenceState) -> None:
    stepped = SteppedEngine(f"0 * * * * {{stagger:30s, jitter:30s, window:{window}}}")
    hour = START + HOUR
    stepped.tick(hour)
    due = stepped.occurrence(hour).due_ms
    assert due > hour + 1
    stepped.tick(due)
    assert stepped.occurrence(hour).state is state


def test_skips_do_not_count_towards_max() -> None:
    stepped = SteppedEngine("* * * * * {max:2}", overlap=OverlapPolicy.SKIP)
    (first,) = stepped.tick(FIRST)
    for minute in (1, 2, 3):
        assert stepped.tick(FIRST + minute * MINUTE) == []
    stepped.end(first, "success", FIRST + 3 * MINUTE + 1)
    assert len(stepped.tick(FIRST + 4 * MINUTE)) == 1


# -- failure -----------------------------------------------------------------------------------------------


def test_an_attempt_that_timed_out_is_tried_again_by_policy_and_stays_on_record() -> None:
    stepped = SteppedEngine("0 0 * * *", retry=steady(2, 5_000))
    nominal = START + DAY
    (first,) = stepped.tick(nominal)
    stepped.end(first, "timeout", nominal + 1_000)
    (second,) = stepped.tick(nominal + 6_000)
    stepped.end(second, "failed", nominal + 7_000, exit_code=3)
    (third,) = stepped.tick(nominal + 12_000)
    stepped.end(third, "success", nominal + 13_000)
    attempts = stepped.read(lambda reading: reading.attempts("job", nominal))
    assert [(one.number, one.state) for one in attempts] == [
        (1, AttemptState.TIMEOUT),
        (2, AttemptState.FAILED),
        (3, AttemptState.SUCCESS),
    ]
    assert stepped.occurrence(nominal).state is OccurrenceState.COMPLETED


def test_with_continue_all_tasks_run_whatever_fails() -> None:
    stepped = SteppedEngine("0 0 * * *", tasks=(ONE, TWO, THREE), failure=FailureStrategy.CONTINUE)
    nominal, ran = START + DAY, list[str]()
    launches = stepped.tick(nominal)
    while launches:
        (launch,) = launches
        ran.append(launch.task.name)
        launches = stepped.launches_after(launch, "failed", nominal + len(ran))
    assert ran == ["one", "two", "three"]


def test_the_report_tells_how_a_cancellation_spread() -> None:
    stepped = SteppedEngine(tasks=(ONE, TWO), failure=FailureStrategy.FAIL_FAST, on_complete="say end")
    (launch,) = stepped.tick(FIRST)
    (hook,) = stepped.end(launch, "failed", FIRST + 1, exit_code=3)
    assert isinstance(hook, RunHook)
    assert (hook.report.tasks[1].state, hook.report.tasks[1].reason) == (
        "canceled",
        "another task failed first: one",
    )


def test_peers_are_canceled_only_when_the_retries_are_used_up() -> None:
    stepped = SteppedEngine(
        "0 0 * * *",
        tasks=(ONE, TWO),
        mode=TaskMode.PARALLEL,
        failure=FailureStrategy.FAIL_FAST,
        retry=RetryPolicy(max=1, interval_ms=1_000),
    )
    nominal = START + DAY
    one, two = sorted(stepped.tick(nominal), key=lambda launch: launch.task.name)
    assert stepped.end(one, "failed", nominal + 1) == ()
    (again,) = stepped.tick(nominal + 5_000)
    (cancel,) = stepped.end(again, "failed", nominal + 5_001)
    assert isinstance(cancel, Cancel)
    assert cancel.attempt.id == two.attempt.id


def test_what_outlived_its_deadline_and_its_owner_is_given_up_and_frees_its_job() -> None:
    stepped = SteppedEngine(execution_timeout_ms=3 * MINUTE, on_complete="say end")
    (launch,) = stepped.tick(FIRST)
    stepped.store.update(stepped.engine.started(launch.attempt, ProcessIdentity(77, "boot", 5), "", FIRST))
    successor = Engine(stepped.store, "node-2", 10, Random(1))
    late = FIRST + 3 * MINUTE + MINUTE + 1
    orders, adopted = successor.take_over(lambda _: False, late)
    given_up = stepped.occurrence(FIRST)
    assert (given_up.state, given_up.finished_ms, adopted) == (OccurrenceState.FAILED_STALE, late, [])
    assert [order.report.state for order in orders if isinstance(order, RunHook)] == ["failed_stale"]
    assert successor.take_over(lambda _: False, late + 1) == ((), [])
    (following,) = successor.tick(FIRST + 5 * MINUTE, late).orders
    assert isinstance(following, Launch)
    assert following.occurrence.nominal_ms > FIRST


# -- recovery ----------------------------------------------------------------------------------------------


def after_downtime(schedule: str, downtime: int, recovery: RecoveryPolicy) -> list[Occurrence]:
    machine = SimulatedMachine([Job(id="job", schedule=schedule, tasks=TASK, recovery=recovery)])
    machine.run_for(30 * MINUTE)
    machine.go_down(downtime)
    machine.run_for(20 * MINUTE)
    return sorted(machine.occurrences("job"), key=lambda one: one.nominal_ms)


def test_five_hours_of_an_hourly_job_are_five_runs_in_order_and_flagged() -> None:
    found = after_downtime("0 * * * *", 5 * HOUR, RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL))
    assert [one.state for one in found] == [OccurrenceState.COMPLETED] * 5
    assert all(one.recovery for one in found)
    starts = [one.started_ms or 0 for one in found]
    assert starts == sorted(set(starts)), "one after the other, the oldest first"


def test_three_days_of_a_daily_job_are_three_missed() -> None:
    found = after_downtime("0 5 * * *", 3 * DAY, RecoveryPolicy(RecoveryStrategy.MARK_MISSED))
    assert [(one.state, one.started_ms) for one in found] == [(OccurrenceState.MISSED, None)] * 3


@pytest.mark.parametrize(
    ("policy", "run"),
    [
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_age_ms=24 * HOUR), 24),
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=100), 100),
    ],
    ids=["a day", "a hundred"],
)
def test_of_two_hundred_hours_a_day_or_a_hundred_run(policy: RecoveryPolicy, run: int) -> None:
    found = after_downtime("0 * * * *", 200 * HOUR, policy)
    assert len(found) == 200
    assert [one.started_ms is not None for one in found] == [False] * (200 - run) + [True] * run
    assert {one.state for one in found[: 200 - run]} == {OccurrenceState.MISSED}


# -- the pool ----------------------------------------------------------------------------------------------


def pool_of_two(jobs: int, **policy: object) -> SteppedEngine:
    stepped = SteppedEngine("0 0 1 1 *", places=2)
    hourly = [Job(id=f"job-{n}", schedule="0 * * * *", tasks=(ONE,), **policy) for n in range(jobs)]  # type: ignore[arg-type]
    apply_jobs(stepped.store, [stepped.job, *hourly], START)
    return stepped


def test_the_pool_is_kept_and_a_freed_place_goes_to_who_waits() -> None:
    stepped = pool_of_two(4)
    running = stepped.tick(START + HOUR)
    assert [launch.job.id for launch in running] == ["job-0", "job-1"]
    waiting = stepped.read(lambda reading: reading.occurrences("job-2"))
    assert [one.state for one in waiting] == [OccurrenceState.QUEUED]
    (third,) = stepped.launches_after(running[0], "success", START + HOUR + 1)
    (fourth,) = stepped.launches_after(running[1], "success", START + HOUR + 2)
    assert [third.job.id, fourth.job.id] == ["job-2", "job-3"]


def test_planned_recovered_and_manual_occurrences_all_need_a_place() -> None:
    stepped = pool_of_two(2)
    awake = START + HOUR + MINUTE
    recovered = stepped.tick(awake, awake_since=awake)
    assert [launch.occurrence.recovery for launch in recovered] == [True, True]
    asked = stepped.ask(trigger, "job", at=awake + 1)
    assert stepped.tick(awake + 2) == []
    assert stepped.occurrence(asked.occurrence.nominal_ms).state is OccurrenceState.QUEUED
    (manual,) = stepped.launches_after(recovered[0], "success", awake + 3)
    assert manual.occurrence.manual
