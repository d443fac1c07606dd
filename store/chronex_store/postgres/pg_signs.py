"""Signs of life of an update that has the store to itself and decides for long: an apply of thousands of jobs.

Nothing goes to the server while a decision is made, so it would seem to stand still, and be ended by those who wait
for the store (`pg_frozen`); at its second try too, however often somebody gives the command. A process that stands
still says nothing, since all of its threads do.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import psycopg

from chronex.clock import SYSTEM_CLOCK
from chronex_store.postgres.pg_connections import Connection
from chronex_store.postgres.pg_known_rows import Query
from chronex_store.postgres.pg_transaction import Ask

# A fifth of what is taken for standing still.
EVERY_S = 1.0
# No heartbeat arrives meanwhile. Nodes have patience for a failover of two minutes, and end their work after four.
LONGEST_S = 120.0


class SignsOfLife:
    """`ask` as given, and a word to the server each second in which nothing is asked."""

    def __init__(self, connection: Connection, ask: Ask) -> None:
        self._connection, self._ask = connection, ask
        self._lock = threading.Lock()  # what is asked goes in one piece
        self._is_over = threading.Event()

    def ask(self, *queries: Query) -> list[list[tuple[Any, ...]]]:
        with self._lock:
            return self._ask(*queries)

    @contextlib.contextmanager
    def during(self) -> Iterator[None]:
        """While the block decides."""
        thread = threading.Thread(target=self._say, name="chronex-signs-of-life", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()  # or its word would come between those of the commit

    def _say(self) -> None:
        last_ms = SYSTEM_CLOCK.boottime_ms() + round(LONGEST_S * 1000)
        while not self._is_over.wait(EVERY_S) and SYSTEM_CLOCK.boottime_ms() < last_ms:
            with self._lock, contextlib.suppress(psycopg.Error):  # the update finds out itself
                self._connection.execute("SELECT 1")
