"""What must hold of a store after any history of commands, and between any two of its transactions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.policies import OverlapPolicy
from chronex.model.records import Record
from chronex.model.states import (
    TRANSITIONS,
    AttemptState,
    OccurrenceState,
    RunState,
    State,
    is_final,
)
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.keys import index_keys
from chronex.storage.ports import ReadTransaction, Store, UpdateFn
from chronex.storage.records import Reading, pages
from chronex.storage.scopes import WHOLE, Scope

_FIRST: dict[type, State] = {
    OccurrenceState: OccurrenceState.PENDING,
    RunState: RunState.SCHEDULED,
    AttemptState: AttemptState.RUNNING,
}


def _reachable() -> set[tuple[type, str, str]]:
    """Every (kind, from, to) that some number of rows of the transition table leads through."""
    found = {(type(s), str(s), str(t.destination)) for t in TRANSITIONS for s in t.sources}
    while True:
        longer = {(k, a, d) for k, a, b in found for k2, c, d in found if k is k2 and b == c}
        if longer <= found:
            return found
        found |= longer


_REACHABLE = _reachable()
States = dict[bytes, State]


def states(tx: ReadTransaction) -> States:
    found: States = {}
    for tag in (keys.OCCURRENCE, keys.RUN, keys.ATTEMPT):
        for page in pages(tx, tag):
            for key, raw in page:
                found[key] = _state_of(key, raw)
    return found


@lru_cache(1 << 14)
def _state_of(key: bytes, raw: bytes) -> State:
    """Most records are the same before and after an update, and read alike in thousands of histories."""
    record = decode(key, raw)
    assert isinstance(record, Occurrence | Run | Attempt)
    return record.state


class CheckedStore:
    """A store that checks every update against the transition table; otherwise the store it is given."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def update(self, fn: UpdateFn[Any], *, use_reserve: bool = False, scope: Scope = WHOLE) -> Any:
        def checked(tx: Any) -> Any:
            before = states(tx)
            result = fn(tx)
            assert_allowed(before, states(tx))
            return result

        return self._inner.update(checked, use_reserve=use_reserve, scope=scope)


def assert_allowed(before: States, after: States) -> None:
    for key, state in after.items():
        old = before.get(key, _FIRST[type(state)])
        assert old == state or (type(state), str(old), str(state)) in _REACHABLE, (key, old, state)


def assert_consistent(tx: ReadTransaction) -> None:
    """Every index entry belongs to a record, and every record has its entries."""
    reading = Reading(tx)
    wanted: set[bytes] = set()
    present = {key for tag in keys.INDEXES for page in pages(tx, bytes([tag])) for key, _ in page}
    for tag in (keys.JOB, keys.JOB_PROGRESS, keys.OCCURRENCE, keys.RUN, keys.ATTEMPT, keys.IDEMPOTENCY):
        for page in pages(tx, tag):
            for key, raw in page:
                wanted |= _entries_of(key, raw)
    assert wanted == present
    assert reading.damaged == []
    for run in reading.active_runs():
        occurrence = reading.occurrence(run.job, run.nominal_ms)
        assert occurrence is not None
        assert occurrence.state is OccurrenceState.RUNNING, (run, occurrence)
    for job in reading.jobs():
        if job.overlap in (OverlapPolicy.SKIP, OverlapPolicy.QUEUE, OverlapPolicy.QUEUE_ONE):
            assert len(reading.active(job.id)) <= 1


@lru_cache(1 << 14)
def _entries_of(key: bytes, raw: bytes) -> frozenset[bytes]:
    record: Record = decode(key, raw)
    return frozenset(index_keys(key, record))


def assert_settled(tx: ReadTransaction, now_ms: int) -> None:
    """Nothing runs, and nothing that is due waits any more: every occurrence has its outcome."""
    reading = Reading(tx)
    assert (reading.active(), reading.active_runs(), reading.active_attempts(), reading.queued()) == ([], [], [], [])
    for page in pages(tx, keys.OCCURRENCE):
        for key, raw in page:
            one = decode(key, raw)
            assert isinstance(one, Occurrence)
            assert is_final(one.state) or one.due_ms > now_ms, one
