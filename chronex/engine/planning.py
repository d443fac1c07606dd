"""Plan a job that is due: one record with a fate for every instant up to now, and when to look again."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.backlog import Fate, Limits, backlog_of, most_listed, reason_of_older, settle
from chronex.engine.custom import Schedule
from chronex.engine.placement import Chance, lead_ms, place
from chronex.engine.schedule import is_interval, options_of
from chronex.model.placed import MissedSpan
from chronex.model.policies import Cadence
from chronex.model.records import Job, Occurrence

MOST_AT_ONCE = 500
_USUAL = Limits()


class Planned(NamedTuple):
    """An occurrence to create: pending when `fate.runs`, else ended with the fate's reason."""

    occurrence: Occurrence
    fate: Fate


class Plan(NamedTuple):
    planned: tuple[Planned, ...]
    older: MissedSpan | None
    cursor_ms: int
    next_ms: int | None


class _Fates(NamedTuple):
    """The fates of instants in order, what is too long to list before them, and how far all that reaches."""

    listed: list[Fate]
    older: MissedSpan | None
    cursor_ms: int
    has_more: bool = False
    upcoming_ms: int | None = None  # the instant after them, where there are no more for now


def plan_job(
    job: Job, schedule: Schedule, now_ms: int, awake_since_ms: int, chance: Chance, limits: Limits = _USUAL
) -> Plan:
    """Decide every instant in (cursor, now + lead]. Those before `awake_since_ms` were slept through, and `limits`
    say how many of them may run or be listed."""
    cursor = job.cursor_ms if job.cursor_ms is not None else now_ms
    if not _may_fire(job):
        return Plan((), None, cursor, None)
    horizon = now_ms + lead_ms(job)
    fates = _fates(job, schedule, cursor, horizon, awake_since_ms, now_ms, limits)
    planned = [_planned(job, fate, now_ms, awake_since_ms, chance) for fate in fates.listed]
    if planned and fates.older is not None:
        planned[0] = planned[0]._replace(occurrence=replace(planned[0].occurrence, older=fates.older))
    next_ms = _look_for(job, fates.upcoming_ms) if _has_instants(job) else None
    return Plan(tuple(planned), fates.older, fates.cursor_ms, now_ms if fates.has_more else next_ms)


def is_behind(job: Job, awake_since_ms: int) -> bool:
    """May some of its instants have been slept through?"""
    return job.cursor_ms is not None and job.cursor_ms < awake_since_ms - 1


def _fates(
    job: Job, schedule: Schedule, cursor: int, horizon: int, awake_since_ms: int, now_ms: int, limits: Limits
) -> _Fates:
    """The fates of the missed instants, then those of the ordinary ones."""
    missed_until = min(awake_since_ms - 1, horizon)
    fates: list[Fate] = []
    older = None
    if cursor < missed_until:
        missed = backlog_of(schedule, cursor, missed_until, most_listed(job.recovery, limits))
        if missed.older is not None:
            older = replace(missed.older, reason=reason_of_older(job.recovery, missed.older, now_ms, limits.room))
        fates = settle(job.recovery, missed.listed, older, now_ms, limits.room)
        # Never a time that is no instant: a random interval draws the next distance from where the last one ended.
        cursor = missed.cursor_ms
        if missed.has_more:
            return _Fates(fates, older, cursor, has_more=True)
    upcoming = schedule.next(cursor)
    most = len(fates) + MOST_AT_ONCE
    while upcoming is not None and upcoming <= horizon:
        if len(fates) >= most:
            return _Fates(fates, older, cursor, has_more=True)
        fates.append(Fate(upcoming, runs=True))
        cursor = upcoming
        upcoming = schedule.next(cursor)
    return _Fates(fates, older, cursor, upcoming_ms=upcoming)


def _planned(job: Job, fate: Fate, now_ms: int, awake_since_ms: int, chance: Chance) -> Planned:
    placed = place(job, options_of(job), fate.nominal_ms, chance)
    span_start, span_end = fate.span or (None, None)
    occurrence = Occurrence(
        job=job.id,
        nominal_ms=fate.nominal_ms,
        due_ms=placed.due_ms,
        jitter_ms=placed.jitter_ms,
        decision=placed.decision,
        version=job.version,
        recovery=fate.nominal_ms < awake_since_ms,
        span_start_ms=span_start,
        span_end_ms=span_end,
        created_ms=now_ms,
    )
    if fate.runs and placed.impossible:
        return Planned(occurrence, fate._replace(runs=False, reason=placed.impossible))
    return Planned(occurrence, fate)


def next_look(job: Job, schedule: Schedule, cursor_ms: int) -> int | None:
    """When the job must be planned again; None when it is done, disabled, or waits for its run to end."""
    return _look_for(job, schedule.next(cursor_ms)) if _has_instants(job) else None


def _look_for(job: Job, upcoming_ms: int | None) -> int | None:
    return None if upcoming_ms is None else upcoming_ms - lead_ms(job)


def _has_instants(job: Job) -> bool:
    """With a fixed delay the next one is known when the run has ended."""
    waits = job.cadence is Cadence.FIXED_DELAY and is_interval(job) and job.anchor_ms is None
    return not waits and _may_fire(job)


def _may_fire(job: Job) -> bool:
    limit = options_of(job).max
    return job.enabled and (limit is None or job.counters.fired < limit)
