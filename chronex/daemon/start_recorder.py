"""Puts starts on record, many in one transaction: nothing runs before that."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from chronex.engine.engine import AttemptStart, Engine
from chronex.errors import StaleClaimError
from chronex.storage import scopes
from chronex.storage.ports import Store


class _Waiting(NamedTuple):
    start: AttemptStart
    recorded: asyncio.Future[None]


class StartRecorder:
    """Records starts in batches: one update is under way at a time, and starts that come meanwhile share the next."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self.store = store
        self.engine = engine
        self._waiting: list[_Waiting] = []
        self._update: asyncio.Task[None] | None = None

    async def record(self, start: AttemptStart) -> None:
        """Returns once the start is on disk; raises what the store raised, StaleClaimError where it was refused."""
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
            update = self.engine.all_started([one.start for one in taken])
            scope = scopes.of_jobs(*(one.start.attempt.job for one in taken))
            refused = await self.store.update_async(update, use_reserve=True, scope=scope)
        except Exception as problem:
            for one in taken:
                if not one.recorded.done():
                    one.recorded.set_exception(problem)
            return
        for one in taken:
            if one.recorded.done():  # the attempt that waited may have been canceled meanwhile
                continue
            if one.start.attempt.id in refused:
                one.recorded.set_exception(StaleClaimError(f"{one.start.attempt.id} was taken away"))
            else:
                one.recorded.set_result(None)
