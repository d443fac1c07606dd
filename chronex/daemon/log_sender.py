"""Sends logs of this machine into a store that machines share: excerpts when attempts end, the rest on request."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import NamedTuple

from chronex.clock import Clock
from chronex.daemon.log_handlers import log_event
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.engine import shared_logs
from chronex.errors import LogDirectoryError
from chronex.model.occurrence import Attempt
from chronex.model.records import Excerpt, LogRequest
from chronex.model.states import AttemptState
from chronex.run import LogDirectory
from chronex.run.attempt_log import DEFAULT_LIMIT, LogReader
from chronex.run.side_threads import off_the_loop
from chronex.storage.ports import Store
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import of_jobs

log = logging.getLogger(__name__)
EVERY_S = 1.0
# What is sent of one log in a second: a command that writes without end must not fill the database.
MOST_AT_ONCE = 4 * shared_logs.PIECE_BYTES
_EXPIRED_EVERY_MS = 30_000


class _Requested(NamedTuple):
    request: LogRequest
    attempt: Attempt | None


class LogSender:
    """For one machine, by the identity that its nodes share."""

    def __init__(self, store: Store, logs: LogDirectory, clock: Clock, host_id: str, shared_bytes: int) -> None:
        self._store, self._clock, self._host_id = store, clock, host_id
        self._reader = LogReader(logs.path)
        self.shared_bytes = shared_bytes
        self._seen = -1
        self._has_requests = False
        self._next_expired_ms = 0

    def periodic_task(self) -> PeriodicTask:
        return PeriodicTask("logs", EVERY_S, self.do)

    async def excerpt_of(self, attempt: Attempt, name: str) -> Excerpt | None:
        """What every machine may have of the log of an attempt that has ended: its beginning and its end.

        A log that cannot be read keeps nothing from ending.
        """
        if not self.shared_bytes or not name:
            return None
        try:
            data = await off_the_loop(partial(self._reader.whole, name))
        except (LogDirectoryError, OSError) as problem:
            fields = {"attempt": attempt.id, "reason": str(problem)}
            log_event(log, "its log is on this machine alone", fields, logging.WARNING)
            return None
        return shared_logs.cut_excerpt(data, self.shared_bytes) if data else None

    async def do(self) -> None:
        """Answer what is requested; where nothing is, and the store has not changed, nothing is asked."""
        seen = self._store.wait(-1, 0)
        if seen != self._seen or self._has_requests:
            self._seen = seen
            found = await self._store.view_async(lambda tx: self._requested(Reading(tx)))
            self._has_requests = bool(found)
            for one in found:
                await self._answer(one)
        if self._clock.monotonic_ms() >= self._next_expired_ms:
            self._next_expired_ms = self._clock.monotonic_ms() + _EXPIRED_EVERY_MS
            await self._drop_expired()

    async def _drop_expired(self) -> None:
        """Any node does it: it is done once, whoever comes first."""
        now_ms = self._clock.wall_ms()
        if await self._store.view_async(lambda tx: shared_logs.has_expired(Reading(tx), now_ms)):
            await self._store.update_async(lambda tx: shared_logs.drop_expired(Records(tx, now_ms)))

    def _requested(self, reading: Reading) -> list[_Requested]:
        now_ms = self._clock.wall_ms()
        return [
            _Requested(request, reading.attempt(request.job, request.nominal_ms, request.task, request.number))
            for request in shared_logs.requests(reading, self._host_id)
            if not request.is_done and request.until_ms > now_ms
        ]

    async def _answer(self, requested: _Requested) -> None:
        request, attempt = requested
        if attempt is None:
            return
        is_over = attempt.state is not AttemptState.RUNNING
        data, offset = await asyncio.to_thread(self._next_part, attempt, request)
        is_last = len(data) < MOST_AT_ONCE and (is_over or request.whole)
        if not data and not is_last:
            return
        now_ms = self._clock.wall_ms()
        await self._store.update_async(
            lambda tx: shared_logs.send(Records(tx, now_ms), attempt, request, data, offset, is_last=is_last),
            scope=of_jobs(attempt.job),
        )

    def _next_part(self, attempt: Attempt, request: LogRequest) -> tuple[bytes, int]:
        """What follows what was sent. While the command writes, a log beyond its limit is not in order any more:
        then its beginning is sent, and the rest when it has ended."""
        offset = request.sent_bytes
        is_over = attempt.state is not AttemptState.RUNNING
        if request.whole or is_over:
            return self._whole(attempt)[offset : min(offset + MOST_AT_ONCE, shared_logs.MOST_WHOLE_BYTES)], offset
        limit = attempt.log_limit or DEFAULT_LIMIT
        found = self._reader.beyond(attempt.log_path, offset)
        if offset + len(found) >= limit:
            found = found[: max(0, limit // 2 - offset)]
        return found[:MOST_AT_ONCE], offset

    def _whole(self, attempt: Attempt) -> bytes:
        is_over = attempt.state is not AttemptState.RUNNING
        return self._reader.whole(attempt.log_path, attempt.log_limit or DEFAULT_LIMIT, is_over=is_over)
