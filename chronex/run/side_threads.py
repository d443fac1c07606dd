"""Looking at something that may never answer: a path of a server that is gone, a host that drops what it is sent.

Each look has a thread of its own, of which nothing waits longer than it was given. A thread that hangs in the system
cannot be ended: it is left behind, and where too many of them hang, nobody looks any more until one has come back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

MOST_AT_ONCE = 16
T = TypeVar("T")


class NoAnswerError(Exception):
    """It has not come back in time; the words say how long that was, or that too many hang already."""


class SideThreads:
    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._turn = asyncio.Semaphore(most)

    async def look(self, work: Callable[[], T], seconds: float) -> T:
        """What `work` returns or raises; NoAnswerError where that takes longer."""
        async with self._turn:
            if not self._free.acquire(blocking=False):
                raise NoAnswerError("too many looks before it have not come back")
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[T] = loop.create_future()
            thread = threading.Thread(target=self._run, args=(work, loop, answer), name="chronex-look", daemon=True)
            thread.start()
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

        def tell() -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found)  # type: ignore[arg-type]

        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:
            return  # the loop was closed meanwhile
