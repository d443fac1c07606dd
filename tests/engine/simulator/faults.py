"""What goes wrong, and when: drawn once from the seed, so that a run can be repeated."""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import NamedTuple

from chronex.testing import DAY, HOUR, MINUTE, SECOND, KillPoint
from chronex_store.fault_injection import Fault, PlannedFault


class MachineFault(StrEnum):
    KILL = "kill"  # the daemon dies between two steps and comes back after `length`
    KILL_BEFORE_LAUNCH = "kill before launch"  # after a commit, before what it ordered is started
    KILL_BEFORE_RECORD = "kill before record"  # after a start, before the process is on record
    KILL_BEFORE_END = "kill before end"  # a child has ended, and its end is not on record
    SLEEP = "sleep"  # the machine is suspended for `length`
    STEP = "step"  # the clock is set by `length`, forwards or backwards
    PAUSE = "pause"  # a job is paused for `length`


class PlannedMachineFault(NamedTuple):
    at: int  # true time
    fault: MachineFault
    length: int
    chance: float  # whether orphans survive, which job is paused


_LENGTHS: dict[MachineFault, tuple[int, ...]] = {
    MachineFault.SLEEP: (5 * SECOND, 10 * MINUTE, 3 * HOUR, 9 * HOUR),
    MachineFault.STEP: (SECOND, 3 * MINUTE, HOUR, 5 * HOUR, -SECOND, -MINUTE, -HOUR, -3 * HOUR),
    MachineFault.PAUSE: (10 * MINUTE, 4 * HOUR, DAY),
}
KILL_POINTS = {
    MachineFault.KILL_BEFORE_LAUNCH: KillPoint.BEFORE_LAUNCH,
    MachineFault.KILL_BEFORE_RECORD: KillPoint.BEFORE_RECORD,
    MachineFault.KILL_BEFORE_END: KillPoint.BEFORE_END,
}
_DOWNTIMES = (SECOND, MINUTE, HOUR, 12 * HOUR)


def draw_machine_faults(random: Random, start: int, length: int, count: int) -> list[PlannedMachineFault]:
    times = sorted(start + random.randrange(length) for _ in range(count))
    drawn = []
    for at in times:
        fault = random.choice(list(MachineFault))
        length = random.choice(_LENGTHS.get(fault, _DOWNTIMES))
        drawn.append(PlannedMachineFault(at, fault, length, random.random()))
    return drawn


def draw_store_faults(random: Random, count: int, updates: int) -> list[PlannedFault]:
    """The store refuses an update, or makes it and loses the reply."""
    numbers = sorted(random.randrange(10, updates) for _ in range(count))
    return [PlannedFault("update", at, random.choice((Fault.FAIL, Fault.LOSE_REPLY))) for at in numbers]
