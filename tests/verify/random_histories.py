"""Random histories of the engine, short enough for thousands of them: starts, failures, crashes, stops, downtime."""

from __future__ import annotations

from random import Random

from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy
from chronex.testing import MINUTE, RandomOutcomes, SimulatedMachine
from tests.kit.machine import steady

SCHEDULES = [
    "* * * * *",
    "*/2 * * * *",
    "*/3 * * * * {jitter:20s}",
    "* * * * * {window:30s}",
    "@every 45s",
    "@every 20s-90s",
]


def random_job(random: Random) -> Job:
    retry = steady(random.choice([0, 1, None]), random.choice([0, 20_000]))
    return Job(
        id="job",
        schedule=random.choice(SCHEDULES),
        tasks=tuple(Task(name=f"task-{n}", run=("true",)) for n in range(random.choice([1, 1, 2]))),
        overlap=random.choice(list(OverlapPolicy)),
        recovery=RecoveryPolicy(random.choice([s for s in RecoveryStrategy if s is not RecoveryStrategy.BOUNDED])),
        retry=retry,
        execution_timeout_ms=random.choice([None, MINUTE]),
    )


def random_history(seed: int) -> SimulatedMachine:
    """A job, three to six minutes, and one or two ends of the daemon: by kill, or in good order."""
    random = Random(seed)
    machine = SimulatedMachine(
        [random_job(random)],
        slots=random.choice([1, 50]),
        seed=seed,
        outcome=RandomOutcomes(seed, fail_share=0.3, longest_ms=random.choice([2_000, 100_000])),
    )
    orphans_survive = random.random() < 0.5
    for _ in range(random.choice([1, 1, 2])):
        machine.run_until(machine.now + random.randrange(MINUTE, 3 * MINUTE))
        if random.random() < 0.6:
            machine.crash(orphans_survive=orphans_survive)
        else:
            machine.stop()
        machine.pass_time(random.choice([100, 20_000, 4 * MINUTE]))
        machine.boot()
    machine.run_until(machine.now + MINUTE)
    return machine
