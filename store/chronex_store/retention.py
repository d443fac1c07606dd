"""History bounded by count and age, removed in small steps so that no tick waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from chronex.failpoints import fail_point
from chronex.model.records import Event, Idempotency, Occurrence, Run
from chronex.model.states import RunState, is_final
from chronex.storage import keys
from chronex.storage.journal import head
from chronex.storage.ports import SCAN_LIMIT, Store, Transaction
from chronex.storage.records import Ledger
from chronex_store.leftovers import forgotten_logs, old_nodes, old_versions

# A step takes about 6 ms in a store of a million records, most of it for pages that the finished index touches.
STEP = 25


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What to keep of each job, and of the journal. None: without bound."""

    max_count: int | None = 1000
    max_age_ms: int | None = 90 * 24 * 3600 * 1000
    journal_count: int | None = 100_000
    log_count: int | None = None
    log_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """What was removed. `logs` names the files of attempts that are gone or keep their log no longer."""

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
    """The same, one transaction at a time, for whoever has other things to do in between."""
    for job in _jobs_with_history(store):
        yield from _job_steps(store, job, policy, now_ms, step)
        for names in forgotten_logs(store, job, policy, now_ms, step):
            yield RetentionReport(logs=names)
        yield RetentionReport(versions=old_versions(store, job, now_ms))
    yield RetentionReport(nodes=old_nodes(store, now_ms))
    if policy.journal_count is not None:
        last = store.view(head) - policy.journal_count
        end = keys.event_key(max(last, 0) + 1)
        for count in _delete_in_steps(store, keys.EVENT, end, step, Event):
            yield RetentionReport(events=count)
    expired = keys.timed(keys.EXPIRY, now_ms, b"")
    for count in _delete_in_steps(store, keys.EXPIRY, expired, step, Idempotency):
        yield RetentionReport(keys=count)


def _job_steps(store: Store, job: str, policy: RetentionPolicy, now_ms: int, step: int) -> Iterator[RetentionReport]:
    """One job's history; occurrences that still run, wait, or lie in the dead-letter queue stay."""
    kept = _oldest_kept(store, job, policy)
    oldest_ms = now_ms - policy.max_age_ms if policy.max_age_ms is not None else None
    cursor: bytes | None = None
    while _has_more(store, job, cursor, kept, oldest_ms):
        reached, report = store.update(
            lambda tx, at=cursor: _trim_step(Ledger(tx, now_ms), job, at, kept, oldest_ms, step),  # type: ignore[misc]
            essential=True,
        )
        fail_point("history trimmed")
        yield report
        if reached is None:
            return
        cursor = reached


def _has_more(store: Store, job: str, cursor: bytes | None, kept: bytes | None, oldest_ms: int | None) -> bool:
    """Is the next occurrence one that may have to go? Asked first, because a write waits for its turn."""
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
    left, after = policy.max_count, None
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
    ledger: Ledger, job: str, cursor: bytes | None, kept: bytes | None, oldest_ms: int | None, step: int
) -> tuple[bytes | None, RetentionReport]:
    """Look at the next `step` occurrences, oldest first: how far it came (None: the end), and what went."""
    rows = ledger.tx.scan(keys.within_job(keys.OCCURRENCE, job), cursor, step)
    removed, logs = 0, list[str]()
    for key, _ in rows:
        occurrence = ledger.get(key, Occurrence)
        if occurrence is None:
            continue
        is_old = oldest_ms is not None and occurrence.nominal_ms < oldest_ms
        if not is_old and (kept is None or key >= kept):
            return None, RetentionReport(removed, logs=tuple(logs))
        if _may_go(ledger, occurrence):
            logs += _remove(ledger, occurrence, key)
            removed += 1
    return (rows[-1][0] if len(rows) == step else None), RetentionReport(removed, logs=tuple(logs))


def _may_go(ledger: Ledger, occurrence: Occurrence) -> bool:
    runs = ledger.runs(occurrence.job, occurrence.nominal_ms)
    return is_final(occurrence.state) and all(_is_over(run) for run in runs)


def _is_over(run: Run) -> bool:
    return is_final(run.state) or run.state is RunState.FAILED


def _remove(ledger: Ledger, occurrence: Occurrence, key: bytes) -> list[str]:
    """The occurrence and all below it; returns the names of the logs that nobody refers to any more."""
    attempts = ledger.attempts(occurrence.job, occurrence.nominal_ms)
    for tag in (keys.ATTEMPT, keys.RUN):
        for child, _ in ledger.tx.scan(keys.within_occurrence(tag, occurrence.job, occurrence.nominal_ms)):
            ledger.delete(child)
    ledger.delete(key)
    return [attempt.log_path for attempt in attempts if attempt.log_path]


def _jobs_with_history(store: Store) -> list[str]:
    """Also of jobs that are gone: jump from one job's first occurrence past its last."""
    found: list[str] = []
    after: bytes | None = None
    while rows := store.view(lambda tx, a=after: tx.scan(keys.OCCURRENCE, a, 1)):  # type: ignore[misc]
        name = rows[0][0][1:].partition(b"\0")[0]
        found.append(name.decode("ascii", "replace"))
        after = keys.OCCURRENCE + name + b"\0" + b"\xff" * 8
    return found


def _delete_in_steps(store: Store, tag: bytes, end: bytes, step: int, kind: type) -> Iterator[int]:
    """Remove rows of `tag` below the key `end`; an index entry takes its record along."""

    def once(tx: Transaction) -> int:
        rows = [key for key, _ in tx.scan(tag, None, step) if key < end]
        for key in rows:
            if kind is Idempotency:
                tx.delete(keys.record_of(key))
            tx.delete(key)
        return len(rows)

    while any(key < end for key, _ in store.view(lambda tx: tx.scan(tag, None, 1))):
        yield store.update(once, essential=True)
