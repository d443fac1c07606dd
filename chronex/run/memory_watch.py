"""Watches the memory of a command and its children, where no control group does: one that has more is killed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from chronex.model.process_settings import ResourceLimits, refused_beyond

_FIRST_S, _SLOWEST_S = 0.02, 0.5
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST_PROCESSES = 4_096


class MemoryWatch:
    """Calls `on_excess` once, when the process and its descendants have more than `limit` bytes of their own."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pid: int, limit: int, on_excess: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._pid = pid
        self._limit = limit
        self._on_excess = on_excess
        self._pause = _FIRST_S
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._timer = self._loop.call_later(self._pause, self._look)

    def _look(self) -> None:
        if memory_of(self._pid) > self._limit:
            self._on_excess()
            return
        # Often at first, when most programs take what they need.
        self._pause = min(self._pause * 1.5, _SLOWEST_S)
        self.begin()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def memory_of(pid: int) -> int:
    """Bytes that the process and its descendants have for themselves; what they share with files does not count."""
    todo, total, seen = [pid], 0, 0
    while todo and seen < _MOST_PROCESSES:
        one = todo.pop()
        seen += 1
        fields = _read(f"/proc/{one}/statm").split()
        if len(fields) > 2:
            total += max(0, int(fields[1]) - int(fields[2])) * _PAGE
        todo += _children(one)
    return total


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as source:
            return source.read()
    except OSError:
        return ""


def limits_of_process(limits: ResourceLimits) -> ResourceLimits:
    """What the launcher sets for a process where no control group holds these."""
    memory = None if limits.memory is None else refused_beyond(limits.memory)
    return ResourceLimits(memory=memory, tasks=limits.tasks)
