"""When this machine was too busy to begin anything in time, whatever the cluster does.

Leases run out faster than usual in a campaign, and the machine does not. On one that is busy enough nobody is
trusted for long enough to begin a run, and that is no fault of the nodes.
"""

from __future__ import annotations

import subprocess
import threading

from chronex.clock import SYSTEM_CLOCK
from chronex.torture.witness import Span

_EVERY_S = 0.5
_LONGEST_S = 60


def uptime_s() -> float:
    """By the clock of the witness."""
    return SYSTEM_CLOCK.boottime_ms() / 1000


class Metronome:
    """Starts a shell again and again. Those that took longer than `longest_ms` are kept as spans, in order."""

    def __init__(self, longest_ms: int) -> None:
        self.late: list[Span] = []
        self._longest_s = longest_ms / 1000
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="chronex-metronome", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join(_LONGEST_S)

    def _work(self) -> None:
        due_s = uptime_s() + _EVERY_S
        while not self._closing.wait(max(0, due_s - uptime_s())):
            subprocess.run(["/bin/sh", "-c", ":"], check=False, stdin=subprocess.DEVNULL)
            self.note(Span(due_s, uptime_s()))
            due_s = uptime_s() + _EVERY_S

    def note(self, beat: Span) -> None:
        if beat.seconds > self._longest_s:
            self.late.append(beat)
