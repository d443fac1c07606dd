"""Writes that must not be lost: what a store that is full or away does not take is tried again until it does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from chronex.errors import StoreUnavailableError

T = TypeVar("T")
FULL_PAUSE_S = 1.0
# A daemon that is stopping does not wait for ever: its successor takes up what is not recorded then.
LAST_TRIES = 3


class StoreRetry:
    """Writes that the store could not take wait here until it can; `waiting` says how many."""

    def __init__(self) -> None:
        self.waiting = 0
        self._back = asyncio.Event()

    def store_is_back(self) -> None:
        """Somebody has read from it: those who wait try at once."""
        self._back.set()

    async def until_taken(self, write: Callable[[], Awaitable[T]], is_leaving: Callable[[], bool]) -> T:
        """What `write` returns once the store takes it; its error where it is full or away and we are leaving."""
        tries_left = LAST_TRIES
        while True:
            try:
                return await write()
            except StoreUnavailableError:
                tries_left -= is_leaving()
                if not tries_left:
                    raise
            await self._pause()

    async def _pause(self) -> None:
        self.waiting += 1
        self._back.clear()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._back.wait(), FULL_PAUSE_S)
        finally:
            self.waiting -= 1
