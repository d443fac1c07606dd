"""Starts on their way into the record: children that wait at their gates at the same time share one update."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from chronex.engine.ports import Store
from chronex.engine.tick import Engine, StartOf


class _Waiting(NamedTuple):
    start: StartOf
    recorded: asyncio.Future[None]


class Starts:
    """One update is on its way at a time; who comes meanwhile waits for the next, and shares it."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self.store, self.engine = store, engine
        self._waiting: list[_Waiting] = []
        self._update: asyncio.Task[None] | None = None

    async def record(self, start: StartOf) -> None:
        """Returns once the start is on disk; raises what the store raised."""
        loop = asyncio.get_running_loop()
        recorded: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(start, recorded))
        if self._update is None:
            self._update = loop.create_task(self._record_all())
        await recorded

    async def _record_all(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            await self._record(taken)
        self._update = None

    async def _record(self, taken: list[_Waiting]) -> None:
        try:
            await self.store.update_async(self.engine.all_started([one.start for one in taken]), essential=True)
        except Exception as problem:
            for one in taken:
                if not one.recorded.done():
                    one.recorded.set_exception(problem)
            return
        for one in taken:
            if not one.recorded.done():  # whoever waited may have been canceled meanwhile
                one.recorded.set_result(None)
