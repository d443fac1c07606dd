"""Who sets the wall clock, and when: what only the system itself can tell. Apart from the clock, because asking takes
ctypes, which would cost `chronex next` more than its answer."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import time

# From Linux's timerfd_create(2); Python has them since 3.13.
_ABSOLUTE, _CANCEL_ON_SET = 1, 2
_END_OF_TIME = 2**31 - 1 if ctypes.sizeof(ctypes.c_long) == 4 else 253_402_300_799
_CLOCK_ERROR = 5  # TIME_ERROR of adjtimex(2): nobody corrects the clock


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


def is_synchronized() -> bool | None:
    """Does the kernel hold the wall clock for corrected by a time service? None where it does not say."""
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjtimex is None:
        return None
    # struct timex: all zeros means "change nothing", which anyone may ask. It is 208 bytes on 64-bit Linux.
    answer = adjtimex(ctypes.create_string_buffer(512))
    return None if answer < 0 else bool(answer != _CLOCK_ERROR)
