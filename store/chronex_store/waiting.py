"""`wait`: sleep until the change counter moves, on a thread or on an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chronex.clock import Clock
from chronex.errors import StoreClosedError, StoreReplacedError
from chronex_store.notice import POLL_SECONDS, Watcher

# How soon to look again for a commit that is written but not yet shown; its process may have died there.
SETTLE_SECONDS = 0.002


class Waiting:
    """Those who wait on one open store. Each has its own watcher; idle ones are kept for the next."""

    def __init__(self, path: Path, counter: Callable[[], tuple[int, bool]], clock: Clock) -> None:
        self._path = path
        self._counter = counter
        self._clock = clock
        self._lock = threading.Condition()
        self._spare: list[Watcher] = []
        self._asleep = 0
        self._loops: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False
        self._alarm, self._alarm_bell = os.pipe()

    def wait(self, since: int, timeout: float) -> int:
        if since < 0 or timeout <= 0:
            return self._counter()[0]
        end = self._clock.monotonic_ms() + timeout * 1000
        with self._watch() as watcher:
            while True:
                watcher.drain()
                found, is_newest = self._counter()
                left = end - self._clock.monotonic_ms()
                if found != since or left <= 0:
                    return found
                watcher.sleep(left / 1000 if is_newest else SETTLE_SECONDS, self._alarm)
                if self._closed:
                    raise StoreClosedError

    async def wait_async(self, since: int, timeout: float) -> int:
        if since < 0 or timeout <= 0:
            return self._counter()[0]
        end = self._clock.monotonic_ms() + timeout * 1000
        stirred = asyncio.Event()
        with self._watch() as watcher, self._stir(watcher, stirred):
            while True:
                stirred.clear()
                watcher.drain()
                found, is_newest = self._counter()
                left = (end - self._clock.monotonic_ms()) / 1000
                if found != since or left <= 0:
                    return found
                if not is_newest:
                    left = SETTLE_SECONDS
                await _first(stirred, left if watcher.descriptor >= 0 else min(left, POLL_SECONDS))
                if self._closed:
                    raise StoreClosedError

    def close(self) -> None:
        """Wake everybody, and let go of the descriptors when nobody sleeps on them any more."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.write(self._alarm_bell, b"!")
            for stirred, loop in self._loops.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(stirred.set)
            # Sleepers on an event loop may be on the very thread that closes; they let go by themselves.
            self._lock.wait_for(lambda: self._asleep == len(self._loops))
            for watcher in self._spare:
                watcher.close()
            os.close(self._alarm)
            os.close(self._alarm_bell)

    @contextmanager
    def _watch(self) -> Iterator[Watcher]:
        with self._lock:
            if self._closed:
                raise StoreClosedError
            self._asleep += 1
            spare = self._spare.pop() if self._spare else None
        watcher = None
        try:
            watcher = spare or self._new_watcher()
            yield watcher
        finally:
            with self._lock:
                self._asleep -= 1
                if watcher is not None:
                    self._keep(watcher)
                self._lock.notify_all()

    def _new_watcher(self) -> Watcher:
        try:
            return Watcher(self._path)
        except FileNotFoundError as error:
            raise StoreReplacedError from error

    def _keep(self, watcher: Watcher) -> None:
        if self._closed:
            watcher.close()
        else:
            self._spare.append(watcher)

    @contextmanager
    def _stir(self, watcher: Watcher, stirred: asyncio.Event) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._loops[stirred] = loop
        if watcher.descriptor >= 0:
            loop.add_reader(watcher.descriptor, stirred.set)
        try:
            yield
        finally:
            if watcher.descriptor >= 0:
                loop.remove_reader(watcher.descriptor)
            with self._lock:
                self._loops.pop(stirred, None)


async def _first(stirred: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stirred.wait(), seconds)
    except TimeoutError:
        return
