"""What schedules will ask for between two instants: the planner's own instants and placement, without a store.

Shared by `apply --dry-run`, the simulator and the dashboard's timeline. Nothing is drawn: an occurrence with jitter
may start anywhere from `due_ms` to `latest_ms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from chronex.engine.plan import NO_CHANCE, due_time
from chronex.errors import CustomScheduleError
from chronex.model.job import Job
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.timing.job_schedule import options_of, schedule_of


class Foreseen(NamedTuple):
    """An occurrence to come; `reason` says why it will not run, where that is known already."""

    nominal_ms: int
    job: str
    due_ms: int
    latest_ms: int
    reason: Reason = NO_REASON

    @property
    def runs(self) -> bool:
        return not self.reason


def forecast(jobs: Iterable[Job], after_ms: int, until_ms: int) -> Iterator[Foreseen]:
    """The occurrences of all jobs with nominal times in (after, until], in order; lazily, so take what you need."""
    return merge(*(forecast_job(job, after_ms, until_ms) for job in jobs))


def forecast_job(job: Job, after_ms: int, until_ms: int) -> Iterator[Foreseen]:
    """What is not decided yet: instants after the job's cursor, as many as its `max` leaves."""
    options = options_of(job)
    left = None if options.max is None else options.max - job.progress.counters.fired
    if not job.enabled or (left is not None and left <= 0):
        return
    is_plain = job.spread is None and job.progress.paused_from_ms is None and not (options.stagger or options.jitter)
    start = after_ms if job.progress.cursor_ms is None else max(after_ms, job.progress.cursor_ms)
    try:
        for nominal_ms in schedule_of(job).between(start, until_ms):
            # Most jobs start when they say: they need no placement.
            foreseen = (
                Foreseen(nominal_ms, job.id, nominal_ms, nominal_ms) if is_plain else _foreseen(job, nominal_ms)
            )
            yield foreseen
            if left is not None and foreseen.runs:
                left -= 1
                if left == 0:
                    return
    except CustomScheduleError:
        return  # a schedule of another program: only that one can tell


def _foreseen(job: Job, nominal_ms: int) -> Foreseen:
    options = options_of(job)
    placed = due_time(job, options, nominal_ms, NO_CHANCE)
    reason = placed.impossible or NO_REASON
    if not reason and job.progress.was_paused_at(placed.due_ms):
        reason = Reason(ReasonCode.PAUSED, by=job.progress.paused_by)
    return Foreseen(nominal_ms, job.id, placed.due_ms, placed.due_ms + max(options.jitter or 0, 1) - 1, reason)
