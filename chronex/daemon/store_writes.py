"""How a daemon writes to its store: starts in batches, events beside its loop, and again where it is full or away."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

from chronex.clock import Clock
from chronex.daemon.log_handlers import log_event
from chronex.daemon.periodic_tasks import Faults
from chronex.engine.engine import AttemptStart, Engine
from chronex.errors import StaleClaimError, StoreError, StoreFullError, StoreUnavailableError
from chronex.model.event import Event
from chronex.storage import journal, scopes
from chronex.storage.ports import Store

T = TypeVar("T")
log = logging.getLogger(__name__)
FULL_PAUSE_S = 1.0
# A daemon that is stopping does not wait for ever: its successor takes up what is not recorded then.
LAST_TRIES = 3


class _Waiting(NamedTuple):
    start: AttemptStart
    recorded: asyncio.Future[None]


class StartRecorder:
    """Records starts in batches, and nothing runs before that.

    One update is under way at a time, and starts that come meanwhile share the next.
    """

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


class StoreRetry:
    """Writes that must not be lost wait here until the store takes them; `waiting` says how many."""

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


class JournalNotes:
    """What a daemon tells of itself: events for the journal and the log, in their order."""

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
                lambda tx: journal.append(tx, event), use_reserve=use_reserve, scope=scopes.JOURNAL_ONLY
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


class StoreAway:
    """A store that takes nothing for a while: nothing is claimed, and it is asked again soon.

    What runs goes on, and retention frees space.
    """

    def __init__(self, clock: Clock, notes: JournalNotes, is_shared: Callable[[], bool]) -> None:
        self._clock, self._notes, self._is_shared = clock, notes, is_shared
        self.since_ms: int | None = None  # by the monotonic clock

    def __bool__(self) -> bool:
        return self.since_ms is not None

    @property
    def away_ms(self) -> int:
        return 0 if self.since_ms is None else self._clock.monotonic_ms() - self.since_ms

    def begin(self, error: StoreUnavailableError) -> None:
        if self:
            return
        self.since_ms = self._clock.monotonic_ms()
        if isinstance(error, StoreFullError):
            fields = {"so": "no runs start until there is free space", "reason": str(error)}
            self._notes.journal("StoreRoomLow", fields, use_reserve=True)  # `status` tells it from the journal
        else:
            fields = {"so": "no runs start until it answers; what runs goes on", "reason": str(error)}
            log_event(log, "the store does not answer", fields, logging.WARNING)

    def end(self) -> None:
        if not self:
            return
        away_ms, self.since_ms = self.away_ms, None
        if self._is_shared():
            self._notes.journal("StoreBack", {"away_ms": away_ms})
        else:
            self._notes.journal("StoreRoomBack", {"full_ms": away_ms})
