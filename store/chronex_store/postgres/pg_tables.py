"""Which table holds which rows, and which of their fields are columns of their own.

A record is one row: its key, its bytes as every store has them, and columns for those who ask in SQL. The columns
follow from the record and are never read back, so a Chronex that knows fewer fields can lose none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from chronex.errors import DamagedRecordError
from chronex.model.event import Event
from chronex.model.job import Job, JobProgress
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.reasons import Reason, text_of
from chronex.model.records import Node, Record
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex_store.postgres.pg_known_rows import OPEN_INDEXES

Values = tuple[Any, ...]


class SqlColumn(NamedTuple):
    name: str
    type: str


class RowTable(NamedTuple):
    """One table. `project` gives the values of its columns for a record of this kind."""

    name: str
    columns: tuple[SqlColumn, ...] = ()
    project: Callable[[Any], Values] = lambda _record: ()

    def values_of(self, key: bytes, raw: bytes) -> Values:
        """The columns of a row; only what its key says where its bytes cannot be read, or not by this version."""
        if not self.columns:
            return ()
        try:
            record: Record = decode(key, raw)
        except DamagedRecordError:
            known = _said_by_key(key)
            return tuple(known.get(column.name) for column in self.columns)
        return self.project(record)


def _said_by_key(key: bytes) -> dict[str, Any]:
    """By these columns rows are locked and found: one that is not found would be taken for one that is not there."""
    name, separator, rest = key[1:].partition(b"\0")
    if not separator or not name.isascii():
        return {}
    if key[:1] == keys.NODE:
        return {"node": name.decode()}
    if key[:1] in (keys.OCCURRENCE, keys.RUN, keys.ATTEMPT) and len(rest) >= 8:
        return {"job": name.decode(), "nominal_ms": keys.firing_of(key)[1]}
    return {"job": name.decode()} if key[:1] in (keys.JOB, keys.JOB_PROGRESS) else {}


def _table(name: str, columns: str, project: Callable[[Any], Values]) -> RowTable:
    pairs = (part.split() for part in columns.split(","))
    return RowTable(name, tuple(SqlColumn(column, kind) for column, kind in pairs), project)


def _json(value: object) -> str:
    # PostgreSQL has no zero character in a text.
    return msgspec.json.encode(value).decode().replace("\\u0000", "\\ufffd")


def _text(reason: Reason) -> str:
    """A command may have ended with any bytes in its words; a column takes text alone."""
    return text_of(reason).replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _job(job: Job) -> Values:
    return (job.id, job.version, str(job.schedule), job.source, _json(job))


def _progress(progress: JobProgress) -> Values:
    return (progress.job, progress.next_ms, progress.paused, progress.last_run_ms, progress.last_success_ms)


def _occurrence(one: Occurrence) -> Values:
    return (
        one.job, one.nominal_ms, one.due_ms, one.state.value, one.owner, one.started_ms, one.finished_ms,
        _text(one.reason), one.version, one.manual,
    )  # fmt: skip


def _run(run: Run) -> Values:
    return (
        run.job, run.nominal_ms, run.task, run.state.value, run.owner, run.attempts, run.next_attempt_ms,
        run.exit_code, run.started_ms, run.finished_ms, _text(run.reason),
    )  # fmt: skip


def _attempt(one: Attempt) -> Values:
    return (
        one.job, one.nominal_ms, one.task, one.number, one.state.value, one.owner, one.exit_code, one.started_ms,
        one.finished_ms, _text(one.reason),
    )  # fmt: skip


def _event(event: Event) -> Values:
    return (
        event.at_ms, event.name, event.job, event.nominal_ms, event.task, event.attempt, event.actor,
        _text(event.reason), _json(event.data),
    )  # fmt: skip


def _node(node: Node) -> Values:
    return (node.id, node.host, node.chronex, node.places, node.started_ms, node.seen_ms, node.stopped_ms)


EVENTS = _table(
    "event",
    "at_ms bigint, name text, job text, nominal_ms bigint, task text, attempt int, actor text, reason text, "
    "data jsonb",
    _event,
)


# Index entries, each with the job of its record, so that those of some jobs can be found.
def _job_of_entry(key: bytes) -> str | None:
    """Of an entry for an open record; None for others, and for what is no entry at all.

    Who follows a job is asked of that job, which the entry names first.
    """
    if key[:1] == keys.FOLLOWING:
        return key[1:].partition(b"\0")[0].decode("latin-1")
    record = keys.record_of(key)
    if key[:1] not in OPEN_INDEXES or b"\0" not in record[1:]:
        return None
    return record[1 : record.index(b"\0", 1)].decode("latin-1")


class EntryTable(RowTable):
    """Its column follows from the key: an entry has no value."""

    __slots__ = ()

    def values_of(self, key: bytes, raw: bytes) -> Values:
        return (_job_of_entry(key),)


ENTRIES = EntryTable("index_entry", (SqlColumn("open_job", "text"),))
OTHER = RowTable("other")

BY_TAG: dict[bytes, RowTable] = {
    keys.JOB: _table("job", "job text, version int, schedule text, source text, definition jsonb", _job),
    keys.JOB_PROGRESS: _table(
        "job_progress", "job text, next_ms bigint, paused bool, last_run_ms bigint, last_success_ms bigint", _progress
    ),
    keys.OCCURRENCE: _table(
        "occurrence",
        "job text, nominal_ms bigint, due_ms bigint, state text, owner text, started_ms bigint, finished_ms bigint, "
        "reason text, version int, manual bool",
        _occurrence,
    ),
    keys.RUN: _table(
        "run",
        "job text, nominal_ms bigint, task text, state text, owner text, attempts int, next_attempt_ms bigint, "
        "exit_code int, started_ms bigint, finished_ms bigint, reason text",
        _run,
    ),
    keys.ATTEMPT: _table(
        "attempt",
        "job text, nominal_ms bigint, task text, number int, state text, owner text, exit_code int, "
        "started_ms bigint, finished_ms bigint, reason text",
        _attempt,
    ),
    keys.EVENT: EVENTS,
    keys.NODE: _table(
        "node",
        "node text, host text, chronex text, places int, started_ms bigint, seen_ms bigint, stopped_ms bigint",
        _node,
    ),
    **{bytes([tag]): ENTRIES for tag in keys.INDEXES},
}
TABLES: tuple[RowTable, ...] = (*dict.fromkeys(BY_TAG.values()), OTHER)


def table_of(key: bytes) -> RowTable:
    return BY_TAG.get(key[:1], OTHER)
