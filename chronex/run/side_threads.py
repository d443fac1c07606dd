"""Work off the event loop: what takes a while, and what may never answer.

A path of a server that is gone, or a host that drops what it is sent, may never answer. Each look has a thread of its
own, of which nothing waits longer than it was given. A thread that hangs in the system cannot be ended: it is left
behind, and where too many of them hang, nobody looks any more until one has come back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

MOST_AT_ONCE = 16
T = TypeVar("T")


class _Once(Generic[T]):
    """Work that is done once, by whoever comes first."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.result: Future[T] = Future()
        self._taken = threading.Lock()

    def __call__(self) -> None:
        if not self._taken.acquire(blocking=False) or not self.result.set_running_or_notify_cancel():
            return
        try:
            self.result.set_result(self._work())
        except BaseException as error:
            self.result.set_exception(error)


async def off_the_loop(work: Callable[[], T]) -> T:
    """What `work` returns or raises, from a thread; from here where the machine's processes are used up.

    The pool of threads may have taken the work before it fails to begin a thread: so either does it, and not both.
    """
    once = _Once(work)
    try:
        asyncio.get_running_loop().run_in_executor(None, once)
    except RuntimeError:  # no thread can be started
        once()
    return await asyncio.wrap_future(once.result)


class NoAnswerError(Exception):
    """It has not come back in time; the words say how long that was, or that too many hang already."""


class SideThreads:
    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._turn = asyncio.Semaphore(most)

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """What `work` returns or raises; NoAnswerError where that takes longer."""
        async with self._turn:
            if not self._free.acquire(blocking=False):
                raise NoAnswerError("too many looks before it have not come back")
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[T] = loop.create_future()
            thread = threading.Thread(target=self._run, args=(work, loop, answer), name="chronex-look", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the machine's processes are used up
                self._free.release()
                raise NoAnswerError("no thread can be started to look") from None
            try:
                return await asyncio.wait_for(answer, seconds)
            except TimeoutError:
                raise NoAnswerError(f"no answer within {seconds:g} s") from None

    def _run(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop, answer: asyncio.Future[T]) -> None:
        found: T | None = None
        error: Exception | None = None
        try:
            found = work()
        except Exception as raised:
            error = raised
        finally:
            self._free.release()

        def deliver() -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found)  # type: ignore[arg-type]

        try:
            loop.call_soon_threadsafe(deliver)
        except RuntimeError:
            return  # the loop was closed meanwhile
