"""Notices for the job's `notify` command: the job fails again and again, has recovered, is late, is on time again, or
completed with errors.

A notice is written in the transaction that finds it out, so it survives any crash; the daemon hands it to the
command and only then removes it. The counters and `late_ms` of the job say which notices were written already. The
lifecycle writes those that follow from an end; what is late is found here, by the time.
"""

from __future__ import annotations

from msgspec.structs import replace

from chronex.errors import CustomScheduleError
from chronex.model.event import Event
from chronex.model.job import Job
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Notice
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.journal import append
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import schedule_of

FAILING, RECOVERED, LATE, ON_TIME = "failing", "recovered", "late", "on_time"
WITH_ERRORS = "completed_with_errors"
# A command that is broken for ever takes no notice; so many of them wait at most, so that they do not fill the store.
MOST_WAITING = 1_000
_FURTHEST_BACK = 1_000


def overdue(reading: Reading, job: Job, now_ms: int) -> int | None:
    """The latest instant whose work should be done by now and is not: neither it nor a later one has completed.

    A pause, a downtime and a skipped run make a job late like anything else, because the work is not done.
    A job that is disabled is never late, and no version is late for an instant before it was applied.
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
    """Record that the job is late, if it still is. True where it was recorded."""
    job = records.job(job_id)
    expected = overdue(records, job, records.now_ms) if job is not None else None
    if job is None or expected is None:
        return False
    records.put(replace(job.progress, late_ms=expected))
    event = Event(name="JobLate", at_ms=records.now_ms, job=job.id, nominal_ms=expected)
    append(records.tx, event)
    if job.notify is not None:
        put_notice(records, job, LATE, expected, Reason(ReasonCode.LATE), job.progress.counters.failures_in_a_row)
    return True


def waiting(reading: Reading, now_ms: int, limit: int) -> list[Notice]:
    """Notices whose next try is due."""
    found = reading.scan(keys.NOTICE, Notice, None, MOST_WAITING)
    return [notice for notice in found if notice.next_ms <= now_ms][:limit]


def put_notice(records: Records, job: Job, kind: str, nominal_ms: int, reason: Reason, failures: int) -> None:
    """Write the notice, unless too many wait already."""
    if len(records.tx.scan(keys.NOTICE, None, MOST_WAITING)) >= MOST_WAITING:
        return
    at_ms = records.now_ms
    records.put(Notice(job=job.id, kind=kind, at_ms=at_ms, nominal_ms=nominal_ms, reason=reason, failures=failures))
