"""`wait`: sleep until any process commits, on a thread or on an event loop.

LMDB ends every commit with a write to the meta page of data.mdb, and inotify reports that write after it has
taken effect. So a sleeping reader costs nothing, a writer does nothing for it, and no extra file exists.
Watching never opens data.mdb, which matters: closing it again would drop LMDB's locks of this process.
Without inotify (another system, or its instances used up) a reader polls every 20 ms.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chronex.clock import Clock
from chronex.errors import StoreClosedError, StoreReplacedError
from chronex_store.linux import watch_file

POLL_SECONDS = 0.02
# How soon to read again for a commit that is written but not yet visible; its process may have died there.
NOT_YET_VISIBLE_SECONDS = 0.002


class FileWatch:
    """One sleeper's watch on the data file. `descriptor` is -1 without inotify, and then the sleeper polls."""

    def __init__(self, path: Path) -> None:
        self.descriptor = watch_file(path)

    def sleep(self, seconds: float, close_signal: int) -> None:
        """Sleep until the file changes, `close_signal` becomes readable, or the time is over."""
        poll = select.poll()
        poll.register(close_signal, select.POLLIN)
        if self.descriptor >= 0:
            poll.register(self.descriptor, select.POLLIN)
        else:
            seconds = min(seconds, POLL_SECONDS)
        poll.poll(max(seconds, 0.0) * 1000)

    def drain(self) -> None:
        if self.descriptor >= 0:
            try:
                os.read(self.descriptor, 65536)
            except BlockingIOError:
                return

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class CommitWatch:
    """All sleepers of one open store. Each has its own watch; idle watches are kept for the next sleeper.

    `counter` returns the number of the commit that a view would see now, and whether that is the newest.
    """

    def __init__(self, path: Path, counter: Callable[[], tuple[int, bool]], clock: Clock) -> None:
        self._path = path
        self._counter = counter
        self._clock = clock
        self._lock = threading.Condition()
        self._idle: list[FileWatch] = []
        self._sleepers = 0
        self._loops: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False
        self._close_signal, self._close_sender = os.pipe()

    def wait(self, since: int, timeout: float) -> int:
        if since < 0 or timeout <= 0:
            return self._counter()[0]
        end = self._clock.monotonic_ms() + timeout * 1000
        with self._watching() as watch:
            while True:
                watch.drain()
                found, is_newest = self._counter()
                left = end - self._clock.monotonic_ms()
                if found != since or left <= 0:
                    return found
                watch.sleep(left / 1000 if is_newest else NOT_YET_VISIBLE_SECONDS, self._close_signal)
                if self._closed:
                    raise StoreClosedError

    async def wait_async(self, since: int, timeout: float) -> int:
        if since < 0 or timeout <= 0:
            return self._counter()[0]
        end = self._clock.monotonic_ms() + timeout * 1000
        changed = asyncio.Event()
        with self._watching() as watch, self._set_on_change(watch, changed):
            while True:
                changed.clear()
                watch.drain()
                found, is_newest = self._counter()
                left = (end - self._clock.monotonic_ms()) / 1000
                if found != since or left <= 0:
                    return found
                if not is_newest:
                    left = NOT_YET_VISIBLE_SECONDS
                await _wait_for_event(changed, left if watch.descriptor >= 0 else min(left, POLL_SECONDS))
                if self._closed:
                    raise StoreClosedError

    def close(self) -> None:
        """Wake every sleeper, and close the descriptors when no thread sleeps on them any more."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.write(self._close_sender, b"!")
            for changed, loop in self._loops.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(changed.set)
            # A sleeper on an event loop may be on the thread that closes: it closes its own watch when it wakes.
            self._lock.wait_for(lambda: self._sleepers == len(self._loops))
            for watch in self._idle:
                watch.close()
            os.close(self._close_signal)
            os.close(self._close_sender)

    @contextmanager
    def _watching(self) -> Iterator[FileWatch]:
        with self._lock:
            if self._closed:
                raise StoreClosedError
            self._sleepers += 1
            idle = self._idle.pop() if self._idle else None
        watch = None
        try:
            watch = idle or self._new_watch()
            yield watch
        finally:
            with self._lock:
                self._sleepers -= 1
                if watch is not None:
                    self._keep(watch)
                self._lock.notify_all()

    def _new_watch(self) -> FileWatch:
        try:
            return FileWatch(self._path)
        except FileNotFoundError as error:
            raise StoreReplacedError from error

    def _keep(self, watch: FileWatch) -> None:
        if self._closed:
            watch.close()
        else:
            self._idle.append(watch)

    @contextmanager
    def _set_on_change(self, watch: FileWatch, changed: asyncio.Event) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._loops[changed] = loop
        if watch.descriptor >= 0:
            loop.add_reader(watch.descriptor, changed.set)
        try:
            yield
        finally:
            if watch.descriptor >= 0:
                loop.remove_reader(watch.descriptor)
            with self._lock:
                self._loops.pop(changed, None)


async def _wait_for_event(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
