"""The one way in which a test waits: for an event, never for an amount of time.

The deadline only bounds a hang. It is far beyond what the slowest machine needs, so a test that fails by it has
found something that never happens, and says what.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

DEADLINE_S = 240.0
POLL_S = 0.01


def until(condition: Callable[[], T], what: str | Callable[[], str], deadline: float = DEADLINE_S) -> T:
    """Ask until the answer is true, and return it; `what` finishes the sentence "waited in vain for …"."""
    end = time.monotonic() + deadline
    while not (found := condition()):
        if time.monotonic() >= end:
            raise AssertionError(_in_vain(what, deadline))
        time.sleep(POLL_S)
    return found


async def until_async(
    condition: Callable[[], T | Awaitable[T]], what: str | Callable[[], str], deadline: float = DEADLINE_S
) -> T:
    """The same on an event loop, which goes on meanwhile; the condition may be a coroutine function."""
    end = time.monotonic() + deadline
    while True:
        answer = condition()
        found = await answer if isinstance(answer, Awaitable) else answer
        if found:
            return found
        if time.monotonic() >= end:
            raise AssertionError(_in_vain(what, deadline))
        await asyncio.sleep(POLL_S)


def is_gone(pid: int) -> bool:
    """A process has ended and was reaped."""
    return not Path(f"/proc/{pid}").exists()


def _in_vain(what: str | Callable[[], str], deadline: float) -> str:
    words = what if isinstance(what, str) else what()
    return f"waited {deadline:g} s in vain for {words}"
