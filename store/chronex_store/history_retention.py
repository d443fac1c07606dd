"""Retention: history bounded by count and age, and what it leaves behind, removed in small steps.

Each step is one short transaction, so that no tick waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from msgspec.structs import replace

from chronex.failpoints import fail_point
from chronex.model.event import Event
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.records import Idempotency, newest_by_machine
from chronex.model.states import AttemptState, RunState, is_final
from chronex.storage import keys
from chronex.storage.journal import head
from chronex.storage.ports import SCAN_LIMIT, ReadTransaction, Store, Transaction
from chronex.storage.records import Reading, Records

# A step takes about 6 ms in a store of a million records, most of it for pages that the finished index touches.
STEP = 25
MAX_VERSIONS = 20
MAX_NODES = 50
_DAY_MS = 86_400_000
_PAGE = 200
_MOST_PIECES = 10_000  # more than the pieces of any log that a store keeps


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What to keep of each job, and of the journal. None: without bound."""

    max_count: int | None = 1000
    max_age_ms: int | None = 90 * _DAY_MS
    journal_count: int | None = 100_000
    log_count: int | None = None
    log_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """How much was removed. `logs` names the log files that no attempt refers to any more."""

    occurrences: int = 0
    events: int = 0
    keys: int = 0
    versions: int = 0
    nodes: int = 0
    logs: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __add__(self, other: RetentionReport) -> RetentionReport:
        return RetentionReport(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def trim(store: Store, policy: RetentionPolicy, now_ms: int, step: int = STEP) -> RetentionReport:
    """Remove all that the policy does not keep, `step` things per transaction."""
    return sum(steps(store, policy, now_ms, step), RetentionReport())


def steps(store: Store, policy: RetentionPolicy, now_ms: int, step: int = STEP) -> Iterator[RetentionReport]:
    """The same, one transaction at a time, for a caller that has other work in between."""
    for job in _jobs_with_history(store):
        yield from _trim_job(store, job, policy, now_ms, step)
        for names in _trim_logs(store, job, policy, now_ms, step):
            yield RetentionReport(logs=names)
        yield RetentionReport(versions=_trim_versions(store, job))
    yield RetentionReport(nodes=_trim_nodes(store, now_ms))
    if policy.journal_count is not None:
        last = store.view(head) - policy.journal_count
        end = keys.event_key(max(last, 0) + 1)
        for count in _delete_in_steps(store, keys.EVENT, end, step, Event):
            yield RetentionReport(events=count)
    expired = keys.timed(keys.EXPIRY, now_ms, b"")
    for count in _delete_in_steps(store, keys.EXPIRY, expired, step, Idempotency):
        yield RetentionReport(keys=count)


def _trim_job(store: Store, job: str, policy: RetentionPolicy, now_ms: int, step: int) -> Iterator[RetentionReport]:
    """Trim one job's history; occurrences that still run, wait, or are in the dead-letter queue stay."""
    kept = _oldest_kept(store, job, policy)
    oldest_ms = now_ms - policy.max_age_ms if policy.max_age_ms is not None else None
    cursor: bytes | None = None
    while _has_more(store, job, cursor, kept, oldest_ms):
        reached, report = store.update(
            lambda tx, at=cursor: _trim_step(Records(tx, now_ms), job, at, kept, oldest_ms, step),  # type: ignore[misc]
            use_reserve=True,
        )
        fail_point("history trimmed")
        yield report
        if reached is None:
            return
        cursor = reached


def _has_more(store: Store, job: str, cursor: bytes | None, kept: bytes | None, oldest_ms: int | None) -> bool:
    """Whether the next occurrence may have to be removed. Read first, because an update waits for other writers."""
    rows = store.view(lambda tx: tx.scan(keys.within_job(keys.OCCURRENCE, job), cursor, 1))
    if not rows:
        return False
    key = rows[0][0]
    is_old = oldest_ms is not None and keys.nominal_of(key) < oldest_ms
    return is_old or (kept is not None and key < kept)


def _oldest_kept(store: Store, job: str, policy: RetentionPolicy) -> bytes | None:
    """The key of the oldest occurrence that the count keeps; None when it keeps all."""
    if policy.max_count is None:
        return None
    prefix = keys.within_job(keys.OCCURRENCE, job)
    left = policy.max_count
    after: bytes | None = None
    oldest: bytes | None = prefix + b"\xff" * 9
    while left > 0:
        size = min(left, SCAN_LIMIT)
        rows = store.view(lambda tx, a=after, n=size: tx.scan(prefix, a, n, reverse=True))  # type: ignore[misc]
        if len(rows) < size:
            return None
        oldest = after = rows[-1][0]
        left -= size
    return oldest


def _trim_step(
    records: Records, job: str, cursor: bytes | None, kept: bytes | None, oldest_ms: int | None, step: int
) -> tuple[bytes | None, RetentionReport]:
    """Remove what may go of the next `step` occurrences, oldest first.

    Returns the last key it read, or None at the end, and what was removed.
    """
    rows = records.tx.scan(keys.within_job(keys.OCCURRENCE, job), cursor, step)
    removed = 0
    logs: list[str] = []
    for key, _ in rows:
        occurrence = records.get(key, Occurrence)
        if occurrence is None:
            continue
        is_old = oldest_ms is not None and occurrence.nominal_ms < oldest_ms
        if not is_old and (kept is None or key >= kept):
            return None, RetentionReport(removed, logs=tuple(logs))
        if _is_removable(records, occurrence):
            logs += _remove(records, occurrence, key)
            removed += 1
    return (rows[-1][0] if len(rows) == step else None), RetentionReport(removed, logs=tuple(logs))


def _is_removable(records: Records, occurrence: Occurrence) -> bool:
    runs = records.runs(occurrence.job, occurrence.nominal_ms)
    return is_final(occurrence.state) and all(_is_over(run) for run in runs)


def _is_over(run: Run) -> bool:
    return is_final(run.state) or run.state is RunState.FAILED


def _remove(records: Records, occurrence: Occurrence, key: bytes) -> list[str]:
    """Remove the occurrence with its runs and attempts; returns the names of their logs."""
    attempts = records.attempts(occurrence.job, occurrence.nominal_ms)
    for tag in (keys.ATTEMPT, keys.RUN, keys.LOG_PIECE):
        for child, _ in records.tx.scan(keys.within_occurrence(tag, occurrence.job, occurrence.nominal_ms)):
            records.delete(child)
    records.delete(key)
    return [attempt.log_path for attempt in attempts if attempt.log_path]


def _jobs_with_history(store: Store) -> list[str]:
    """Every job with an occurrence, also those that were removed; one scan per job, past its last occurrence."""
    found: list[str] = []
    after: bytes | None = None
    while rows := store.view(lambda tx, a=after: tx.scan(keys.OCCURRENCE, a, 1)):  # type: ignore[misc]
        name = rows[0][0][1:].partition(b"\0")[0]
        found.append(name.decode("ascii", "replace"))
        after = keys.OCCURRENCE + name + b"\0" + b"\xff" * 8
    return found


def _delete_in_steps(store: Store, tag: bytes, end: bytes, step: int, kind: type) -> Iterator[int]:
    """Remove the rows of `tag` below the key `end`; with an entry of the expiry index goes its record."""

    def once(tx: Transaction) -> int:
        rows = [key for key, _ in tx.scan(tag, None, step) if key < end]
        for key in rows:
            if kind is Idempotency:
                tx.delete(keys.record_of(key))
            tx.delete(key)
        return len(rows)

    while any(key < end for key, _ in store.view(lambda tx: tx.scan(tag, None, 1))):
        yield store.update(once, use_reserve=True)


# -- what history leaves behind: logs, job versions, nodes ---------------------------------------------------------


def _trim_logs(store: Store, job: str, policy: RetentionPolicy, now_ms: int, step: int) -> Iterator[tuple[str, ...]]:
    """Forget the logs over the limits, counted from the newest attempt; yields their names. The attempts stay."""
    if policy.log_count is None and policy.log_age_ms is None:
        return
    oldest_ms = 0 if policy.log_age_ms is None else now_ms - policy.log_age_ms
    seen = 0
    over_limit: list[Attempt] = []
    for attempt in _attempts(store, job):
        if not attempt.log_path or attempt.state is AttemptState.RUNNING:
            continue
        seen += 1
        is_over = policy.log_count is not None and seen > policy.log_count
        if is_over or (attempt.finished_ms or attempt.created_ms) < oldest_ms:
            over_limit.append(attempt)
        if len(over_limit) == step:
            yield _forget_logs(store, over_limit, now_ms)
            over_limit = []
    if over_limit:
        yield _forget_logs(store, over_limit, now_ms)


def _attempts(store: Store, job: str) -> Iterator[Attempt]:
    """Every attempt of the job, newest first, with one view per page."""
    prefix = keys.within_job(keys.ATTEMPT, job)
    after: bytes | None = None
    while True:

        def page(tx: ReadTransaction, after: bytes | None = after) -> tuple[list[Attempt], bytes | None]:
            rows = tx.scan(prefix, after, _PAGE, reverse=True)
            reading = Reading(tx)
            found = [one for key, _ in rows if (one := reading.get(key, Attempt)) is not None]
            return found, rows[-1][0] if rows else None

        found, after = store.view(page)
        if after is None:
            return
        yield from found


def _forget_logs(store: Store, over_limit: list[Attempt], now_ms: int) -> tuple[str, ...]:
    def write(tx: Transaction) -> tuple[str, ...]:
        records = Records(tx, now_ms)
        names = []
        for attempt in over_limit:
            found = records.attempt(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)
            if found is not None and found.log_path and found.state is not AttemptState.RUNNING:
                names.append(found.log_path)
                records.put(replace(found, log_path=""))
                for piece, _ in tx.scan(keys.LOG_PIECE + keys.key_of(found)[1:], None, _MOST_PIECES):
                    tx.delete(piece)
        return tuple(names)

    return store.update(write, use_reserve=True)


def _trim_versions(store: Store, job: str) -> int:
    """Remove the versions that no kept occurrence was decided under, except the newest; returns how many."""

    def unused(tx: ReadTransaction) -> list[bytes]:
        rows = tx.scan(keys.within_job(keys.JOB_VERSION, job), None, 10_000)
        beyond = [key for key, _ in rows][:-MAX_VERSIONS]
        if not beyond:
            return []
        used = {one.version for one in Reading(tx).occurrences(job, limit=1_000_000)}
        return [key for key in beyond if int.from_bytes(key[-4:], "big") not in used][:_PAGE]

    removable = store.view(unused)
    if not removable:
        return 0

    def write(tx: Transaction) -> int:
        return sum(tx.delete(key) for key in removable)

    return store.update(write, use_reserve=True)


def _trim_nodes(store: Store, now_ms: int) -> int:
    """Remove nodes that have stopped, or were not seen for a day, own no attempt, and are not among the newest.

    The last daemon of a machine that was drained stays: the next one there begins nothing either.
    """

    def unused(reading: Reading) -> list[bytes]:
        newest_first = sorted(reading.nodes(), key=lambda node: -node.started_ms)
        drained = {node.id for node in newest_by_machine(newest_first).values() if node.draining}
        owners = {attempt.owner for attempt in reading.active_attempts()}
        return [
            keys.node_key(node.id)
            for node in newest_first[MAX_NODES:]
            if node.id not in owners | drained and (node.stopped_ms is not None or node.seen_ms < now_ms - _DAY_MS)
        ][:_PAGE]

    removable = store.view(lambda tx: unused(Reading(tx)))
    if not removable:
        return 0
    return store.update(lambda tx: sum(tx.delete(key) for key in removable), use_reserve=True)
