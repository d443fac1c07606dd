"""`simulate(seed, length)`: the same seed lives the same world, to the byte."""

from __future__ import annotations

from hashlib import sha256
from random import Random

from chronex.storage.ports import Row
from tests.engine.simulated.hands import DAY, MINUTE, WEEK
from tests.engine.simulated.troubles import draw_faults, draw_troubles
from tests.engine.simulated.workload import STARTS, Drawn, draw_jobs
from tests.engine.simulated.world import World


def simulate(seed: int, length: int = WEEK, drawn: list[Drawn] | None = None, start: int | None = None) -> World:
    """Jobs, troubles and faults of the seed; the last minutes are calm, so that whatever is due can be decided."""
    random = Random(seed)
    start = random.choice(STARTS) if start is None else start
    jobs = draw_jobs(random, start, random.choice((1, 1, 2, 3))) if drawn is None else drawn
    troubles = draw_troubles(random, start, length, random.choice((0, 2, 4, 8)) * max(length // WEEK, 1))
    faults = draw_faults(random, random.choice((0, 1, 4)), updates=100 * max(length // DAY, 1))
    world = World(random, jobs, start, random.choice((1, 2, 50)), faults)
    for event in troubles:
        if event.at > world.hands.boot:
            world.live_until(event.at)
        world.suffer(event)
    boots = -1
    while boots != world.boots:  # one that dies in the last minutes may leave the rest to its successor
        boots = world.boots
        world.live_until(max(start + length, world.hands.boot) + 5 * MINUTE)
    return world


def rows_of(world: World) -> list[Row]:
    return world.rows.view(lambda tx: tx.scan(b"", limit=10_000_000))


def digest(world: World) -> str:
    """Everything the store holds, in one number."""
    total = sha256()
    for key, value in rows_of(world):
        total.update(b"%d %d " % (len(key), len(value)) + key + value)
    return total.hexdigest()
