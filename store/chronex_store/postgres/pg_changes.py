"""Who sleeps until the store changes: asked about once a second, and at once where the server passes a word on.

Each writer counts its commits in a row of its own, so that nobody waits for another one's count; the sum of the
others' rows moves with every commit of another process. The word (NOTIFY) is a hint alone: a server tells each one to
every listener of the database, whatever its channel, so writers send it at most five times a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable

import psycopg

from chronex.errors import StoreClosedError, StoreError
from chronex_store.postgres.pg_connections import Connection, Connections

POLL_S = 1.1
CHANNEL = "chronex_changed"
_SPREAD = 0.2
_OF_OTHERS = "SELECT coalesce(sum(n), 0)::bigint FROM {schema}.commit_mark WHERE writer <> %s"


class ChangeWatch:
    """The change counter of one open store. It begins anew with each: only that it differs means anything."""

    def __init__(
        self, connections: Connections, writer: str, upkeep: Callable[[Connection], object] = lambda _: None
    ) -> None:
        """`upkeep` is given the watcher's connection after each look."""
        self._connections, self._upkeep = connections, upkeep
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
                        listener.execute(f"LISTEN {CHANNEL}")
                self._look(listener)
                self._upkeep(listener)
                self._sleep(listener, seconds)
            except (StoreError, psycopg.Error):  # it is away: who reads or writes is told so, a sleeper sleeps on
                if listener is not None:
                    listener.close()
                listener = None
                self._closing.wait(seconds)
        if listener is not None:
            listener.close()

    def _look(self, listener: Connection) -> None:
        found = self._ask(listener)
        before, self._of_others = self._of_others, found
        if before is None or found != before:
            self.moved()

    def _ask(self, connection: Connection) -> int:
        query = _OF_OTHERS.format(schema=self._connections.address.schema)
        row = connection.execute(query, (self._writer,)).fetchone()
        assert row is not None
        return int(row[0])

    def _sleep(self, listener: Connection, seconds: float) -> None:
        """Until the server passes a word on, in short turns so that a store that is closed need not wait for it."""
        left = seconds
        while left > 0 and not self._closing.is_set():
            turn = min(left, _TURN_S)
            if self._connections.is_pooled:
                self._closing.wait(turn)
            elif any(True for _ in listener.notifies(timeout=turn, stop_after=1)):
                return
            left -= turn


_TURN_S = 0.1
