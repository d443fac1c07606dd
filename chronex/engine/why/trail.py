"""What happened to an occurrence while it lived: its attempts from the records, the rest from the journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chronex.engine import journal, reasons
from chronex.engine.events import EVENTS
from chronex.engine.ledger import Reading
from chronex.engine.why.answer import Link, Source, stamp
from chronex.engine.why.versions import MOST_EVENTS
from chronex.expr.durations import format_duration
from chronex.model.records import Attempt, Event, Occurrence, Run
from chronex.model.states import AttemptState, RunState
from chronex.timing.zones import Zone

# A transaction writes as many events as it decides instants.
_AT_CREATION = 1_000
# Attempts and ends are told by the records, which live as long as the occurrence.
_TOLD_BY_RECORDS = {
    "TaskRunStarted", "TaskRunCompleted", "TaskRunFailed", "OccurrenceCompleted", "OccurrenceFailed",
    "OccurrenceCanceled", "OccurrenceFailedStale", "OccurrenceSkipped", "OccurrenceMissed",
}  # fmt: skip
_WORDS = {
    "OccurrenceQueued": "queued",
    "OccurrenceStarted": "started",
    "OccurrenceAlreadyClaimed": "another scheduler had claimed it already",
    "TaskRetryPreempted": "its pending retry was pre-empted",
    "CancelRequested": "asked to be canceled",
    "JobTriggered": "triggered",
    "OccurrenceReplayed": "replayed",
    "TaskDropped": "dropped from the dead-letter queue",
    "TaskDeadLettered": "put into the dead-letter queue",
    "TaskRunAdopted": "it outlived its scheduler, and the next one watches it",
    "TaskRetryStarted": "tried again",
    "HookFailed": "its hook failed",
}


def journal_links(reading: Reading, occurrence: Occurrence, zone: Zone, now_ms: int) -> list[Link]:
    """The events of the occurrence that add to its records: those around its creation, then those since its start.

    One that waited for days in its queue has nothing to tell of the time between, and others have a lot.
    """
    end = occurrence.finished_ms if occurrence.finished_ms is not None else now_ms
    first = journal.first_at(reading.tx, occurrence.created_ms)
    found = dict(_own(reading, occurrence, first, _AT_CREATION, end))
    begun = occurrence.started_ms if occurrence.started_ms is not None else end
    found.update(_own(reading, occurrence, journal.first_at(reading.tx, begun), MOST_EVENTS, end))
    return [link for _, event in sorted(found.items()) for link in _told(event, zone)]


def _own(
    reading: Reading, occurrence: Occurrence, number: int, most: int, end_ms: int
) -> Iterator[tuple[int, Event]]:
    for line in journal.onward(reading.tx, number - 1, most):
        if line[1].at_ms > end_ms:
            return
        if (line[1].job, line[1].nominal_ms) == (occurrence.job, occurrence.nominal_ms):
            yield line


def _told(event: Event, zone: Zone) -> list[Link]:
    if event.name in _TOLD_BY_RECORDS and not event.actor:
        return []
    if event.name == "TaskRetryScheduled":
        fact = f"{event.task}: to be tried again at {stamp(event.data.get('at_ms', event.at_ms), zone)}"
        return [Link(fact, event.at_ms, Source.JOURNAL)]
    task = f"{event.task}: " if event.task else ""
    by = f" by {event.actor}" if event.actor else ""
    reason = f": {event.reason}" if event.reason else ""
    words = _WORDS.get(event.name) or EVENTS.get(event.name, event.name)
    return [Link(f"{task}{words}{by}{reason}", event.at_ms, Source.JOURNAL)]


def run_links(reading: Reading, occurrence: Occurrence, zone: Zone, names: dict[str, Any]) -> list[Link]:
    """Each attempt with how it ended, and each run that did not come to one."""
    attempts = reading.attempts(occurrence.job, occurrence.nominal_ms)
    runs = reading.runs(occurrence.job, occurrence.nominal_ms)
    if runs:
        names["attempts"] = [_attempt_names(attempt) for attempt in attempts]
    return [_attempt_link(attempt) for attempt in attempts] + [link for run in runs for link in _run_links(run, zone)]


def _attempt_names(attempt: Attempt) -> dict[str, Any]:
    return {
        "task": attempt.task,
        "number": attempt.number,
        "state": attempt.state.value,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "reason": attempt.reason,
    }


def _attempt_link(attempt: Attempt) -> Link:
    began = attempt.started_ms or attempt.created_ms
    if attempt.state is AttemptState.RUNNING:
        return Link(f"{attempt.task}: attempt {attempt.number} runs", began, Source.RECORD)
    took = format_duration(max((attempt.finished_ms or began) - began, 0))
    end = {AttemptState.SUCCESS: "succeeded", AttemptState.TIMEOUT: "timed out"}.get(
        attempt.state, attempt.state.value
    )
    how = _how(attempt)
    return Link(
        f"{attempt.task}: attempt {attempt.number} {end} after {took}{how}", attempt.finished_ms, Source.RECORD
    )


def _how(attempt: Attempt) -> str:
    parts = []
    if attempt.exit_code:
        parts.append(f"exit code {attempt.exit_code}")
    if attempt.signal is not None:
        parts.append(f"signal {attempt.signal}")
    said = attempt.reason or attempt.error
    if said and said not in parts:
        parts.append(said)
    return f" ({', '.join(parts)})" if parts else ""


def _run_links(run: Run, zone: Zone) -> list[Link]:
    if run.state is RunState.RETRY and run.next_attempt_ms is not None:
        return [Link(f"{run.task}: waits for its next attempt", run.next_attempt_ms, Source.RECORD)]
    if run.state is RunState.CANCELED and run.reason and run.attempts == 0:
        return [Link(f"{run.task}: never started: {run.reason}", run.finished_ms, Source.RECORD)]
    if run.reason.startswith(reasons.IDEMPOTENT):
        key = f" ({run.idempotency_key})" if run.idempotency_key else ""
        return [Link(f"{run.task}: not run, {run.reason}{key}", run.finished_ms, Source.RECORD)]
    if run.state is RunState.DLQ:
        return [Link(f"{run.task}: lies in the dead-letter queue", run.finished_ms, Source.RECORD)]
    return []
