"""`simulate(seed, length)`: the same seed gives the same store, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from random import Random

from chronex.model.groups import GroupSettings
from chronex.storage.ports import Row
from chronex.testing import DAY, MINUTE, WEEK
from tests.engine.simulator.faults import draw_machine_faults, draw_store_faults
from tests.engine.simulator.faulty_machine import FaultyMachine
from tests.engine.simulator.workload import STARTS, DrawnJob, draw_jobs


def simulate(
    seed: int,
    length: int = WEEK,
    drawn: list[DrawnJob] | None = None,
    start: int | None = None,
    groups: Iterable[GroupSettings] = (),
) -> FaultyMachine:
    """Jobs and faults of the seed; the last minutes have no faults, so that everything due can be decided."""
    random = Random(seed)
    start = random.choice(STARTS) if start is None else start
    jobs = draw_jobs(random, start, random.choice((1, 1, 2, 3))) if drawn is None else drawn
    machine_faults = draw_machine_faults(random, start, length, random.choice((0, 2, 4, 8)) * max(length // WEEK, 1))
    store_faults = draw_store_faults(random, random.choice((0, 1, 4)), updates=100 * max(length // DAY, 1))
    machine = FaultyMachine(random, jobs, start, random.choice((1, 2, 50)), store_faults, groups)
    for planned in machine_faults:
        if planned.at > machine.clock.boot:
            machine.run_until(planned.at)
        machine.inject(planned)
    boots = -1
    while boots != machine.boots:  # a scheduler that dies in the last minutes leaves the rest to the next one
        boots = machine.boots
        machine.run_until(max(start + length, machine.clock.boot) + 5 * MINUTE)
    return machine


def rows_of(machine: FaultyMachine) -> list[Row]:
    return machine.rows.view(lambda tx: tx.scan(b"", limit=10_000_000))


def digest(machine: FaultyMachine) -> str:
    """Everything the store holds, in one number."""
    total = sha256()
    for key, value in rows_of(machine):
        total.update(b"%d %d " % (len(key), len(value)) + key + value)
    return total.hexdigest()
