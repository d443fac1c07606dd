"""Events for the callbacks of a program: what is in the journal, in its order, when it is durable.

Each subscription has a queue and a thread of its own, so a callback that raises, is slow or never returns harms
neither the engine nor the other callbacks. The queue is bounded: what a slow callback leaves waiting beyond that is
dropped, counted and logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import queue
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from chronex.daemon.fault_log import Faults
from chronex.daemon.log_handlers import log_event
from chronex.errors import ChronexError, StoreUnavailableError
from chronex.model.event import EVENTS, Event
from chronex.model.occurrence import occurrence_id
from chronex.model.reasons import ReasonCode, text_of
from chronex.storage import journal
from chronex.storage.ports import Store
from chronex.text.instants import utc_datetime
from chronex.text.suggestions import nearest

log = logging.getLogger(__name__)
EVERY_EVENT = "*"
MOST_WAITING = 10_000
# How long a stop waits for callbacks that have not taken all their events.
LAST_EVENTS_S = 5.0
# A store that waits in a thread keeps the program from ending for as long as that thread waits.
MAX_WAIT_S = 1.0


class EngineEvent(NamedTuple):
    """One event of the journal; `number` is its place there. Times are aware, in UTC."""

    number: int
    name: str
    at: datetime
    job: str
    task: str
    attempt: int | None
    occurrence: str
    scheduled: datetime | None
    reason: str
    reason_code: ReasonCode
    actor: str
    data: dict[str, Any]


EventCallback = Callable[[EngineEvent], Any]


def engine_event(number: int, event: Event) -> EngineEvent:
    nominal_ms = event.nominal_ms
    return EngineEvent(
        number=number,
        name=event.name,
        at=utc_datetime(event.at_ms),
        job=event.job,
        task=event.task,
        attempt=event.attempt,
        occurrence="" if nominal_ms is None else occurrence_id(event.job, nominal_ms),
        scheduled=None if nominal_ms is None else utc_datetime(nominal_ms),
        reason=text_of(event.reason),
        reason_code=event.reason.code,
        actor=event.actor,
        data=dict(event.data),
    )


def check_event_names(names: Iterable[str]) -> frozenset[str]:
    """The names; ChronexError for one that no event has."""
    found = frozenset(names)
    for name in found - {EVERY_EVENT, *EVENTS}:
        meant = nearest(name, EVENTS)
        hint = f"did you mean {meant}?" if meant else f"such as OccurrenceFailed, or {EVERY_EVENT!r} for every event"
        raise ChronexError(f"no event {name!r}; {hint}")
    return found


class Subscription:
    """One callback and the events that wait for it. `cancel()` ends it."""

    def __init__(self, names: frozenset[str], job: str | None, callback: EventCallback) -> None:
        self.names = names
        self.job = job
        self.callback = callback
        self.after = 0  # the number of the last event that is not for it
        self.most_waiting = MOST_WAITING
        self.dropped = 0
        self.is_over = False
        self._waiting: queue.Queue[EngineEvent | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def cancel(self) -> None:
        """No event from now on, also none that waits."""
        self.is_over = True
        self._waiting.put(None)

    def wants(self, number: int, event: Event) -> bool:
        is_named = EVERY_EVENT in self.names or event.name in self.names
        return is_named and number > self.after and not self.is_over and self.job in (None, event.job)

    def give(self, event: EngineEvent, loop: asyncio.AbstractEventLoop) -> None:
        if self._waiting.qsize() >= self.most_waiting:
            self.dropped += 1
            if self.dropped == 1:
                fields = {"callback": repr(self.callback)[:200], "waiting": self.most_waiting}
                log_event(log, "a callback is too slow; events are dropped", fields, logging.WARNING)
            return
        self._loop = loop
        self._waiting.put(event)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="chronex callback", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None and not self.is_over:
            try:
                returned = self.callback(event)
                if inspect.iscoroutine(returned):
                    self._await(returned)
            except BaseException as problem:
                fields = {"callback": repr(self.callback)[:200], "event": event.name, "error": repr(problem)[:500]}
                log_event(log, "a callback failed", fields, logging.WARNING)

    def _await(self, returned: Any) -> None:
        """An async callback runs on the engine's loop, one event after the other."""
        assert self._loop is not None
        try:
            asyncio.run_coroutine_threadsafe(returned, self._loop).result()
        except RuntimeError:
            returned.close()  # the loop is closed
            raise

    async def finish(self) -> None:
        """Let it take what waits, for a while."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._waiting.put(None)
            await asyncio.to_thread(thread.join, LAST_EVENTS_S)
            self._waiting = queue.Queue()


class JournalFeed:
    """Follows the journal while the engine runs and gives each event to the subscriptions that want it."""

    def __init__(self, store: Store, subscriptions: list[Subscription], faults: Faults | None = None) -> None:
        self._store = store
        self._faults = faults or Faults()
        self.subscriptions = subscriptions
        self._position = store.view(journal.head)
        self._is_closing = False
        self._following: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """Begin; called on the event loop, where the first callback came or was there already."""
        if self._following is None and not self._is_closing:
            self._following = asyncio.get_running_loop().create_task(self._follow(), name="chronex events")

    async def _follow(self) -> None:
        while not self._is_closing:
            try:
                seen = self._store.wait(-1, 0)
                self._deliver()
                await self._store.wait_async(seen, MAX_WAIT_S)
            except StoreUnavailableError:  # the daemon tells it; what happens meanwhile is told afterwards
                await asyncio.sleep(MAX_WAIT_S)
            except Exception as fault:
                self._faults.note("the events for callbacks", fault)
                await asyncio.sleep(MAX_WAIT_S)

    def _deliver(self) -> None:
        loop = asyncio.get_running_loop()
        while lines := self._store.view(lambda tx: journal.tail(tx, self._position)):
            for number, event in lines:
                self._position = number
                for subscription in self.subscriptions:
                    if subscription.wants(number, event):
                        subscription.give(engine_event(number, event), loop)

    async def close(self) -> None:
        """Hand over the rest and stop. A flag too: asyncio.wait_for of Python 3.11 may swallow a cancellation."""
        self._is_closing = True
        if self._following is None:
            return
        self._following.cancel()
        await asyncio.wait([self._following])
        with contextlib.suppress(ChronexError):  # the store has failed, and the engine says so
            self._deliver()
        await asyncio.gather(*(subscription.finish() for subscription in self.subscriptions))
