"""The byte layout of every key (store/README.md draws it), where each record lives, and which index entries it has.

One tag byte, then the hierarchy. Names end with a zero byte, which none contains; instants are eight bytes,
big-endian, offset by 2**63 so that years before 1970 sort first. An index key is its tag, for some an
instant, then the whole key of the record that it stands for; its value is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from chronex.errors import InvalidKeyError
from chronex.model.groups import Group
from chronex.model.job import TARGET_APART, Job, JobProgress, JobVersion, check_job_name, check_name
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.records import ChannelState, Idempotency, Node, Notice, Record
from chronex.model.states import AttemptState, OccurrenceState, RunState

META = b"M"
JOB = b"J"
JOB_PROGRESS = b"G"
JOB_VERSION = b"V"
OCCURRENCE = b"O"
RUN = b"R"
ATTEMPT = b"A"
EVENT = b"E"
NODE = b"N"
IDEMPOTENCY = b"I"
TASK_STATE = b"S"
STAGED_STATE = b"T"
NOTICE = b"W"
GROUP = b"g"
CHANNEL_NOTICE = b"w"
CHANNEL = b"c"
QUARANTINE = b"Q"
LOG_PIECE = b"B"
LOG_REQUEST = b"K"

DUE = b"D"
ACTIVE = b"U"
QUEUED = b"Y"
# A queued occurrence that stands in lines has no entry under QUEUED: it has one here, one in each line, and its turn
# is found by the heads of the lines alone.
IN_LINE = b"i"
LINE = b"l"
HOLDING = b"h"
DEAD_LETTER = b"L"
FINISHED = b"H"
EXPIRY = b"X"
EXPECTING = b"P"
# Who follows a job: the jobs that are after it, and their occurrences that wait for it. Its name comes first.
FOLLOWING = b"F"
# Occurrences that wait for a parent, by their own job.
PARKED = b"C"
TIMED_INDEXES = DUE + DEAD_LETTER + FINISHED + EXPIRY
INDEXES = TIMED_INDEXES + ACTIVE + QUEUED + EXPECTING + FOLLOWING + PARKED + IN_LINE + LINE + HOLDING

STORE_META = META + b"store"
JOURNAL_HEAD = META + b"journal"

MAX_STATE_NAME = 128
_OFFSET = 1 << 63
_JOB_NAME = "job"
# A decision asks for the keys of the same few records again and again.
_kept = lru_cache(maxsize=4096)


@_kept
def instant(ms: int) -> bytes:
    return (ms + _OFFSET).to_bytes(8, "big")


@_kept
def job_key(job: str) -> bytes:
    return JOB + _name(job)


def within_targets(job: str) -> bytes:
    """The prefix of the jobs that were made from this one, each for one node."""
    return JOB + check_name(job).encode("ascii") + TARGET_APART.encode("ascii")


@_kept
def job_progress_key(job: str) -> bytes:
    return JOB_PROGRESS + _name(job)


def job_version_key(job: str, version: int) -> bytes:
    return JOB_VERSION + _name(job) + version.to_bytes(4, "big")


@_kept
def occurrence_key(job: str, nominal_ms: int) -> bytes:
    return OCCURRENCE + _name(job) + instant(nominal_ms)


@_kept
def run_key(job: str, nominal_ms: int, task: str) -> bytes:
    return RUN + _name(job) + instant(nominal_ms) + _name(task, "task")


@_kept
def attempt_key(job: str, nominal_ms: int, task: str, number: int) -> bytes:
    return ATTEMPT + _name(job) + instant(nominal_ms) + _name(task, "task") + number.to_bytes(4, "big")


def event_key(sequence: int) -> bytes:
    return EVENT + sequence.to_bytes(8, "big")


def sequence_of(event: bytes) -> int:
    return int.from_bytes(event[1:9], "big")


def node_key(node: str) -> bytes:
    return NODE + _name(node, "node")


def group_key(name: str) -> bytes:
    """Chronex's own groups begin with a star, which no name of a job file does."""
    return GROUP + shared_name(name)


def within_line(name: str) -> bytes:
    """The prefix of those that stand in a line, the first of them first."""
    return LINE + shared_name(name)


def within_holding(name: str) -> bytes:
    """The prefix of those that hold places of a group."""
    return HOLDING + shared_name(name)


def line_of(index_key: bytes) -> str:
    """The line, or the group, in the key of one of its entries."""
    return index_key[1 : index_key.index(b"\0")].decode("ascii")


def shared_name(name: str) -> bytes:
    """The name of a group, or one of Chronex's own with its star, and the zero byte that ends it."""
    return b"*" + _name(name[1:], "line") if name.startswith("*") else _name(name, "group")


def notice_key(job: str, at_ms: int, kind: str) -> bytes:
    return NOTICE + _name(job) + instant(at_ms) + _name(kind, "notice")


def channel_notice_key(channel: str, at_ms: int, job: str, kind: str, nominal_ms: int) -> bytes:
    """In the order of the channel's deliveries. Several runs of a job may end in one millisecond."""
    return within_channel(channel) + instant(at_ms) + _name(job) + _name(kind, "notice") + instant(nominal_ms)


def within_channel(channel: str) -> bytes:
    return CHANNEL_NOTICE + _name(channel, "channel")


def channel_key(channel: str) -> bytes:
    return CHANNEL + _name(channel, "channel")


def notice_kind(key: bytes) -> str:
    return key[key.index(b"\0") + 9 : -1].decode("ascii")


def idempotency_key(text: str) -> bytes:
    """Users choose these texts freely, so their hash is the key and the record holds the text."""
    return IDEMPOTENCY + blake2b(text.encode(), digest_size=16).digest()


def task_state_key(job: str, task: str, name: str) -> bytes:
    raw = name.encode()
    if not 0 < len(raw) <= MAX_STATE_NAME:
        raise InvalidKeyError(f"a state's name must be 1 to {MAX_STATE_NAME} bytes, not {len(raw)}")
    return TASK_STATE + _name(job) + _name(task, "task") + raw


def within_task_state(job: str, task: str) -> bytes:
    return TASK_STATE + _name(job) + _name(task, "task")


def within_staged_state(job: str, nominal_ms: int, task: str, number: int) -> bytes:
    """The prefix of what one attempt has staged; a state's name follows."""
    return STAGED_STATE + attempt_key(job, nominal_ms, task, number)[1:]


def within_log(attempt: bytes, kind: str) -> bytes:
    """The prefix of the pieces of one kind of an attempt's log; `attempt` is the key of the attempt."""
    return LOG_PIECE + attempt[1:] + kind.encode("ascii")


def log_piece_key(attempt: bytes, kind: str, number: int) -> bytes:
    return within_log(attempt, kind) + number.to_bytes(4, "big")


def log_request_key(attempt: bytes, kind: str) -> bytes:
    return LOG_REQUEST + attempt[1:] + kind.encode("ascii")


def quarantine_key(key: bytes) -> bytes:
    return QUARANTINE + key


def within_job(tag: bytes, job: str) -> bytes:
    """The prefix of everything of one kind that belongs to `job`; for indexes without an instant too."""
    return tag + _name(job)


def within_occurrence(tag: bytes, job: str, nominal_ms: int) -> bytes:
    return tag + _name(job) + instant(nominal_ms)


def timed(index: bytes, ms: int, record: bytes) -> bytes:
    return index + instant(ms) + record


def instant_of(index_key: bytes) -> int:
    """The instant in a key of a timed index."""
    return int.from_bytes(index_key[1:9], "big") - _OFFSET


def kind_in(index_key: bytes) -> bytes:
    """The kind of the record that an entry of a timed index stands for."""
    return index_key[9:10]


def nominal_of(key: bytes) -> int:
    """The nominal time in the key of an occurrence."""
    return int.from_bytes(key[-8:], "big") - _OFFSET


def following(parent: str, record: bytes = b"") -> bytes:
    """The index entry of a record that follows this parent, or the prefix of all of them."""
    return FOLLOWING + _name(parent) + record


def record_of(index_key: bytes) -> bytes:
    """The key of the record that an index entry stands for."""
    tag = index_key[:1]
    if tag == FOLLOWING:
        return index_key.partition(b"\0")[2]
    if tag in (LINE, HOLDING):
        _, _, rest = index_key.partition(b"\0")
        return rest[8:] if tag == LINE else rest
    return index_key[9:] if tag in TIMED_INDEXES else index_key[1:]


def job_of(record: bytes) -> str:
    """The job in the key of one of its records."""
    return record[1 : record.index(b"\0")].decode("ascii")


def firing_of(record: bytes) -> tuple[str, int]:
    """The job and the nominal time in the key of an occurrence, or of a run or attempt below one."""
    end = record.index(b"\0")
    return record[1:end].decode("ascii"), int.from_bytes(record[end + 1 : end + 9], "big") - _OFFSET


@lru_cache(maxsize=4096)
def _name(name: str, what: str = _JOB_NAME) -> bytes:
    checked = check_job_name(name) if what == _JOB_NAME else check_name(name, what)
    return checked.encode("ascii") + b"\0"


def key_of(record: Record) -> bytes:
    """Where a record lives, for the kinds whose key follows from the record alone."""
    try:
        find = _KEYS[type(record)]
    except KeyError:
        raise TypeError(f"a {type(record).__name__} does not know its key") from None
    return find(record)


def _key_of_notice(notice: Notice) -> bytes:
    """A hook is called for one occurrence, of which several may end in one millisecond."""
    if notice.channel:
        return channel_notice_key(notice.channel, notice.at_ms, notice.job, notice.kind, notice.nominal_ms or 0)
    return notice_key(notice.job, notice.nominal_ms or 0 if notice.is_hook else notice.at_ms, notice.kind)


_KEYS: dict[type, Callable[[Any], bytes]] = {
    Job: lambda job: job_key(job.id),
    JobProgress: lambda progress: job_progress_key(progress.job),
    JobVersion: lambda version: job_version_key(version.job.id, version.job.version),
    Occurrence: lambda one: occurrence_key(one.job, one.nominal_ms),
    Run: lambda run: run_key(run.job, run.nominal_ms, run.task),
    Attempt: lambda one: attempt_key(one.job, one.nominal_ms, one.task, one.number),
    Node: lambda node: node_key(node.id),
    Group: lambda group: group_key(group.name),
    Notice: _key_of_notice,
    ChannelState: lambda state: channel_key(state.channel),
    Idempotency: lambda idempotency: idempotency_key(idempotency.key),
}


def index_keys(key: bytes, record: Record) -> tuple[bytes, ...]:
    """Every index entry that must stand for `record`."""
    find = INDEXED.get(type(record))
    return find(key, record) if find is not None else ()


def _job_indexes(key: bytes, job: Job) -> tuple[bytes, ...]:
    is_watched = job.notify is not None and job.notify.long_after_ms is not None
    is_expected = job.expect_within_ms is not None or job.expect_usual or is_watched
    expecting = (EXPECTING + key,) if is_expected else ()
    return (*expecting, *(following(parent, key) for parent in job.after)) if job.after else expecting


def _progress_indexes(key: bytes, progress: JobProgress) -> tuple[bytes, ...]:
    return () if progress.next_ms is None else (timed(DUE, progress.next_ms, key),)


def _occurrence_indexes(key: bytes, occurrence: Occurrence) -> tuple[bytes, ...]:
    state = occurrence.state
    if state is OccurrenceState.PENDING:
        return (timed(DUE, occurrence.due_ms, key),)
    if state is OccurrenceState.QUEUED:
        return _queued_indexes(key, occurrence)
    if state is OccurrenceState.RUNNING:
        cancel_ms = occurrence.cancel_ms
        found = (ACTIVE + key,) if cancel_ms is None else (ACTIVE + key, timed(DUE, cancel_ms, key))
        return (
            found if not occurrence.groups else (*found, *(within_holding(name) + key for name in occurrence.groups))
        )
    finished = occurrence.finished_ms
    return () if finished is None else (timed(FINISHED, finished, key),)


def _queued_indexes(key: bytes, occurrence: Occurrence) -> tuple[bytes, ...]:
    """In the queue of its job; or waiting for parents, outside of it; or in lines; or due at once,
    when its parents have completed. Where it waits no longer than to a certain time, it is due then."""
    until = occurrence.wait_until_ms
    timer = () if until is None else (timed(DUE, until, key),)
    if occurrence.waits_for:
        return (PARKED + key, *(following(parent, key) for parent in occurrence.waits_for), *timer)
    if occurrence.lines:
        return (*_line_entries(key, occurrence), *timer)
    if occurrence.released_ms is not None:
        return (timed(DUE, occurrence.released_ms, key),)
    return (QUEUED + key, *timer)


def _line_entries(key: bytes, occurrence: Occurrence) -> tuple[bytes, ...]:
    at = instant(occurrence.order_ms)
    return (IN_LINE + key, *(within_line(name) + at + key for name in occurrence.lines))


def _run_indexes(key: bytes, run: Run) -> tuple[bytes, ...]:
    state = run.state
    if state is RunState.CLAIMED or state is RunState.RUNNING:
        return (ACTIVE + key,)
    if state is RunState.SCHEDULED or state is RunState.RETRY:
        return () if run.next_attempt_ms is None else (timed(DUE, run.next_attempt_ms, key),)
    if state is RunState.DLQ:
        return (timed(DEAD_LETTER, run.finished_ms or 0, key),)
    return ()


def _attempt_indexes(key: bytes, attempt: Attempt) -> tuple[bytes, ...]:
    return (ACTIVE + key,) if attempt.state is AttemptState.RUNNING else ()


def _idempotency_indexes(key: bytes, idempotency: Idempotency) -> tuple[bytes, ...]:
    return (timed(EXPIRY, idempotency.expires_ms, key),)


INDEXED: dict[type, Callable[[bytes, Any], tuple[bytes, ...]]] = {
    Job: _job_indexes,
    JobProgress: _progress_indexes,
    Occurrence: _occurrence_indexes,
    Run: _run_indexes,
    Attempt: _attempt_indexes,
    Idempotency: _idempotency_indexes,
}
