"""Tell when a descriptor can be read, for thousands of short-lived descriptors on one event loop.

`loop.add_reader` and `remove_reader` cost several times what the kernel takes for the same, and every attempt
needs them twice. Here one epoll object is the loop's only reader, and attempts enter theirs directly.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

Callback = Callable[[], object]
_EVENTS_PER_TURN = 64


class Watcher(Protocol):
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
                told = {"message": "a watched descriptor's callback failed", "exception": problem}
                asyncio.get_running_loop().call_exception_handler(told)


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


def watcher_of(loop: asyncio.AbstractEventLoop) -> Watcher:
    """The loop's watcher, made at the first call."""
    if not hasattr(select, "epoll"):
        return LoopWatcher(loop)
    watcher = _watchers.get(loop)
    if watcher is None:
        watcher = _watchers[loop] = EpollWatcher()
        loop.add_reader(watcher.fileno(), watcher.dispatch)
    return watcher
