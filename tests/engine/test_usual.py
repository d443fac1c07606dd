"""What runs usually take, and which run is slower than its own past."""

from __future__ import annotations

from typing import Any

import pytest

from chronex.engine.notices import note_slow
from chronex.engine.usual import RunUsage, SlowRun, Usual, UsualBand, band_of, slow_run, usage_of, usual_of
from chronex.model.occurrence import Attempt, Usage
from chronex.model.policies import NotifyPolicy
from chronex.model.records import Notice
from chronex.model.states import AttemptState
from chronex.storage import keys
from chronex.storage.records import Records
from tests.kit.machine import FIRST, SteppedEngine

MINUTE, SECOND = 60_000, 1_000
OK, BAD = AttemptState.SUCCESS, AttemptState.FAILED


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([7], UsualBand(7, 7)),
        ([1, 2], UsualBand(1, 2)),
        ([3, 1, 2], UsualBand(2, 3)),
        (range(1, 21), UsualBand(10, 19)),
        (range(1, 101), UsualBand(50, 95)),
        ([5] * 30 + [900], UsualBand(5, 5)),
    ],
)
def test_the_band_is_by_rank(values: list[int], expected: UsualBand | None) -> None:
    assert band_of(values) == expected


def attempt(usage: Usage | None) -> Attempt:
    return Attempt(job="job", nominal_ms=0, task="one", number=1, usage=usage)


def test_a_run_took_what_its_attempts_took() -> None:
    assert usage_of([]) is None
    assert usage_of([attempt(None)]) is None
    used = [Usage(100, 2048, 2, 0), Usage(50, None, 0, 4, "process"), Usage(1, 1024)]
    assert usage_of(map(attempt, used)) == RunUsage(151, 2048, 1024, 2048, "")


def after(durations_s: list[int], *, state: str = OK, **policy: Any) -> SteppedEngine:
    """One run each minute that took so long."""
    machine = SteppedEngine(**{"expect_usual": True, **policy})
    for number, seconds in enumerate(durations_s):
        (launch,) = machine.tick(FIRST + number * MINUTE)
        usage = Usage(seconds * 10, 1024 * seconds, seconds * 2, 0)
        machine.end(launch, state, FIRST + number * MINUTE + seconds * SECOND, usage=usage)
    return machine


def test_what_the_last_runs_took() -> None:
    machine = after([5, 1, 2, 3, 4])
    assert machine.read(lambda reading: usual_of(reading, "job")) == Usual(
        5,
        UsualBand(3_000, 5_000),
        UsualBand(30, 50),
        UsualBand(3 * 1024, 5 * 1024),
        UsualBand(3 * 1024, 5 * 1024),
        UsualBand(0, 0),
    )


def test_too_few_runs_or_none_that_completed_say_nothing() -> None:
    for machine in (after([1, 2, 3, 4]), after([1] * 9, state=BAD), after([])):
        assert machine.read(lambda reading: usual_of(reading, "job")) is None


def slow_at(machine: SteppedEngine, now: int) -> SlowRun | None:
    job = machine.stored()
    return machine.read(lambda reading: slow_run(reading, job, now))


SLOW = {
    # seconds of the runs before, what they are told by, seconds after which the next one is slow
    "short ones have ten seconds more": ([2] * 6, 12),
    "long ones have half as much more": ([40] * 6, 60),
    "the longest of twenty does not count": ([40] * 39 + [55], 60),
}


@pytest.mark.parametrize("case", SLOW)
def test_a_run_is_slow_when_it_takes_longer_than_its_own_past(case: str) -> None:
    durations, limit = SLOW[case]
    machine = after(durations)
    start = FIRST + len(durations) * MINUTE
    assert slow_at(machine, start + limit * SECOND) is None  # nothing runs
    machine.tick(start)
    assert slow_at(machine, start + limit * SECOND) is None
    found = slow_at(machine, start + limit * SECOND + 1)
    assert found is not None
    assert (found.occurrence.nominal_ms, found.running_ms) == (start, limit * SECOND + 1)


@pytest.mark.parametrize("machine", [after([2] * 4), after([2] * 9, expect_usual=False), after([2] * 9, state=BAD)])
def test_who_has_no_past_or_no_expectation_is_never_slow(machine: SteppedEngine) -> None:
    machine.tick(FIRST + 9 * MINUTE)
    assert slow_at(machine, FIRST + 60 * MINUTE) is None


@pytest.mark.parametrize(("notify", "written"), [(NotifyPolicy("x"), ["slow"]), (None, [])])
def test_slowness_is_recorded_once_for_each_run(notify: NotifyPolicy | None, written: list[str]) -> None:
    machine = after([2] * 6, notify=notify)
    start = FIRST + 6 * MINUTE
    (launch,) = machine.tick(start)
    now = start + 30 * SECOND
    for expected in (True, False):
        assert machine.store.update(lambda tx: note_slow(Records(tx, now), "job")) is expected
    assert machine.stored().progress.slow_ms == start
    (event,) = [one for one in machine.events() if one.name == "JobSlow"]
    assert event.data == {"running_ms": 30_000, "median_ms": 2_000, "p95_ms": 2_000}
    assert str(event.reason) == "it takes longer than usual: 30s so far; usual is 2.0s, 19 of 20 within 2.0s"
    assert [one.kind for one in machine.read(lambda reading: reading.scan(keys.NOTICE, Notice))] == written
    machine.end(launch, OK, now)
    machine.tick(start + MINUTE)
    later = start + MINUTE + 59 * SECOND
    assert machine.store.update(lambda tx: note_slow(Records(tx, later), "job"))


def test_a_job_that_is_gone_is_not_slow() -> None:
    machine = after([2] * 6)
    assert not machine.store.update(lambda tx: note_slow(Records(tx, FIRST), "other"))


def test_a_search_for_slow_runs_finds_its_job() -> None:
    assert [job.id for job in after([]).read(lambda reading: reading.expecting())] == ["job"]
    assert after([], expect_usual=False).read(lambda reading: reading.expecting()) == []
