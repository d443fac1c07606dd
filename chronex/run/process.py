"""The main process of an attempt: when it ends, and signals to its group.

Its end is seen on a descriptor, and thousands of short-lived descriptors are watched on one event loop.

`loop.add_reader` and `remove_reader` cost several times what the kernel takes for the same, and every attempt
needs them twice. Here one epoll object is the loop's only reader, and attempts enter theirs directly.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from chronex.model import ProcessIdentity
from chronex.run.identity import groups_outlive_their_leader, kill_group, signal_group_of

Callback = Callable[[], object]
_EVENTS_PER_TURN = 64


class DescriptorWatcher(Protocol):
    """Calls back as long as the descriptor is readable or its other end is closed."""

    def add(self, descriptor: int, callback: Callback) -> None: ...

    def remove(self, descriptor: int) -> None: ...


class EpollWatcher:
    """Does not know its loop, so that the loop can be forgotten and this with it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callback] = {}

    def fileno(self) -> int:
        return self._epoll.fileno()

    def add(self, descriptor: int, callback: Callback) -> None:
        self._epoll.register(descriptor, select.EPOLLIN)
        self._callbacks[descriptor] = callback

    def remove(self, descriptor: int) -> None:
        if self._callbacks.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def dispatch(self) -> None:
        for descriptor, _ in self._epoll.poll(0, _EVENTS_PER_TURN):
            callback = self._callbacks.get(descriptor)  # a callback before it may have removed it
            if callback is None:
                continue
            try:
                callback()
            except Exception as problem:
                context = {"message": "a watched descriptor's callback failed", "exception": problem}
                asyncio.get_running_loop().call_exception_handler(context)


class LoopWatcher:
    """The same by the loop itself, where the system has no epoll."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def add(self, descriptor: int, callback: Callback) -> None:
        self._loop.add_reader(descriptor, callback)

    def remove(self, descriptor: int) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(descriptor)


_watchers: WeakKeyDictionary[asyncio.AbstractEventLoop, EpollWatcher] = WeakKeyDictionary()


def watcher_of(loop: asyncio.AbstractEventLoop) -> DescriptorWatcher:
    """The loop's watcher, made at the first call."""
    if not hasattr(select, "epoll"):
        return LoopWatcher(loop)
    watcher = _watchers.get(loop)
    if watcher is None:
        watcher = _watchers[loop] = EpollWatcher()
        loop.add_reader(watcher.fileno(), watcher.dispatch)
    return watcher


_FIRST_POLL_S = 0.002
_SLOWEST_POLL_S = 0.1

OnExit = Callable[[int | None], None]


class SupervisedProcess(Protocol):
    """The main process of an attempt: a child of ours, or one that a dead daemon left."""

    identity: ProcessIdentity
    unknown_because: str

    def watch(self, on_exit: OnExit) -> None: ...

    def has_ended(self) -> bool: ...

    @property
    def is_reaped(self) -> bool: ...

    def signal_group(self, number: int) -> bool: ...

    def group_is_alive(self) -> bool: ...

    def close(self) -> None: ...


class Child:
    """Knows when the process ends by its pidfd; where there is none, it polls."""

    __slots__ = ("_loop", "_on_exit", "_pidfd", "_reaped", "_watcher", "identity", "pid")

    unknown_because = "another part of this program took it"

    def __init__(self, loop: asyncio.AbstractEventLoop, identity: ProcessIdentity) -> None:
        self._loop = loop
        self._watcher = watcher_of(loop)
        self.identity = identity
        self.pid = pid = identity.pid
        self._reaped = False
        self._on_exit: OnExit | None = None
        try:
            self._pidfd = os.pidfd_open(pid)
        except (AttributeError, OSError):
            self._pidfd = -1

    def watch(self, on_exit: OnExit) -> None:
        """`on_exit` gets the wait status once, after the process was reaped; None where another took it."""
        self._on_exit = on_exit
        if self._pidfd >= 0:
            self._watcher.add(self._pidfd, self._reap)
        else:
            self._poll(_FIRST_POLL_S)

    @property
    def is_reaped(self) -> bool:
        return self._reaped

    def has_ended(self) -> bool:
        """Asked of the system, and nothing is taken from it: its status can still be waited for."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _poll(self, pause: float) -> None:
        if not self._reap():
            self._loop.call_later(pause, self._poll, min(pause * 2, _SLOWEST_POLL_S))

    def _reap(self) -> bool:
        status: int | None
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self.pid, None
        if not pid:
            return False
        self._reaped = True
        if self._pidfd >= 0:
            self._watcher.remove(self._pidfd)
        if self._on_exit is not None:
            self._on_exit(status)
        return True

    def signal_group(self, number: int) -> bool:
        """Signal the child's group; never a stranger's, also when the child is long reaped."""
        if self._pidfd >= 0 and (not self._reaped or groups_outlive_their_leader()):
            return signal_group_of(self._pidfd, self.pid, number)
        return not self._reaped and kill_group(self.pid, number)

    def group_is_alive(self) -> bool:
        """A process of the group is left; the child itself counts until it is reaped."""
        if self._pidfd >= 0 and groups_outlive_their_leader():
            return signal_group_of(self._pidfd, self.pid, 0)
        return kill_group(self.pid, 0)  # signal 0 only asks

    def close(self) -> None:
        """Let go; a child that still runs is reaped all the same when it ends."""
        if self._reaped:
            self._release()
        else:
            self._on_exit = lambda _status: self._release()

    def _release(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
