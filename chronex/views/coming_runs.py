"""What will start, when, and why not: the one answer for every view of the future.

`show`, `list`, `apply --dry-run`, the timeline, the clock and the language server ask here. The instants are those of
the job's schedule, which has none that a calendar removes. Where each starts is the planner's own placement, and an
instant that cannot start (a spread that finds no place, a pause, a blackout, a window that is over when it is due, a
`max` that others reach first) carries the reason that the engine will record. Nothing is
drawn: an occurrence with jitter may start anywhere from `due_ms` to `latest_ms`. What no view can know is when others
give back the places of a group: `may_wait_for` names what a run may have to wait for.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush, merge
from itertools import dropwhile, islice, takewhile
from typing import NamedTuple

from chronex.engine.plan import NO_CHANCE, blackout_at, blackout_end, blackouts_of, due_time, lead_ms, spread_of
from chronex.errors import ChronexError, CustomScheduleError
from chronex.expr.option_block import NO_OPTIONS, Options
from chronex.model.calendars import OnExcluded
from chronex.model.job import SCHEDULES_APART, Job
from chronex.model.policies import Cadence
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.text.durations import DAY_MS
from chronex.timing import read
from chronex.timing.calendar_schedule import MovedFrom
from chronex.timing.job_schedule import CUSTOM, is_interval, is_random, moved_from, schedule_of
from chronex.timing.occurrences import stagger_offset

# So many instants in a row that cannot start are looked at; a view says how far it came. To find that a spread has no
# place for one takes a third of a millisecond.
MOST_BARRED = 400
# Of distances that are drawn none can be passed over.
MOST_DRAWN = 10_000
_YEAR_MS = 366 * DAY_MS
_OPTIONS = re.compile(r"[{<].*[}>]", re.DOTALL)


class ForecastRun(NamedTuple):
    """An occurrence to come; `reason` says why it will not run, where that is known already."""

    nominal_ms: int
    job: str
    due_ms: int
    latest_ms: int
    reason: Reason = NO_REASON
    moved: MovedFrom | None = None  # the time that it stands for, and the calendar that moved it

    @property
    def runs(self) -> bool:
        return not self.reason


@dataclass(slots=True)
class RunSearch:
    """Filled by a search for the next run: nothing starts before `stopped_ms`, and what comes then was not looked at.
    None where all that comes was."""

    stopped_ms: int | None = None


def forecast(jobs: Iterable[Job], after_ms: int, until_ms: int) -> Iterator[ForecastRun]:
    """The occurrences of all jobs with nominal times in (after, until], in order; lazily, so take what you need."""
    return merge(*(forecast_job(job, after_ms, until_ms) for job in jobs))


def forecast_job(job: Job, after_ms: int, until_ms: int, drawn: Iterable[ForecastRun] = ()) -> Iterator[ForecastRun]:
    """What is not decided yet: instants after the cursor, as many as `max` leaves beside those on record."""
    left = runs_left(job)
    if not job.enabled or left == 0:
        return
    cursor_ms = after_ms if job.progress.cursor_ms is None else job.progress.cursor_ms
    coming = forecast_all(job, max(after_ms, cursor_ms), until_ms, after_ms)
    if left is None:
        yield from coming
        return
    # What is due, and waits for the next tick, is counted too.
    overdue = islice(forecast_all(job, cursor_ms, after_ms, after_ms), left)
    yield from first_to_start(job, coming, left, (*drawn, *(run for run in overdue if run.runs)))


def forecast_all(job: Job, start_ms: int, until_ms: int, now_ms: int) -> Iterator[ForecastRun]:
    is_plain = starts_at_nominal_times(job)
    try:
        if counts_from_ends(job):
            first = schedule_of(job).next(start_ms)
            yield from takewhile(lambda run: run.nominal_ms <= until_ms, _until_one_starts(job, first, now_ms))
            return
        for nominal_ms in instants_of(job, start_ms, until_ms):
            if job.progress.decided and job.progress.was_decided(nominal_ms):
                continue
            # Most jobs start at their nominal times and need no placement.
            yield (
                ForecastRun(nominal_ms, job.id, nominal_ms, nominal_ms)
                if is_plain
                else forecast_run(job, nominal_ms, now_ms)
            )
    except CustomScheduleError:
        return  # a custom schedule that is not registered in this process


def instants_of(job: Job, after_ms: int, until_ms: int) -> Iterator[int]:
    """Those of its schedule. Where each distance is drawn from the instant before, the next one follows from the last
    that was decided; what comes too long behind that is not known."""
    cursor_ms = job.progress.cursor_ms
    if cursor_ms is None or cursor_ms >= after_ms or not is_random(job):
        return schedule_of(job).between(after_ms, until_ms)
    drawn = islice(schedule_of(job).between(cursor_ms, until_ms), MOST_DRAWN)
    return dropwhile(lambda instant_ms: instant_ms <= after_ms, drawn)


def counts_from_ends(job: Job) -> bool:
    """An interval whose next instant is known when a run has ended, or was skipped."""
    return job.cadence is Cadence.FIXED_DELAY and is_interval(job)


def _until_one_starts(job: Job, first_ms: int | None, now_ms: int) -> Iterator[ForecastRun]:
    """What an interval that counts from ends skips, each counted from the one before it, and the first to start."""
    nominal_ms = first_ms
    while nominal_ms is not None:
        run = forecast_run(job, nominal_ms, now_ms)
        yield run
        if run.runs:
            return
        job, nominal_ms = counted_from(job, max(run.due_ms, now_ms))


def counted_from(job: Job, skipped_ms: int) -> tuple[Job, int | None]:
    """Such a job behind what is skipped at that time, and its next instant."""
    behind = job.progressed(anchor_ms=skipped_ms, cursor_ms=skipped_ms)
    return behind, schedule_of(behind).next(skipped_ms)


def _counted_past(job: Job, skipped_ms: int, free_ms: int) -> tuple[Job, int | None]:
    """The first that is not before `free_ms`: what lies between is skipped too, one after the other."""
    behind, upcoming_ms = counted_from(job, skipped_ms)
    is_even = not is_random(job) and (job.calendars is None or not job.calendars.moves_or_removes)
    if upcoming_ms is None or upcoming_ms >= free_ms or not is_even:
        return behind, upcoming_ms
    step_ms = upcoming_ms - skipped_ms
    return counted_from(job, skipped_ms + (free_ms - skipped_ms - 1) // step_ms * step_ms)


def first_to_start(
    job: Job, coming: Iterable[ForecastRun], left: int, drawn: Iterable[ForecastRun] = ()
) -> Iterator[ForecastRun]:
    """What `max` leaves of runs in the order of their nominal times, beside those on record, which are `drawn`. It
    counts starts, and a spread may put a later instant first; once the last one has started nothing is planned any
    more."""
    lead = lead_ms(job)
    known: list[ForecastRun] = []
    dues = sorted(run.due_ms for run in drawn)
    for run in coming:
        if len(dues) >= left and run.nominal_ms - lead > dues[left - 1]:
            break
        known.append(run)
        if run.runs:
            insort(dues, run.due_ms)
    last = dues[left - 1] if 0 < left <= len(dues) else None
    for run in known:
        is_too_late = run.runs and last is not None and run.due_ms > last
        yield run._replace(reason=Reason(ReasonCode.MAX_REACHED)) if is_too_late else run


def next_instant(job: Job, now_ms: int) -> int | None:
    """The next time of its schedule within a year, whether or not it is paused."""
    try:
        return next(iter(schedule_of(job).between(now_ms, now_ms + _YEAR_MS)), None)
    except ChronexError:  # a schedule that is defined in another program
        return None


def starts_at_nominal_times(job: Job) -> bool:
    """Does every instant of its schedule start, and where it stands in its expression?"""
    if job.spread is not None or job.progress.paused_from_ms is not None or blackouts_of(job):
        return False
    if job.progress.decided:
        return False
    if job.calendars is not None and job.calendars.on_excluded is not OnExcluded.SKIP:
        return False
    options = placement_options(job)
    return not (options.stagger or options.jitter)


def placement_options(job: Job) -> Options:
    """The options that say where an instant starts, without reading the expression around them."""
    first, _, _ = job.schedule.partition(SCHEDULES_APART)
    brackets = _OPTIONS.search(first)
    return NO_OPTIONS if brackets is None or job.dialect == CUSTOM else _options_alone(brackets.group(0))


@lru_cache(maxsize=1024)
def _options_alone(brackets: str) -> Options:
    """Cached by the options alone: ten thousand different schedules would not fit the cache, their options do."""
    meaning = read(f"@daily {brackets}").meaning
    assert meaning is not None, f"stored options were checked when they were applied: {brackets!r}"
    return meaning.options


def forecast_run(job: Job, nominal_ms: int, now_ms: int) -> ForecastRun:
    """Where an instant will start, as far as that is known before its jitter is drawn, or why it will not.

    A spread may have put it before `now_ms`, where no tick has decided it yet: what holds now decides then.
    """
    options = placement_options(job)
    placed = due_time(job, options, nominal_ms, NO_CHANCE)
    latest_ms = placed.due_ms + max(options.jitter or 0, 1) - 1
    reason = placed.impossible or NO_REASON
    if reason.code is ReasonCode.BLACKOUT and blackout_end(job, placed.due_ms) <= latest_ms:
        reason = NO_REASON  # jitter may put it behind the end of the blackout
    if not reason and barred_at(job, latest_ms, now_ms):  # or jitter may put it behind the end of the pause
        reason = barred_at(job, placed.due_ms, now_ms)
    if not reason and is_beyond_window(job, nominal_ms, placed.due_ms):
        reason = Reason(ReasonCode.WINDOW_EXCEEDED)
    return ForecastRun(nominal_ms, job.id, placed.due_ms, latest_ms, reason, moved_from(job, nominal_ms))


def barred_at(job: Job, due_ms: int, now_ms: int) -> Reason:
    """The pause or the blackout for which it is skipped, if it is due then; what was due before is decided now."""
    progress = job.progress
    # A clock that was set back behind the beginning of a pause has not ended it.
    if progress.was_paused_at(due_ms) or progress.is_paused_at(max(due_ms, now_ms)):
        return Reason(ReasonCode.PAUSED, by=progress.paused_by)
    return (blackout_at(job, now_ms) or NO_REASON) if due_ms <= now_ms else NO_REASON


def is_beyond_window(job: Job, nominal_ms: int, due_ms: int) -> bool:
    """Do spread, stagger and jitter put it where its window is over?"""
    window_ms = placement_options(job).window
    return window_ms is not None and due_ms > nominal_ms + window_ms


def startable(
    job: Job, from_ms: int, now_ms: int, not_before_ms: int | None = None, search: RunSearch | None = None
) -> Iterator[ForecastRun]:
    """The runs from the instant `from_ms` of the schedule on that will start, and not before `not_before_ms`.

    What a pause, a blackout or the clauses of a spread bar is passed over as a whole: it may be a month of a job that
    starts every second.
    """
    if is_always_too_late(job):
        return
    is_plain, is_drawn, lead = starts_at_nominal_times(job), is_random(job), lead_ms(job)
    schedule = schedule_of(job)
    nominal: int | None = from_ms
    barred, barred_from, barred_until = 0, from_ms, from_ms
    while nominal is not None and barred < (MOST_DRAWN if is_drawn else MOST_BARRED):
        if (decided_ms := _decided_until(job, nominal)) is not None:
            nominal = schedule.next(decided_ms)
            continue
        run = ForecastRun(nominal, job.id, nominal, nominal) if is_plain else forecast_run(job, nominal, now_ms)
        not_yet = not_before_ms if not_before_ms is not None and run.latest_ms < not_before_ms else None
        if run.runs and not_yet is None:
            barred = 0
            yield run._replace(due_ms=max(run.due_ms, not_before_ms)) if not_before_ms is not None else run
            nominal = schedule.next(nominal)
            continue
        barred += 1
        free = not_yet if not_yet is not None else _free_from(job, run)
        if free is None:
            return
        if counts_from_ends(job):
            job, nominal = _counted_past(job, max(run.due_ms, now_ms), free)
            schedule = schedule_of(job)
            continue
        # Between two blackouts a run may start: each is passed over for itself.
        is_same = barred > 1 and free == barred_until
        barred_from, barred_until = min(barred_from, run.due_ms) if is_same else run.due_ms, free
        # A spread may put a later instant before what bars this one: as far as it reaches, one by one.
        is_certain = not_yet is not None or job.spread is None or run.reason.code is ReasonCode.UNSCHEDULABLE
        is_certain |= nominal - lead >= barred_from or barred > MOST_BARRED // 2
        is_passed = is_certain and not is_drawn
        is_opening = not_yet is None and run.reason.code is ReasonCode.UNSCHEDULABLE
        first = free if is_opening else free - _reach_ms(job, run)
        nominal = schedule.next(max(nominal, first - 1) if is_passed else nominal)
    if nominal is not None and search is not None:
        search.stopped_ms = nominal - lead


def is_always_too_late(job: Job) -> bool:
    """Does its stagger alone, the same for each instant, put it behind its window?"""
    options = placement_options(job)
    if options.window is None or not options.stagger or job.spread is not None:
        return False
    return stagger_offset(job.id, options.stagger) > options.window


def _decided_until(job: Job, nominal_ms: int) -> int | None:
    """The end of the span in which the instant was decided, where it was: a set clock may leave a year of them."""
    ends = (end for begin, end in job.progress.decided if begin < nominal_ms <= end)
    return max(ends, default=None) if job.progress.decided else None


def _reach_ms(job: Job, run: ForecastRun) -> int:
    """How far behind its instant one may start that what bars this run bars no longer."""
    return run.latest_ms - run.nominal_ms if job.spread is None else widest_ms(job)


def in_order_of_start(
    job: Job,
    from_ms: int | None,
    now_ms: int,
    drawn: Iterable[ForecastRun] = (),
    not_before_ms: int | None = None,
    search: RunSearch | None = None,
) -> Iterator[ForecastRun]:
    """The runs that will start, in the order in which they do, as many as `max` leaves."""
    yield from islice(all_in_order_of_start(job, from_ms, now_ms, drawn, not_before_ms, search), runs_left(job))


def all_in_order_of_start(
    job: Job,
    from_ms: int | None,
    now_ms: int,
    drawn: Iterable[ForecastRun],
    not_before_ms: int | None,
    search: RunSearch | None = None,
) -> Iterator[ForecastRun]:
    """Those on record, which are given, and those that the schedule names from the instant `from_ms` on."""
    planned = iter(()) if from_ms is None else startable(job, from_ms, now_ms, not_before_ms, search)
    on_record = sorted(drawn)
    runs = planned
    if on_record or job.spread is not None:
        runs = _by_due_time(merge(on_record, planned, key=_nominal), lead_ms(job))
    yield from runs


def _nominal(run: ForecastRun) -> int:
    return run.nominal_ms


def _by_due_time(runs: Iterable[ForecastRun], lead: int) -> Iterator[ForecastRun]:
    """A spread, or what chance has drawn, may put a later instant first: as far as it reaches, they are compared."""
    known: list[tuple[int, ForecastRun]] = []
    for run in runs:
        while known and known[0][0] <= run.nominal_ms - lead:
            yield heappop(known)[1]
        heappush(known, (run.due_ms, run))
    while known:
        yield heappop(known)[1]


def runs_left(job: Job) -> int | None:
    """How many more `max` lets start; None where there is none."""
    limit = placement_options(job).max
    return None if limit is None else max(limit - job.progress.counters.fired, 0)


def _free_from(job: Job, run: ForecastRun) -> int | None:
    """The end of what bars the run, or the first instant that the clauses of its spread let start; where there is
    neither its own time, and None where nothing starts any more."""
    if run.reason.code is ReasonCode.BLACKOUT:
        return blackout_end(job, run.due_ms)
    if run.reason.code is ReasonCode.UNSCHEDULABLE and job.spread is not None:
        # Where its own window has an opening, the draws did not find it, and those of the next one may.
        return spread_of(job.spread, job.id, job.timezone).opening_from(run.nominal_ms)
    until = job.progress.paused_until_ms
    return until if run.reason.code is ReasonCode.PAUSED and until is not None else run.nominal_ms


def widest_ms(job: Job) -> int:
    """How far before its due time the nominal time of a run can lie."""
    options = placement_options(job)
    spread = 0 if job.spread is None else job.spread.duration_ms
    return spread + (options.stagger or 0) + (options.jitter or 0)


def may_wait_for(job: Job) -> tuple[str, ...]:
    """What may hold up its runs at their time, though nothing is wrong with them: a group that others fill, or a
    condition. When these are free again nobody knows beforehand, so a view says this instead of another instant."""
    return (*(f"group {name}" for name in sorted(job.groups)), *job.wait_for)


def coming_starts_of(
    job: Job,
    after_ms: int,
    until_ms: int,
    now_ms: int | None = None,
    drawn: Iterable[ForecastRun] = (),
    not_before_ms: int | None = None,
) -> Iterator[int]:
    """When its runs start, in the order of their nominal times in (after, until], decided or not; not those that will
    not start. `drawn` are those on record that will: `max` counts them. It is now `after_ms` unless told."""
    if not job.enabled:
        return
    now_ms = after_ms if now_ms is None else now_ms
    try:
        if runs_left(job) is not None:
            yield from _counted_starts(job, after_ms, until_ms, now_ms, drawn, not_before_ms)
        elif starts_at_nominal_times(job):
            yield from instants_of(job, after_ms, until_ms)  # much faster than one after the other
        elif (first := next(instants_of(job, after_ms, until_ms), None)) is not None:
            runs = takewhile(lambda run: run.nominal_ms <= until_ms, startable(job, first, now_ms))
            yield from (run.due_ms for run in runs)
    except CustomScheduleError:
        return


def _counted_starts(
    job: Job, after_ms: int, until_ms: int, now_ms: int, drawn: Iterable[ForecastRun], not_before_ms: int | None
) -> Iterator[int]:
    """Of a job with `max` all that come before are counted too, from what was decided last."""
    cursor = job.progress.cursor_ms
    first = schedule_of(job).next(after_ms if cursor is None else min(cursor, after_ms))
    on_record = {run.nominal_ms for run in drawn}
    last = until_ms + widest_ms(job)
    runs = takewhile(lambda run: run.due_ms <= last, in_order_of_start(job, first, now_ms, drawn, not_before_ms))
    found = (run for run in runs if after_ms < run.nominal_ms <= until_ms and run.nominal_ms not in on_record)
    yield from (run.due_ms for run in sorted(found))
