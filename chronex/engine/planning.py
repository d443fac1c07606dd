"""Plan a job that is due: one record with a fate for every instant up to now, and when to look again."""

from __future__ import annotations

from typing import NamedTuple

from chronex.engine.backlog import Fate, backlog_of, settle
from chronex.engine.custom import Schedule
from chronex.engine.placement import Chance, lead_ms, place
from chronex.engine.schedule import is_interval, options_of
from chronex.model.policies import Cadence
from chronex.model.records import Job, Occurrence

MOST_AT_ONCE = 500


class Planned(NamedTuple):
    """An occurrence to create: pending when `fate.runs`, else ended with the fate's reason."""

    occurrence: Occurrence
    fate: Fate


class Plan(NamedTuple):
    planned: tuple[Planned, ...]
    older: tuple[int, int] | None  # a span of missed instants too long to list
    cursor_ms: int
    next_ms: int | None


def plan_job(job: Job, schedule: Schedule, now_ms: int, awake_since_ms: int, chance: Chance) -> Plan:
    """Decide every instant in (cursor, now + lead]. Those before `awake_since_ms` were slept through."""
    cursor = job.cursor_ms if job.cursor_ms is not None else now_ms
    limit = options_of(job).max
    if not job.enabled or (limit is not None and job.counters.fired >= limit):
        return Plan((), None, cursor, None)
    horizon = now_ms + lead_ms(job)
    fates, older, cursor, has_more = _fates(job, schedule, cursor, horizon, awake_since_ms, now_ms)
    planned = tuple(_planned(job, fate, now_ms, awake_since_ms, chance) for fate in fates)
    return Plan(planned, older, cursor, now_ms if has_more else next_look(job, schedule, cursor))


def _fates(
    job: Job, schedule: Schedule, cursor: int, horizon: int, awake_since_ms: int, now_ms: int
) -> tuple[list[Fate], tuple[int, int] | None, int, bool]:
    """The fates of the missed instants, then those of the ordinary ones; and how far they reach."""
    missed_until = min(awake_since_ms - 1, horizon)
    fates: list[Fate] = []
    older = None
    if cursor < missed_until:
        missed = backlog_of(schedule, cursor, missed_until, job.recovery.strategy)
        fates, older = settle(job.recovery, missed.listed, missed.older, now_ms), missed.older
        # Never a time that is no instant: a random interval draws the next distance from where the last one ended.
        cursor = missed.listed[-1] if missed.listed else cursor
        if missed.has_more:
            return fates, older, cursor, True
    upcoming = schedule.next(cursor)
    while upcoming is not None and upcoming <= horizon:
        if len(fates) >= MOST_AT_ONCE:
            return fates, older, cursor, True
        fates.append(Fate(upcoming, runs=True))
        cursor = upcoming
        upcoming = schedule.next(cursor)
    return fates, older, cursor, False


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
    limit = options_of(job).max
    if not job.enabled or (limit is not None and job.counters.fired >= limit):
        return None
    if job.cadence is Cadence.FIXED_DELAY and is_interval(job) and job.anchor_ms is None:
        return None
    upcoming = schedule.next(cursor_ms)
    return None if upcoming is None else upcoming - lead_ms(job)
