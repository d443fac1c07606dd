"""The runs to come of a job in a store: those on record, those that the next scheduler makes up for, and those that
the schedule names behind them, as far as one reading of the store tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.plan import CATCHING_UP, NO_CHANCE, blackout_at, lead_ms, plan_job, was_missed
from chronex.errors import CustomScheduleError
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, RecoveryStrategy
from chronex.model.states import OccurrenceState
from chronex.timing.calendar_schedule import MovedFrom
from chronex.timing.job_schedule import schedule_of
from chronex.views.coming_runs import (
    ForecastRun,
    RunSearch,
    all_in_order_of_start,
    barred_at,
    counted_from,
    counts_from_ends,
    forecast_run,
    is_beyond_window,
    placement_options,
    runs_left,
)

# A scheduler that lives has decided what was due so long ago: what is undecided still was missed.
_DECIDED_WITHIN_MS = 10_000


class KnownRuns(NamedTuple):
    """The runs that will start and are known one by one, and the job as it is behind them."""

    job: Job
    runs: list[ForecastRun]
    recorded: frozenset[int]  # those of them that are on record, by their instants
    asked: frozenset[int]  # those that a person asked for, which start whatever `max` and the job file say
    made_up: frozenset[int] = frozenset()  # and those whose time came while nobody watched the clock
    planned_ms: int | None = None  # when the job is planned next


def known_runs(
    job: Job,
    recorded: Iterable[Occurrence],
    now_ms: int,
    skipped_until_ms: int | None = None,
    queued: Iterable[Occurrence] = (),
) -> KnownRuns:
    """Those on record; and where instants were missed, those that a scheduler that starts now makes up for."""
    job = behind_queue(job, queued, now_ms)
    recorded, first = list(recorded), _first_undecided(job)
    asked = frozenset(one.nominal_ms for one in recorded if one.manual)
    late = frozenset(one.nominal_ms for one in recorded if was_missed(one, now_ms - _DECIDED_WITHIN_MS))
    drawn = drawn_runs(job, recorded, now_ms, skipped_until_ms)
    if job.recovery.strategy is RecoveryStrategy.MARK_MISSED:
        drawn = [run for run in drawn if run.nominal_ms not in late]
    known = KnownRuns(job, drawn, frozenset(run.nominal_ms for run in drawn), asked, late, job.progress.next_ms)
    if not job.enabled or first is None or first >= now_ms - _DECIDED_WITHIN_MS:
        return known
    try:
        plan = plan_job(job, schedule_of(job), now_ms, now_ms, NO_CHANCE)
    except CustomScheduleError:  # it is not registered in this process
        return known
    planned = [one.occurrence for one in plan.planned if one.outcome.runs]
    planned = [one for one in planned if not job.progress.was_decided(one.nominal_ms)]
    forecast = (forecast_run(job, one.nominal_ms, now_ms) for one in planned if _is_in_time(job, one, now_ms))
    missed = frozenset(one.nominal_ms for one in planned if one.recovery)
    waiting = missed if job.recovery.strategy in CATCHING_UP else frozenset()  # they are skipped for no other run
    not_before = skipped_until_ms or 0
    starting = [run for run in forecast if run.runs and (run.latest_ms >= not_before or run.nominal_ms in waiting)]
    behind = job.progressed(cursor_ms=plan.cursor_ms, next_ms=plan.next_ms)
    if plan.planned and not starting and counts_from_ends(job):
        behind, upcoming_ms = counted_from(job, now_ms)
        behind = behind.progressed(next_ms=upcoming_ms)
    return known._replace(job=behind, runs=[*drawn, *starting], made_up=late | missed)


def beside_records(job: Job, recorded: Iterable[Occurrence]) -> Job:
    """The job, for which instants behind its cursor that are on record count as decided.

    An edit plans from now on again, also what a spread has started before its time: the engine leaves that out.
    """
    cursor = job.progress.cursor_ms
    ahead = sorted(one.nominal_ms for one in recorded if cursor is not None and one.nominal_ms > cursor)
    if not ahead:
        return job
    return job.progressed(decided=(*job.progress.decided, *((nominal - 1, nominal) for nominal in ahead)))


def behind_queue(job: Job, queued: Iterable[Occurrence], now_ms: int) -> Job:
    """The job once those that wait for their turn have started: of what comes behind them `max` leaves less.

    One with a window may be skipped at its turn, so nothing is said to be left out for its sake.
    """
    if runs_left(job) is None:
        return job
    is_patient = placement_options(job).window is None
    starting = sum(one.manual or (is_patient and _will_start(job, one, now_ms, 0)) for one in queued)
    counters = job.progress.counters
    return job.progressed(counters=replace(counters, fired=counters.fired + starting)) if starting else job


def coming_runs(
    known: KnownRuns, now_ms: int, skipped_until_ms: int | None, search: RunSearch | None = None
) -> Iterator[ForecastRun]:
    job = known.job
    if not job.enabled:
        return (run for run in sorted(known.runs) if run.nominal_ms in known.asked)
    not_before, first = skipped_until_ms, _first_undecided(job)
    if job.progress.is_paused_at(now_ms):
        until = job.progress.paused_until_ms
        first = None if until is None else first
        not_before = max(until or 0, skipped_until_ms or 0)
    runs = all_in_order_of_start(job, first, now_ms, known.runs, not_before, search)
    return _as_max_leaves(known, _not_overlapping(known, runs, now_ms))  # what is skipped does not count for it


def _as_max_leaves(known: KnownRuns, runs: Iterator[ForecastRun]) -> Iterator[ForecastRun]:
    """It counts what a person asked for, and keeps none of that from starting."""
    left = runs_left(known.job)
    if left is None:
        yield from runs
        return
    last = max(((run.due_ms, run) for run in known.runs if run.nominal_ms in known.asked), default=None)
    while (left > 0 or last is not None) and (run := next(runs, None)) is not None:
        if run.nominal_ms in known.asked or left > 0:
            yield run
            left -= 1
        if last is not None and (run.due_ms, run) >= last:
            last = None  # those that have not come by then are skipped for others


# How many of one job that come with one tick its overlap policy lets start, at once or later.
_OF_THOSE_DUE_AT_ONCE = {OverlapPolicy.SKIP: 1, OverlapPolicy.QUEUE_ONE: 2}


def _not_overlapping(known: KnownRuns, runs: Iterator[ForecastRun], now_ms: int) -> Iterator[ForecastRun]:
    """What was due while nobody looked comes with the next tick: there the first is in the way of the others, unless
    it makes up for a missed instant."""
    most = _OF_THOSE_DUE_AT_ONCE.get(known.job.overlap)
    if most is None:
        yield from runs
        return
    late: list[ForecastRun] = []
    for run in runs:
        if run.due_ms > now_ms:
            yield from _first_decided(known, late, most)
            yield run
            break
        late.append(run)
    else:
        yield from _first_decided(known, late, most)
    yield from runs


def _first_decided(known: KnownRuns, late: list[ForecastRun], most: int) -> list[ForecastRun]:
    waits = known.made_up if known.job.recovery.strategy in CATCHING_UP else frozenset()

    def decided(run: ForecastRun) -> tuple[int, int]:
        """When the engine comes to it: instants are planned together, what is on record has its own time."""
        is_planned = run.nominal_ms not in known.recorded and known.planned_ms is not None
        return (known.planned_ms or 0) if is_planned else run.due_ms, run.nominal_ms

    in_order = sorted(late, key=decided)
    first, is_past = in_order[:most], bool(late) and in_order[0].nominal_ms in known.made_up

    def starts(run: ForecastRun) -> bool:
        is_of_now = run.nominal_ms not in known.made_up
        return run in first or run.nominal_ms in waits or (is_past and is_of_now)

    return [run for run in late if starts(run)]


def left_by_max(known: KnownRuns, now_ms: int, skipped_until_ms: int | None) -> list[ForecastRun]:
    """Those that `max` lets start: one that is due earlier, and is not on record yet, may come first."""
    if not known.runs:
        return []
    last_ms = max(run.due_ms for run in known.runs)
    coming = takewhile(lambda run: run.due_ms <= last_ms, coming_runs(known, now_ms, skipped_until_ms))
    nominals = {run.nominal_ms for run in coming}
    return [run for run in known.runs if run.nominal_ms in nominals]


def _first_undecided(job: Job) -> int | None:
    return None if job.progress.next_ms is None else job.progress.next_ms + lead_ms(job)


def drawn_runs(
    job: Job, known: Iterable[Occurrence], now_ms: int, skipped_until_ms: int | None = None
) -> list[ForecastRun]:
    """Those on record that wait for their time and will start then; what a person asked for always does.

    One that runs is due as well where it is to be canceled, or ends at a deadline.
    """
    waiting = (one for one in known if one.state is OccurrenceState.PENDING)
    return [_drawn(one) for one in waiting if one.manual or _will_start(job, one, now_ms, skipped_until_ms or 0)]


def _is_in_time(job: Job, waiting: Occurrence, now_ms: int) -> bool:
    return not is_beyond_window(job, waiting.nominal_ms, max(waiting.due_ms, now_ms))


def _will_start(job: Job, waiting: Occurrence, now_ms: int, not_before_ms: int) -> bool:
    due_ms = waiting.due_ms
    if due_ms < not_before_ms or not _is_in_time(job, waiting, now_ms):
        return False
    return not barred_at(job, due_ms, now_ms) and blackout_at(job, due_ms) is None


def _drawn(occurrence: Occurrence) -> ForecastRun:
    moved = MovedFrom(occurrence.scheduled_ms, occurrence.moved_by) if occurrence.moved_by else None
    return ForecastRun(occurrence.nominal_ms, occurrence.job, occurrence.due_ms, occurrence.due_ms, moved=moved)
