"""Has the machine slept, or has its clock been set, since the last look?"""

from __future__ import annotations

from typing import NamedTuple

from chronex.engine.clock import Clock

# A look that comes this much later by the wall than by the clock that only counts waking time was slept through.
TOLERANCE_MS = 2_000


class Jump(NamedTuple):
    """The wall moved by `by_ms` more than time did, while `slept_ms` of it were spent asleep."""

    at_ms: int
    by_ms: int
    slept_ms: int


class Wakefulness:
    """Since when the scheduler has been awake without a break, by the wall."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall, self._awake, self._boot = clock.wall_ms(), clock.monotonic_ms(), clock.boottime_ms()
        self.since_ms = self._wall

    def look(self) -> Jump | None:
        """Compare the three hands; a step forwards or a sleep begins a new waking time."""
        wall, awake, boot = self._clock.wall_ms(), self._clock.monotonic_ms(), self._clock.boottime_ms()
        by, slept = (wall - self._wall) - (awake - self._awake), (boot - self._boot) - (awake - self._awake)
        self._wall, self._awake, self._boot = wall, awake, boot
        if abs(by) <= TOLERANCE_MS and slept <= TOLERANCE_MS:
            return None
        if by > 0:
            self.since_ms = wall
        else:
            self.since_ms = min(self.since_ms, wall)
        return Jump(wall, by, slept)
