"""Groups and channels, which belong to no job: whoever decides about one holds its lock, and so nobody else does.

The lock is the server's, by the name, so that a group needs no row. Locks are taken after those of jobs and in one
order, and the jobs of those who stand in line are locked afterwards only where nobody holds them: no two wait for
each other. What is read of a group is read when it is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronex.storage import keys
from chronex.storage.scopes import shared_group
from chronex_store.postgres.pg_known_rows import KnownRows, Query
from chronex_store.postgres.pg_scopes import HeldScope
from chronex_store.transaction import end_of_prefix

# The first of a line may start, and the next is then looked at: their jobs are locked beforehand.
_FIRST_IN_LINE = 3
_GROUP = shared_group("")
_LOCK = (
    "SELECT s.name, pg_advisory_xact_lock(hashtext(current_schema() || ' shared'), s.number) FROM ("
    "SELECT name, hashtext(name) AS number FROM (SELECT unnest(%s::text[]) AS name UNION "
    f"SELECT '{_GROUP}' || g FROM job j, jsonb_object_keys(j.definition -> 'groups') AS g WHERE j.job = ANY(%s)"
    ") AS named ORDER BY number, name OFFSET 0) AS s"
)
_RECORD = "SELECT key, value FROM other WHERE key = %b"
_HOLDERS = (
    "SELECT e.key, e.value, o.key, o.value FROM index_entry e "
    "LEFT JOIN occurrence o ON o.key = substr(e.key, %s) WHERE e.key >= %b AND e.key < %b"
)
# The key of an entry: the line, eight bytes of the order, a tag, the job, a zero byte, eight bytes of the instant.
_LOCK_HEADS = (
    "SELECT p.job FROM (SELECT convert_from(substr(key, %s, length(key) - %s), 'LATIN1') AS job FROM index_entry "
    "WHERE key >= %b AND key < %b ORDER BY key LIMIT %s) AS l JOIN job_progress p ON p.job = l.job "
    "FOR UPDATE OF p SKIP LOCKED"
)


def locking_shared(held: HeldScope) -> tuple[Query, ...]:
    """The statement that locks what is named and the groups of the jobs that are held; it gives their names."""
    if held.is_whole or not (held.names or held.scope.shared):
        return ()
    return ((_LOCK, (sorted(held.scope.shared), held.names)),)


def learn_shared(held: HeldScope, answers: Iterable[list[tuple[Any, ...]]]) -> list[str]:
    """Note what was locked; the names of the groups among it."""
    held.shared = frozenset(name for rows in answers for name, _ in rows)
    return sorted(name.removeprefix(_GROUP) for name in held.shared if name.startswith(_GROUP))


def reading_groups(names: list[str]) -> tuple[Query, ...]:
    """What is known of groups, who holds their places, and the jobs of the first in their lines, which it locks."""
    return tuple(query for name in names for query in _of_group(name))


def _of_group(name: str) -> tuple[Query, ...]:
    holding, line = keys.within_holding(name), keys.within_line(name)
    before_job = len(line) + 8 + 1
    return (
        (_RECORD, (keys.group_key(name),)),
        (_HOLDERS, (len(holding) + 1, holding, end_of_prefix(holding))),
        (_LOCK_HEADS, (before_job + 1, before_job + 9, line, end_of_prefix(line), _FIRST_IN_LINE)),
    )


def learn_groups(
    known: KnownRows, held: HeldScope, names: list[str], answers: list[list[tuple[Any, ...]]]
) -> list[str]:
    """Note what was read, and the jobs that were locked, whose names are returned."""
    locked: set[str] = set()
    for place, name in enumerate(names):
        record, holders, heads = answers[3 * place : 3 * place + 3]
        known.rows.put(keys.group_key(name), record[0][1] if record else None)
        known.learn_whole(keys.within_holding(name), [row[:2] for row in holders])
        held.may_read(row[2] for row in holders if row[2] is not None)
        for _, _, key, value in holders:
            if key is not None:
                known.rows.put(key, value)
        locked.update(job for (job,) in heads)
    found = sorted(locked.difference(held.names))
    held.add(found)
    return found
