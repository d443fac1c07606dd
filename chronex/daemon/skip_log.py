"""Tells the log what was skipped and why, and at the level DEBUG what another scheduler has claimed.

It follows the journal, so it tells what was committed, once, whoever decided it. The first skip of a job for a reason
is a line; further ones are counted and told once a minute, so that a job of every second does not flood the log.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple, cast

from chronex.clock import Clock
from chronex.daemon.log_handlers import log_event
from chronex.errors import DamagedRecordError
from chronex.model.event import Event
from chronex.model.occurrence import occurrence_id
from chronex.model.reasons import text_of
from chronex.storage import journal, keys
from chronex.storage.codec import decode
from chronex.storage.ports import ReadTransaction, Store

log = logging.getLogger(__name__)
EVERY_S = 2.0
LOG_AGAIN_MS = 60_000
# So many jobs and reasons are told apart; the skips of all others are counted together.
MOST_LOGGED_APART = 1_000
_PAGE = 1_000
_MOST_PAGES = 50
# A row that does not have the name in it is not decoded: most events are starts and ends.
_SKIPPED, _CLAIMED, _STARTED = b"OccurrenceSkipped", b"OccurrenceAlreadyClaimed", b"TaskRunStarted"


class _Counted(NamedTuple):
    """How many were not told since the line, the last of them, and when they are told (by the monotonic clock)."""

    more: int
    last: Event
    log_again_ms: int


class SkipLog:
    """One for each daemon; `node` is that of the daemon itself."""

    def __init__(self, store: Store, clock: Clock, node: str) -> None:
        self._store, self._clock, self._node = store, clock, node
        self._seen: int | None = None
        self._counter: int | None = None  # the change counter of the store at the last look
        self._counted: dict[tuple[str, str], _Counted] = {}

    def begin(self) -> None:
        """What is in the journal by now has been told by others."""
        self._seen = self._store.view(journal.head)

    async def do(self) -> None:
        counter, before = self._store.wait(-1, 0), self._counter
        for _ in range(_MOST_PAGES if counter != before else 0):
            events, is_end = await asyncio.to_thread(self._store.view, self._next_page)
            for event in events:
                self._log(event)
            if is_end:
                self._counter = counter
                break
        self._log_counted(self._clock.monotonic_ms())

    async def finish(self) -> None:
        """The daemon leaves: tell everything."""
        await self.do()
        self._log_counted(None)

    def _next_page(self, tx: ReadTransaction) -> tuple[list[Event], bool]:
        wanted = [_SKIPPED, _CLAIMED, _STARTED] if log.isEnabledFor(logging.DEBUG) else [_SKIPPED]
        if self._seen is None:
            self._seen = journal.head(tx)
        rows = tx.scan(keys.EVENT, keys.event_key(self._seen), _PAGE)
        found: list[Event] = []
        for key, raw in rows:
            self._seen = keys.sequence_of(key)
            if any(name in raw for name in wanted):
                try:
                    found.append(cast("Event", decode(key, raw)))
                except DamagedRecordError:
                    continue  # `doctor` and `events` tell it
        return found, len(rows) < _PAGE

    def _log(self, event: Event) -> None:
        if event.name == "OccurrenceSkipped":
            self._log_or_count(event)
            return
        node = event.data.get("node")
        if event.name == "OccurrenceAlreadyClaimed" or (
            event.name == "TaskRunStarted" and node not in (None, self._node)
        ):
            fields = {**_fields(event), "node": node} if node else _fields(event)
            log_event(log, "another scheduler has claimed it", fields, logging.DEBUG)

    def _log_or_count(self, event: Event) -> None:
        key = (event.job, event.reason.code.value)
        if key not in self._counted and len(self._counted) >= MOST_LOGGED_APART:
            key = ("", "")
        known = self._counted.get(key)
        if known is not None:
            self._counted[key] = known._replace(more=known.more + 1, last=event)
            return
        log_event(log, "occurrence skipped", {**_fields(event), "reason": text_of(event.reason)})
        self._counted[key] = _Counted(0, event, self._clock.monotonic_ms() + LOG_AGAIN_MS)

    def _log_counted(self, now_ms: int | None) -> None:
        """Those whose minute is over, or all; where none came since, the next one is a line again."""
        for key, counted in list(self._counted.items()):
            if now_ms is not None and counted.log_again_ms > now_ms:
                continue
            if not counted.more:
                del self._counted[key]
                continue
            about = {**_fields(counted.last), "reason": text_of(counted.last.reason)} if key[0] else {}
            log_event(log, "occurrence skipped", {**about, "more": f"and {counted.more} more"})
            self._counted[key] = counted._replace(more=0, log_again_ms=(now_ms or 0) + LOG_AGAIN_MS)


def _fields(event: Event) -> dict[str, object]:
    if event.nominal_ms is None:
        return {"job": event.job}
    identity = occurrence_id(event.job, event.nominal_ms)
    return {"job": event.job, "nominal_ms": event.nominal_ms, "occurrence": identity}
