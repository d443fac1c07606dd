"""The clock was set back: which jobs are planned from the new time on, and which times count as signs of life."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from chronex.engine.clock_steps import begin_where_never_set, follow_clock, follow_shared_clock, newest_sign, rewind
from chronex.engine.commands import pause, resume
from chronex.engine.plan import MOST_SPANS
from chronex.model.event import Event
from chronex.model.job import Job, JobProgress, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import Cadence, OverlapPolicy, RecoveryPolicy, RecoveryStrategy
from chronex.model.records import Node
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, MINUTE, MemoryStore, ProcessOutcome, SimulatedMachine
from chronex_store.history_retention import RetentionPolicy, trim
from tests.kit.machine import ANN, FIRST, START, SteppedEngine, steady
from tests.storage.samples import NODE
from tests.verify.assertion import assert_verified

NOW = START + DAY


def progress_after(cursor: int | None, anchor: int | None) -> tuple[int, JobProgress]:
    """How many jobs were set back, and the progress of one that had this cursor and anchor."""
    stepped = SteppedEngine("@every 1h")
    job = stepped.stored().progressed(cursor_ms=cursor, anchor_ms=anchor, next_ms=START + 400 * DAY)
    stepped.store.update(lambda tx: Records(tx, NOW).put(job.progress))
    count = rewind(stepped.store, NOW)
    return count, stepped.stored().progress


@pytest.mark.parametrize(
    ("cursor", "anchor", "expected"),
    [
        (NOW + 365 * DAY, START, (NOW, START)),
        (NOW + 365 * DAY, NOW + 5 * DAY, (NOW, NOW)),
        (NOW - HOUR, NOW + 5 * DAY, (NOW, NOW)),
        (NOW + 1, None, (NOW, None)),
    ],
)
def test_a_cursor_or_an_anchor_in_the_future_is_set_to_now(
    cursor: int, anchor: int | None, expected: tuple[int, int | None]
) -> None:
    count, progress = progress_after(cursor, anchor)
    assert count == 1
    assert (progress.cursor_ms, progress.anchor_ms) == expected
    assert progress.next_ms is not None
    assert NOW < progress.next_ms <= NOW + HOUR


@pytest.mark.parametrize(("cursor", "anchor"), [(NOW, START), (NOW - HOUR, NOW), (None, None)])
def test_a_job_that_is_not_ahead_stays_as_it_is(cursor: int | None, anchor: int | None) -> None:
    count, progress = progress_after(cursor, anchor)
    assert count == 0
    assert (progress.cursor_ms, progress.anchor_ms, progress.next_ms) == (cursor, anchor, START + 400 * DAY)


HOURLY = steady(3, 5 * MINUTE)


@pytest.mark.parametrize("by_ms", [HOUR, -HOUR, 20 * DAY], ids=["forward", "back", "far"])
@pytest.mark.parametrize("timeout_ms", [None, 30 * MINUTE])
def test_a_clock_that_is_set_moves_no_retry_and_no_execution_timeout(by_ms: int, timeout_ms: int | None) -> None:
    """Whatever the wall says, the second attempt comes five minutes after the first has failed."""
    tasks = (Task(name="main", run=("false",)),)
    job = Job(id="job", schedule="0 10 * * *", tasks=tasks, retry=HOURLY, execution_timeout_ms=timeout_ms)
    machine = SimulatedMachine([job], outcome=lambda launch: ProcessOutcome(1_000, int(launch.attempt.number == 1)))
    machine.run_for(10 * HOUR + 2 * MINUTE)
    machine.set_clock(by_ms)
    machine.run_for(10 * MINUTE)
    first, second = machine.processes[:2]
    assert first.ended_ms is not None
    assert second.attempt_id != first.attempt_id
    assert second.nominal_ms == first.nominal_ms
    assert second.started_ms - first.ended_ms == 5 * MINUTE
    (occurrence,) = [one for one in machine.occurrences("job") if one.nominal_ms == first.nominal_ms]
    assert occurrence.state is OccurrenceState.COMPLETED


def test_after_a_restart_on_a_clock_that_was_set_back_a_retry_waits_for_its_pause_at_most() -> None:
    stepped = SteppedEngine(retry=HOURLY)
    (launch,) = stepped.tick(FIRST)
    stepped.end(launch, "failed", FIRST + 1)
    rewind(stepped.store, FIRST - HOUR)
    assert stepped.run(FIRST).next_attempt_ms == FIRST - HOUR + 5 * MINUTE
    assert stepped.event_names()[-1] == "TaskRetryMoved"


@pytest.mark.parametrize(("lives", "left_ms"), [(False, MINUTE), (True, DAY + MINUTE)])
def test_after_a_restart_on_a_clock_that_was_set_back_an_execution_timeout_lasts_as_long_as_it_was_to(
    lives: bool, left_ms: int
) -> None:
    """A command that its scheduler had not begun when it died would have had a day. Who lives moves its own."""
    stepped = SteppedEngine(execution_timeout_ms=MINUTE)
    stepped.tick(FIRST)
    back_ms = FIRST - DAY
    (found,) = stepped.store.view(lambda tx: Reading(tx).active(limit=10))
    rewind(stepped.store, back_ms, {found.owner} if lives else set())
    (found,) = stepped.store.view(lambda tx: Reading(tx).active(limit=10))
    assert (found.deadline_ms or 0) - back_ms == left_ms


def test_what_belongs_to_another_living_node_that_node_moves() -> None:
    stepped = SteppedEngine(retry=HOURLY)
    (launch,) = stepped.tick(FIRST)
    stepped.end(launch, "failed", FIRST + 1)
    assert follow_clock(stepped.store, HOUR, FIRST + HOUR + 2, "node-2").retries == 0
    assert follow_clock(stepped.store, HOUR, FIRST + HOUR + 2, "node-1").retries == 1
    assert stepped.run(FIRST).next_attempt_ms == FIRST + HOUR + 1 + 5 * MINUTE


def node(started_ms: int, seen_ms: int = 0, stopped_ms: int | None = None) -> Node:
    process = ProcessIdentity(1, "boot", 1)
    return Node(id="n", process=process, started_ms=started_ms, seen_ms=seen_ms, stopped_ms=stopped_ms)


def store_with(nodes: list[Node], events: list[Event]) -> MemoryStore:
    store = MemoryStore()

    def write(tx: Transaction) -> None:
        records = Records(tx, START)
        for one in nodes:
            records.put(one)
        append(records.tx, *events)

    store.update(write)
    return store


def test_times_of_nodes_in_the_future_are_set_to_now() -> None:
    before = node(started_ms=NOW - 5, seen_ms=NOW + 5, stopped_ms=NOW + 6)
    store = store_with([before], [])
    rewind(store, NOW)
    (after,) = store.view(lambda tx: Reading(tx).nodes())
    assert (after.started_ms, after.seen_ms, after.stopped_ms) == (NOW - 5, NOW, NOW)


BACK = Event(name="ClockStepped", at_ms=30, data={"by_ms": -9})
FORWARDS = Event(name="ClockStepped", at_ms=30, data={"by_ms": 9})
OLD, LATER = Event(name="JobNew", at_ms=70), Event(name="JobNew", at_ms=40)


@pytest.mark.parametrize(
    ("nodes", "events", "newest"),
    [
        ([], [], 0),
        ([node(started_ms=10)], [], 10),
        ([node(started_ms=10, seen_ms=20)], [], 20),
        ([node(started_ms=10, seen_ms=20, stopped_ms=25)], [], 25),
        ([node(started_ms=10)], [LATER], 40),
        ([], [OLD, LATER], 70),
        ([], [OLD, FORWARDS, LATER], 70),
        ([], [OLD, BACK, LATER], 40),  # what came before a clock that was set back says nothing
    ],
)
def test_the_newest_sign_of_life(nodes: list[Node], events: list[Event], newest: int) -> None:
    assert store_with(nodes, events).view(newest_sign) == newest


# -- set and put right again ---------------------------------------------------------------------------------------

YEAR = 365 * DAY


def machine_of(*jobs: Job) -> SimulatedMachine:
    return SimulatedMachine(jobs, start=START + 10 * HOUR)


def hourly(name: str = "job", schedule: str = "0 * * * *", **more: object) -> Job:
    recovery = RecoveryPolicy(strategy=RecoveryStrategy.EXECUTE_ALL)
    policy = {"recovery": recovery, "overlap": OverlapPolicy.ALLOW, **more}
    return Job(id=name, schedule=schedule, tasks=(Task(name="main", run=("true",)),), **policy)  # type: ignore[arg-type]


def started(machine: SimulatedMachine, job: str = "job") -> list[int]:
    return [process.nominal_ms for process in machine.processes if process.job == job]


def made(machine: SimulatedMachine) -> None:
    machine.apply([hourly("old"), hourly()])


def edited(machine: SimulatedMachine) -> None:
    machine.apply([hourly("old"), hourly(schedule="30 * * * *")])


def enabled(machine: SimulatedMachine) -> None:
    machine.apply([hourly("old"), hourly(enabled=True)])


def resumed(machine: SimulatedMachine) -> None:
    machine.store.update(lambda tx: resume(Records(tx, machine.now), "job", ANN))


def paused(machine: SimulatedMachine) -> None:
    machine.store.update(lambda tx: pause(Records(tx, machine.now), "job", ANN))


MEANWHILE = {
    "made": ([hourly("old")], None, made),
    "edited": ([hourly("old"), hourly()], None, edited),
    "enabled": ([hourly("old"), hourly(enabled=False)], None, enabled),
    "resumed": ([hourly("old"), hourly()], paused, resumed),
}


@pytest.mark.parametrize("is_down", [False, True], ids=["seen", "while nobody runs"])
@pytest.mark.parametrize("what", MEANWHILE)
def test_a_job_that_began_while_the_clock_was_a_day_behind_runs_nothing_from_before(what: str, is_down: bool) -> None:
    jobs, first, begin = MEANWHILE[what]
    machine = machine_of(*jobs)
    if first is not None:
        first(machine)
    machine.run_for(90 * MINUTE)
    before = started(machine)
    machine.set_clock(-DAY)
    machine.run_for(MINUTE)
    begin(machine)
    if is_down:
        machine.crash()
        machine.set_clock(DAY)
        machine.boot()
    else:
        machine.run_for(MINUTE)
        machine.set_clock(DAY)
    machine.run_for(10 * MINUTE)
    assert started(machine) == before
    machine.run_for(2 * HOUR)
    assert len(started(machine)) == len(before) + 2, "and then it goes on"
    assert_verified(machine.store)


@pytest.mark.parametrize(
    ("schedule", "age", "then"),
    [
        # 07:31 by the clock: made at 10:00, and 11:00 has run. What comes by runs, but for what was decided.
        ("0 * * * *", 90 * MINUTE, [8, 9, 10, 12]),
        ("@every 1h", 90 * MINUTE, [8.5, 9.5, 10.5, 11.5, 12.5]),
        # 12:01 of the next day: everything before 16:00 was decided the first time.
        ("0 * * * *", 30 * HOUR, [40, 41, 42]),
        ("@every 1h", 30 * HOUR, [40, 41, 42]),
    ],
)
def test_a_clock_that_is_put_right_only_in_part_makes_up_for_nothing(
    schedule: str, age: int, then: list[float]
) -> None:
    """A day back, and twenty hours forwards: what the second step jumped over was decided, or is older than the job."""
    machine = machine_of(hourly(schedule=schedule))
    machine.run_for(age)
    before = len(started(machine))
    machine.set_clock(-DAY)
    machine.run_for(MINUTE)
    machine.set_clock(20 * HOUR)
    machine.run_for(MINUTE)
    assert started(machine)[before:] == []
    machine.run_until(machine.clock.boot + (5 * HOUR if age < DAY else 6 * HOUR))
    assert [round((nominal - START) / HOUR, 1) for nominal in started(machine)[before:]] == then
    assert_verified(machine.store)


@pytest.mark.parametrize(
    ("back", "between", "forward"), [(4_000, 1_000, 5_000), (4_000, 2_500, HOUR), (7_000, 5_000, DAY)]
)
def test_what_a_young_job_is_moved_past_is_told_also_after_what_it_had_decided(
    back: int, between: int, forward: int
) -> None:
    """Set back by more than its age, and forwards in the middle of what comes by for the second time."""
    machine = machine_of(hourly(schedule="* * * * * *"))
    machine.run_for(3_000)
    machine.set_clock(-back)
    machine.run_for(between)
    machine.set_clock(forward)
    machine.run_for(5_000)
    assert_verified(machine.store)
    assert machine.events("OccurrencesMissed")


@pytest.mark.parametrize("back", [MINUTE, 90 * MINUTE, DAY, 365 * DAY])
def test_an_interval_that_counts_anew_after_the_clock_was_set_back_is_what_verify_expects(back: int) -> None:
    machine = machine_of(hourly(schedule="@every 1h"))
    machine.run_for(30 * MINUTE)
    machine.set_clock(-back)
    machine.run_for(3 * HOUR + MINUTE)
    assert len(started(machine)) == 3
    assert bool(machine.events("JobAnchored")) == (back > 30 * MINUTE)
    assert_verified(machine.store)


def test_a_job_that_is_old_makes_up_for_what_a_slow_clock_had_not_reached() -> None:
    machine = machine_of(hourly())
    machine.run_for(5 * HOUR)
    machine.set_clock(3 * HOUR)
    machine.run_for(MINUTE)
    assert len(started(machine)) == 8
    assert_verified(machine.store)


@pytest.mark.parametrize("is_down", [False, True], ids=["seen", "while nobody runs"])
@pytest.mark.parametrize("schedule", ["0 * * * *", "@every 1h", "@every 50m-70m"])
@pytest.mark.parametrize("cadence", list(Cadence))
def test_a_machine_that_boots_in_1970_has_no_storm_when_it_learns_the_time(
    schedule: str, cadence: Cadence, is_down: bool
) -> None:
    machine = SimulatedMachine(start=40_000)
    machine.apply([hourly(schedule=schedule, cadence=cadence)])
    if is_down:
        machine.crash()
    else:
        machine.run_for(MINUTE)
    machine.set_clock(START)
    if is_down:
        begin_where_never_set(machine.store, machine.now)  # as a daemon does when it starts
        machine.boot()
    machine.run_for(10 * MINUTE)
    assert started(machine) == []
    machine.run_for(5 * HOUR)
    assert 4 <= len(started(machine)) <= 6
    assert_verified(machine.store)


def test_a_boot_in_1970_is_no_reason_to_run_what_was_before_a_job() -> None:
    """It was down for two hours, and rewound by the wrong clock: the two hours are made up for, and nothing else."""
    machine = machine_of(hourly())
    machine.run_for(90 * MINUTE)
    machine.crash()
    machine.pass_time(2 * HOUR)
    true_ms = machine.now
    machine.set_clock(40_000 - true_ms)
    rewind(machine.store, machine.now)
    machine.boot()
    machine.run_for(MINUTE)
    machine.set_clock(true_ms - 40_000)
    machine.run_for(MINUTE)
    assert started(machine) == [START + hour * HOUR for hour in (11, 12, 13)]


@pytest.mark.parametrize("back", [70_000, 40_000, 3 * MINUTE, DAY])
def test_what_ran_does_not_run_again_when_its_history_is_gone(back: int) -> None:
    machine = machine_of(hourly(schedule="* * * * * *"))
    machine.run_for(80_000)
    trim(machine.store, RetentionPolicy(max_count=5), machine.now)
    machine.set_clock(-back)
    machine.run_for(90_000 + min(back, 4 * MINUTE))
    repeated = [nominal for nominal, count in Counter(started(machine)).items() if count > 1]
    assert repeated == []
    assert len(started(machine)) > 80, "it goes on"


def test_two_steps_back_remember_both_spans() -> None:
    machine = machine_of(hourly(schedule="* * * * * *"))
    machine.run_for(2 * MINUTE)
    for step in (-DAY, DAY - MINUTE, -DAY, DAY, -2 * MINUTE, 5 * MINUTE):
        machine.run_for(30_000)
        trim(machine.store, RetentionPolicy(max_count=1), machine.now)
        machine.set_clock(step)
    machine.run_for(5 * MINUTE)
    assert [nominal for nominal, count in Counter(started(machine)).items() if count > 1] == []


def test_what_stood_in_the_future_can_run_when_its_time_comes() -> None:
    """A year ahead and put right: the spans hold only what had a record, so a day is like any other."""
    machine = machine_of(hourly(recovery=RecoveryPolicy(strategy=RecoveryStrategy.EXECUTE_LAST)))
    machine.run_for(HOUR)
    machine.set_clock(YEAR)
    machine.run_for(MINUTE)
    machine.set_clock(-YEAR)
    before = len(started(machine))
    machine.run_for(DAY)
    assert len(started(machine)) - before == 24


def test_the_spans_are_bounded() -> None:
    machine = machine_of(hourly(schedule="* * * * *"))
    for _ in range(3 * MOST_SPANS):
        machine.run_for(3 * MINUTE)
        machine.set_clock(-DAY)
    job = machine.read(lambda reading: reading.job("job"))
    assert job is not None
    assert len(job.progress.decided) <= MOST_SPANS


def test_heartbeats_that_came_before_a_step_was_followed_hold() -> None:
    """The database was away when it was found out: by then everybody has been heard by the new time."""
    stepped = SteppedEngine("@every 1h")
    found_ms, now_ms = NOW - HOUR, NOW - HOUR + 5 * MINUTE
    ahead = replace(NODE, id="ahead", seen_ms=NOW, started_ms=NOW)
    heard = replace(NODE, id="heard", seen_ms=now_ms - 1, started_ms=found_ms)
    for node in (ahead, heard):
        stepped.store.update(lambda tx, node=node: Records(tx, NOW).put(node))  # type: ignore[misc]
    stepped.store.update(follow_shared_clock(-HOUR, found_ms, "node-1", now_ms))
    seen = {one.id: one.seen_ms for one in stepped.store.view(lambda tx: Reading(tx).nodes())}
    assert (seen["ahead"], seen["heard"]) == (now_ms, now_ms - 1)


@pytest.mark.parametrize("by_ms", [HOUR, -HOUR], ids=["forward", "back"])
def test_of_the_nodes_of_a_shared_store_one_moves_the_jobs_and_the_others_find_it_done(by_ms: int) -> None:
    stepped = SteppedEngine("@every 1h")
    now = NOW + by_ms
    ahead = stepped.stored().progressed(cursor_ms=NOW, anchor_ms=NOW - MINUTE, begun_ms=NOW - MINUTE)
    stepped.store.update(lambda tx: Records(tx, NOW).put(ahead.progress))
    first = stepped.store.update(follow_shared_clock(by_ms, now, "node-1"))
    assert first is not None
    moved = stepped.stored().progress
    assert stepped.store.update(follow_shared_clock(by_ms + 40, now + 3_000, "node-2")) is None
    assert stepped.stored().progress == moved, "it is moved once"
    later = stepped.store.update(follow_shared_clock(-by_ms, now + 10 * MINUTE - by_ms, "node-2"))
    assert later is not None, "that the clock is put right again is another step"
