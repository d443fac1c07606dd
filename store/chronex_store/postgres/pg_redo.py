"""A database that went back: after a failover to a standby that lagged, or a restore, acknowledged commits are gone.

Each writer has its last commit in a row of its own, so the first update after that finds an older one there. What
this process committed lately is kept in memory, by rows, with what was there before: commits that were lost are done
once more, in one transaction that has the store to itself, before anything else is decided here. A job of which
another node has decided meanwhile is left as that node has it, and what runs of it here is to be ended; of one of
which nodes had decided in turns each does its part again as far as it follows what is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import psycopg

from chronex.clock import Clock
from chronex.model.event import Event
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.journal import append
from chronex.storage.ports import Transaction
from chronex_store.postgres.pg_connections import Connection
from chronex_store.postgres.pg_known_rows import KnownRows, OrderedRows, Query
from chronex_store.postgres.pg_scopes import job_in
from chronex_store.postgres.pg_transaction import is_appended

KEPT_MS = 300_000
_MOST_BYTES = 16 << 20
# By these rows of a job everybody who decides about it is seen.
_DECIDING = frozenset((keys.JOB, keys.JOB_PROGRESS, keys.OCCURRENCE, keys.RUN, keys.ATTEMPT))

_Rows = Mapping[bytes, bytes | None]


@dataclass(frozen=True)
class WentBack:
    """How many commits of this process were lost, how many jobs have them again, and which others have decided on."""

    commits: int
    again: int
    conflicts: tuple[str, ...]


@dataclass(frozen=True)
class _Commit:
    token: UUID
    at_ms: int
    rows: _Rows
    before: _Rows
    is_redoable: bool
    size: int


@dataclass
class RecentCommits:
    """What this process committed in the last minutes, the oldest first; `base` is the mark before the first."""

    base: UUID | None = None
    _commits: deque[_Commit] = field(default_factory=deque)
    _bytes: int = 0

    @property
    def last(self) -> UUID | None:
        return self._commits[-1].token if self._commits else self.base

    def is_silent_since(self, ms: int) -> bool:
        """Whether the last commit was made before that, by the boot time."""
        return bool(self._commits) and self._commits[-1].at_ms < ms

    def note(self, token: UUID, at_ms: int, writes: OrderedRows, known: KnownRows, *, is_whole: bool) -> None:
        rows = dict(writes.rows)
        before = {key: known.rows.rows.get(key) for key in rows if key[:1] in _DECIDING and known.is_known(key)}
        size = sum(len(key) + len(value or b"") for key, value in rows.items())
        self._commits.append(_Commit(token, at_ms, rows, before, not is_whole, size))
        self._bytes += size
        while len(self._commits) > 1 and (self._bytes > _MOST_BYTES or self._commits[0].at_ms < at_ms - KEPT_MS):
            oldest = self._commits.popleft()
            self.base, self._bytes = oldest.token, self._bytes - oldest.size

    def lost_after(self, token: UUID | None) -> list[_Commit] | None:
        """The commits that followed the one with this mark; None where they are not known, or cannot be redone."""
        if token == self.base:
            lost = list(self._commits)
        else:
            places = [place for place, one in enumerate(self._commits) if one.token == token]
            if not places:
                return None
            lost = list(self._commits)[places[0] + 1 :]
        return lost if all(one.is_redoable for one in lost) else None


def redo(tx: Transaction, lost: Iterable[_Commit], now_ms: int, writer: str) -> WentBack:
    """Write again what was lost, of each job until another node has decided of it; and tell it.

    Where nodes had decided of a job in turns, what follows the turn of another one is left out: it would leave out
    what that one had decided, for good.
    """
    lost = list(lost)
    jobs = {job for commit in lost for key in commit.rows if (job := job_in(key)) is not None}
    tx.expect({job.decode("latin-1") for job in jobs})
    rows: dict[bytes, bytes | None] = {}
    events: list[Event] = []
    conflicts: set[bytes] = set()
    for commit in lost:
        conflicts |= _conflicts(tx, commit, rows)
        rows |= {key: value for key, value in commit.rows.items() if _is_kept(key, conflicts)}
        events += _journaled(commit, conflicts)
    for key, value in rows.items():
        if key[:1] == keys.NODE and tx.get(key) is not None:
            continue  # others may have given this node up, and its next heartbeat tells it so
        if value is None:
            tx.delete(key)
        else:
            tx.put(key, value)
    found = WentBack(len(lost), len(jobs - conflicts), tuple(sorted(job.decode("latin-1") for job in conflicts)))
    append(tx, *events, _event(found, now_ms, writer))
    return found


def _is_kept(key: bytes, conflicts: set[bytes]) -> bool:
    """The events and their numbers are made anew."""
    return not is_appended(key) and key != keys.JOURNAL_HEAD and job_in(key) not in conflicts


def _conflicts(tx: Transaction, commit: _Commit, rows: _Rows) -> set[bytes]:
    """Jobs whose rows, with those that are written again, are not what they were before it, or that is not known."""
    found: set[bytes] = set()
    for key in commit.rows:
        job = job_in(key)
        if job is None or key[:1] not in _DECIDING or job in found:
            continue
        if key in commit.before:
            if commit.before[key] != (rows[key] if key in rows else tx.get(key)):
                found.add(job)
        elif key not in rows:
            found.add(job)
    return found


def _journaled(commit: _Commit, conflicts: set[bytes]) -> list[Event]:
    """The events that were lost with their jobs, in their order."""
    found = (_decoded(key, commit.rows[key]) for key in sorted(key for key in commit.rows if is_appended(key)))
    return [event for event in found if event is not None and event.job.encode("latin-1") not in conflicts]


def _decoded(key: bytes, raw: bytes | None) -> Event | None:
    event = None if raw is None else decode(key, raw)
    return event if isinstance(event, Event) else None


def _event(found: WentBack, now_ms: int, writer: str) -> Event:
    data = {"writer": writer, "commits": found.commits, "jobs": found.again, "conflicts": list(found.conflicts)}
    return Event(name="StoreWentBack", at_ms=now_ms, data=data)


# The marks of writers: each has its last commit in a row of its own, and how many it made, so that nobody waits.
#
# A writer that leaves adds its count to that of all who left, so that the sum never goes back. What is left of
# those that were killed is swept up by whoever watches the store and writes to it too: a mark that has not changed
# for an hour. A writer that was silent for so long takes a mark that is gone for one that was swept.

TIME = "(extract(epoch FROM clock_timestamp()) * 1000)::float8"
MARK = (
    "INSERT INTO commit_mark (writer, n, token) VALUES (%(writer)s, %(n)s, %(token)s) "
    "ON CONFLICT (writer) DO UPDATE SET n = commit_mark.n + excluded.n, token = excluded.token"
)
# A transaction holds the lock of its token until it has ended, so who has that lock too knows what became of it. Its
# mark alone does not tell: one that is under way may not have written it yet.
_LOCK_OF = "pg_advisory_xact_lock(hashtext('{schema} commit'), hashtext(%s))"
_TIME_AND_MARK = f"SELECT {TIME}, (SELECT token FROM commit_mark WHERE writer = %s), {_LOCK_OF}"
_MARK_OF = "SELECT token FROM {schema}.commit_mark WHERE writer = %s"
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
CHECK_EVERY_MS = 600_000
MOST_CHECKED = 1_000


class MarkSeen(NamedTuple):
    token: UUID
    since_ms: int


def time_and_mark(schema: str, writer: str, token: UUID) -> Query:
    """The server's time, and the mark that the writer left; whoever asks begins the commit of this token."""
    return _TIME_AND_MARK.format(schema=schema), (writer, str(token))


def has_landed(connection: Connection, schema: str, writer: str, token: UUID) -> bool:
    """Whether the commit of this token took effect. It is waited for where it is still under way."""
    connection.execute(f"SELECT {_LOCK_OF.format(schema=schema)}", (str(token),))
    rows = connection.execute(_MARK_OF.format(schema=schema), (writer,)).fetchall()
    return any(found == token for (found,) in rows)


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
        self._next_ms = now_ms + CHECK_EVERY_MS
        query = _ALL.format(schema=self._schema)
        found = connection.execute(query, (_CLIENTS, self._own, MOST_CHECKED)).fetchall()
        self._seen = unchanged(self._seen, [(writer, token) for writer, token in found], now_ms)
        old = {writer: one.token for writer, one in self._seen.items() if now_ms - one.since_ms >= SWEPT_AFTER_MS}
        if old:
            try:
                connection.execute(_REMOVE.format(schema=self._schema), ([*old], [*old.values()], _CLIENTS))
            except psycopg.errors.InsufficientPrivilege:
                return 0
        return len(old)
