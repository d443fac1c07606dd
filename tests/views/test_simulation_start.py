"""A simulation begins with what the store knows of the jobs, and goes on as the engine does."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from chronex.engine.commands.control import pause
from chronex.engine.commands.trigger import trigger
from chronex.engine.orders import Launch
from chronex.model.job import Job
from chronex.model.policies import Cadence, OverlapPolicy
from chronex.storage.records import Records
from chronex.testing import DAY, HOUR, MINUTE, ProcessOutcome, SimulatedMachine
from chronex.views.simulation import simulate_runs
from chronex.views.simulation_start import SimulationStart, starting_now
from tests.views.test_previews_midway import ANN, NINE, a_job, job_of

TAKES = 3 * MINUTE
QUEUED = -1  # instead of a pause


def lived(job: Job, paused_for: int | None = 0) -> SimulatedMachine:
    """Five hours after its beginning, and twenty minutes: no run goes on."""
    machine = SimulatedMachine([job], start=NINE - timedelta(minutes=30), outcome=lambda _: ProcessOutcome(TAKES))
    machine.run_for(5 * HOUR + 20 * MINUTE)
    if paused_for == QUEUED:
        machine.store.update(lambda tx: [trigger(Records(tx, machine.now), "j", ANN) for _ in range(3)])
        machine.run_for(MINUTE)
    elif paused_for != 0:
        until_ms = None if paused_for is None else machine.now + paused_for
        machine.store.update(lambda tx: pause(Records(tx, machine.now), "j", ANN, until_ms=until_ms))
    return machine


def simulated(
    machine: SimulatedMachine, file: list[Job]
) -> tuple[SimulationStart, list[tuple[int, str, int | None]]]:
    now_ms = machine.now
    start = machine.read(lambda reading: starting_now(reading, file, now_ms))
    runs = simulate_runs(start.jobs, now_ms, now_ms + DAY, lambda _job: TAKES, 50, Random(1))
    found = ((run.occurrence.nominal_ms, f"{run.state} {run.reason.code}", run.started_ms) for run in runs)
    return start, sorted(found)


def happened(machine: SimulatedMachine) -> list[tuple[int, str, int | None]]:
    begin_ms = machine.now
    machine.run_for(DAY)
    found = (
        one for one in machine.occurrences("j") if begin_ms < one.nominal_ms <= begin_ms + DAY and one.finished_ms
    )
    return sorted((one.nominal_ms, f"{one.state} {one.reason.code}", one.started_ms) for one in found)


CASES: dict[str, tuple[Job, int | None, SimulationStart]] = {
    "as it was applied": (a_job("0 * * * *"), 0, SimulationStart([])),
    "paused until somebody resumes it": (a_job("0 * * * *"), None, SimulationStart([], ("j",))),
    "paused for some hours": (a_job("0 * * * * {stagger:20m}"), 7 * HOUR, SimulationStart([], ("j",))),
    "a part of max used": (a_job("0 * * * * {max:9}"), 0, SimulationStart([], (), ("j",))),
    "all of max used": (a_job("0 * * * * {max:3}"), 0, SimulationStart([], (), ("j",))),
    "some wait, and take up max": (
        a_job("0 * * * * {max:9}", overlap=OverlapPolicy.QUEUE), QUEUED, SimulationStart([], (), ("j",)),
    ),
    "paused, and a part of max used": (a_job("0 * * * * {max:9}"), 3 * HOUR, SimulationStart([], ("j",), ("j",))),
    "an interval keeps its phase": (a_job("@every 47m"), 0, SimulationStart([])),
    "an interval counts from the end of its last run": (
        a_job("@every 47m", cadence=Cadence.FIXED_DELAY), 0, SimulationStart([]),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("job", "paused_for", "expected"), CASES.values(), ids=CASES)
def test_it_goes_on_as_the_engine_does(job: Job, paused_for: int | None, expected: SimulationStart) -> None:
    """`chronex simulate` played every job as if it were new: a paused one ran, and `max` began anew."""
    machine = lived(job, paused_for)
    start, played = simulated(machine, [job])
    assert start._replace(jobs=[]) == expected
    real = happened(machine)
    assert [run for run in played if run[0] <= machine.now - TAKES] == real


@pytest.mark.parametrize("changes", [{"schedule": "@every 31m"}, {"timezone": "Asia/Tokyo"}], ids=str)
def test_what_the_file_says_otherwise_holds_from_now_on(changes: dict[str, Any]) -> None:
    machine = lived(a_job("@every 47m"), None)
    edited = a_job(**{"schedule": "@every 47m", **changes})
    start, _ = simulated(machine, [edited])
    (begun,) = start.jobs
    machine.apply([edited])
    stored = machine.read(job_of)
    assert (begun.schedule, begun.timezone, begun.progress.paused) == (stored.schedule, stored.timezone, True)
    assert (begun.progress.anchor_ms or machine.now) == stored.progress.anchor_ms


def test_a_moment_that_counts_from_the_apply_stays_where_it_is_and_what_is_new_begins() -> None:
    def outcome(_launch: Launch) -> ProcessOutcome:
        return ProcessOutcome(TAKES)

    later = a_job("@once 2027-03-02T09:00:00Z", written="@once +1d", overlap=OverlapPolicy.ALLOW)
    machine = SimulatedMachine([later], start=NINE, outcome=outcome)
    machine.run_for(HOUR)
    again = a_job("@once 2027-03-02T10:00:00Z", written="@once +1d", overlap=OverlapPolicy.ALLOW)
    new = Job(id="new", schedule="0 * * * *")
    start, _ = simulated(machine, [again, new])
    assert [job.schedule for job in start.jobs] == ["@once 2027-03-02T09:00:00Z", "0 * * * *"]
    assert start.jobs[1] is new
