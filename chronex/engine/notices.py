"""When somebody must be told: a job fails again and again, is well again, or has not done its work in time.

A notice is written in the transaction that finds it out, so it survives any crash; the daemon hands it to the job's
`notify` command and only then removes it. The counters and `late_ms` of the job say what was told already.
"""

from __future__ import annotations

from msgspec.structs import replace

from chronex.errors import CustomScheduleError
from chronex.model.definition import Job
from chronex.model.event import Event
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.records import Notice
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.journal import append
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import schedule_of

FAILING, RECOVERED, LATE, ON_TIME = "failing", "recovered", "late", "on_time"
# What nobody takes must not fill the store: a command that is broken for ever leaves so many behind.
MOST_WAITING = 1_000
_FAILED = (OccurrenceState.FAILED, OccurrenceState.FAILED_STALE)
_FURTHEST_BACK = 1_000


def note_end(records: Records, ended: Occurrence) -> None:
    """An occurrence has ended and is about to be counted: does that cross a line that somebody watches?"""
    job = records.job(ended.job)
    if job is None:
        return
    failures = job.progress.counters.failures_in_a_row
    if job.notify is not None:
        limit = job.notify.after_failures
        if ended.state in _FAILED and failures + 1 == limit:
            _put(records, job, FAILING, ended.nominal_ms, ended.reason, failures + 1)
        elif ended.state is OccurrenceState.COMPLETED and failures >= limit and job.notify.on_recovery:
            _put(records, job, RECOVERED, ended.nominal_ms, NO_REASON, failures)
    if (
        ended.state is OccurrenceState.COMPLETED
        and job.progress.late_ms is not None
        and ended.nominal_ms >= job.progress.late_ms
    ):
        records.put(replace(job.progress, late_ms=None))
        if job.notify is not None and job.notify.on_recovery:
            _put(records, job, ON_TIME, ended.nominal_ms, NO_REASON, 0)


def overdue(reading: Reading, job: Job, now_ms: int) -> int | None:
    """The latest instant whose work should be done by now and is not: neither it nor a later one has completed.

    A pause, a downtime and a skipped run make a job late like anything else, because the work is not done.
    A job that is disabled owes nothing, and a version owes nothing for the time before it.
    """
    if job.expect_within_ms is None or not job.enabled or job.progress.late_ms is not None:
        return None
    try:
        expected = schedule_of(job).previous(now_ms - job.expect_within_ms + 1)
    except CustomScheduleError:
        return None
    if expected is None or expected <= job.updated_ms:
        return None
    for occurrence in reading.occurrences(job.id, limit=_FURTHEST_BACK):
        if occurrence.nominal_ms < expected:
            break
        if occurrence.state is OccurrenceState.COMPLETED:
            return None
    return expected


def note_late(records: Records, job_id: str) -> bool:
    """Write down that the job is late, if it still is."""
    job = records.job(job_id)
    expected = overdue(records, job, records.now_ms) if job is not None else None
    if job is None or expected is None:
        return False
    records.put(replace(job.progress, late_ms=expected))
    event = Event(name="JobLate", at_ms=records.now_ms, job=job.id, nominal_ms=expected)
    append(records.tx, event)
    if job.notify is not None:
        _put(records, job, LATE, expected, Reason(ReasonCode.LATE), job.progress.counters.failures_in_a_row)
    return True


def waiting(reading: Reading, now_ms: int, limit: int) -> list[Notice]:
    """Notices whose next try is due."""
    found = reading.scan(keys.NOTICE, Notice, None, MOST_WAITING)
    return [notice for notice in found if notice.next_ms <= now_ms][:limit]


def _put(records: Records, job: Job, kind: str, nominal_ms: int, reason: Reason, failures: int) -> None:
    if len(records.tx.scan(keys.NOTICE, None, MOST_WAITING)) >= MOST_WAITING:
        return
    at_ms = records.now_ms
    records.put(Notice(job=job.id, kind=kind, at_ms=at_ms, nominal_ms=nominal_ms, reason=reason, failures=failures))
