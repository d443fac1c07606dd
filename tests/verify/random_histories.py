"""Random histories of the engine, short enough for ten thousand of them: starts, failures, crashes, stops, downtime."""

from __future__ import annotations

from random import Random

from chronex.engine.orders import Cancel
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Event, Job, Node, ProcessIdentity, Task
from chronex.storage import journal
from chronex.storage.records import Ledger
from tests.engine.simulation import MINUTE, Simulation

SCHEDULES = [
    "* * * * *",
    "*/2 * * * *",
    "*/3 * * * * {jitter:20s}",
    "* * * * * {window:30s}",
    "@every 45s",
    "@every 20s-90s",
]


def random_job(random: Random) -> Job:
    retry = RetryPolicy(max=random.choice([0, 1, None]), interval_ms=random.choice([0, 20_000]))
    return Job(
        id="job",
        schedule=random.choice(SCHEDULES),
        tasks=tuple(Task(name=f"task-{n}", run=("true",)) for n in range(random.choice([1, 1, 2]))),
        overlap=random.choice(list(OverlapPolicy)),
        recovery=RecoveryPolicy(random.choice([s for s in RecoveryStrategy if s is not RecoveryStrategy.BOUNDED])),
        retry=retry,
        execution_timeout_ms=random.choice([None, MINUTE]),
    )


def random_history(seed: int) -> Simulation:
    """A job, three to six minutes, and one or two ends of the daemon: by kill, or in good order."""
    random = Random(seed)
    world = Simulation(
        seed,
        [random_job(random)],
        places=random.choice([1, 50]),
        fail_share=0.3,
        longest_ms=random.choice([2_000, 100_000]),
        orphans_survive=random.random() < 0.5,
    )
    for _ in range(random.choice([1, 1, 2])):
        world.run_until(world.now + random.randrange(MINUTE, 3 * MINUTE))
        if random.random() < 0.6:
            world.crash()
        else:
            stop(world)
        world.now += random.choice([100, 20_000, 4 * MINUTE])
        world.boot()
    world.run_until(world.now + MINUTE)
    return world


def stop(world: Simulation) -> None:
    """As the daemon does it: nothing more is started, what runs is canceled and seen to its end."""
    world.engine.stopping = True
    tell(world, "SchedulerStopRequested")
    world.carry_out(
        tuple(Cancel(process.launch.attempt, Reason(ReasonCode.STOPPING)) for process in world.live.values())
    )
    world._report_ends()
    gone = Node(id=world.engine.node, process=ProcessIdentity(world.node_number, "boot", 1), stopped_ms=world.now)
    world.store.update(lambda tx: Ledger(tx, world.now).put(gone))
    tell(world, "SchedulerStopped")
    world.alive_nodes = set()


def tell(world: Simulation, name: str) -> None:
    event = Event(name=name, at_ms=world.now, data={"node": world.engine.node})
    world.store.update(lambda tx: journal.append(tx, event))
