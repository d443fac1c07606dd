"""The only reader of real clocks; everything else is given one of these."""

from __future__ import annotations

import time
from typing import Protocol

from chronex.torture_settings import CLOCK_AHEAD_MS

_NS_PER_MS = 1_000_000
# Where the system has no clock that counts suspended time, the monotonic one stands in.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Three hands, because a suspend or a clock step moves them apart."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch; may be set forward or back by anyone."""
        ...

    def monotonic_ms(self) -> int:
        """Never goes back; stands still while the machine sleeps."""
        ...

    def boottime_ms(self) -> int:
        """Never goes back; goes on while the machine sleeps."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def wall_ms(self) -> int:
        return time.time_ns() // _NS_PER_MS + CLOCK_AHEAD_MS

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // _NS_PER_MS

    def boottime_ms(self) -> int:
        return time.clock_gettime_ns(_BOOTTIME) // _NS_PER_MS


SYSTEM_CLOCK = SystemClock()


def wall_ms() -> int:
    """Now, in milliseconds since the epoch, by this machine's wall clock."""
    return SYSTEM_CLOCK.wall_ms()
