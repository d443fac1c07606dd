"""What goes wrong, and when: drawn once from the seed, so that a world can be lived again."""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import NamedTuple

from chronex_store.fault_injection import Fault, PlannedFault
from tests.engine.simulated.hands import DAY, HOUR, MINUTE, SECOND


class Trouble(StrEnum):
    KILL = "kill"  # the daemon dies between two steps and comes back after `length`
    KILL_BEFORE_LAUNCH = "kill before launch"  # after a commit, before what it ordered is started
    KILL_BEFORE_RECORD = "kill before record"  # after a start, before the process is on record
    KILL_BEFORE_END = "kill before end"  # a child has ended, and nobody has written it down
    SLEEP = "sleep"  # the machine is suspended for `length`
    STEP = "step"  # the clock is set by `length`, forwards or backwards
    PAUSE = "pause"  # a job is paused for `length`


class Event(NamedTuple):
    at: int  # true time
    trouble: Trouble
    length: int
    chance: float  # whether orphans survive, which job is paused


_LENGTHS: dict[Trouble, tuple[int, ...]] = {
    Trouble.SLEEP: (5 * SECOND, 10 * MINUTE, 3 * HOUR, 9 * HOUR),
    Trouble.STEP: (SECOND, 3 * MINUTE, HOUR, 5 * HOUR, -SECOND, -MINUTE, -HOUR, -3 * HOUR),
    Trouble.PAUSE: (10 * MINUTE, 4 * HOUR, DAY),
}
_DOWNTIMES = (SECOND, MINUTE, HOUR, 12 * HOUR)


def draw_troubles(random: Random, start: int, length: int, count: int) -> list[Event]:
    times = sorted(start + random.randrange(length) for _ in range(count))
    drawn = []
    for at in times:
        trouble = random.choice(list(Trouble))
        drawn.append(Event(at, trouble, random.choice(_LENGTHS.get(trouble, _DOWNTIMES)), random.random()))
    return drawn


def draw_faults(random: Random, count: int, updates: int) -> list[PlannedFault]:
    """The store refuses an update, or makes it and loses the reply."""
    numbers = sorted(random.randrange(10, updates) for _ in range(count))
    return [PlannedFault("update", at, random.choice((Fault.FAIL, Fault.LOSE_REPLY))) for at in numbers]
