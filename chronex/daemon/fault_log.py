"""Mistakes of Chronex itself, met in work that nobody awaits: told when they are met, and the rest goes on.

A task takes its exception with it, and whoever waits for what the task was to do would wait without a word.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from chronex.daemon.log_handlers import log_event

log = logging.getLogger(__name__)


class Faults:
    """`on_fault` is given what had the fault, and the fault, each time."""

    def __init__(self) -> None:
        self.on_fault: Callable[[str, str], None] = lambda what, fault: None
        self._last: dict[str, str] = {}  # by what had it

    def note(self, what: str, fault: BaseException) -> None:
        """One that is met again and again, by what is tried again every second, is logged once."""
        words, place = words_of(fault), place_of(fault)
        if self._last.get(what) != words:
            self._last[what] = words
            fields = {"what": what, "fault": words, "where": place, "so": "the rest goes on"}
            log_event(log, "a fault of Chronex", fields, logging.ERROR)
        self.on_fault(what, words)

    def watched(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        """A task for work that nobody awaits; how it ends is noted where that is a fault."""
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda done: self._over(done, what))
        return task

    def _over(self, task: asyncio.Task[None], what: str) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.note(what, fault)


def words_of(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__


def place_of(fault: BaseException) -> str:
    """The innermost line of it, for whoever reports it."""
    frames = traceback.extract_tb(fault.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
