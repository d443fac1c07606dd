"""What a daemon tells of itself: events for the journal and the log, written beside its loop and in their order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from chronex.clock import Clock
from chronex.daemon.fault_log import Faults
from chronex.daemon.log_handlers import log_event
from chronex.errors import StoreError
from chronex.model.event import Event
from chronex.storage import journal
from chronex.storage.ports import Store
from chronex.storage.scopes import JOURNAL_ONLY

log = logging.getLogger(__name__)


class JournalNotes:
    def __init__(self, store: Store, clock: Clock, faults: Faults) -> None:
        self._store, self._clock, self._faults = store, clock, faults
        self._under_way: set[asyncio.Task[None]] = set()

    def journal(self, name: str, data: dict[str, Any], *, use_reserve: bool = False) -> None:
        """One event in the journal and in the log; only in the log where the journal cannot take it."""
        event = Event(name=name, at_ms=self._clock.wall_ms(), data=data)
        self.beside(self._append(event, use_reserve=use_reserve), name)

    async def _append(self, event: Event, *, use_reserve: bool) -> None:
        data = event.data
        try:
            await self._store.update_async(
                lambda tx: journal.append(tx, event), use_reserve=use_reserve, scope=JOURNAL_ONLY
            )
        except StoreError as error:
            data = {**data, "not_in_journal": str(error)}
        log_event(log, event.name, data)

    def beside(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Do it beside the loop, in the order of the calls; the daemon leaves when all of it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(lambda done: self._over(done, what))

    def _over(self, task: asyncio.Task[None], what: str) -> None:
        self._under_way.discard(task)
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, StoreError):
            log_event(log, "not written to the store", {"what": what, "reason": str(problem)}, logging.WARNING)
        elif problem is not None:
            self._faults.note(what, problem)

    async def all_noted(self) -> None:
        """Until everything that was told so far is in the store."""
        while self._under_way:
            await asyncio.wait(self._under_way)
