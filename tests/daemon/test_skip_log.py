"""What the log says of skipped occurrences, and of those that another scheduler has claimed."""

from __future__ import annotations

import asyncio
import logging

import pytest

from chronex.daemon.skip_log import LOG_AGAIN_MS, MOST_LOGGED_APART, SkipLog
from chronex.engine.engine import Engine
from chronex.model.event import Event
from chronex.model.job import Job
from chronex.model.reasons import Reason, ReasonCode
from chronex.storage import journal
from chronex.testing import SECOND, FakeClock, MemoryStore, SimulatedMachine
from chronex.testing.machine import ProcessOutcome
from tests.kit.machine import FIRST, ONE, START, SteppedEngine

OVERLAP, PAUSED = Reason(ReasonCode.OVERLAP, "occ_1"), Reason(ReasonCode.PAUSED, by="ann")


def fields(record: logging.LogRecord) -> dict[str, object]:
    found: dict[str, object] = getattr(record, "fields", {})
    return found


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = [
        (r.getMessage(), fields(r).get("job"), fields(r).get("reason"), fields(r).get("more")) for r in caplog.records
    ]
    caplog.clear()
    return found


class Followed:
    """A journal that grows, and the log that follows it."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)
        self.store = MemoryStore(self.clock)
        self.log = SkipLog(self.store, self.clock, "node-1")
        self.log.begin()

    def skipped(self, *reasons: Reason, job: str = "job") -> None:
        events = [Event(name="OccurrenceSkipped", at_ms=START, job=job, nominal_ms=START, reason=r) for r in reasons]
        self.append(*events)

    def append(self, *events: Event) -> None:
        self.store.update(lambda tx: journal.append(tx, *events))
        asyncio.run(self.log.do())

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        asyncio.run(self.log.do())


@pytest.fixture
def followed(caplog: pytest.LogCaptureFixture) -> Followed:
    caplog.set_level(logging.INFO, "chronex")
    return Followed()


def test_a_skip_is_a_line_with_its_reason(followed: Followed, caplog: pytest.LogCaptureFixture) -> None:
    followed.skipped(OVERLAP)
    assert lines(caplog) == [("occurrence skipped", "job", "an earlier occurrence still runs: occ_1", None)]
    followed.pass_time(1)
    assert lines(caplog) == []


def test_more_of_the_same_are_counted_and_told_once_a_minute(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    followed.skipped(*[OVERLAP] * 30)
    followed.skipped(PAUSED)
    assert [line[2:] for line in lines(caplog)] == [
        ("an earlier occurrence still runs: occ_1", None), ("paused by ann", None),
    ]  # fmt: skip
    followed.pass_time(LOG_AGAIN_MS)
    assert [line[3] for line in lines(caplog)] == ["and 29 more"]
    followed.skipped(OVERLAP)
    assert lines(caplog) == [], "its minute is not over"
    followed.pass_time(LOG_AGAIN_MS)
    assert [line[3] for line in lines(caplog)] == ["and 1 more"]
    followed.pass_time(LOG_AGAIN_MS)
    followed.skipped(OVERLAP)
    assert [line[3] for line in lines(caplog)] == [None], "after a quiet minute it is a line again"


def test_the_last_ones_are_told_when_the_daemon_leaves(followed: Followed, caplog: pytest.LogCaptureFixture) -> None:
    followed.skipped(OVERLAP, OVERLAP, OVERLAP)
    asyncio.run(followed.log.finish())
    assert [line[3] for line in lines(caplog)] == [None, "and 2 more"]


def test_jobs_without_end_are_counted_together(followed: Followed, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MOST_LOGGED_APART + 20):
        followed.append(
            Event(name="OccurrenceSkipped", at_ms=START, job=f"job-{number}", nominal_ms=START, reason=PAUSED)
        )
    told = lines(caplog)
    assert len(told) == MOST_LOGGED_APART + 1
    followed.pass_time(LOG_AGAIN_MS)
    assert [(line[1], line[3]) for line in lines(caplog)] == [(None, "and 19 more")]


@pytest.mark.parametrize(
    ("level", "node", "told"),
    [
        (logging.DEBUG, "node-2", ["another scheduler has claimed it"]),
        (logging.DEBUG, "node-1", []),
        (logging.INFO, "node-2", []),
    ],
)
def test_a_loser_of_a_claim_says_so_at_debug_level(
    followed: Followed, caplog: pytest.LogCaptureFixture, level: int, node: str, told: list[str]
) -> None:
    caplog.set_level(level, "chronex")
    followed.append(Event(name="TaskRunStarted", at_ms=START, job="job", nominal_ms=START, data={"node": node}))
    assert [line[0] for line in lines(caplog)] == told


def test_of_two_schedulers_that_race_the_loser_says_who_has_claimed_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "chronex")
    stepped = SteppedEngine()
    winner, loser = stepped.engine, Engine(stepped.store, "node-2", 10)
    logs = {engine.node: SkipLog(stepped.store, FakeClock(FIRST), engine.node) for engine in (winner, loser)}
    for log in logs.values():
        log.begin()
    assert len(winner.tick(FIRST, START).orders) == 1
    assert loser.tick(FIRST, START).orders == ()
    asyncio.run(logs[winner.node].do())
    assert lines(caplog) == []
    asyncio.run(logs[loser.node].do())
    (told,) = caplog.records
    assert (told.getMessage(), fields(told)["node"]) == ("another scheduler has claimed it", winner.node)
    assert fields(told)["occurrence"] == stepped.occurrence(FIRST).id


def test_a_job_of_every_second_that_overlaps_for_an_hour_is_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "chronex")
    job = Job(id="job", schedule="* * * * * *", tasks=(ONE,))
    machine = SimulatedMachine([job], outcome=lambda _launch: ProcessOutcome(duration_ms=7_200_000))
    log = SkipLog(machine.store, machine.clock, machine.engine.node)
    log.begin()
    for _ in range(60):
        machine.run_for(60 * SECOND)
        asyncio.run(log.do())
    asyncio.run(log.finish())
    told = lines(caplog)
    assert len(told) <= 62
    assert 1 + sum(int(str(line[3]).split()[1]) for line in told if line[3]) == 3_598
