"""The clock was set back: which jobs are planned from the new time on, and which times count as signs of life."""

from __future__ import annotations

import pytest

from chronex.engine.clock_steps import newest_sign, rewind
from chronex.model.event import Event
from chronex.model.job import JobProgress
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.journal import append
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex.testing import MemoryStore
from tests.kit.machine import START, SteppedEngine

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
