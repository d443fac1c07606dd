"""A simulated day by seed, in torture a week: no run lost, none doubled, none overlapping where that is not allowed."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from chronex.model.policies import OverlapPolicy
from chronex.model.records import Job
from chronex.model.states import OccurrenceState
from tests.engine.simulation import DAY, HOUR, MINUTE, START, Family, Simulation, random_jobs
from tests.verify.assertion import assert_verified

FINAL = {
    OccurrenceState.COMPLETED, OccurrenceState.FAILED, OccurrenceState.CANCELED, OccurrenceState.FAILED_STALE,
    OccurrenceState.SKIPPED, OccurrenceState.MISSED,
}  # fmt: skip


def simulate(seed: int, length: int, jobs: int = 4, crashes: int = 3) -> tuple[Simulation, list[tuple[Job, Family]]]:
    """A stretch of time with a few crashes, each followed by downtime of up to half a day."""
    random = Random(seed)
    made = random_jobs(random, jobs)
    world = Simulation(
        seed, [job for job, _ in made], places=random.choice([2, 50]), orphans_survive=random.random() < 0.5
    )
    for crash_at in sorted(random.randrange(START, START + length) for _ in range(crashes)):
        if crash_at <= world.now:
            continue
        world.run_until(crash_at)
        world.crash()
        world.now += random.choice([1000, MINUTE, HOUR, 12 * HOUR])
        world.boot()
    world.run_until(max(START + length, world.now + MINUTE))
    return world, made


def check_history(world: Simulation, made: list[tuple[Job, Family]]) -> None:
    """The promises of specs/engine.md, against instants that the engine had no part in computing."""
    assert len(world.launched) == len(set(world.launched)), "an attempt was started twice"
    assert_verified(world.store)
    for job, family in made:
        recorded = world.occurrences(job.id)
        nominal = [o.nominal_ms for o in recorded]
        expected = family.instants(START, world.now - 1)
        told = _told_as_spans(world, job.id, expected)
        assert sorted(nominal + told) == expected, f"{job.id}: an instant has no fate, or two"
        for occurrence in recorded:
            if occurrence.state in FINAL:
                assert occurrence.finished_ms is not None
                assert occurrence.reason or occurrence.state is OccurrenceState.COMPLETED, occurrence
            elif occurrence.due_ms + HOUR < world.now and world.places > 10:
                assert job.overlap is not OverlapPolicy.SKIP or occurrence.state is OccurrenceState.RUNNING
        if job.overlap is not OverlapPolicy.ALLOW and len(job.tasks) >= 1:
            _check_no_overlap(world, job.id)


def _told_as_spans(world: Simulation, job: str, expected: list[int]) -> list[int]:
    """Instants of a backlog too long to list, which the journal tells as one span."""
    from chronex.engine import journal

    lines = world.store.view(lambda tx: journal.tail(tx, limit=1_000_000))
    spans = [e.data for _, e in lines if e.name == "OccurrencesMissed" and e.job == job]
    return [i for i in expected for span in spans if span["from_ms"] <= i <= span["to_ms"]]


def _check_no_overlap(world: Simulation, job: str) -> None:
    mine = sorted((p for p in world.processes if p.job == job), key=lambda p: p.started)
    for earlier, later in pairwise(mine):
        same = earlier.launch.occurrence.nominal_ms == later.launch.occurrence.nominal_ms
        assert same or earlier.ends <= later.started, f"{job}: two occurrences at once"


@pytest.mark.parametrize("seed", range(60))
def test_a_simulated_day_keeps_every_promise(seed: int) -> None:
    world, made = simulate(seed, DAY)
    check_history(world, made)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(1000, 6000))
def test_a_simulated_week_keeps_every_promise_for_many_seeds(seed: int) -> None:
    world, made = simulate(seed, 7 * DAY)
    check_history(world, made)


@pytest.mark.parametrize("seed", [1, 7])
def test_the_same_seed_writes_the_same_bytes(seed: int) -> None:
    first, _ = simulate(seed, 6 * HOUR)
    second, _ = simulate(seed, 6 * HOUR)
    assert first.events() == second.events()
    assert first.launched == second.launched
