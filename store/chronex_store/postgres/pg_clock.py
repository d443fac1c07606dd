"""The clock of the database: one for all machines, whatever their own clocks say."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from chronex.clock import SYSTEM_CLOCK, Clock

_KEPT = 10


class _Sample(NamedTuple):
    offset_ms: float
    round_trip_ms: float


class DatabaseClock:
    """Wall time by the server, counted on between questions by this machine's boot time, which nobody can set."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: deque[_Sample] = deque(maxlen=_KEPT)
        self._offset_ms = 0.0
        self.uncertainty_ms = 0.0

    def learn(self, server_ms: float, asked_ms: int, answered_ms: int) -> None:
        """The server said `server_ms` between these two readings of the boot time."""
        sample = _Sample(server_ms - (asked_ms + answered_ms) / 2, answered_ms - asked_ms)
        with self._lock:
            self._samples.append(sample)
            best = min(self._samples, key=lambda one: one.round_trip_ms)
            if abs(best.offset_ms - sample.offset_ms) > (best.round_trip_ms + sample.round_trip_ms) / 2 + _DRIFT_MS:
                self._samples.clear()  # the server's clock was set: what was known before is of no use
                self._samples.append(sample)
                best = sample
            self._offset_ms, self.uncertainty_ms = best.offset_ms, best.round_trip_ms / 2

    def wall_ms(self) -> int:
        return round(self._offset_ms + self._clock.boottime_ms())

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    def boottime_ms(self) -> int:
        return self._clock.boottime_ms()


# Two clocks drift apart by this much between samples at the utmost; more is a clock that was set.
_DRIFT_MS = 50.0
