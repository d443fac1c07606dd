"""Runs as spans: what the journal says has ended, with the times and facts of its record.

The journal is the queue. A collector that is away costs nothing but the place up to which it has been told; one that
is away for very long loses the oldest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from chronex.model.event import Event
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.reasons import text_of
from chronex.model.states import AttemptState, OccurrenceState
from chronex.run.environment import instant_text, span_id, trace_id
from chronex.storage import journal
from chronex.storage.records import Reading

MOST_EVENTS = 500
# Beyond so many events the collector is told of the newer ones alone.
MOST_BEHIND = 50_000
_LONGEST_REASON = 500
_ATTEMPT_ENDS = ("TaskRunCompleted", "TaskRunFailed")
_OCCURRENCE_ENDS = ("OccurrenceCompleted", "OccurrenceFailed", "OccurrenceFailedStale", "OccurrenceCanceled")
Attributes = dict[str, str | int | bool]
IsOwn = Callable[[Event], bool]


class RunSpan(NamedTuple):
    """An occurrence, or one attempt below it. `problem` is why it did not succeed, empty where it did."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    started_ms: int
    ended_ms: int
    problem: str
    attributes: Attributes


class SpanBatch(NamedTuple):
    """`seen` is the number of the last event that was looked at; `dropped` were too old to be told."""

    spans: list[RunSpan]
    seen: int
    dropped: int
    has_more: bool


def read_spans(reading: Reading, seen: int, store: str, is_own: IsOwn) -> SpanBatch:
    """What ended after the event number `seen`, a bounded part of it."""
    head = journal.head(reading.tx)
    begin = max(seen, head - MOST_BEHIND)
    events = list(journal.onward(reading.tx, begin, MOST_EVENTS))
    spans = list(_spans_of(reading, [event for _, event in events if is_own(event)], store))
    last = events[-1][0] if events else begin
    return SpanBatch(spans, last, begin - seen, len(events) == MOST_EVENTS)


def _spans_of(reading: Reading, events: Sequence[Event], store: str) -> Iterator[RunSpan]:
    for event in events:
        if event.nominal_ms is None:
            continue
        if event.name in _ATTEMPT_ENDS and event.attempt is not None:
            attempt = reading.attempt(event.job, event.nominal_ms, event.task, event.attempt)
            occurrence = reading.occurrence(event.job, event.nominal_ms)
            if attempt is not None and occurrence is not None and (span := _of_attempt(attempt, occurrence, store)):
                yield span
        elif event.name in _OCCURRENCE_ENDS:
            occurrence = reading.occurrence(event.job, event.nominal_ms)
            if occurrence is not None and (span := _of_occurrence(occurrence, store)):
                yield span


def _of_attempt(attempt: Attempt, occurrence: Occurrence, store: str) -> RunSpan | None:
    """None for one that never began."""
    if attempt.started_ms is None or attempt.finished_ms is None:
        return None
    facts: Attributes = {
        **_facts(occurrence),
        "chronex.task": attempt.task,
        "chronex.attempt": attempt.number,
        "chronex.attempt_id": attempt.id,
        "chronex.state": attempt.state.value,
    }
    if attempt.exit_code is not None:
        facts["process.exit.code"] = attempt.exit_code
    return RunSpan(
        f"{attempt.job} {attempt.task}",
        trace_id(occurrence.id, store),
        span_id(attempt.id, store),
        span_id(occurrence.id, store),
        attempt.started_ms,
        max(attempt.started_ms, attempt.finished_ms),  # the clock may have been set back
        _problem_of(attempt),
        facts,
    )


def _problem_of(attempt: Attempt) -> str:
    if attempt.state is AttemptState.SUCCESS:
        return ""
    code = "" if attempt.exit_code is None else f"exit code {attempt.exit_code}"
    return text_of(attempt.reason)[:_LONGEST_REASON] or code or attempt.state.value


def _of_occurrence(occurrence: Occurrence, store: str) -> RunSpan | None:
    if occurrence.started_ms is None or occurrence.finished_ms is None:
        return None
    is_good = occurrence.state is OccurrenceState.COMPLETED
    return RunSpan(
        occurrence.job,
        trace_id(occurrence.id, store),
        span_id(occurrence.id, store),
        None,
        occurrence.started_ms,
        max(occurrence.started_ms, occurrence.finished_ms),
        "" if is_good else text_of(occurrence.reason)[:_LONGEST_REASON] or occurrence.state.value,
        {**_facts(occurrence), "chronex.state": occurrence.state.value},
    )


def _facts(occurrence: Occurrence) -> Attributes:
    return {
        "chronex.job": occurrence.job,
        "chronex.occurrence": occurrence.id,
        "chronex.scheduled_time": instant_text(occurrence.scheduled_ms),
        "chronex.version": occurrence.version,
    }
