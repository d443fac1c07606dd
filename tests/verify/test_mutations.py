"""Good traces are accepted; each way of breaking one is refused, at the event that breaks it."""

from __future__ import annotations

import pytest

from chronex.verify import TITLES, verify_events
from tests.verify.traces import complaints, lines, mutated, trace
from tests.verify.valid_traces import VALID

# (trace, what is done to it, the property that must complain, the number of the event where it breaks)
MUTATIONS = [
    # S1: one run of a task at a time
    ("normal", "repeat 5", "S1", 6),
    ("normal", "drop 6 ; drop 6", "S1", 6),
    ("normal", "after 12: 10:21:05 TaskRetryStarted a@10:20/main#3 node=n1", "S1", 13),
    ("normal", "change 12: 10:21:05 TaskRetryStarted a@10:20/main#1 node=n1", "S1", 12),
    ("adopted", "after 7: 10:15:00 TaskRetryStarted a@10:10/main#2 node=n2", "S1", 8),
    ("parallel and allowed", "repeat 5", "S1", 6),
    ("queued and skipped", "swap 8 9", "S1", 8),
    ("preempted", "swap 8 9", "S1", 8),
    # S2: ends follow starts
    ("normal", "repeat 6", "S2", 7),
    ("normal", "drop 5", "S2", 5),
    ("normal", "swap 5 6", "S2", 5),
    ("normal", "change 13: 10:21:06 TaskRunCompleted a@10:20/main#1 state=success", "S2", 13),
    ("normal", "drop 6", "S2", 6),
    ("normal", "after 14: 10:21:07 OccurrenceCompleted a@10:30", "S2", 15),
    ("parallel and allowed", "swap 10 11", "S2", 10),
    # S3: active, registered, due, past the retry delay
    ("normal", "drop 1", "S3", 3),
    ("normal", "drop 2 ; drop 2", "S3", 3),
    ("normal", "drop 3", "S3", 4),
    ("normal", "after 3: 10:05:00 JobOrphaned a", "S3", 5),
    ("normal", "change 4: 10:09:59 OccurrenceStarted a@10:10 due_ms=10:10:00", "S3", 4),
    ("normal", "after 3: 10:05:00 OccurrenceStarted a@10:05 due_ms=10:05:00", "S3", 4),
    ("queued and set back", "change 3: 10:59:59 OccurrenceQueued a@11:00", "S3", 5),
    ("queued and set back", "drop 3 ; change 4: 10:05:00 OccurrenceStarted a@11:00 due_ms=11:00:00", "S3", 4),
    ("normal", "drop 4", "S3", 4),
    ("normal", "change 12: 10:21:04 TaskRetryStarted a@10:20/main#2 node=n1", "S3", 12),
    ("normal", "change 11: 10:20:05 TaskRetryScheduled a@10:20/main#1 at_ms=10:21:04", "S3", 11),
    ("normal", "after 14: 10:21:07 TaskRunStarted a@10:20/main#3 node=n1", "S3", 15),
    ("normal", "after 7: 10:15:00 SchedulerStopRequested node=n1", "S3", 10),
    ("reinitialized", "after 2: 10:00:35 TaskRunStarted a@10:00/main#1 node=n1", "S3", 3),
    ("overridden", "change 8: 10:40:00 OccurrenceStarted a@10:40 due_ms=10:40:00", "S3", 8),
    ("commanded", "change 9: 10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00", "S3", 9),
    ("commanded", "drop 10", "S3", 10),
    # S4: quiet after a stop
    ("stop and restart", "after 8: 10:10:03 TaskRunStarted a@10:10/main#2 node=n1", "S4a", 9),
    ("stop and restart", "change 11: 10:20:00 TaskRunStarted a@10:20/main#1 node=n1", "S4a", 11),
    ("stop and restart", "swap 7 8 ; swap 6 7", "S4b", 6),
    ("stop and restart", "drop 6 ; drop 6 ; after 6: 10:10:03 TaskRunFailed a@10:10/main#1 state=failed", "S4b", 7),
    # S5: quiet after a crash
    ("crash and restart", "change 9: 10:15:00 TaskRetryStarted a@10:10/main#2 node=n1", "S5a", 9),
    ("crash and next due", "after 6: 10:11:01 TaskRunStarted a@10:10/main#2 node=n1", "S5a", 7),
    ("crash and restart", "change 7: 10:15:00 TaskRunCompleted a@10:10/main#1 state=success", "S5b", 7),
    ("crash and next due", "after 6: 10:11:01 TaskRunCompleted a@10:10/main#1 state=success", "S5b", 7),
    ("adopted", "drop 7", "S5b", 7),
    # S6: no bursts, no instant twice
    ("normal", "after 7: 10:10:06 OccurrenceStarted a@10:10 due_ms=10:10:00", "S6", 8),
    ("missed", "change 8: 11:05:00 OccurrenceStarted a@10:50 due_ms=10:50:00 recovery=true", "S6", 9),
    ("missed", "after 12: 11:05:06 OccurrenceStarted a@10:50 due_ms=10:50:00 recovery=true", "S6", 13),
    ("missed", "repeat 7", "S6", 8),
    ("queued and skipped", "repeat 6", "S6", 7),
    # S7 and L1: a stop ends
    ("stop and restart", "change 8: 10:10:02 SchedulerInitializationStarted node=n1", "S7", 8),
    ("stop and restart", "change 8: 10:10:02 SchedulerInitializationStarted node=n1", "L1", 8),
    ("reinitialized", "change 11: 10:06:00 SchedulerReinitializationStarted node=n1", "L1", 11),
    # S8: an initialization ends
    ("reinitialized", "drop 2", "S8", 2),
    ("reinitialized", "drop 9", "S8", 10),
    ("normal", "repeat 2", "S8", 3),
    # L2: no due instant is passed over
    ("normal", "drop 4 ; drop 4 ; drop 4 ; drop 4", "L2", 4),
    ("missed", "drop 7", "L2", 7),
    ("missed", "drop 6", "L2", 6),
    ("queued and skipped", "change 6: 10:40:00 OccurrenceSkipped a@10:40", "L2", 6),
    ("overridden", "change 8: 11:30:00 OccurrenceStarted a@11:30 due_ms=11:30:00", "L2", 8),
    # L3: what a crash interrupted is started again
    ("crash and restart", "drop 9 ; drop 9", "L3", 9),
    ("crash and restart", "drop 8 ; drop 8 ; drop 8", "L3", 8),
]  # fmt: skip


@pytest.mark.parametrize("name", VALID)
def test_a_good_trace_is_accepted(name: str) -> None:
    assert complaints(verify_events(trace(VALID[name]))) == []


@pytest.mark.parametrize(("name", "change", "broken", "number"), MUTATIONS)
def test_a_broken_trace_is_refused_at_the_event_that_breaks_it(
    name: str, change: str, broken: str, number: int
) -> None:
    assert (broken, number) in complaints(verify_events(mutated(VALID[name], change)))


@pytest.mark.parametrize("broken", TITLES)
def test_every_property_is_broken_by_some_mutation(broken: str) -> None:
    assert sum(1 for _, _, property_, _ in MUTATIONS if property_ == broken) >= 2 or broken == "S7"


@pytest.mark.parametrize("name", VALID)
def test_every_beginning_of_a_good_trace_is_good(name: str) -> None:
    whole = trace(VALID[name])
    for length in range(len(whole)):
        assert complaints(verify_events(whole[:length])) == [], length


@pytest.mark.parametrize("name", VALID)
def test_a_trace_that_was_cut_off_raises_no_alarm(name: str) -> None:
    whole = trace(VALID[name])
    for first in range(1, len(whole)):
        assert complaints(verify_events(whole[first:], first + 1)) == [], first


@pytest.mark.parametrize(("name", "change", "broken", "number"), MUTATIONS)
def test_evidence_is_short_ends_where_it_breaks_and_is_in_order(
    name: str, change: str, broken: str, number: int
) -> None:
    report = verify_events(mutated(VALID[name], change))
    for finding in (finding for result in report.properties for finding in result.findings):
        numbers = [line for line, _ in finding.evidence]
        assert 1 <= len(numbers) <= 3
        assert numbers == sorted(set(numbers))
        assert numbers[-1] <= len(lines(VALID[name])) + 2
