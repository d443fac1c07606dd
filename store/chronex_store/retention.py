"""History bounded by count and age, removed in small steps so that no tick waits for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from chronex.engine import keys
from chronex.engine.journal import head
from chronex.engine.ledger import Ledger
from chronex.engine.ports import SCAN_LIMIT, Store, Transaction
from chronex.engine.testing import fail_point
from chronex.model.records import Event, Idempotency, Occurrence, Run
from chronex.model.states import RunState, is_final

# A step takes about 6 ms in a store of a million records, most of it for pages that the finished index touches.
STEP = 25


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What to keep of each job, and of the journal. None: without bound."""

    max_count: int | None = 1000
    max_age_ms: int | None = 90 * 24 * 3600 * 1000
    journal_count: int | None = 100_000


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """What was removed."""

    occurrences: int = 0
    events: int = 0
    keys: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def trim(store: Store, policy: RetentionPolicy, now_ms: int, step: int = STEP) -> RetentionReport:
    """Remove all that the policy does not keep, `step` things per transaction."""
    occurrences = sum(trim_job(store, job, policy, now_ms, step) for job in _jobs_with_history(store))
    return RetentionReport(occurrences, _trim_journal(store, policy, step), _trim_expired(store, now_ms, step))


def trim_job(store: Store, job: str, policy: RetentionPolicy, now_ms: int, step: int = STEP) -> int:
    """One job's history; occurrences that still run, wait, or lie in the dead-letter queue stay."""
    removed, after = 0, _oldest_kept(store, job, policy)
    oldest_ms = now_ms - policy.max_age_ms if policy.max_age_ms is not None else None
    cursor: bytes | None = None
    while True:
        reached, count = store.update(
            lambda tx, cursor=cursor: _trim_step(Ledger(tx, now_ms), job, cursor, after, oldest_ms, step),  # type: ignore[misc]
            essential=True,
        )
        removed += count
        fail_point("history trimmed")
        if reached is None:
            return removed
        cursor = reached


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
) -> tuple[bytes | None, int]:
    """Look at the next `step` occurrences, oldest first: how far it came (None: the end), and what went."""
    rows = ledger.tx.scan(keys.within_job(keys.OCCURRENCE, job), cursor, step)
    removed = 0
    for key, _ in rows:
        occurrence = ledger.get(key, Occurrence)
        if occurrence is None:
            continue
        is_old = oldest_ms is not None and occurrence.nominal_ms < oldest_ms
        if not is_old and (kept is None or key >= kept):
            return None, removed
        if _may_go(ledger, occurrence):
            _remove(ledger, occurrence, key)
            removed += 1
    return (rows[-1][0] if len(rows) == step else None), removed


def _may_go(ledger: Ledger, occurrence: Occurrence) -> bool:
    runs = ledger.runs(occurrence.job, occurrence.nominal_ms)
    return is_final(occurrence.state) and all(_is_over(run) for run in runs)


def _is_over(run: Run) -> bool:
    return is_final(run.state) or run.state is RunState.FAILED


def _remove(ledger: Ledger, occurrence: Occurrence, key: bytes) -> None:
    for tag in (keys.ATTEMPT, keys.RUN):
        for child, _ in ledger.tx.scan(keys.within_occurrence(tag, occurrence.job, occurrence.nominal_ms)):
            ledger.delete(child)
    ledger.delete(key)


def _jobs_with_history(store: Store) -> list[str]:
    """Also of jobs that are gone: jump from one job's first occurrence past its last."""
    found: list[str] = []
    after: bytes | None = None
    while rows := store.view(lambda tx, a=after: tx.scan(keys.OCCURRENCE, a, 1)):  # type: ignore[misc]
        name = rows[0][0][1:].partition(b"\0")[0]
        found.append(name.decode("ascii", "replace"))
        after = keys.OCCURRENCE + name + b"\0" + b"\xff" * 8
    return found


def _trim_journal(store: Store, policy: RetentionPolicy, step: int) -> int:
    if policy.journal_count is None:
        return 0
    last = store.view(head) - policy.journal_count
    return _delete_in_steps(store, keys.EVENT, keys.event_key(max(last, 0) + 1), step, Event)


def _trim_expired(store: Store, now_ms: int, step: int) -> int:
    return _delete_in_steps(store, keys.EXPIRY, keys.timed(keys.EXPIRY, now_ms, b""), step, Idempotency)


def _delete_in_steps(store: Store, tag: bytes, end: bytes, step: int, kind: type) -> int:
    """Remove rows of `tag` below the key `end`; an index entry takes its record along."""

    def once(tx: Transaction) -> int:
        rows = [key for key, _ in tx.scan(tag, None, step) if key < end]
        for key in rows:
            if kind is Idempotency:
                tx.delete(keys.record_of(key))
            tx.delete(key)
        return len(rows)

    removed = 0
    while count := store.update(once, essential=True):
        removed += count
    return removed
