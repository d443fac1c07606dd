"""The only reader of real clocks; everything else is given one of these."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import time
from typing import Protocol

_NS_PER_MS = 1_000_000
# From Linux's timerfd_create(2); Python has them since 3.13.
_ABSOLUTE, _CANCEL_ON_SET = 1, 2
_END_OF_TIME = 2**31 - 1 if ctypes.sizeof(ctypes.c_long) == 4 else 253_402_300_799
# Where the system has no clock that counts suspended time, the monotonic one stands in.
_CLOCK_ERROR = 5  # TIME_ERROR of adjtimex(2): nobody corrects the clock
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
        return time.time_ns() // _NS_PER_MS

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // _NS_PER_MS

    def boottime_ms(self) -> int:
        return time.clock_gettime_ns(_BOOTTIME) // _NS_PER_MS


class StepAlarm:
    """Readable as soon as somebody sets the wall clock, or the machine wakes up; Linux can tell, by a timer that is
    cancelled then. It never rings for any other reason: it is set for the end of time."""

    def __init__(self) -> None:
        """OSError where the system cannot tell."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "timerfd_create"):
            raise OSError(errno.ENOSYS, "no timer that notices a set clock")
        self._descriptor: int = self._libc.timerfd_create(time.CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "no timer that notices a set clock")
        try:
            self._arm()
        except OSError:
            self.close()
            raise

    def fileno(self) -> int:
        return self._descriptor

    def again(self) -> None:
        """Once it has rung: be ready for the next time."""
        with contextlib.suppress(OSError):  # ECANCELED is what it says when the clock was set
            os.read(self._descriptor, 8)
        self._arm()

    def _arm(self) -> None:
        when = (ctypes.c_long * 4)(0, 0, _END_OF_TIME, 0)
        if self._libc.timerfd_settime(self._descriptor, _ABSOLUTE | _CANCEL_ON_SET, ctypes.byref(when), None) != 0:
            raise OSError(ctypes.get_errno(), "no timer that notices a set clock")

    def close(self) -> None:
        os.close(self._descriptor)


SYSTEM_CLOCK = SystemClock()


def wall_ms() -> int:
    """Now, in milliseconds since the epoch, by this machine's wall clock."""
    return SYSTEM_CLOCK.wall_ms()


def is_synchronized() -> bool | None:
    """Does the kernel hold the wall clock for corrected by a time service? None where it does not say."""
    import ctypes  # only the doctor asks

    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjtimex is None:
        return None
    # struct timex: all zeros means "change nothing", which anyone may ask. It is 208 bytes on 64-bit Linux.
    answer = adjtimex(ctypes.create_string_buffer(512))
    return None if answer < 0 else bool(answer != _CLOCK_ERROR)
