"""A HUP that comes while the daemon begins: it asks for the job file to be read, and must not end who cannot do that.

Without this the system ends the process: `chronex reload` or a log rotation beside a restart, or while a database is
waited for, would leave nobody to schedule.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from types import FrameType


class EarlyHangup:
    """Held from the start of the program on, until the daemon answers HUP itself."""

    def __init__(self) -> None:
        self.has_come = False

    def hold(self) -> None:
        with suppress(ValueError):  # not the main thread: whoever has that decides
            signal.signal(signal.SIGHUP, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.has_come = True


def ignore_hangup() -> None:
    """Between one daemon and the one that takes its place in this process; that is so across exec, until it holds it.

    What it would ask for is done anyway: the next one reads the file.
    """
    with suppress(ValueError):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
