"""When a schedule in an editor starts next, and what keeps it from starting.

Of a job of Chronex that is asked of `chronex/views/coming_runs.py`, as every other view does: calendars, blackouts
and spread decide with the expression. Of what other programs read, and of a job that cannot be read, the
expression alone is known.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from chronex.lint.findings import ScheduleSite
from chronex.lint.host_schedules import HostSchedule
from chronex.lint.linter import Analysis

if TYPE_CHECKING:  # an editor of crontabs needs none of it
    from chronex.model.job import Job
    from chronex.timing.calendar_schedule import MovedFrom


class ComingStart(NamedTuple):
    """`latest_ms` is later than `due_ms` where chance decides; `moved` says from where a calendar moved it."""

    due_ms: int
    latest_ms: int
    moved: MovedFrom | None = None


class ComingStarts(NamedTuple):
    """The next starts, and in words what may keep one of them waiting."""

    starts: list[ComingStart]
    may_wait_for: tuple[str, ...] = ()
    is_disabled: bool = False


def coming_starts(
    analysis: Analysis, site: ScheduleSite, schedule: HostSchedule, now_ms: int, count: int
) -> ComingStarts:
    job = analysis.jobs.get(site.name)
    if job is None:
        return ComingStarts([ComingStart(ms, ms) for ms in schedule.upcoming(now_ms, count)])
    return _starts_of(job, site.text, now_ms, count)


def _starts_of(job: Job, expression: str, now_ms: int, count: int) -> ComingStarts:
    from msgspec.structs import replace

    from chronex.timing.job_schedule import absolute_schedule, schedule_of
    from chronex.views.coming_runs import may_wait_for, placement_options, startable

    if not job.enabled:
        return ComingStarts([], is_disabled=True)
    # Of several expressions of a job each has its own starts; one that counts, counts from now.
    alone = absolute_schedule(replace(job, schedule=expression), now_ms).progressed(anchor_ms=now_ms)
    first = schedule_of(alone).next(now_ms)
    most = min(count, placement_options(alone).max or count)
    runs = islice(startable(alone, first), most) if first is not None else ()
    waits = (*(f"job {parent}" for parent in job.after), *may_wait_for(job))
    return ComingStarts([ComingStart(run.due_ms, run.latest_ms, run.moved) for run in runs], waits)
