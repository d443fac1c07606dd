"""How running work is asked to end, and made to."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from chronex.model import ProcessIdentity
from chronex.run.environment import ATTEMPT_VARIABLE
from chronex.run.identity import boot_id, is_alive, signal_process, status_of
from chronex.run.request import AttemptRequest, ExitVerdict

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


class SignalTarget(Protocol):
    def signal_group(self, number: int) -> bool: ...


class Stopper:
    """TERM to the group, KILL after the grace. The first reason to stop is the one that is recorded."""

    __slots__ = ("_grace_s", "_loop", "_target", "_timer", "kill_at", "verdict")

    def __init__(self, loop: asyncio.AbstractEventLoop, target: SignalTarget, grace_ms: int) -> None:
        self._loop = loop
        self._target = target
        self._grace_s = grace_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self.verdict: ExitVerdict | None = None
        self.kill_at = 0.0

    def stop(self, verdict: ExitVerdict) -> None:
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


_ROUNDS = 40
_BETWEEN_ROUNDS_S = 0.02


Marks = frozenset[bytes]


def marks_of(request: AttemptRequest) -> Marks:
    """What every process of the attempt has in its environment, and no other process of this machine.

    Its id alone is not enough: job and second make it, and a scheduler on another store may have the same of both.
    """
    marks = {ATTEMPT_VARIABLE: request.attempt_id, **request.extra_environment}
    return frozenset(f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in marks.items())


def find_leftovers(main: ProcessIdentity, marks: Marks) -> tuple[ProcessIdentity, ...]:
    """Living processes of the main process's group or session, or with the attempt's marks in their environment.

    The last finds those that left for a session of their own. Looks at every process: not for the event loop.
    Without /proc nothing is found.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return ()
    # While members live, the number of their group cannot be given to a new process. So another process that has
    # it now means that there are none, and that group and session of that number are a stranger's.
    now = status_of(main.pid)
    by_number = now is None or now.start_time == main.start_time
    found = []
    for pid in (int(name) for name in names if name.isdigit()):
        status = status_of(pid)
        if pid in (main.pid, os.getpid()) or status is None or status.dead:
            continue
        if (by_number and main.pid in (status.group, status.session)) or marks <= _environment_of(pid):
            found.append(ProcessIdentity(pid, boot_id(), status.start_time, status.group))
    return tuple(found)


def kill_leftovers(
    found: Iterable[ProcessIdentity], main: ProcessIdentity, marks: Marks
) -> tuple[tuple[ProcessIdentity, ...], int]:
    """Kill them, and what they start meanwhile, for about a second: all that were seen, and how many are gone."""
    seen: dict[ProcessIdentity, None] = {}
    current = tuple(found)
    for _ in range(_ROUNDS):
        if not current:
            break
        seen.update(dict.fromkeys(current))
        for identity in current:
            signal_process(identity, signal.SIGKILL)
        time.sleep(_BETWEEN_ROUNDS_S)
        current = find_leftovers(main, marks)
    return tuple(seen), sum(not is_alive(identity) for identity in seen)


def _environment_of(pid: int) -> Marks:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as source:
            return frozenset(source.read(256 * 1024).split(b"\0"))
    except OSError:
        return frozenset()
