"""Ends the functions of a node that others may take over, as its keeper ends its commands.

A program that shares its store and is cut off from it cannot know whether it was given up. Past the time after which
others begin its work anew, its functions must have ended, whatever has become of the database.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chronex.daemon.executor import Executor

_CHECK_S = 1.0


class FunctionGuard:
    """Watches as long as functions run."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        executor.on_function = self._watch
        executor.functions_end_with_us = True  # no keeper holds those in processes of their own
        self._until_ms: int | None = None  # by the boot time, which goes on while the machine sleeps
        self._is_watching = False

    def trust(self, until_ms: int) -> None:
        """A heartbeat has arrived. Before the first one nothing is begun."""
        self._until_ms = until_ms

    def _watch(self) -> None:
        """A function begins."""
        if self._until_ms is not None and not self._is_watching:
            self._is_watching = True
            self._check()

    def _check(self) -> None:
        self._is_watching = bool(self._executor.functions)
        if not self._is_watching:
            return
        assert self._until_ms is not None
        if self._executor.clock.boottime_ms() >= self._until_ms:
            self._executor.cut_off_functions()
        asyncio.get_running_loop().call_later(_CHECK_S, self._check)
