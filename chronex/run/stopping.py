"""How running work is asked to end, and made to."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Protocol

from chronex.run.exits import Verdict

Listener = Callable[[], None]


class Cancellation:
    """The wish that an attempt should end. Wished for on the event loop; seen from every thread."""

    __slots__ = ("_listeners", "_waiters", "reason", "requested")

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self._listeners: list[Listener] = []
        self._waiters: list[threading.Event] = []  # one for each thread that waits; commands have none

    def request(self, reason: str = "") -> None:
        """The first reason stays."""
        if self.requested:
            return
        self.reason = reason
        self.requested = True
        for waiter in tuple(self._waiters):
            waiter.set()
        for listener in tuple(self._listeners):
            listener()

    def wait(self, timeout: float | None = None) -> bool:
        """For threads: wait until the end is wished for; False where `timeout` seconds passed first."""
        waiter = threading.Event()
        self._waiters.append(waiter)
        # Looked at after entering: a wish that came before has not set this waiter.
        if not self.requested:
            waiter.wait(timeout)
        self._waiters.remove(waiter)
        return self.requested

    def listen(self, listener: Listener) -> None:
        """Called once, at once where the wish is there already."""
        if self.requested:
            listener()
        else:
            self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)


class Signalled(Protocol):
    def signal_group(self, number: int) -> bool: ...


class Stopper:
    """TERM to the group, KILL after the grace. The first reason to stop is the one that is recorded."""

    __slots__ = ("_grace_s", "_loop", "_target", "_timer", "kill_at", "verdict")

    def __init__(self, loop: asyncio.AbstractEventLoop, target: Signalled, grace_ms: int) -> None:
        self._loop = loop
        self._target = target
        self._grace_s = grace_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self.verdict: Verdict | None = None
        self.kill_at = 0.0

    def stop(self, verdict: Verdict) -> None:
        if self.verdict is not None:
            return
        self.verdict = verdict
        self.kill_at = self._loop.time() + self._grace_s
        self._target.signal_group(signal.SIGTERM)
        # A stopped process does not see TERM before it goes on.
        self._target.signal_group(signal.SIGCONT)
        self._timer = self._loop.call_at(self.kill_at, self._target.signal_group, signal.SIGKILL)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
