"""What has begun or ended must be written down: a store without room is waited for, and asked again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from chronex.errors import StoreFullError

T = TypeVar("T")
FULL_PAUSE_S = 1.0
# Whoever is to leave does not wait for ever: what is not recorded then is taken up by the next one.
LAST_TRIES = 3


async def until_room(write: Callable[[], Awaitable[T]], is_leaving: Callable[[], bool]) -> T:
    """What `write` gives once there is room; StoreFullError where there is none and we are to leave."""
    tries_left = LAST_TRIES
    while True:
        try:
            return await write()
        except StoreFullError:
            tries_left -= is_leaving()
            if not tries_left:
                raise
        await asyncio.sleep(FULL_PAUSE_S)
