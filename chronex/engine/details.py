"""One job in full: what runs now, what comes next, how the last ones ended. Read from one snapshot."""

from __future__ import annotations

from typing import NamedTuple

from chronex.engine.ledger import Reading
from chronex.engine.overview import NextRun, Outcome, Retry, Row, next_run, outcome_of, planned, retry_of, row_of
from chronex.engine.schedule import options_of, schedule_of
from chronex.model.records import Attempt, Job, Occurrence
from chronex.model.states import OccurrenceState, RunState, is_final

OUTCOMES = 20
UPCOMING = 5
_BAD = (OccurrenceState.FAILED, OccurrenceState.FAILED_STALE)


class Running(NamedTuple):
    """An occurrence that has begun, and the attempts of it that run at this moment."""

    occurrence: Occurrence
    attempts: tuple[Attempt, ...]


class Detail(NamedTuple):
    """`last_problem` is the newest failure among the outcomes, which are newest first."""

    row: Row
    upcoming: tuple[NextRun, ...]
    running: tuple[Running, ...]
    queued: tuple[Occurrence, ...]
    retries: tuple[Retry, ...]
    outcomes: tuple[Outcome, ...]
    last_problem: Outcome | None

    @property
    def job(self) -> Job:
        return self.row.job


def detail_of(reading: Reading, job: Job, now_ms: int, upcoming: int = UPCOMING) -> Detail:
    ended = [o for o in reading.occurrences(job.id, limit=OUTCOMES * 2) if is_final(o.state)]
    outcomes = tuple(outcome_of(occurrence) for occurrence in ended[:OUTCOMES])
    running = tuple(_running(reading, occurrence) for occurrence in reading.active(job.id))
    return Detail(
        row=row_of(reading, job, now_ms),
        upcoming=tuple(upcoming_runs(reading, job, now_ms, upcoming)),
        running=running,
        queued=tuple(reading.queued(job.id)),
        retries=tuple(retry for one in running for retry in _retries(reading, job, one.occurrence)),
        outcomes=outcomes,
        last_problem=next((outcome for outcome in outcomes if outcome.state in _BAD), None),
    )


def upcoming_runs(reading: Reading, job: Job, now_ms: int, count: int) -> list[NextRun]:
    """The next `count` runs: those on record by when they are due, then those of the schedule."""
    waiting = [o for o in reading.occurrences(job.id, limit=2 * count + 20) if o.state is OccurrenceState.PENDING]
    found = sorted((NextRun(o.nominal_ms, o.due_ms, is_drawn=True) for o in waiting), key=lambda run: run.due_ms)
    if job.is_paused_at(now_ms) or not job.enabled:
        found = []
    upcoming = next_run(reading, job, now_ms)
    limit = options_of(job).max
    if limit is not None:
        count = min(count, limit - job.counters.fired)
    schedule = schedule_of(job)
    nominal = None if upcoming is None else upcoming.nominal_ms
    while nominal is not None and len(found) < count:
        found.append(planned(job, nominal))
        nominal = schedule.next(nominal)
    return found[: max(count, 0)]


def _running(reading: Reading, occurrence: Occurrence) -> Running:
    attempts = reading.active_attempts(occurrence.job)
    return Running(occurrence, tuple(a for a in attempts if a.nominal_ms == occurrence.nominal_ms))


def _retries(reading: Reading, job: Job, occurrence: Occurrence) -> list[Retry]:
    runs = reading.runs(occurrence.job, occurrence.nominal_ms)
    return [retry_of(job, run) for run in runs if run.state is RunState.RETRY]
