"""History is bounded by count and age; what still matters stays."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.model import Event, Idempotency, OccurrenceState, RunState
from chronex.storage import journal, keys
from chronex.storage.codec import decode
from chronex.storage.ports import ReadTransaction, Store, Transaction
from chronex.storage.records import Reading, Records, index_keys
from chronex_store.doctor import index_problem
from chronex_store.history_retention import MAX_NODES, RetentionPolicy, trim
from tests.storage.samples import AT, ATTEMPT, NODE, OCCURRENCE, RUN

DAY = 24 * 3600 * 1000


def fill(store: Store, job: str, count: int) -> None:
    def write(tx: Transaction) -> None:
        records = Records(tx, AT)
        for number in range(count):
            at = AT + number * DAY
            records.create(
                replace(OCCURRENCE, job=job, nominal_ms=at, state=OccurrenceState.COMPLETED, finished_ms=at)
            )
            records.create(replace(RUN, job=job, nominal_ms=at, state=RunState.SUCCESS))
            records.create(replace(ATTEMPT, job=job, nominal_ms=at))

    store.update(write)


def days(store: Store, job: str) -> list[int]:
    found = store.view(lambda tx: Reading(tx).occurrences(job))
    return sorted((occurrence.nominal_ms - AT) // DAY for occurrence in found)


def everything_is_consistent(store: Store) -> bool:
    """Every entry of every index is right, and every record has its own."""

    def look(tx: ReadTransaction) -> bool:
        rows = [row for row in tx.scan(b"") if row[0] != keys.STORE_META]
        indexes = [key for key, _ in rows if key[:1] in keys.INDEXES]
        wanted = [i for key, raw in rows if key not in indexes for i in index_keys(key, decode(key, raw))]
        return sorted(wanted) == indexes and not any(index_problem(tx, key) for key in indexes)

    return store.view(look)


def test_the_newest_are_kept_of_each_job(store: Store) -> None:
    fill(store, "a", 25)
    fill(store, "ab", 3)
    report = trim(store, RetentionPolicy(max_count=10, max_age_ms=None), AT, step=4)
    assert report.occurrences == 15
    assert days(store, "a") == list(range(15, 25))
    assert days(store, "ab") == [0, 1, 2]
    assert store.view(lambda tx: (len(tx.scan(keys.RUN)), len(tx.scan(keys.ATTEMPT)))) == (13, 13)
    assert everything_is_consistent(store)


def test_the_old_go_whatever_their_number(store: Store) -> None:
    fill(store, "a", 25)
    trim(store, RetentionPolicy(max_count=None, max_age_ms=5 * DAY), AT + 20 * DAY, step=100)
    assert days(store, "a") == list(range(15, 25))


def test_nothing_is_kept_of_a_count_of_none(store: Store) -> None:
    fill(store, "a", 3)
    trim(store, RetentionPolicy(max_count=0), AT)
    assert days(store, "a") == []


def test_what_runs_waits_or_is_a_dead_letter_stays(store: Store) -> None:
    fill(store, "a", 5)

    def revive(tx: Transaction) -> None:
        records = Records(tx, AT)
        records.put(replace(OCCURRENCE, job="a", nominal_ms=AT, state=OccurrenceState.RUNNING))
        records.put(replace(RUN, job="a", nominal_ms=AT + DAY, state=RunState.DLQ))

    store.update(revive)
    trim(store, RetentionPolicy(max_count=1), AT)
    assert days(store, "a") == [0, 1, 4]


def test_the_journal_and_expired_keys_are_bounded_too(store: Store) -> None:
    store.update(lambda tx: journal.append(tx, *(Event(name=str(n), at_ms=AT) for n in range(30))))
    for number in range(4):
        store.update(
            lambda tx, n=number: Records(tx, AT).create(Idempotency(key=str(n), expires_ms=AT + n))  # type: ignore[misc]
        )
    report = trim(store, RetentionPolicy(journal_count=7), AT + 2, step=3)
    assert (report.events, report.keys) == (23, 2)
    assert [number for number, _ in store.view(journal.tail)] == list(range(24, 31))
    store.update(lambda tx: journal.append(tx, Event(name="next", at_ms=AT)))
    assert store.view(journal.head) == 31
    assert everything_is_consistent(store)
    assert report.to_dict()["events"] == 23


def test_the_last_daemon_of_a_machine_that_was_drained_is_kept(store: Store) -> None:
    """The next one there begins nothing, however long it was away and whatever others did meanwhile."""

    def write(tx: Transaction) -> None:
        for number in range(MAX_NODES + 10):
            name = "drained" if number < 2 else "other"
            at = AT + number
            node = replace(NODE, id=f"node-{number}", name=name, host_id=name, started_ms=at, stopped_ms=at)
            Records(tx, AT).put(replace(node, draining=number < 2))

    store.update(write)
    trim(store, RetentionPolicy(), AT + DAY)
    kept = {one.id for one in store.view(lambda tx: Reading(tx).nodes())}
    assert kept == {"node-1", *(f"node-{number}" for number in range(10, MAX_NODES + 10))}
