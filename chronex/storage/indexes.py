"""Where each record lives, and which index entries stand for it.

Tables by type: both questions are asked for every record that is written, and `match` tries case after case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chronex.model.job import Job, JobProgress, JobVersion
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.records import Idempotency, Node, Notice, Record
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage import keys


def key_of(record: Record) -> bytes:
    """Where a record lives, for the kinds whose key follows from the record alone."""
    find = _KEYS.get(type(record))
    if find is None:
        raise TypeError(f"a {type(record).__name__} does not know its key")
    return find(record)


_KEYS: dict[type, Callable[[Any], bytes]] = {
    Job: lambda job: keys.job_key(job.id),
    JobProgress: lambda progress: keys.job_progress_key(progress.job),
    JobVersion: lambda version: keys.job_version_key(version.job.id, version.job.version),
    Occurrence: lambda one: keys.occurrence_key(one.job, one.nominal_ms),
    Run: lambda run: keys.run_key(run.job, run.nominal_ms, run.task),
    Attempt: lambda one: keys.attempt_key(one.job, one.nominal_ms, one.task, one.number),
    Node: lambda node: keys.node_key(node.id),
    Notice: lambda notice: keys.notice_key(notice.job, notice.at_ms, notice.kind),
    Idempotency: lambda idempotency: keys.idempotency_key(idempotency.key),
}


def index_keys(key: bytes, record: Record) -> tuple[bytes, ...]:
    """Every index entry that must stand for `record`."""
    find = _INDEXED.get(type(record))
    return find(key, record) if find is not None else ()


def _job_indexes(key: bytes, job: Job) -> tuple[bytes, ...]:
    return () if job.expect_within_ms is None else (keys.EXPECTING + key,)


def _progress_indexes(key: bytes, progress: JobProgress) -> tuple[bytes, ...]:
    return () if progress.next_ms is None else (keys.timed(keys.DUE, progress.next_ms, key),)


def _occurrence_indexes(key: bytes, occurrence: Occurrence) -> tuple[bytes, ...]:
    state = occurrence.state
    if state is OccurrenceState.PENDING:
        return (keys.timed(keys.DUE, occurrence.due_ms, key),)
    if state is OccurrenceState.QUEUED:
        return (keys.QUEUED + key,)
    if state is OccurrenceState.RUNNING:
        wish = occurrence.cancel_ms
        return (keys.ACTIVE + key,) if wish is None else (keys.ACTIVE + key, keys.timed(keys.DUE, wish, key))
    finished = occurrence.finished_ms
    return () if finished is None else (keys.timed(keys.FINISHED, finished, key),)


def _run_indexes(key: bytes, run: Run) -> tuple[bytes, ...]:
    state = run.state
    if state is RunState.CLAIMED or state is RunState.RUNNING:
        return (keys.ACTIVE + key,)
    if state is RunState.SCHEDULED or state is RunState.RETRY:
        return () if run.next_attempt_ms is None else (keys.timed(keys.DUE, run.next_attempt_ms, key),)
    if state is RunState.DLQ:
        return (keys.timed(keys.DEAD_LETTER, run.finished_ms or 0, key),)
    return ()


def _attempt_indexes(key: bytes, attempt: Attempt) -> tuple[bytes, ...]:
    return (keys.ACTIVE + key,) if attempt.state is AttemptState.RUNNING else ()


def _idempotency_indexes(key: bytes, idempotency: Idempotency) -> tuple[bytes, ...]:
    return (keys.timed(keys.EXPIRY, idempotency.expires_ms, key),)


_INDEXED: dict[type, Callable[[bytes, Any], tuple[bytes, ...]]] = {
    Job: _job_indexes,
    JobProgress: _progress_indexes,
    Occurrence: _occurrence_indexes,
    Run: _run_indexes,
    Attempt: _attempt_indexes,
    Idempotency: _idempotency_indexes,
}
