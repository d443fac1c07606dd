"""What is removed for its age is removed by a time that a clock which has just jumped does not decide."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.daemon.retention import Retention
from chronex.daemon.wakeups import MOST_AHEAD_MS, PROOF_MS, AgeClock
from chronex.jobfile import SchedulerSettings
from chronex.model.job import Job, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.run import LogDirectory
from chronex.testing import DAY, HOUR, MINUTE, FakeClock, ProcessOutcome, SimulatedMachine
from tests.kit.machine import START

YEAR = 365 * DAY


def node_of(ages: AgeClock, clock: FakeClock) -> Node:
    """What a heartbeat writes."""
    aged_ms = ages.now_ms()
    seen = Node(id="n", process=ProcessIdentity(1, "boot", 1), started_ms=clock.wall, seen_ms=clock.wall)
    return replace(seen, aged_ms=aged_ms, doubt_ms=ages.doubt_ms) if ages.doubt_ms else seen


def pass_hours(ages: AgeClock, clock: FakeClock, hours: int) -> None:
    for _ in range(hours):
        clock.advance(HOUR)
        ages.now_ms()


@pytest.mark.parametrize("by", [-YEAR, -HOUR, MINUTE, DAY, MOST_AHEAD_MS])
def test_a_small_step_and_a_step_back_are_believed(by: int) -> None:
    clock = FakeClock(START)
    ages = AgeClock(clock)
    clock.step(by)
    assert (ages.now_ms(), ages.doubt_ms) == (START + by, 0)


def test_a_long_sleep_has_passed() -> None:
    clock = FakeClock(START)
    ages = AgeClock(clock)
    clock.sleep(YEAR)
    assert ages.now_ms() == START + YEAR


def test_a_year_ahead_is_believed_after_a_day() -> None:
    clock = FakeClock(START)
    ages = AgeClock(clock)
    clock.step(YEAR)
    assert (ages.now_ms(), ages.doubt_ms) == (START, PROOF_MS)
    pass_hours(ages, clock, 23)
    assert ages.now_ms() == START + 23 * HOUR
    pass_hours(ages, clock, 1)
    assert (ages.now_ms(), ages.doubt_ms) == (clock.wall, 0)


def test_a_clock_that_is_put_right_was_never_believed() -> None:
    clock = FakeClock(START)
    ages = AgeClock(clock)
    clock.step(YEAR)
    pass_hours(ages, clock, 5)
    clock.step(-YEAR)
    assert (ages.now_ms(), ages.doubt_ms) == (START + 5 * HOUR, 0)


def test_another_step_begins_another_day() -> None:
    clock = FakeClock(START)
    ages = AgeClock(clock)
    clock.step(YEAR)
    pass_hours(ages, clock, 20)
    clock.step(HOUR)
    pass_hours(ages, clock, 20)
    assert ages.doubt_ms > 0


def test_the_next_scheduler_goes_on_with_the_doubt() -> None:
    clock = FakeClock(START)
    first = AgeClock(clock)
    clock.step(YEAR)
    first.now_ms()
    pass_hours(first, clock, 10)
    left = node_of(first, clock)
    clock.advance(HOUR)
    second = AgeClock(clock, [left])
    assert second.now_ms() == START + 11 * HOUR
    pass_hours(second, clock, 13)
    assert second.doubt_ms > 0
    pass_hours(second, clock, 1)
    assert second.now_ms() == clock.wall


@pytest.mark.parametrize(("off", "is_believed"), [(DAY, True), (MOST_AHEAD_MS, True), (30 * DAY, False)])
def test_a_machine_that_was_off(off: int, is_believed: bool) -> None:
    clock = FakeClock(START)
    left = node_of(AgeClock(clock), clock)
    clock.advance(off)
    ages = AgeClock(clock, [left])
    assert ages.now_ms() == (clock.wall if is_believed else START)
    pass_hours(ages, clock, 24)
    assert ages.now_ms() == clock.wall, "a day later in any case"


def test_a_clock_a_year_ahead_removes_no_history_and_no_dead_letter(tmp_path: Path) -> None:
    jobs = [Job(id="job", schedule="0 * * * *", tasks=(Task(name="main", run=("true",)),))]
    machine = SimulatedMachine(jobs, outcome=lambda _: ProcessOutcome(1000, exit_code=1))
    ages = AgeClock(machine.clock)
    retention = Retention(
        machine.store, LogDirectory(tmp_path / "logs"), SchedulerSettings(), machine.clock, ages.now_ms
    )
    machine.run_for(DAY)
    asyncio.run(retention.whole_pass())
    before = machine.read(lambda reading: len(reading.dead_letters())), len(machine.occurrences("job"))
    machine.set_clock(YEAR)
    asyncio.run(retention.whole_pass())
    assert (machine.read(lambda reading: len(reading.dead_letters())), len(machine.occurrences("job"))) == before
    assert before == (23, 23)
    for _ in range(25):
        machine.pass_time(HOUR)
        ages.now_ms()
    asyncio.run(retention.whole_pass())
    assert machine.read(lambda reading: len(reading.dead_letters())) == 0, "it was no mistake"
