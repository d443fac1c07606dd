"""The marks of writers: each has its last commit in a row of its own, and how many it made, so that nobody waits.

A writer that leaves adds its count to that of all who left, so that the sum never goes back. What is left of those
that were killed is swept up by whoever watches the store and writes to it too: a mark that has not changed for an
hour. A writer that was silent for so long takes a mark that is gone for one that was swept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

import psycopg

from chronex.clock import Clock
from chronex_store.postgres.pg_connections import Connection

TIME = "(extract(epoch FROM clock_timestamp()) * 1000)::float8"
MARK = (
    "INSERT INTO commit_mark (writer, n, token) VALUES (%(writer)s, %(n)s, %(token)s) "
    "ON CONFLICT (writer) DO UPDATE SET n = commit_mark.n + excluded.n, token = excluded.token"
)
TIME_AND_MARK = f"SELECT {TIME}, (SELECT token FROM commit_mark WHERE writer = %s)"
# What those have left who made their marks and are gone.
_CLIENTS = "clients"
_ALL = "SELECT writer, token FROM {schema}.commit_mark WHERE writer NOT IN (%s, %s) AND token IS NOT NULL LIMIT %s"
# One that has changed meanwhile has another token, and stays.
_REMOVE = (
    "WITH gone AS (DELETE FROM {schema}.commit_mark AS m USING unnest(%s::text[], %s::uuid[]) AS o(writer, token) "
    "WHERE m.writer = o.writer AND m.token = o.token RETURNING m.n) "
    "UPDATE {schema}.commit_mark AS kept SET n = kept.n + (SELECT coalesce(sum(n), 0) FROM gone) WHERE writer = %s"
)

SWEPT_AFTER_MS = 3_600_000
# Who was silent for half of that cannot know whether its mark was swept.
MAY_BE_SWEPT_MS = SWEPT_AFTER_MS // 2
LOOK_EVERY_MS = 600_000
MOST_LOOKED_AT = 1_000


class MarkSeen(NamedTuple):
    token: UUID
    since_ms: int


def leave(connection: Connection, schema: str, writer: str, token: UUID | None) -> None:
    """Add the writer's count to that of all who left."""
    connection.execute(_REMOVE.format(schema=schema), ([writer], [token], _CLIENTS))


def unchanged(seen: Mapping[str, MarkSeen], found: Iterable[tuple[str, UUID]], now_ms: int) -> dict[str, MarkSeen]:
    """The marks that there are, each with the time since which it is as it is."""
    kept: dict[str, MarkSeen] = {}
    for writer, token in found:
        before = seen.get(writer)
        kept[writer] = before if before is not None and before.token == token else MarkSeen(token, now_ms)
    return kept


class MarkSweep:
    """Looks at the marks of others now and then, with a connection that somebody has anyway."""

    def __init__(self, schema: str, own: str, clock: Clock) -> None:
        self._schema, self._own, self._clock = schema, own, clock
        self._seen: dict[str, MarkSeen] = {}
        self._next_ms = clock.monotonic_ms()

    def work(self, connection: Connection) -> int:
        """How many were removed; who may not remove them leaves them to others."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return 0
        self._next_ms = now_ms + LOOK_EVERY_MS
        query = _ALL.format(schema=self._schema)
        found = connection.execute(query, (_CLIENTS, self._own, MOST_LOOKED_AT)).fetchall()
        self._seen = unchanged(self._seen, [(writer, token) for writer, token in found], now_ms)
        old = {writer: one.token for writer, one in self._seen.items() if now_ms - one.since_ms >= SWEPT_AFTER_MS}
        if old:
            try:
                connection.execute(_REMOVE.format(schema=self._schema), ([*old], [*old.values()], _CLIENTS))
            except psycopg.errors.InsufficientPrivilege:
                return 0
        return len(old)
