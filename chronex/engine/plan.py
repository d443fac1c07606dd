"""Plan a job that is due: one record with an outcome for every instant up to now, and when to plan it again.

Instants before `awake_since_ms` were missed, and the recovery strategy of the job decides which of them run. The due
time of an occurrence follows from its nominal time by spread, stagger and jitter; it is drawn once and stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from chronex.decision import ALGORITHM, make_spread
from chronex.decision.decide import Spread
from chronex.errors import CustomScheduleError
from chronex.expr.option_block import Options
from chronex.model.calendars import JobCalendar
from chronex.model.job import Job
from chronex.model.occurrence import Decision, MissedSpan, Occurrence
from chronex.model.policies import Cadence, RecoveryPolicy, RecoveryStrategy, SpreadPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.timing.calendar_days import calendar_end, calendar_on
from chronex.timing.job_schedule import Schedule, is_interval, is_random, moved_from, options_of, schedule_of
from chronex.timing.occurrences import stagger_offset
from chronex.timing.zones import load_zone

MOST_AT_ONCE = 500
# A per-second job that missed years must not be listed second by second: the newest instants are listed one by one,
# and all earlier ones are recorded as one span.
MOST_LISTED = 500
# Where many jobs come back at once, ten thousand times five hundred would fill the store.
FEW_LISTED = 10
MANY_DUE = 100
# A strategy that runs several missed instants runs at most so many, including those that wait already: ten years of
# a per-second `execute_all` would be three hundred million records, and no machine would ever finish them.
MOST_CATCH_UP = 1_000
TOO_MANY = Reason(ReasonCode.TOO_MANY, str(MOST_CATCH_UP))
# A span says how many it holds as far as that is cheap, then that there are more.
MOST_COUNTED = 10_000
# It could never have started, so it was skipped and not missed.
NOT_STARTABLE = frozenset({ReasonCode.UNSCHEDULABLE, ReasonCode.BLACKOUT})
CATCHING_UP = (RecoveryStrategy.EXECUTE_ALL, RecoveryStrategy.BOUNDED)


class Limits(Struct, frozen=True, gc=False):
    """How many more missed instants may run, and how many that do not run have records of their own."""

    catch_up: int = MOST_CATCH_UP
    listed: int = MOST_LISTED


_USUAL = Limits()


class InstantOutcome(Struct, frozen=True, gc=False):
    """What becomes of one missed instant. `span` is what a compressed run covers."""

    nominal_ms: int
    runs: bool
    reason: Reason = NO_REASON
    span: tuple[int, int] | None = None


class Backlog(NamedTuple):
    """Missed instants in order. `older` is a span too long to list; `cursor_ms` is how far they reach, and `has_more`
    means that the next plan continues from there."""

    listed: tuple[int, ...]
    older: MissedSpan | None
    cursor_ms: int
    has_more: bool = False


class Planned(NamedTuple):
    """An occurrence to create: pending when `outcome.runs`, else ended with the outcome's reason."""

    occurrence: Occurrence
    outcome: InstantOutcome


def is_missed(outcome: InstantOutcome) -> bool:
    """It was due while nothing ran, and could have started."""
    return not outcome.runs and outcome.reason.code not in NOT_STARTABLE


class Plan(Struct, frozen=True, gc=False):
    planned: tuple[Planned, ...]
    older: MissedSpan | None
    cursor_ms: int
    next_ms: int | None
    decided_from_ms: int | None = None
    # The backlog began at the watermark; those of `passed_over` lie before it and have no outcome yet.
    is_passed: bool = False
    passed_over: MissedSpan | None = None


class _Outcomes(Struct, frozen=True, gc=False):
    """The outcomes of instants in order, the span before them that is too long to list, and how far they reach."""

    listed: list[InstantOutcome]
    older: MissedSpan | None
    cursor_ms: int
    has_more: bool = False
    upcoming_ms: int | None = None  # the instant after them, where there are no more for now


def plan_job(
    job: Job, schedule: Schedule, now_ms: int, awake_since_ms: int, chance: Chance, limits: Limits = _USUAL
) -> Plan:
    """Decide every instant in (cursor, now + lead]. Those before `awake_since_ms` were missed, and `limits` say how
    many of them may run or be listed."""
    cursor = job.progress.cursor_ms if job.progress.cursor_ms is not None else now_ms
    if not _may_fire(job):
        return Plan((), None, cursor, None, job.progress.decided_from_ms)
    horizon = now_ms + lead_ms(job)
    begin = _backlog_begin(job, cursor, awake_since_ms)
    is_passed, passed_over = begin > cursor, _passed_over(job, schedule, cursor, begin)
    decided_from = job.progress.decided_from_ms if job.progress.decided_from_ms is not None else cursor
    if is_passed:
        cursor = decided_from = begin
    outcomes = _outcomes(job, schedule, cursor, horizon, awake_since_ms, now_ms, limits)
    planned = [_planned(job, outcome, now_ms, awake_since_ms, chance) for outcome in outcomes.listed]
    if planned and outcomes.older is not None:
        planned[0] = planned[0]._replace(occurrence=replace(planned[0].occurrence, older=outcomes.older))
    next_ms = _plan_ms_before(job, outcomes.upcoming_ms) if _has_instants(job) else None
    if outcomes.older is not None:
        decided_from = outcomes.older.to_ms  # what has no record of its own may run if the clock is set back to it
    plan_ms = now_ms if outcomes.has_more else next_ms
    return Plan(tuple(planned), outcomes.older, outcomes.cursor_ms, plan_ms, decided_from, is_passed, passed_over)


def _backlog_begin(job: Job, cursor: int, awake_since_ms: int) -> int:
    """Where a backlog begins: not before the watermark, once the clock has passed that.

    A clock that is set back and put right again lets the same hours pass twice. They were decided the first time, or
    lie before the job was made. While the clock has not passed the watermark, instants come one by one, and run.
    """
    watermark = job.progress.watermark_ms
    if watermark is None or cursor >= watermark:
        return cursor
    if job.cadence is Cadence.FIXED_DELAY and is_interval(job):
        return cursor  # there is one instant, counted from the anchor: to pass it over would end the job
    if watermark <= awake_since_ms:
        return watermark
    if job.progress.was_decided(awake_since_ms):
        return max(cursor, awake_since_ms)
    begun = job.progress.begun_ms
    return max(cursor, begun) if begun is not None and begun <= awake_since_ms else cursor


def _passed_over(job: Job, schedule: Schedule, cursor: int, begin: int) -> MissedSpan | None:
    """Those before a backlog, where they have no outcome yet: they follow what was decided before a step back."""
    if begin <= cursor:
        return None
    decided = [last for first, last in job.progress.decided if first < begin and last > cursor]
    cursor = max((cursor, *decided))
    if begin <= cursor or job.progress.begun_ms is None:
        return None
    counted = list(islice(schedule.between(cursor, begin), MOST_COUNTED + 1))
    if not counted:
        return None
    is_more = len(counted) > MOST_COUNTED
    last = (schedule.previous(begin + 1) if is_more else None) or counted[-1]
    return replace(_span(counted[:MOST_COUNTED], last, is_more=is_more), reason=Reason(ReasonCode.NOT_BEGUN))


def is_behind(job: Job, awake_since_ms: int) -> bool:
    """May some of its instants have been missed?"""
    return job.progress.cursor_ms is not None and job.progress.cursor_ms < awake_since_ms - 1


def _outcomes(
    job: Job, schedule: Schedule, cursor: int, horizon: int, awake_since_ms: int, now_ms: int, limits: Limits
) -> _Outcomes:
    """The outcomes of the missed instants, then those of the ordinary ones."""
    missed_until = min(awake_since_ms - 1, horizon)
    outcomes: list[InstantOutcome] = []
    older = None
    if cursor < missed_until:
        missed = backlog_of(schedule, cursor, missed_until, most_listed(job.recovery, limits))
        if missed.older is not None:
            older = replace(missed.older, reason=reason_of_older(job.recovery, missed.older, now_ms, limits.catch_up))
        outcomes = _recovered(job, missed.listed, older, now_ms, limits.catch_up)
        # Never a time that is no instant: a random interval draws the next distance from where the last one ended.
        cursor = missed.cursor_ms
        if missed.has_more:
            return _Outcomes(outcomes, older, cursor, has_more=True)
    upcoming = schedule.next(cursor)
    most = len(outcomes) + MOST_AT_ONCE
    while upcoming is not None and upcoming <= horizon:
        if len(outcomes) >= most:
            return _Outcomes(outcomes, older, cursor, has_more=True)
        outcomes.append(InstantOutcome(upcoming, runs=True))
        cursor = upcoming
        upcoming = schedule.next(cursor)
    return _Outcomes(outcomes, older, cursor, upcoming_ms=upcoming)


def _recovered(
    job: Job, missed: Sequence[int], older: MissedSpan | None, now_ms: int, catch_up: int
) -> list[InstantOutcome]:
    """The strategy chooses among those that could start; what a blackout or a spread bars takes nobody's place."""
    barred = {nominal: reason for nominal in missed if (reason := barred_because(job, nominal)) is not None}
    if not barred:
        return recovery_outcomes(job.recovery, missed, older, now_ms, catch_up)
    startable = [nominal for nominal in missed if nominal not in barred]
    outcomes = recovery_outcomes(job.recovery, startable, older, now_ms, catch_up)
    forbidden = [InstantOutcome(nominal, runs=False, reason=reason) for nominal, reason in barred.items()]
    return sorted((*outcomes, *forbidden), key=lambda outcome: outcome.nominal_ms)


def barred_because(job: Job, nominal_ms: int) -> Reason | None:
    """Why this instant will not start whatever happens: a blackout, or a spread that finds no place for it."""
    if job.spread is None and blackouts_of(job) == ():
        return None
    return due_time(job, options_of(job), nominal_ms, NO_CHANCE).impossible


def blackouts_of(job: Job) -> tuple[JobCalendar, ...]:
    return () if job.calendars is None else job.calendars.blackout


def blackout_at(job: Job, ms: int) -> Reason | None:
    """The blackout that is on at this instant; None where what is due may start."""
    calendars = blackouts_of(job) if job.calendars is not None else ()
    found = calendar_on(calendars, ms, load_zone(job.timezone)) if calendars else None
    return None if found is None else Reason(ReasonCode.BLACKOUT, found.name)


def blackout_end(job: Job, ms: int) -> int:
    """The first instant from `ms` on at which the blackout that is on at `ms` is over; `ms` where none is on."""
    zone = load_zone(job.timezone)
    found = calendar_on(blackouts_of(job), ms, zone)
    return ms if found is None else calendar_end(found, ms, zone)


def _planned(job: Job, outcome: InstantOutcome, now_ms: int, awake_since_ms: int, chance: Chance) -> Planned:
    due = due_time(job, options_of(job), outcome.nominal_ms, chance)
    span_start, span_end = outcome.span or (None, None)
    moved = moved_from(job, outcome.nominal_ms)
    occurrence = Occurrence(
        job=job.id,
        nominal_ms=outcome.nominal_ms,
        due_ms=due.due_ms,
        jitter_ms=due.jitter_ms,
        decision=due.decision,
        version=job.version,
        recovery=outcome.nominal_ms < awake_since_ms,
        span_start_ms=span_start,
        span_end_ms=span_end,
        stands_for_ms=None if moved is None else moved.nominal_ms,
        moved_by="" if moved is None else moved.calendar,
        created_ms=now_ms,
    )
    if outcome.runs and due.impossible is not None:
        return Planned(occurrence, replace(outcome, runs=False, reason=due.impossible))
    return Planned(occurrence, outcome)


# How often a job on each node is looked at whose next instant only its runs know, so that new nodes get theirs.
_CHECK_EVERY_MS = 60_000


class TargetsPlan(NamedTuple):
    """How far a job that runs on each node has come, and when it is planned again."""

    cursor_ms: int | None
    next_ms: int | None


def next_of_targets(job: Job, now_ms: int) -> TargetsPlan:
    """The instants up to now are left to the jobs of its nodes."""
    schedule, horizon = schedule_of(job), now_ms + lead_ms(job)
    cursor = job.progress.cursor_ms if job.progress.cursor_ms is not None else now_ms
    for _ in range(MOST_AT_ONCE):
        upcoming = schedule.next(cursor)
        if upcoming is None or upcoming > horizon:
            break
        cursor = upcoming
    next_ms = next_plan_ms(job, schedule, cursor)
    if next_ms is None and job.enabled and job.cadence is Cadence.FIXED_DELAY and is_interval(job):
        next_ms = now_ms + _CHECK_EVERY_MS
    return TargetsPlan(cursor, next_ms)


def was_missed(occurrence: Occurrence, awake_since_ms: int) -> bool:
    """Did its time come while nobody watched the clock? What a person asked for, and what follows another job, has no
    time of its own: it is due from when it was made."""
    is_planned = not occurrence.manual and not occurrence.parents
    return is_planned and not occurrence.recovery and occurrence.due_ms < awake_since_ms


def waits_until(job: Job, occurrence: Occurrence) -> int | None:
    """Until when it waits for a node that can run it; None for as long as it takes, where no instant follows."""
    if job.wait_for_node_ms is not None:
        return occurrence.due_ms + job.wait_for_node_ms
    try:
        return schedule_of(job).next(occurrence.nominal_ms)
    except CustomScheduleError:
        return None


def next_plan_ms(job: Job, schedule: Schedule, cursor_ms: int) -> int | None:
    """When the job must be planned again; None when it is done, disabled, or waits for its run to end."""
    return _plan_ms_before(job, schedule.next(cursor_ms)) if _has_instants(job) else None


def _plan_ms_before(job: Job, upcoming_ms: int | None) -> int | None:
    return None if upcoming_ms is None else upcoming_ms - lead_ms(job)


def _has_instants(job: Job) -> bool:
    """With a fixed delay the next instant is known when the run has ended."""
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
    """A schedule without `previous` is walked forwards, a limited number of instants at a time.

    Where there are more, the newest of those walked are left for the next time: they may be the newest of all.
    """
    walked = list(islice(schedule.between(cursor_ms, until_ms), MOST_COUNTED + most + 1))
    has_more = len(walked) > MOST_COUNTED + most
    before = walked[:MOST_COUNTED] if has_more else walked[: max(len(walked) - most, 0)]
    listed = () if has_more else tuple(walked[len(before) :])
    older = _span(before, before[-1]) if before else None
    cursor = listed[-1] if listed else before[-1] if before else cursor_ms
    return Backlog(listed, older, cursor, has_more)


def _span(counted: Sequence[int], last: int, *, is_more: bool = False) -> MissedSpan:
    return MissedSpan(from_ms=counted[0], to_ms=last, count=len(counted), is_more=is_more)


def span_data(span: MissedSpan) -> dict[str, int]:
    """The data of the span's event in the journal, beside the reason."""
    data = {"from_ms": span.from_ms, "to_ms": span.to_ms, "count": span.count}
    return {**data, "is_more": True} if span.is_more else data


def most_listed(policy: RecoveryPolicy, limits: Limits) -> int:
    """What runs has a record of its own; of what does not, the newest have."""
    return max(limits.listed, _most_run(policy, limits.catch_up))


def reason_of_older(policy: RecoveryPolicy, older: MissedSpan, now_ms: int, catch_up: int = MOST_CATCH_UP) -> Reason:
    """Why the instants of a span too long to list do not run."""
    match policy.strategy:
        case RecoveryStrategy.EXECUTE_ALL:
            return TOO_MANY
        case RecoveryStrategy.BOUNDED:
            return _reason_beyond(policy, older.to_ms, now_ms, catch_up)
        case RecoveryStrategy.COMPRESSED:
            return Reason(ReasonCode.FOLDED)
        case RecoveryStrategy.EXECUTE_LAST:
            return Reason(ReasonCode.SUPERSEDED)
        case RecoveryStrategy.MARK_MISSED:
            return Reason(ReasonCode.DOWN)


def recovery_outcomes(
    policy: RecoveryPolicy,
    missed: Sequence[int],
    older: MissedSpan | None,
    now_ms: int,
    catch_up: int = MOST_CATCH_UP,
) -> list[InstantOutcome]:
    """One outcome for each missed instant, in order. At most `catch_up` of them run."""
    if not missed:
        return []
    match policy.strategy:
        case RecoveryStrategy.EXECUTE_ALL | RecoveryStrategy.BOUNDED:
            return _several(policy, missed, now_ms, catch_up)
        case RecoveryStrategy.MARK_MISSED:
            return _not_run(missed, Reason(ReasonCode.DOWN))
        case RecoveryStrategy.COMPRESSED:
            first = older.from_ms if older else missed[0]
            run = InstantOutcome(missed[-1], runs=True, span=(first, missed[-1]))
            return [*_not_run(missed[:-1], Reason(ReasonCode.FOLDED)), run]
        case RecoveryStrategy.EXECUTE_LAST:
            run = InstantOutcome(missed[-1], runs=True)
            return [*_not_run(missed[:-1], Reason(ReasonCode.SUPERSEDED)), run]


def _not_run(instants: Sequence[int], reason: Reason) -> list[InstantOutcome]:
    return [InstantOutcome(nominal_ms, runs=False, reason=reason) for nominal_ms in instants]


def _several(policy: RecoveryPolicy, missed: Sequence[int], now_ms: int, catch_up: int) -> list[InstantOutcome]:
    oldest_kept = len(missed) - _most_run(policy, catch_up)
    return [
        InstantOutcome(nominal, runs=True)
        if index >= oldest_kept and not _is_too_old(policy, nominal, now_ms)
        else InstantOutcome(nominal, runs=False, reason=_reason_beyond(policy, nominal, now_ms, catch_up))
        for index, nominal in enumerate(missed)
    ]


def _most_run(policy: RecoveryPolicy, catch_up: int) -> int:
    if policy.strategy not in CATCHING_UP:
        return 1
    return catch_up if policy.max_count is None else min(policy.max_count, catch_up)


def _is_too_old(policy: RecoveryPolicy, nominal_ms: int, now_ms: int) -> bool:
    return policy.max_age_ms is not None and nominal_ms < now_ms - policy.max_age_ms


def _reason_beyond(policy: RecoveryPolicy, nominal_ms: int, now_ms: int, catch_up: int) -> Reason:
    """The policy's own bounds, where they exclude the instant; else the limit of catch-up runs."""
    by_count = policy.max_count is not None and policy.max_count <= catch_up
    return Reason(ReasonCode.TOO_OLD) if by_count or _is_too_old(policy, nominal_ms, now_ms) else TOO_MANY


class Chance(Protocol):
    """Where jitter comes from; tests and simulations bring a seeded one."""

    def randrange(self, stop: int, /) -> int: ...


class NoChance:
    """Draws nothing: previews show what is not on record yet without its jitter."""

    def randrange(self, stop: int, /) -> int:
        return 0


NO_CHANCE = NoChance()


class DueTime(Struct, frozen=True, gc=False):
    """When an occurrence may start. `impossible` is the reason where no start satisfies its spread, or a blackout is
    on."""

    due_ms: int
    jitter_ms: int
    decision: Decision | None
    impossible: Reason | None = None


def due_time(job: Job, options: Options, nominal_ms: int, chance: Chance) -> DueTime:
    """The due time of this nominal time: spread, then stagger, then jitter."""
    stagger = stagger_offset(job.id, options.stagger) if options.stagger else 0
    jitter = chance.randrange(options.jitter) if options.jitter else 0
    if job.spread is None:
        decision = Decision(algorithm=ALGORITHM, stagger_ms=stagger) if stagger else None
        due_ms = nominal_ms + stagger + jitter
        return DueTime(due_ms, jitter, decision, blackout_at(job, due_ms))
    chosen = spread_of(job.spread, job.id, job.timezone).decide_at(nominal_ms)
    window_start_ms, window_end_ms = chosen.window_ms
    decision = Decision(
        algorithm=ALGORITHM,
        seed_hash=chosen.seed_hash,
        window_start_ms=window_start_ms,
        window_end_ms=window_end_ms,
        chosen_ms=chosen.chosen_ms,
        stagger_ms=stagger,
        attempts=chosen.attempts,
        reason=chosen.reason,
    )
    if chosen.chosen_ms is None:
        return DueTime(nominal_ms, jitter, decision, Reason(ReasonCode.UNSCHEDULABLE))
    due_ms = chosen.chosen_ms + stagger + jitter
    return DueTime(due_ms, jitter, decision, blackout_at(job, due_ms))


def lead_ms(job: Job) -> int:
    """How long before its nominal time an occurrence must be decided: a spread may start before it."""
    return spread_of(job.spread, job.id, job.timezone).lead_ms if job.spread is not None else 0


def spread_of(policy: SpreadPolicy, identity: str, zone: str) -> Spread:
    return _spread(msgspec.json.encode(policy, order="sorted"), identity, zone)


@lru_cache(maxsize=1024)
def _spread(encoded: bytes, identity: str, zone: str) -> Spread:
    policy = msgspec.json.decode(encoded, type=SpreadPolicy)
    return make_spread(
        identity=identity,
        timezone=zone,
        window_mode=policy.mode,
        window_duration=timedelta(milliseconds=policy.duration_ms),
        distribution=policy.distribution,
        distribution_params={name: str(value) for name, value in policy.parameters.items()},
        seed_strategy=policy.seed,
        salt=policy.salt,
        only=policy.only,
        avoid=policy.avoid,
    )


# Which instants of a job were decided before its clock was set: spans that outlive the records of history.

# A clock is set back a few times in the life of a job; the spans of the latest instants are kept.
MOST_SPANS = 32


def spans_with_latest(job: Job) -> tuple[tuple[int, int], ...]:
    """The spans that were decided, with the one that ends at the cursor; those that touch become one."""
    begin, end = job.progress.decided_from_ms, job.progress.cursor_ms
    if begin is None or end is None or end <= begin or not _has_fixed_instants(job):
        return job.progress.decided
    merged: list[tuple[int, int]] = []
    for first, last in sorted((*job.progress.decided, (begin, end))):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged[-MOST_SPANS:])


def _has_fixed_instants(job: Job) -> bool:
    """Does it have the same instants when they are asked for again? Some intervals count from what was before."""
    if not is_interval(job):
        return True
    return job.cadence is not Cadence.FIXED_DELAY and not is_random(job)
