"""Records and their indexes change together; a damaged record steps aside and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chronex.errors import IllegalTransitionError, NewerRecordError, StaleClaimError
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
from chronex.model.records import TaskState
from chronex.storage import journal, keys
from chronex.storage.ports import T
from chronex.storage.records import Reading, Records, index_keys, key_of
from chronex_store import MemoryStore

from .samples import AT, ATTEMPT, JOB, KEYED, OCCURRENCE, PROCESS, RUN, of_version


def keep_state(records: Records, name: str, value: str) -> None:
    key = keys.task_state_key("backup", "dump", name)
    records.replace_at(key, None, TaskState(value=value, updated_ms=records.now_ms))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def write(store: MemoryStore, fn: Callable[[Records], T]) -> T:
    return store.update(lambda tx: fn(Records(tx, AT)))


def read(store: MemoryStore, fn: Callable[[Reading], T]) -> T:
    return store.view(lambda tx: fn(Reading(tx)))


def indexes(store: MemoryStore) -> list[bytes]:
    rows = store.view(lambda tx: tx.scan(b""))
    return [key for key, _ in rows if key[:1] in keys.INDEXES]


ROWS = [JOB.progress, *KEYED[1:]]


@pytest.mark.parametrize("record", ROWS, ids=lambda r: type(r).__name__)
def test_a_record_is_created_once_with_its_indexes(store: MemoryStore, record: Record) -> None:
    assert write(store, lambda records: records.create(record))
    assert not write(store, lambda records: records.create(record))
    assert read(store, lambda r: r.get(key_of(record), type(record))) == record
    assert indexes(store) == sorted(index_keys(key_of(record), record))
    assert write(store, lambda records: records.delete(key_of(record)))
    assert indexes(store) == []


def test_a_job_is_two_rows_that_are_created_changed_and_deleted_together(store: MemoryStore) -> None:
    job = replace(JOB, expect_within_ms=5)
    assert write(store, lambda records: records.create(job))
    assert not write(store, lambda records: records.create(job))
    assert read(store, lambda r: r.job("backup")) == job
    assert indexes(store) == sorted(
        [keys.timed(keys.DUE, AT + 1, key_of(job.progress)), keys.EXPECTING + key_of(job)]
    )
    before = store.view(lambda tx: tx.get(key_of(job)))
    write(store, lambda records: records.put(job.progressed(next_ms=None)))
    assert store.view(lambda tx: tx.get(key_of(job))) is before, "only the row of its progress was written"
    write(store, lambda records: records.delete_job("backup"))
    assert store.view(lambda tx: tx.scan(b"")) == []


def test_an_occurrence_moves_through_the_indexes(store: MemoryStore) -> None:
    write(store, lambda records: records.create(OCCURRENCE))
    assert read(store, lambda r: r.due(AT + 5)) == [OCCURRENCE]
    assert read(store, lambda r: r.due(AT + 4)) == []
    assert read(store, Reading.next_due_ms) == AT + 5
    queued = write(store, lambda records: records.advance(OCCURRENCE, OccurrenceState.QUEUED))
    assert read(store, lambda r: r.queued("backup")) == [queued]
    running = write(store, lambda records: records.advance(queued, OccurrenceState.RUNNING, epoch=1))
    assert read(store, lambda r: (r.active("backup"), r.active(), r.active("other"))) == (
        [running],
        [running],
        [],
    )
    done = write(store, lambda records: records.advance(running, OccurrenceState.COMPLETED, finished_ms=AT + 9))
    assert read(store, Reading.finished) == [done]
    assert len(indexes(store)) == 1


def test_runs_and_attempts_are_found_by_state(store: MemoryStore) -> None:
    def begin(records: Records) -> None:
        records.create(RUN)
        records.create(ATTEMPT)
        claimed = records.advance(RUN, RunState.CLAIMED)
        records.advance(claimed, RunState.RUNNING)

    write(store, begin)
    running = read(store, lambda r: r.run("backup", AT, "dump"))
    assert running is not None
    assert read(store, lambda r: (r.active_runs(), r.active_attempts())) == ([running], [ATTEMPT])
    assert read(store, lambda r: (r.runs("backup", AT), r.attempts("backup", AT, "dump"))) == (
        [running],
        [ATTEMPT],
    )
    assert read(store, lambda r: r.attempts("backup", AT)) == [ATTEMPT]

    def bury(records: Records) -> None:
        records.advance(ATTEMPT, AttemptState.FAILED)
        failed = records.advance(running, RunState.FAILED, finished_ms=AT)
        records.advance(failed, RunState.DLQ)

    write(store, bury)
    assert [run.task for run in read(store, Reading.dead_letters)] == ["dump"]
    assert read(store, lambda r: (r.active_runs(), r.active_attempts())) == ([], [])


def test_jobs_versions_state_and_history_are_read_back(store: MemoryStore) -> None:
    older = replace(OCCURRENCE, nominal_ms=AT - 1000)

    def fill(records: Records) -> None:
        records.put(JOB)
        records.create(JobVersion(JOB))
        records.create(OCCURRENCE)
        records.create(older)
        keep_state(records, "cursor", "17")

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
    write(store, lambda records: records.create(Idempotency(key="k", expires_ms=AT)))
    assert read(store, lambda r: r.idempotency("k", AT - 1)) is not None
    assert read(store, lambda r: r.idempotency("k", AT)) is None


def test_a_write_must_find_what_its_writer_believes(store: MemoryStore) -> None:
    write(store, lambda records: records.create(OCCURRENCE))
    running = write(store, lambda records: records.advance(OCCURRENCE, OccurrenceState.RUNNING, epoch=1))
    stolen = replace(running, owner="b", epoch=2)
    for believed, to, owner in (
        (OCCURRENCE, OccurrenceState.SKIPPED, None),
        (stolen, OccurrenceState.COMPLETED, None),
        (running, OccurrenceState.COMPLETED, "somebody"),
        (replace(OCCURRENCE, nominal_ms=0), OccurrenceState.SKIPPED, None),
    ):
        with pytest.raises(StaleClaimError):
            write(store, lambda records, b=believed, t=to, o=owner: records.advance(b, t, held_by=o))  # type: ignore[misc]
    with pytest.raises(IllegalTransitionError):
        write(store, lambda records: records.advance(running, OccurrenceState.QUEUED))
    assert read(store, lambda r: r.occurrence("backup", AT)) == running


class TestDamage:
    @pytest.fixture(autouse=True)
    def damage(self, store: MemoryStore) -> None:
        for record in (JOB, replace(JOB, id="other"), OCCURRENCE):
            write(store, lambda records, record=record: records.create(record))  # type: ignore[misc]
        for key in (key_of(JOB.progress), key_of(OCCURRENCE)):
            store.update(lambda tx, key=key: tx.put(key, (tx.get(key) or b"")[:-1]))  # type: ignore[misc]

    def test_a_view_leaves_it_out_and_says_so(self, store: MemoryStore) -> None:
        damaged = read(store, lambda r: (r.jobs(), r.damaged))
        assert [job.id for job in damaged[0]] == ["other"]
        assert [error.key for error in damaged[1]] == [key_of(JOB.progress)]

    def test_an_update_puts_it_into_quarantine_and_goes_on(self, store: MemoryStore) -> None:
        found = write(store, lambda records: records.due(AT + 10))
        assert [type(r).__name__ + getattr(r, "id", "") for r in found] == ["JobProgress"]
        quarantined = dict(read(store, Reading.quarantined))
        assert set(quarantined) == {key_of(JOB.progress), key_of(OCCURRENCE)}
        assert "were written" in quarantined[key_of(JOB.progress)].reason
        events = store.view(journal.tail)
        assert [event.name for _, event in events] == ["RecordQuarantined"] * 2
        assert write(store, lambda records: records.due(AT + 10)) == found

    def test_a_quarantined_occurrence_is_never_decided_again(self, store: MemoryStore) -> None:
        assert not write(store, lambda records: records.create(OCCURRENCE))
        write(store, lambda records: records.due(AT + 10))
        assert not write(store, lambda records: records.create(OCCURRENCE))

    def test_a_quarantined_job_can_be_applied_again(self, store: MemoryStore) -> None:
        write(store, lambda records: records.job("backup"))
        assert write(store, lambda records: records.create(JOB))


class TestNewerVersion:
    """A record that a newer Chronex wrote is whole: an older one must leave it as it is."""

    @pytest.fixture(autouse=True)
    def newer(self, store: MemoryStore) -> bytes:
        write(store, lambda records: records.create(JOB))
        key = key_of(JOB.progress)
        raw = store.view(lambda tx: tx.get(key)) or b""
        written = of_version(2, key, raw)
        store.update(lambda tx: tx.put(key, written))
        return written

    def test_a_view_leaves_it_out_and_says_so(self, store: MemoryStore) -> None:
        jobs, damaged = read(store, lambda r: (r.jobs(), r.damaged))
        assert jobs == []
        assert "written by a newer Chronex (version 2 of records); install that version" in str(damaged[0])

    @pytest.mark.parametrize(
        "change",
        [
            lambda records: records.due(AT + 10),
            lambda records: records.put(JOB),
            lambda records: records.create(JOB),
            lambda records: records.delete_job(JOB.id),
        ],
        ids=["a tick", "put", "create", "delete"],
    )
    def test_no_update_removes_it_or_writes_over_it(
        self, store: MemoryStore, newer: bytes, change: Callable[[Records], object]
    ) -> None:
        with pytest.raises(NewerRecordError):
            write(store, change)
        assert store.view(lambda tx: tx.get(key_of(JOB.progress))) == newer
        assert read(store, Reading.quarantined) == []


class TestJournal:
    def test_numbers_follow_the_commits(self, store: MemoryStore) -> None:
        a, b, c = (Event(name=name, at_ms=AT) for name in "abc")
        store.update(lambda tx: journal.append(tx, a, b))
        assert store.view(journal.head) == 2
        store.update(lambda tx: journal.append(tx, c))
        assert store.view(journal.head) == 3
        assert store.view(journal.tail) == [(1, a), (2, b), (3, c)]
        assert store.view(lambda tx: journal.tail(tx, after=1, limit=1)) == [(2, b)]
        assert store.view(lambda tx: journal.latest(tx, before=3)) == [(2, b), (1, a)]

    def test_numbers_are_not_given_twice_after_old_events_went(self, store: MemoryStore) -> None:
        store.update(lambda tx: journal.append(tx, Event(name="a", at_ms=AT)))
        store.update(lambda tx: tx.delete(keys.event_key(1)))
        store.update(lambda tx: journal.append(tx, Event(name="b", at_ms=AT)))
        assert store.view(journal.head) == 2

    def test_a_damaged_head_or_event_does_not_end_the_journal(self, store: MemoryStore) -> None:
        store.update(lambda tx: journal.append(tx, Event(name="a", at_ms=AT), Event(name="b", at_ms=AT)))
        store.update(lambda tx: tx.put(keys.JOURNAL_HEAD, b"?"))
        store.update(lambda tx: tx.put(keys.event_key(1), b"?"))
        store.update(lambda tx: journal.append(tx, Event(name="c", at_ms=AT)))
        assert store.view(journal.head) == 3
        assert [event.name for _, event in store.view(journal.tail)] == ["Unreadable", "b", "c"]


Step = Callable[[Records], object]
NODE = Node(id="n1", process=PROCESS)


def rows(store: MemoryStore) -> list[tuple[bytes, bytes]]:
    return store.view(lambda tx: tx.scan(b"", limit=10_000))


def drafted(store: MemoryStore, fn: Callable[[Records], T]) -> T:
    def decide(tx: object) -> T:
        draft = Records.cached(tx, AT)  # type: ignore[arg-type]
        result = fn(draft)
        draft.write()
        return result

    return store.update(decide)


def advance(record: object, state: object) -> Step:
    return lambda records: records.advance(record, state)  # type: ignore[type-var, arg-type]


STEPS: list[Step] = [
    lambda records: records.create(OCCURRENCE),
    lambda records: records.create(RUN),
    lambda records: records.create(ATTEMPT),
    lambda records: records.put(JOB),
    lambda records: records.put(JOB.progressed(next_ms=AT + 60_000)),
    lambda records: records.put(replace(JOB, after=("parent",))),
    lambda records: records.put(replace(OCCURRENCE, due_ms=AT + 9)),
    lambda records: records.delete(key_of(JOB)),
    lambda records: records.delete(key_of(OCCURRENCE)),
    lambda records: keep_state(records, "n", "1"),
    advance(OCCURRENCE, OccurrenceState.QUEUED),
    advance(OCCURRENCE, OccurrenceState.RUNNING),
    advance(replace(OCCURRENCE, state=OccurrenceState.QUEUED), OccurrenceState.SKIPPED),
    advance(RUN, RunState.CLAIMED),
    advance(ATTEMPT, AttemptState.FAILED),
    lambda records: records.active("backup"),
    lambda records: records.queued("backup"),
    lambda records: records.count_queued("backup", 10),
    lambda records: records.queued_before(replace(OCCURRENCE, nominal_ms=AT + 1), 10),
    lambda records: records.has_followers("parent"),
    lambda records: records.job("backup"),
    lambda records: records.job_progress("backup"),
    lambda records: records.due(AT + 10),
    lambda records: records.next_due_ms(),
    lambda records: records.next_due_after(AT),
    lambda records: records.runs("backup", AT),
    lambda records: records.occurrences("backup"),
    lambda records: records.jobs(),
    lambda records: records.count_active(10),
    lambda records: records.task_state("backup", "dump", "n"),
    lambda records: keep_state(records, "n", "2"),
    lambda records: records.put(NODE),
    lambda records: records.node("n1"),
    lambda records: records.put(replace(NODE, stopped_ms=AT)),
    lambda records: records.create(Idempotency(key="k", expires_ms=AT + 1)),
    lambda records: records.put(Idempotency(key="k", expires_ms=AT + 2)),
    lambda records: records.idempotency("k", AT),
]


def outcome(records: Records, step: Step) -> object:
    try:
        return step(records)
    except (StaleClaimError, IllegalTransitionError) as error:
        return type(error)


@given(st.lists(st.sampled_from(STEPS), max_size=12), st.lists(st.sampled_from(STEPS), max_size=12))
def test_whatever_is_decided_it_answers_and_leaves_what_a_ledger_does(first: list[Step], second: list[Step]) -> None:
    plain, draft = MemoryStore(), MemoryStore()
    for steps in (first, second):
        expected = plain.update(lambda tx, s=steps: [outcome(Records(tx, AT), step) for step in s])  # type: ignore[misc]
        assert drafted(draft, lambda d, s=steps: [outcome(d, step) for step in s]) == expected  # type: ignore[misc]
        assert rows(draft) == rows(plain)


def test_a_record_that_changed_often_is_written_once() -> None:
    store = MemoryStore()
    written: list[bytes] = []

    def decide(tx: object) -> None:
        draft = Records.cached(tx, AT)  # type: ignore[arg-type]
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


def test_what_begins_as_soon_as_it_is_decided_is_never_written_as_due() -> None:
    store = MemoryStore()
    written: list[bytes] = []

    def decide(tx: object) -> None:
        draft = Records.cached(tx, AT)  # type: ignore[arg-type]
        put = draft.tx.put

        def noted(key: bytes, value: bytes) -> None:
            written.append(key)
            put(key, value)

        draft.tx.put = noted  # type: ignore[method-assign]
        draft.create(OCCURRENCE)
        draft.advance(OCCURRENCE, OccurrenceState.RUNNING, epoch=1)
        draft.write()

    store.update(decide)
    assert written
    assert not [key for key in written if key[:1] == keys.DUE]


def test_a_decision_that_was_quarantined_is_not_made_again_but_a_job_may_be_applied_again() -> None:
    store = MemoryStore()
    for record in (OCCURRENCE, JOB):
        store.update(lambda tx, record=record: Records(tx, AT).create(record))  # type: ignore[misc]
        store.update(lambda tx, record=record: tx.put(key_of(record), b"damaged"))  # type: ignore[misc]
    assert not drafted(store, lambda draft: draft.create(OCCURRENCE))
    assert not drafted(store, lambda draft: draft.create(OCCURRENCE)), "not in the next transaction either"
    drafted(store, lambda draft: draft.job("backup"))
    assert drafted(store, lambda draft: draft.create(JOB))
    assert [key for key, _ in store.view(lambda tx: Reading(tx).quarantined())] == [key_of(JOB), key_of(OCCURRENCE)]


@pytest.mark.parametrize("record", [OCCURRENCE, JOB.progress], ids=["occurrence", "progress"])
def test_an_index_without_its_record_is_dropped(record: object) -> None:
    store = MemoryStore()
    store.update(lambda tx: Records(tx, AT).create(record))  # type: ignore[arg-type]
    store.update(lambda tx: tx.delete(key_of(record)))  # type: ignore[arg-type]
    assert drafted(store, lambda draft: draft.due(AT + 10)) == []
    assert [key for key, _ in rows(store) if key[:1] in keys.INDEXES] == []


def test_other_kinds_of_record_are_written_at_once() -> None:
    store = MemoryStore()
    event = Event(name="x", at_ms=AT)
    drafted(store, lambda draft: keep_state(draft, "n", event.name))
    assert len(rows(store)) == 1
