"""Who sleeps until the store changes: asked about once a second, and at once where the server passes a word on.

Each writer counts its commits in a row of its own, so that nobody waits for another one's count; the sum of the
others' rows moves with every commit of another process. The word (NOTIFY) is a hint alone: a server tells each one to
every listener of the database, whatever its channel, so writers send it at most five times a second; the watcher
tells of the last commit of a burst.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable

import psycopg

from chronex.clock import Clock
from chronex.errors import StoreClosedError, StoreError
from chronex_store.postgres.pg_connections import Connection, Connections

POLL_S = 1.1
HINT = "NOTIFY chronex_changed"
_LISTEN = "LISTEN chronex_changed"
_LEAST_BETWEEN_HINTS_MS = 200
_SPREAD = 0.2
_OF_OTHERS = "SELECT coalesce(sum(n), 0)::bigint FROM {schema}.commit_mark WHERE writer <> %s"


class Hints:
    """When the others are told of a commit: at once, or with the next of a burst, but in the end always."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notified_ms: int | None = None
        self._owes = False

    def may_notify(self) -> bool:
        """Of the commit that was just made; where not, it is owed."""
        now_ms = self._clock.monotonic_ms()
        self._owes = self._notified_ms is not None and now_ms - self._notified_ms < _LEAST_BETWEEN_HINTS_MS
        if not self._owes:
            self._notified_ms = now_ms
        return not self._owes

    def must_notify(self) -> bool:
        """Is a commit owed that no later one has told of meanwhile?"""
        return self._owes and self.may_notify()


class ChangeWatch:
    """The change counter of one open store. It begins anew with each: only that it differs means anything."""

    def __init__(
        self,
        connections: Connections,
        writer: str,
        hints: Hints,
        maintenance: Callable[[Connection], object] = lambda _: None,
        own_backend: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`upkeep` is given the watcher's connection after each look; `own_backend` tells whose words are our own."""
        self._connections, self._hints, self._maintenance = connections, hints, maintenance
        self._own_backend = own_backend
        self._writer = writer
        self._condition = threading.Condition()
        self._counter = 0
        self._of_others: int | None = None
        self._callbacks: set[Callable[[], None]] = set()
        self._is_closed = False
        self._watcher: threading.Thread | None = None
        self._closing = threading.Event()

    def moved(self) -> None:
        """The store has changed: all sleepers of this process wake."""
        with self._condition:
            self._counter += 1
            self._condition.notify_all()
            for callback in tuple(self._callbacks):
                callback()

    def wait(self, since: int, timeout: float) -> int:
        with self._condition:
            self._watch()
            self._condition.wait_for(lambda: self._is_closed or self._counter != since, timeout)
            self._refuse_closed()
            return self._counter

    async def wait_async(self, since: int, timeout: float) -> int:
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(woken.set)

        with self._condition:
            self._watch()
            if self._counter != since:
                return self._counter
            self._callbacks.add(wake)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), timeout)
        finally:
            with self._condition:
                self._callbacks.discard(wake)
        with self._condition:
            self._refuse_closed()
            return self._counter

    def close(self) -> None:
        with self._condition:
            self._is_closed = True
            watcher, self._watcher = self._watcher, None
        self._closing.set()
        self.moved()
        if watcher is not None:
            watcher.join()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise StoreClosedError

    def _watch(self) -> None:
        """Begin to watch with the first one who waits."""
        self._refuse_closed()
        if self._watcher is None:
            with contextlib.suppress(StoreError, psycopg.Error), self._connections.reader() as connection:
                self._of_others = self._ask(connection)  # else the first look counts as a change
            self._watcher = threading.Thread(target=self._run, name="chronex-changes", daemon=True)
            self._watcher.start()

    # -- the watching thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        pauses = random.Random()  # noqa: S311  spreads the questions of many nodes, it guards nothing
        listener: Connection | None = None
        while not self._closing.is_set():
            seconds = POLL_S * pauses.uniform(1 - _SPREAD, 1 + _SPREAD)
            try:
                if listener is None:
                    listener = self._connections.connect()
                    if not self._connections.is_pooled:  # else somebody else would hear it
                        listener.execute(_LISTEN)
                self._check(listener)
                self._maintenance(listener)
                self._sleep(listener, seconds)
            except (StoreError, psycopg.Error):
                if listener is not None:
                    listener.close()
                    self._wake_for_outage()
                listener = None
                self._closing.wait(seconds)
        if listener is not None:
            listener.close()

    def _wake_for_outage(self) -> None:
        """It is away: whoever sleeps looks once, and is told so; and once more when it is back."""
        self._of_others = None
        self.moved()

    def _check(self, listener: Connection) -> None:
        found = self._ask(listener)
        before, self._of_others = self._of_others, found
        if before is None or found != before:
            self.moved()

    def _ask(self, connection: Connection) -> int:
        query = _OF_OTHERS.format(schema=self._connections.address.schema)
        row = connection.execute(query, (self._writer,)).fetchone()
        assert row is not None
        return int(row[0])

    def _own_pids(self, listener: Connection) -> tuple[int | None, int]:
        return self._own_backend(), listener.info.backend_pid

    def _sleep(self, listener: Connection, seconds: float) -> None:
        """Until the server passes a word of another on, in short turns so that a store that is closed need not wait.

        Of our own commits everybody here knows already: to look after each would be a question for nothing.
        """
        left = seconds
        while left > 0 and not self._closing.is_set():
            if self._hints.must_notify():
                listener.execute(HINT)
            turn = min(left, _TURN_S)
            if self._connections.is_pooled:
                self._closing.wait(turn)
            elif any(word.pid not in self._own_pids(listener) for word in listener.notifies(timeout=turn)):
                return
            left -= turn


_TURN_S = 0.1
