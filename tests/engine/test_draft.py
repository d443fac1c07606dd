"""A draft decides as a ledger does and leaves the same bytes; it only writes each record once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chronex.engine import keys
from chronex.engine.draft import Draft
from chronex.engine.ledger import Ledger, Reading, key_of
from chronex.engine.ports import T
from chronex.errors import IllegalTransitionError, StaleClaimError
from chronex.model import AttemptState, Event, Idempotency, Node, OccurrenceState, RunState
from chronex_store import MemoryStore

from .samples import AT, ATTEMPT, JOB, OCCURRENCE, PROCESS, RUN

Step = Callable[[Ledger], object]
NODE = Node(id="n1", process=PROCESS)


def rows(store: MemoryStore) -> list[tuple[bytes, bytes]]:
    return store.view(lambda tx: tx.scan(b"", limit=10_000))


def drafted(store: MemoryStore, fn: Callable[[Draft], T]) -> T:
    def decide(tx: object) -> T:
        draft = Draft(tx, AT)  # type: ignore[arg-type]
        result = fn(draft)
        draft.write()
        return result

    return store.update(decide)


def advance(record: object, state: object) -> Step:
    return lambda ledger: ledger.advance(record, state)  # type: ignore[type-var, arg-type]


STEPS: list[Step] = [
    lambda ledger: ledger.create(OCCURRENCE),
    lambda ledger: ledger.create(RUN),
    lambda ledger: ledger.create(ATTEMPT),
    lambda ledger: ledger.put(JOB),
    lambda ledger: ledger.put(replace(JOB, next_ms=AT + 60_000)),
    lambda ledger: ledger.put(replace(OCCURRENCE, due_ms=AT + 9)),
    lambda ledger: ledger.delete(key_of(JOB)),
    lambda ledger: ledger.put_task_state("backup", "dump", "n", "1"),
    advance(OCCURRENCE, OccurrenceState.QUEUED),
    advance(OCCURRENCE, OccurrenceState.RUNNING),
    advance(replace(OCCURRENCE, state=OccurrenceState.QUEUED), OccurrenceState.SKIPPED),
    advance(RUN, RunState.CLAIMED),
    advance(ATTEMPT, AttemptState.FAILED),
    lambda ledger: ledger.active("backup"),
    lambda ledger: ledger.queued("backup"),
    lambda ledger: ledger.due(AT + 10),
    lambda ledger: ledger.runs("backup", AT),
    lambda ledger: ledger.occurrences("backup"),
    lambda ledger: ledger.jobs(),
    lambda ledger: ledger.count_active(10),
    lambda ledger: ledger.task_state("backup", "dump", "n"),
    lambda ledger: ledger.put_task_state("backup", "dump", "n", "2"),
    lambda ledger: ledger.put(NODE),
    lambda ledger: ledger.node("n1"),
    lambda ledger: ledger.put(replace(NODE, stopped_ms=AT)),
    lambda ledger: ledger.create(Idempotency(key="k", expires_ms=AT + 1)),
    lambda ledger: ledger.put(Idempotency(key="k", expires_ms=AT + 2)),
    lambda ledger: ledger.idempotency("k", AT),
]


def outcome(ledger: Ledger, step: Step) -> object:
    try:
        return step(ledger)
    except (StaleClaimError, IllegalTransitionError) as error:
        return type(error)


@given(st.lists(st.sampled_from(STEPS), max_size=12), st.lists(st.sampled_from(STEPS), max_size=12))
def test_whatever_is_decided_it_answers_and_leaves_what_a_ledger_does(first: list[Step], second: list[Step]) -> None:
    plain, draft = MemoryStore(), MemoryStore()
    for steps in (first, second):
        expected = plain.update(lambda tx, s=steps: [outcome(Ledger(tx, AT), step) for step in s])  # type: ignore[misc]
        assert drafted(draft, lambda d, s=steps: [outcome(d, step) for step in s]) == expected  # type: ignore[misc]
        assert rows(draft) == rows(plain)


def test_a_record_that_changed_often_is_written_once() -> None:
    store = MemoryStore()
    written: list[bytes] = []

    def decide(tx: object) -> None:
        draft = Draft(tx, AT)  # type: ignore[arg-type]
        put = draft.tx.put

        def noted(key: bytes, value: bytes) -> None:
            written.append(key)
            put(key, value)

        draft.tx.put = noted  # type: ignore[method-assign]
        draft.create(OCCURRENCE)
        running = draft.advance(OCCURRENCE, OccurrenceState.RUNNING, epoch=1)
        draft.advance(running, OccurrenceState.COMPLETED, finished_ms=AT)
        assert not draft.is_written
        draft.write()
        assert draft.is_written

    store.update(decide)
    assert written.count(key_of(OCCURRENCE)) == 1
    found = store.view(lambda tx: Reading(tx).occurrence("backup", AT))
    assert found is not None
    assert found.state is OccurrenceState.COMPLETED


def test_a_decision_that_was_quarantined_is_not_made_again_but_a_job_may_be_applied_again() -> None:
    store = MemoryStore()
    for record in (OCCURRENCE, JOB):
        store.update(lambda tx, record=record: Ledger(tx, AT).create(record))  # type: ignore[misc]
        store.update(lambda tx, record=record: tx.put(key_of(record), b"damaged"))  # type: ignore[misc]
    assert not drafted(store, lambda draft: draft.create(OCCURRENCE))
    assert not drafted(store, lambda draft: draft.create(OCCURRENCE)), "not in the next transaction either"
    drafted(store, lambda draft: draft.job("backup"))
    assert drafted(store, lambda draft: draft.create(JOB))
    assert [key for key, _ in store.view(lambda tx: Reading(tx).quarantined())] == [key_of(JOB), key_of(OCCURRENCE)]


@pytest.mark.parametrize("record", [OCCURRENCE, JOB], ids=["occurrence", "job"])
def test_an_index_without_its_record_is_dropped(record: object) -> None:
    store = MemoryStore()
    store.update(lambda tx: Ledger(tx, AT).create(record))  # type: ignore[arg-type]
    store.update(lambda tx: tx.delete(key_of(record)))  # type: ignore[arg-type]
    assert drafted(store, lambda draft: draft.due(AT + 10)) == []
    assert [key for key, _ in rows(store) if key[:1] in keys.INDEXES] == []


def test_other_kinds_of_record_are_written_at_once() -> None:
    store = MemoryStore()
    event = Event(name="x", at_ms=AT)
    drafted(store, lambda draft: draft.put_task_state("backup", "dump", "n", event.name))
    assert len(rows(store)) == 1
