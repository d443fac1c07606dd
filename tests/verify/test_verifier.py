"""Reading a journal: trimmed, damaged, filtered, as it grows; and the figures beside the verdicts."""

from __future__ import annotations

from random import Random

import pytest

from chronex.model.event import Event
from chronex.storage import journal, keys
from chronex.storage.ports import Transaction
from chronex.testing import DAY
from chronex.verify import PropertyVerdict, Verifier, follow, verify_events, verify_store
from chronex_store import MemoryStore
from chronex_store.history_retention import RetentionPolicy, trim
from tests.engine.simulator.campaign import simulate
from tests.verify import valid_traces
from tests.verify.random_histories import random_history
from tests.verify.traces import at_ms, complaints, lines, mutated, trace, verdict_of, verified


def store_with(events: list[Event]) -> MemoryStore:
    store = MemoryStore()
    store.update(lambda tx: journal.append(tx, *events))
    return store


def test_an_empty_journal_breaks_nothing() -> None:
    report = verify_store(MemoryStore())
    assert report.verdict is PropertyVerdict.HOLDS
    assert report.coverage.events == 0
    assert report.to_dict()["journal"]["first"] is None


@pytest.mark.parametrize("seed", range(40))
def test_a_trimmed_journal_raises_no_alarm(seed: int) -> None:
    machine = random_history(seed)
    last = machine.store.view(journal.head)
    for kept in {1, last // 2, last - 1, Random(seed).randrange(1, last)}:
        trim(machine.store, RetentionPolicy(None, None, journal_count=kept), machine.now)
        report = verify_store(machine.store)
        assert complaints(report) == [], kept
        assert not report.coverage.is_complete


def test_a_long_trimmed_journal_raises_no_alarm_and_is_still_checked() -> None:
    machine = simulate(9, 14 * DAY)
    trim(machine.rows, RetentionPolicy(None, None, journal_count=3000), machine.now)
    report = verify_store(machine.rows)
    assert complaints(report) == []
    assert {result.property for result in report.properties if result.checked} >= {"S1", "S2", "S3", "S6", "L2"}


def test_what_breaks_after_the_cut_is_found() -> None:
    events = mutated(valid_traces.NORMAL, "repeat 12")
    assert ("S1", 13) in complaints(verify_events(events[6:], 7))


@pytest.mark.parametrize("seed", range(40))
def test_events_that_are_gone_or_unreadable_raise_no_alarm(seed: int) -> None:
    machine = random_history(seed)
    random = Random(seed)
    last = machine.store.view(journal.head)

    def damage(tx: Transaction) -> None:
        tx.delete(keys.event_key(random.randrange(2, last)))
        tx.put(keys.event_key(random.randrange(2, last)), b"nonsense")

    machine.store.update(damage)
    report = verify_store(machine.store)
    assert complaints(report) == []
    assert report.coverage.gaps >= 2 or last < 6


@pytest.mark.parametrize("page", [1, 3, 7])
def test_fed_in_pages_or_at_once_the_verdict_is_the_same(page: int) -> None:
    events = list(enumerate(mutated(valid_traces.MISSED, "repeat 7"), 1))
    verifier = Verifier()
    for start in range(0, len(events), page):
        verifier.feed(events[start : start + page])
    assert verifier.report() == verify_events([event for _, event in events])


def test_following_a_store_takes_up_only_what_is_new() -> None:
    events = trace(valid_traces.NORMAL)
    store, verifier = store_with(events[:5]), Verifier()
    assert follow(store, verifier) == 5
    assert follow(store, verifier) == 0
    store.update(lambda tx: journal.append(tx, *events[4:]))
    assert follow(store, verifier) == len(events) - 4
    assert complaints(verifier.report())[0] == ("S1", 6)


def test_since_reports_only_what_broke_later() -> None:
    store = store_with(mutated(valid_traces.NORMAL, "repeat 5 ; repeat 14"))
    assert complaints(verify_store(store)) == [("S1", 6), ("S2", 15)]
    assert complaints(verify_store(store, since_ms=at_ms("10:15:00"))) == [("S2", 15)]
    assert verify_store(store, since_ms=at_ms("10:15:00")).latencies[0].count == 1


def test_one_job_alone() -> None:
    other = [event.replace(" a", " b", 1) for event in lines(valid_traces.NORMAL)]
    store = store_with(mutated("\n".join([valid_traces.NORMAL, *other]), "repeat 5"))
    assert complaints(verify_store(store, job="b")) == []
    assert complaints(verify_store(store, job="a"))[0] == ("S1", 6)


OPEN = [
    ("S7", "10:00:00 SchedulerStarted node=n1\n10:01:00 SchedulerStopRequested node=n1"),
    ("L1", "10:00:00 SchedulerStarted node=n1\n10:01:00 SchedulerStopRequested node=n1"),
    ("S8", "10:00:00 SchedulerInitializationStarted node=n1"),
    ("L2", "\n".join(valid_traces.NORMAL.strip().splitlines()[:3]) + "\n10:10:30 ClockStepped by_ms=5"),
    ("L3", "\n".join(valid_traces.CRASH_AND_RESTART.strip().splitlines()[:7])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), OPEN)
def test_a_promise_that_is_not_kept_yet_is_open_and_breaks_nothing(name: str, text: str) -> None:
    report = verified(text)
    assert complaints(report) == []
    assert verdict_of(report, name) == "open"
    assert report.verdict is PropertyVerdict.OPEN


def test_a_job_that_has_had_its_last_run_owes_nothing() -> None:
    done = valid_traces.NORMAL.replace("* * * *' ", "* * * * {max:2}' ") + "10:45:00 ClockStepped by_ms=5\n"
    assert verdict_of(verified(valid_traces.NORMAL + "10:45:00 ClockStepped by_ms=5\n"), "L2") == "open"
    assert verdict_of(verified(done), "L2") == "holds"


def test_latencies_are_reported_without_a_verdict() -> None:
    late = valid_traces.NORMAL.replace(
        "10:10:00 OccurrenceStarted a@10:10", "10:13:00 OccurrenceStarted a@10:10"
    ).replace("10:10:0", "10:13:0")
    late = late.replace("due_ms=10:13:00", "due_ms=10:10:00")
    report = verified(late)
    assert report.verdict is PropertyVerdict.HOLDS
    starts, restarts = report.latencies
    assert (starts.count, starts.within_bound, starts.median_ms, starts.max_ms) == (2, 1, 0, 180_000)
    assert starts.worst is not None
    assert starts.worst[0] == 4
    assert restarts.count == 0


def test_the_lag_of_a_restart_counts_from_the_initialization() -> None:
    late = valid_traces.CRASH_AND_RESTART.replace("10:15:00 TaskRetryStarted", "10:15:04 TaskRetryStarted")
    assert verified(late).latencies[1].max_ms == 4_000


def test_starts_that_waited_in_a_queue_are_left_out_of_the_lag_and_counted() -> None:
    starts = verified(valid_traces.QUEUED_AND_SKIPPED).latencies[0]
    assert (starts.count, starts.left_out) == (1, 1)


def test_the_shape_of_the_report() -> None:
    report = verified(valid_traces.NORMAL).to_dict()
    assert set(report) == {"verdict", "journal", "properties", "lags"}
    assert report["journal"] == {
        "events": 14, "first": 1, "last": 14, "from": "2027-01-04T10:00:30Z", "to": "2027-01-04T10:21:06Z",
        "from_ms": 1_799_056_830_000, "to_ms": 1_799_058_066_000, "complete": True, "gaps": 0,
    }  # fmt: skip
    broken = verify_events(mutated(valid_traces.NORMAL, "repeat 5")).to_dict()
    (first,) = (entry for entry in broken["properties"] if entry["property"] == "S1")
    assert first["verdict"] == "violated"
    assert first["findings"][0]["event"] == 6
    assert [line["number"] for line in first["findings"][0]["evidence"]] == [5, 6]
