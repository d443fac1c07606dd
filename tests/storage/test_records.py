"""Records and their indexes change together; a damaged record steps aside and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chronex.errors import IllegalTransitionError, StaleClaimError
from chronex.model import (
    AttemptState,
    Event,
    Idempotency,
    JobVersion,
    Node,
    OccurrenceState,
    Record,
    RunState,
)
from chronex.storage import journal, keys
from chronex.storage.ports import T
from chronex.storage.records import Draft, Ledger, Reading, index_keys, key_of
from chronex_store import MemoryStore

from .samples import AT, ATTEMPT, JOB, KEYED, OCCURRENCE, PROCESS, RUN


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def write(store: MemoryStore, fn: Callable[[Ledger], T]) -> T:
    return store.update(lambda tx: fn(Ledger(tx, AT)))


def read(store: MemoryStore, fn: Callable[[Reading], T]) -> T:
    return store.view(lambda tx: fn(Reading(tx)))


def indexes(store: MemoryStore) -> list[bytes]:
    rows = store.view(lambda tx: tx.scan(b""))
    return [key for key, _ in rows if key[:1] in keys.INDEXES]


@pytest.mark.parametrize("record", KEYED, ids=lambda r: type(r).__name__)
def test_a_record_is_created_once_with_its_indexes(store: MemoryStore, record: Record) -> None:
    assert write(store, lambda ledger: ledger.create(record))
    assert not write(store, lambda ledger: ledger.create(record))
    assert read(store, lambda r: r.get(key_of(record), type(record))) == record
    assert indexes(store) == sorted(index_keys(key_of(record), record))
    assert write(store, lambda ledger: ledger.delete(key_of(record)))
    assert indexes(store) == []


def test_an_occurrence_moves_through_the_indexes(store: MemoryStore) -> None:
    write(store, lambda ledger: ledger.create(OCCURRENCE))
    assert read(store, lambda r: r.due(AT + 5)) == [OCCURRENCE]
    assert read(store, lambda r: r.due(AT + 4)) == []
    assert read(store, Reading.next_due_ms) == AT + 5
    queued = write(store, lambda ledger: ledger.advance(OCCURRENCE, OccurrenceState.QUEUED))
    assert read(store, lambda r: r.queued("backup")) == [queued]
    running = write(store, lambda ledger: ledger.advance(queued, OccurrenceState.RUNNING, epoch=1))
    assert read(store, lambda r: (r.active("backup"), r.active(), r.active("other"))) == (
        [running],
        [running],
        [],
    )
    done = write(store, lambda ledger: ledger.advance(running, OccurrenceState.COMPLETED, finished_ms=AT + 9))
    assert read(store, Reading.finished) == [done]
    assert len(indexes(store)) == 1


def test_runs_and_attempts_are_found_by_state(store: MemoryStore) -> None:
    def begin(ledger: Ledger) -> None:
        ledger.create(RUN)
        ledger.create(ATTEMPT)
        claimed = ledger.advance(RUN, RunState.CLAIMED)
        ledger.advance(claimed, RunState.RUNNING)

    write(store, begin)
    running = read(store, lambda r: r.run("backup", AT, "dump"))
    assert running is not None
    assert read(store, lambda r: (r.active_runs(), r.active_attempts())) == ([running], [ATTEMPT])
    assert read(store, lambda r: (r.runs("backup", AT), r.attempts("backup", AT, "dump"))) == (
        [running],
        [ATTEMPT],
    )
    assert read(store, lambda r: r.attempts("backup", AT)) == [ATTEMPT]

    def bury(ledger: Ledger) -> None:
        ledger.advance(ATTEMPT, AttemptState.FAILED)
        failed = ledger.advance(running, RunState.FAILED, finished_ms=AT)
        ledger.advance(failed, RunState.DLQ)

    write(store, bury)
    assert [run.task for run in read(store, Reading.dead_letters)] == ["dump"]
    assert read(store, lambda r: (r.active_runs(), r.active_attempts())) == ([], [])


def test_jobs_versions_state_and_history_are_read_back(store: MemoryStore) -> None:
    older = replace(OCCURRENCE, nominal_ms=AT - 1000)

    def fill(ledger: Ledger) -> None:
        ledger.put(JOB)
        ledger.create(JobVersion(JOB))
        ledger.create(OCCURRENCE)
        ledger.create(older)
        ledger.put_task_state("backup", "dump", "cursor", "17")

    write(store, fill)
    assert read(store, lambda r: (r.job("backup"), r.job("none"), r.jobs())) == (JOB, None, [JOB])
    assert read(store, lambda r: r.jobs(after="backup")) == []
    assert read(store, lambda r: (r.job_version("backup", 1), r.job_version("backup", 2))) == (JOB, None)
    assert read(store, lambda r: r.occurrences("backup")) == [OCCURRENCE, older]
    assert read(store, lambda r: r.occurrences("backup", before_ms=AT)) == [older]
    state = read(store, lambda r: r.task_state("backup", "dump", "cursor"))
    assert state is not None
    assert state.value == "17"


def test_an_idempotency_key_lives_until_it_expires(store: MemoryStore) -> None:
    write(store, lambda ledger: ledger.create(Idempotency(key="k", expires_ms=AT)))
    assert read(store, lambda r: r.idempotency("k", AT - 1)) is not None
    assert read(store, lambda r: r.idempotency("k", AT)) is None


def test_a_write_must_find_what_its_writer_believes(store: MemoryStore) -> None:
    write(store, lambda ledger: ledger.create(OCCURRENCE))
    running = write(store, lambda ledger: ledger.advance(OCCURRENCE, OccurrenceState.RUNNING, epoch=1))
    stolen = replace(running, owner="b", epoch=2)
    for believed, to, owner in (
        (OCCURRENCE, OccurrenceState.SKIPPED, None),
        (stolen, OccurrenceState.COMPLETED, None),
        (running, OccurrenceState.COMPLETED, "somebody"),
        (replace(OCCURRENCE, nominal_ms=0), OccurrenceState.SKIPPED, None),
    ):
        with pytest.raises(StaleClaimError):
            write(store, lambda ledger, b=believed, t=to, o=owner: ledger.advance(b, t, held_by=o))  # type: ignore[misc]
    with pytest.raises(IllegalTransitionError):
        write(store, lambda ledger: ledger.advance(running, OccurrenceState.QUEUED))
    assert read(store, lambda r: r.occurrence("backup", AT)) == running


class TestDamage:
    @pytest.fixture(autouse=True)
    def damage(self, store: MemoryStore) -> None:
        for record in (JOB, replace(JOB, id="other"), OCCURRENCE):
            write(store, lambda ledger, record=record: ledger.create(record))  # type: ignore[misc]
        for key in (key_of(JOB), key_of(OCCURRENCE)):
            store.update(lambda tx, key=key: tx.put(key, (tx.get(key) or b"")[:-1]))  # type: ignore[misc]

    def test_a_view_leaves_it_out_and_says_so(self, store: MemoryStore) -> None:
        damaged = read(store, lambda r: (r.jobs(), r.damaged))
        assert [job.id for job in damaged[0]] == ["other"]
        assert [error.key for error in damaged[1]] == [key_of(JOB)]

    def test_an_update_puts_it_into_quarantine_and_goes_on(self, store: MemoryStore) -> None:
        found = write(store, lambda ledger: ledger.due(AT + 10))
        assert [type(r).__name__ + getattr(r, "id", "") for r in found] == ["Jobother"]
        quarantined = dict(read(store, Reading.quarantined))
        assert set(quarantined) == {key_of(JOB), key_of(OCCURRENCE)}
        assert "were written" in quarantined[key_of(JOB)].reason
        events = store.view(journal.tail)
        assert [event.name for _, event in events] == ["RecordQuarantined"] * 2
        assert write(store, lambda ledger: ledger.due(AT + 10)) == found

    def test_a_quarantined_occurrence_is_never_decided_again(self, store: MemoryStore) -> None:
        assert not write(store, lambda ledger: ledger.create(OCCURRENCE))
        write(store, lambda ledger: ledger.due(AT + 10))
        assert not write(store, lambda ledger: ledger.create(OCCURRENCE))

    def test_a_quarantined_job_can_be_applied_again(self, store: MemoryStore) -> None:
        write(store, lambda ledger: ledger.job("backup"))
        assert write(store, lambda ledger: ledger.create(JOB))


class TestJournal:
    def test_numbers_follow_the_commits(self, store: MemoryStore) -> None:
        a, b, c = (Event(name=name, at_ms=AT) for name in "abc")
        assert store.update(lambda tx: journal.append(tx, a, b)) == 2
        assert store.update(lambda tx: journal.append(tx, c)) == 3
        assert store.view(journal.tail) == [(1, a), (2, b), (3, c)]
        assert store.view(lambda tx: journal.tail(tx, after=1, limit=1)) == [(2, b)]
        assert store.view(lambda tx: journal.latest(tx, before=3)) == [(2, b), (1, a)]

    def test_numbers_are_not_given_twice_after_old_events_went(self, store: MemoryStore) -> None:
        store.update(lambda tx: journal.append(tx, Event(name="a", at_ms=AT)))
        store.update(lambda tx: tx.delete(keys.event_key(1)))
        assert store.update(lambda tx: journal.append(tx, Event(name="b", at_ms=AT))) == 2

    def test_a_damaged_head_or_event_does_not_end_the_journal(self, store: MemoryStore) -> None:
        store.update(lambda tx: journal.append(tx, Event(name="a", at_ms=AT), Event(name="b", at_ms=AT)))
        store.update(lambda tx: tx.put(keys.JOURNAL_HEAD, b"?"))
        store.update(lambda tx: tx.put(keys.event_key(1), b"?"))
        assert store.update(lambda tx: journal.append(tx, Event(name="c", at_ms=AT))) == 3
        assert [event.name for _, event in store.view(journal.tail)] == ["Unreadable", "b", "c"]


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
