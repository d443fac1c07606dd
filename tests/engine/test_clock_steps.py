"""The clock was set back: which jobs are planned from the new time on, and which times count as signs of life."""

from __future__ import annotations

import pytest

from chronex.engine.clock_steps import move_waits, newest_sign, rewind
from chronex.model.event import Event
from chronex.model.job import Job, JobProgress, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import RetryPolicy
from chronex.model.records import Node
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex.testing import MINUTE, MemoryStore, ProcessOutcome, SimulatedMachine
from tests.kit.machine import FIRST, START, SteppedEngine

HOUR, DAY = 3_600_000, 86_400_000
NOW = START + DAY


def progress_after(cursor: int | None, anchor: int | None) -> tuple[int, JobProgress]:
    """How many jobs were set back, and the progress of one that had this cursor and anchor."""
    world = SteppedEngine("@every 1h")
    job = world.stored().progressed(cursor_ms=cursor, anchor_ms=anchor, next_ms=START + 400 * DAY)
    world.store.update(lambda tx: Records(tx, NOW).put(job.progress))
    count = rewind(world.store, NOW)
    return count, world.stored().progress


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


HOURLY = RetryPolicy(max=3, interval_ms=5 * MINUTE)


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
    world = SteppedEngine(retry=HOURLY)
    (launch,) = world.tick(FIRST)
    world.end(launch, "failed", FIRST + 1)
    rewind(world.store, FIRST - HOUR)
    assert world.run(FIRST).next_attempt_ms == FIRST - HOUR + 5 * MINUTE
    assert world.event_names()[-1] == "TaskRetryMoved"


def test_what_belongs_to_another_living_node_that_node_moves() -> None:
    world = SteppedEngine(retry=HOURLY)
    (launch,) = world.tick(FIRST)
    world.end(launch, "failed", FIRST + 1)
    assert move_waits(world.store, HOUR, FIRST + HOUR + 2, "node-2") == 0
    assert move_waits(world.store, HOUR, FIRST + HOUR + 2, "node-1") == 1
    assert world.run(FIRST).next_attempt_ms == FIRST + HOUR + 1 + 5 * MINUTE


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
