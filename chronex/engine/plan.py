"""Plan a job that is due: one record with a fate for every instant up to now, and when to look again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.place import Chance, lead_ms, place
from chronex.model.definition import Job
from chronex.model.occurrence import MissedSpan, Occurrence
from chronex.model.policies import Cadence, RecoveryPolicy, RecoveryStrategy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.timing.job_schedule import Schedule, is_interval, options_of

MOST_AT_ONCE = 500
# A per-second job that slept for years must not be listed second by second: the newest are listed one by one,
# all earlier ones are told as one span.
MOST_LISTED = 500
# Where many jobs come back at once, ten thousand times five hundred would fill the store.
FEW_LISTED = 10
MANY_DUE = 100
# A strategy that runs several runs at most so many, those that wait already counted: ten years of a per-second
# `execute_all` would be three hundred million records, and no machine would ever come to the end of them.
MOST_OWED = 1_000
TOO_MANY = Reason(ReasonCode.TOO_MANY, str(MOST_OWED))
# A span says how many it holds as far as that is cheap, then that there are more.
MOST_COUNTED = 10_000
CATCHING_UP = (RecoveryStrategy.EXECUTE_ALL, RecoveryStrategy.BOUNDED)


class Limits(NamedTuple):
    """How many missed runs the job may still owe, and how many that do not run have records of their own."""

    room: int = MOST_OWED
    listed: int = MOST_LISTED


_USUAL = Limits()


class Fate(NamedTuple):
    """What becomes of one missed instant. `span` is what a compressed run covers."""

    nominal_ms: int
    runs: bool
    reason: Reason = NO_REASON
    span: tuple[int, int] | None = None


class Backlog(NamedTuple):
    """Missed instants in order. `older` is a span too long to list; `cursor_ms` is how far they reach, and `has_more`
    means: look again from there."""

    listed: tuple[int, ...]
    older: MissedSpan | None
    cursor_ms: int
    has_more: bool = False


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
    cursor = job.progress.cursor_ms if job.progress.cursor_ms is not None else now_ms
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
    return job.progress.cursor_ms is not None and job.progress.cursor_ms < awake_since_ms - 1


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
    waits = job.cadence is Cadence.FIXED_DELAY and is_interval(job) and job.progress.anchor_ms is None
    return not waits and _may_fire(job)


def _may_fire(job: Job) -> bool:
    limit = options_of(job).max
    return job.enabled and (limit is None or job.progress.counters.fired < limit)


def backlog_of(schedule: Schedule, cursor_ms: int, until_ms: int, most: int = MOST_LISTED) -> Backlog:
    """The instants in (cursor, until]: the newest `most` one by one, what came before them as a span."""
    found = schedule.previous(until_ms + 1)
    if found is None:
        return _walked(schedule, cursor_ms, until_ms, most)
    listed: list[int] = []
    while found is not None and found > cursor_ms and len(listed) < most:
        listed.append(found)
        found = schedule.previous(found)
    listed.reverse()
    older = None
    if found is not None and found > cursor_ms:
        counted = list(islice(schedule.between(cursor_ms, found), MOST_COUNTED + 1))
        older = _span(counted[:MOST_COUNTED], found, is_more=len(counted) > MOST_COUNTED)
    return Backlog(tuple(listed), older, listed[-1] if listed else cursor_ms)


def _walked(schedule: Schedule, cursor_ms: int, until_ms: int, most: int) -> Backlog:
    """A schedule that does not know what came before is walked forwards, so many steps at a time.

    Where there are more, the newest of those walked are left for the next time: they may be the newest of all.
    """
    walked = list(islice(schedule.between(cursor_ms, until_ms), MOST_COUNTED + most + 1))
    has_more = len(walked) > MOST_COUNTED + most
    passed = walked[:MOST_COUNTED] if has_more else walked[: max(len(walked) - most, 0)]
    listed = () if has_more else tuple(walked[len(passed) :])
    older = _span(passed, passed[-1]) if passed else None
    cursor = listed[-1] if listed else passed[-1] if passed else cursor_ms
    return Backlog(listed, older, cursor, has_more)


def _span(counted: Sequence[int], last: int, *, is_more: bool = False) -> MissedSpan:
    return MissedSpan(from_ms=counted[0], to_ms=last, count=len(counted), is_more=is_more)


def told_of(span: MissedSpan) -> dict[str, int]:
    """What the journal says of it, beside the reason."""
    told = {"from_ms": span.from_ms, "to_ms": span.to_ms, "count": span.count}
    return {**told, "is_more": True} if span.is_more else told


def most_listed(policy: RecoveryPolicy, limits: Limits) -> int:
    """What runs has a record of its own; of what does not, the newest have."""
    return max(limits.listed, _most_run(policy, limits.room))


def reason_of_older(policy: RecoveryPolicy, older: MissedSpan, now_ms: int, room: int = MOST_OWED) -> Reason:
    """Why the instants of a span too long to list do not run."""
    match policy.strategy:
        case RecoveryStrategy.EXECUTE_ALL:
            return TOO_MANY
        case RecoveryStrategy.BOUNDED:
            return _reason_beyond(policy, older.to_ms, now_ms, room)
        case RecoveryStrategy.COMPRESSED:
            return Reason(ReasonCode.FOLDED)
        case RecoveryStrategy.EXECUTE_LAST:
            return Reason(ReasonCode.SUPERSEDED)
        case RecoveryStrategy.MARK_MISSED:
            return Reason(ReasonCode.DOWN)


def settle(
    policy: RecoveryPolicy, missed: Sequence[int], older: MissedSpan | None, now_ms: int, room: int = MOST_OWED
) -> list[Fate]:
    """One fate for each missed instant, in order; the same list gives the same fates. `room` may still be owed."""
    if not missed:
        return []
    match policy.strategy:
        case RecoveryStrategy.EXECUTE_ALL | RecoveryStrategy.BOUNDED:
            return _several(policy, missed, now_ms, room)
        case RecoveryStrategy.MARK_MISSED:
            return [Fate(nominal, runs=False, reason=Reason(ReasonCode.DOWN)) for nominal in missed]
        case RecoveryStrategy.COMPRESSED:
            first = older.from_ms if older else missed[0]
            covered = [Fate(nominal, runs=False, reason=Reason(ReasonCode.FOLDED)) for nominal in missed[:-1]]
            return [*covered, Fate(missed[-1], runs=True, span=(first, missed[-1]))]
        case RecoveryStrategy.EXECUTE_LAST:
            passed = [Fate(nominal, runs=False, reason=Reason(ReasonCode.SUPERSEDED)) for nominal in missed[:-1]]
            return [*passed, Fate(missed[-1], runs=True)]


def _several(policy: RecoveryPolicy, missed: Sequence[int], now_ms: int, room: int) -> list[Fate]:
    oldest_kept = len(missed) - _most_run(policy, room)
    return [
        Fate(nominal, runs=True)
        if index >= oldest_kept and not _is_too_old(policy, nominal, now_ms)
        else Fate(nominal, runs=False, reason=_reason_beyond(policy, nominal, now_ms, room))
        for index, nominal in enumerate(missed)
    ]


def _most_run(policy: RecoveryPolicy, room: int) -> int:
    if policy.strategy not in CATCHING_UP:
        return 1
    return room if policy.max_count is None else min(policy.max_count, room)


def _is_too_old(policy: RecoveryPolicy, nominal_ms: int, now_ms: int) -> bool:
    return policy.max_age_ms is not None and nominal_ms < now_ms - policy.max_age_ms


def _reason_beyond(policy: RecoveryPolicy, nominal_ms: int, now_ms: int, room: int) -> Reason:
    """The policy's own bounds, where they would have been enough; else the limit on what is owed."""
    by_count = policy.max_count is not None and policy.max_count <= room
    return Reason(ReasonCode.TOO_OLD) if by_count or _is_too_old(policy, nominal_ms, now_ms) else TOO_MANY
