"""Rows of older formats as those of the next one, step by step; chronex_store/migration.py applies them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from chronex.errors import DamagedRecordError, RecordTooLargeError
from chronex.model.job import JobProgress, is_name
from chronex.model.policies import LONGEST_PAUSE_MS, FailureStrategy
from chronex.model.reasons import Reason, ReasonCode
from chronex.storage import keys
from chronex.storage.codec import payload_of, with_header
from chronex.storage.ports import Row, Transaction

# From format 1 to 2: jobs become two rows, and the sentences that records held as reasons become codes.
#
# A job was one row with its definition and its progress. The due index stood for that row; it stands for the row of
# the progress now, which has the time.
#
# As a reason, format 1 wrote one of the sentences below, or one of them, a colon and what it spoke of, or one of
# them, "by" and who asked. This is the only module that reads a sentence back. Its table is that of format 1 and
# does not change when a sentence is worded anew. Nothing is lost: what no rule knows is kept word for word as free
# text.

_PROGRESS = frozenset(field.name for field in msgspec.structs.fields(JobProgress)) - {"job"}


def split_jobs(key: bytes, raw: bytes) -> list[Row]:
    """The rows of a job; every other record, and a damaged one, as it is."""
    if key[:1] not in (keys.JOB, keys.JOB_VERSION):
        return [(key, raw)]
    try:
        fields = msgspec.msgpack.decode(payload_of(key, raw))
        if key[:1] == keys.JOB_VERSION:
            fields["job"]["progress"] = _taken_out(fields["job"])
            return [_row(key, fields)]
        progress = _taken_out(fields)
        return [_row(key, fields), _row(keys.job_progress_key(progress["job"]), progress)]
    except (DamagedRecordError, RecordTooLargeError, msgspec.MsgspecError, KeyError, TypeError):
        return [(key, raw)]  # for quarantine to find


def _taken_out(job: dict[str, Any]) -> dict[str, Any]:
    """The fields of the progress, which are no longer among those of the job."""
    progress = {name: job.pop(name) for name in _PROGRESS if name in job}
    return {"job": job["id"], **progress}


def _row(key: bytes, fields: dict[str, Any]) -> Row:
    return key, with_header(key, msgspec.msgpack.encode(fields))


def move_due_jobs(tx: Transaction) -> None:
    """Let the due index stand for the progress of each job."""
    after: bytes | None = None
    while rows := tx.scan(keys.DUE, after, 1_000):
        for index, _ in rows:
            record = keys.record_of(index)
            if record[:1] == keys.JOB:
                tx.delete(index)
                tx.put(keys.timed(keys.DUE, keys.instant_of(index), keys.JOB_PROGRESS + record[1:]), b"")
        after = rows[-1][0]


Fields = dict[str, Any]
StoredReason = list[str]  # code, detail, by
_LONGEST_CODE = 64

_SENTENCES = {
    "paused": ReasonCode.PAUSED,
    "window exceeded": ReasonCode.WINDOW_EXCEEDED,
    "no start inside its spread window satisfies the constraints": ReasonCode.UNSCHEDULABLE,
    "an earlier occurrence still runs": ReasonCode.OVERLAP,
    "an earlier occurrence still waits": ReasonCode.EARLIER_WAITS,
    "the queue of the job is full": ReasonCode.QUEUE_FULL,
    "waits for a free place in the pool": ReasonCode.POOL_FULL,
    "its idempotency key has been executed already": ReasonCode.IDEMPOTENT,
    "the limit of executions is reached": ReasonCode.MAX_REACHED,
    "the scheduler was not running": ReasonCode.DOWN,
    "folded into a later occurrence by the recovery strategy": ReasonCode.FOLDED,
    "beyond the bounds of the recovery strategy": ReasonCode.TOO_OLD,
    "a later missed occurrence runs instead": ReasonCode.SUPERSEDED,
    "a new occurrence pre-empted the pending retry": ReasonCode.PREEMPTED,
    "canceled to make room for the next occurrence": ReasonCode.CANCELED_FOR_NEXT,
    "another task failed first": ReasonCode.PEER_FAILED,
    "the scheduler was stopped": ReasonCode.STOPPING,
    "canceled": ReasonCode.CANCELED,
    "replaced by a new version": ReasonCode.REPLACED,
    "the job was removed": ReasonCode.JOB_REMOVED,
    "the task was removed": ReasonCode.TASK_REMOVED,
    "replayed": ReasonCode.REPLAYED,
    "dropped": ReasonCode.DROPPED,
    "its pause is over": ReasonCode.PAUSE_OVER,
    "the host is in another time zone": ReasonCode.ZONE_CHANGED,
    "no run has completed in time": ReasonCode.LATE,
}
# How an attempt ended; also what a run and its occurrence say when that was for good.
_ENDS = {
    "the execution timeout passed": ReasonCode.EXECUTION_TIMEOUT,
    "the scheduler died while it ran": ReasonCode.OWNER_DIED,
    "the scheduler died before it started": ReasonCode.NEVER_STARTED,
    "a task failed": ReasonCode.RUN_FAILED,
}
_WHOLE = {
    "only the newest 1000 missed occurrences of a job are made up for": Reason(ReasonCode.TOO_MANY, "1000"),
    "dropped: too many dead letters, or too old": Reason(ReasonCode.DROPPED_BY_LIMIT),
}
_BY_SOMEBODY = {"canceled by ": ReasonCode.CANCELED, "dropped by ": ReasonCode.DROPPED}
_PAUSED_BY = "paused by "
_PROGRAM_ENDS = (
    (re.compile(r"exit code -?\d+"), ReasonCode.EXIT_CODE),
    (re.compile(r"ended by (SIG\w+|signal \d+)"), ReasonCode.SIGNAL),
    (re.compile(r"still running after \S+ s(; it still runs)?"), ReasonCode.TIMEOUT),
    (re.compile(r"ended, and its exit code is not known: .*", re.DOTALL), ReasonCode.UNKNOWN_EXIT),
)
# Events whose reason is the words of a person, a hook, a notify command or a schedule, whatever they look like.
_EVENTS_IN_OWN_WORDS = frozenset(
    {
        "CancelRequested",
        "OccurrenceReplayed",
        "TaskDropped",
        "HookFailed",
        "NotificationFailed",
        "ScheduleFailed",
    }
)
_EVENTS_OF_ENDS = frozenset({"TaskRunFailed", "TaskDeadLettered"})


def reasons_to_codes(key: bytes, raw: bytes) -> list[Row]:
    """The record with codes in the place of sentences; a damaged one as it is, for quarantine to find."""
    convert = _CONVERSIONS.get(key[:1])
    if convert is None:
        return [(key, raw)]
    try:
        fields = msgspec.msgpack.decode(payload_of(key, raw), type=Fields)
    except (DamagedRecordError, msgspec.MsgspecError):
        return [(key, raw)]
    changed = convert(fields)
    if not changed:
        return [(key, raw)]
    try:
        return [(key, with_header(key, msgspec.msgpack.encode(fields)))]
    except RecordTooLargeError:
        _shorten(changed)
        return [(key, with_header(key, msgspec.msgpack.encode(fields)))]


def _shorten(reasons: list[StoredReason]) -> None:
    """A record at its limit of 64 KiB has no space for a code; it is made by cutting the end of a long text."""
    for reason in reasons:
        reason[1] = reason[1][:-_LONGEST_CODE]


def reason_of(sentence: str) -> Reason:
    """The reason of something that did not run, waits, or was ended from outside."""
    if sentence in _WHOLE:
        return _WHOLE[sentence]
    head, joint, detail = sentence.partition(": ")
    known = {**_SENTENCES, **_ENDS}
    if head in known and bool(joint) == bool(detail):
        return Reason(known[head], detail)
    for words, code in _BY_SOMEBODY.items():
        by = head.removeprefix(words)
        if by and by != head and bool(joint) == bool(detail):
            return Reason(code, detail, by)
    paused_by = sentence.removeprefix(_PAUSED_BY)
    if paused_by and paused_by != sentence:
        return Reason(ReasonCode.PAUSED, by=paused_by)
    return Reason(ReasonCode.FREE_TEXT, sentence)


def end_reason_of(sentence: str) -> Reason:
    """The reason of an attempt or a run that ended by itself, or with its scheduler."""
    if sentence in _ENDS:
        return Reason(_ENDS[sentence])
    for pattern, code in _PROGRAM_ENDS:
        if pattern.fullmatch(sentence):
            return Reason(code, sentence)
    return Reason(ReasonCode.FREE_TEXT, sentence)


def failure_of(sentence: str) -> Reason:
    """The reason of an occurrence that failed: its task's name and how that ended, or a newcomer took its turn.

    A name has no blank in it, so "paused: exit code 1" is the task `paused`, never a pause.
    """
    task, joint, end = sentence.partition(": ")
    if not joint or not is_name(task):
        return reason_of(sentence)
    found = end_reason_of(end)
    return Reason(found.code, found.detail, task)


def _replace(fields: Fields, name: str, read: Callable[[str], Reason]) -> list[StoredReason]:
    """Put the reason into the place of the sentence; none where there is no sentence."""
    sentence = fields.get(name)
    if not isinstance(sentence, str) or not sentence:
        return []
    found = read(sentence)
    fields[name] = [found.code.value, found.detail, found.by]
    return [fields[name]]


def _occurrence(fields: Fields) -> list[StoredReason]:
    is_failure = fields.get("state") == "failed"
    older = fields.get("older")
    return [
        *_replace(fields, "reason", failure_of if is_failure else reason_of),
        *_replace(fields, "cancel_reason", reason_of),
        *(_replace(older, "reason", reason_of) if isinstance(older, dict) else ()),
    ]


def _run(fields: Fields) -> list[StoredReason]:
    return _replace(fields, "reason", reason_of if fields.get("state") == "canceled" else end_reason_of)


def _attempt(fields: Fields) -> list[StoredReason]:
    changed = _run(fields)
    if changed and changed[0][0] == ReasonCode.FREE_TEXT and fields.get("errno") is not None:
        changed[0][0] = ReasonCode.NOT_STARTED.value  # the system's own words, with the number of its refusal
    return changed


def _event(fields: Fields) -> list[StoredReason]:
    name, data = fields.get("name"), fields.get("data")
    is_canceled = isinstance(data, dict) and data.get("state") == "canceled"
    if name in _EVENTS_IN_OWN_WORDS:
        return _replace(fields, "reason", lambda words: Reason(ReasonCode.FREE_TEXT, words))
    if name == "OccurrenceFailed":
        return _replace(fields, "reason", failure_of)
    is_end = name in _EVENTS_OF_ENDS and not is_canceled
    return _replace(fields, "reason", end_reason_of if is_end else reason_of)


def _notice(fields: Fields) -> list[StoredReason]:
    return _replace(fields, "reason", failure_of)


_CONVERSIONS = {
    keys.OCCURRENCE: _occurrence,
    keys.RUN: _run,
    keys.ATTEMPT: _attempt,
    keys.EVENT: _event,
    keys.NOTICE: _notice,
}


# From format 2 to 3: retry policies say all of their fields.
#
# Format 2 left out what was a default, and the defaults were others then: pauses that do not grow, without a random
# part and without a longest one. A job keeps the pauses it was stored with until its file or program is applied
# again.

_LEFT_OUT = {
    "max": 0,
    "interval_ms": 30_000,
    "backoff": 1.0,
    "max_interval_ms": None,
    "jitter": 0.0,
    "newest_wins": False,
}


def spell_out_retries(key: bytes, raw: bytes) -> list[Row]:
    """The row of a job or of an earlier version of one; every other record, and a damaged one, as it is."""
    if key[:1] not in (keys.JOB, keys.JOB_VERSION):
        return [(key, raw)]
    try:
        fields = msgspec.msgpack.decode(payload_of(key, raw))
        _spell_out(fields["job"] if key[:1] == keys.JOB_VERSION else fields)
        return [(key, with_header(key, msgspec.msgpack.encode(fields)))]
    except (DamagedRecordError, RecordTooLargeError, msgspec.MsgspecError, AttributeError, KeyError, TypeError):
        return [(key, raw)]


def _spell_out(job: dict[str, Any]) -> None:
    """A job that never retries has no pauses to keep, and stays equal to what its file says."""
    tasks = job.get("tasks", ())
    strategies = [job.get("failure"), *(task.get("on_failure") for task in tasks)]
    if "retry" in job or FailureStrategy.RETRY_ON_FAILURE in strategies:
        job["retry"] = _complete(job.get("retry", {}))
    for task in tasks:
        if task.get("retry") is not None:
            task["retry"] = _complete(task["retry"])


def _complete(retry: dict[str, Any]) -> dict[str, Any]:
    found = {**_LEFT_OUT, **retry}
    if found["max_interval_ms"] is None and found["backoff"] > 1:
        found["max_interval_ms"] = LONGEST_PAUSE_MS
    return found
