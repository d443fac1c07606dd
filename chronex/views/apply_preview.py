"""What an update would do to the coming days: occurrences added, removed and moved, and what would fire at once.

The coming occurrences are those of `coming_runs`: the planner's own instants and placement, without a store. Nothing
is drawn: an occurrence with jitter may start anywhere from `due_ms` to `latest_ms`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from chronex.engine.plan import NO_CHANCE, plan_job
from chronex.engine.update.diff import Change, Changed, JobChange, UpdateOptions, plan_changes
from chronex.engine.update.group_changes import GroupChange
from chronex.errors import CustomScheduleError
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState
from chronex.storage.journal import head
from chronex.storage.records import Reading
from chronex.text.durations import DAY_MS
from chronex.timing.job_schedule import runs_at_start, schedule_of
from chronex.timing.zones import Zone, load_zone
from chronex.views.coming_runs import ForecastRun, RunSearch, forecast_job, in_order_of_start, may_wait_for, runs_left
from chronex.views.known_runs import behind_queue, beside_records, drawn_runs
from chronex.views.source_changes import changed_groups

DEFAULT_DAYS = 7
# A job that fires every second would fill a week with 600,000 lines.
MOST_PER_JOB = 2_000


class Moved(NamedTuple):
    before: ForecastRun
    after: ForecastRun


class JobPreview(NamedTuple):
    """Of one job. `until_ms` is how far the comparison reaches, which is less than asked for where it was cut."""

    job: str
    added: tuple[ForecastRun, ...]
    removed: tuple[ForecastRun, ...]
    moved: tuple[Moved, ...]
    fires_now: tuple[ForecastRun, ...]
    until_ms: int
    # Instants of the new schedule that will not start, each with its reason: a spread without a place, a blackout.
    barred: tuple[ForecastRun, ...] = ()
    # The jobs that it will follow: without a schedule it runs when those have completed, at times nobody knows yet.
    after: tuple[str, ...] = ()
    # What may hold up each of its runs at its time.
    may_wait: tuple[str, ...] = ()
    # Where none starts in these days: the first that does, or that none ever will, or how far that was looked at.
    first_later: ForecastRun | None = None
    never: bool = False
    not_before_ms: int | None = None


class Preview(NamedTuple):
    """`basis` can be given to an apply, which then refuses if the jobs were changed since the preview."""

    changes: tuple[Changed, ...]
    effects: tuple[JobPreview, ...]
    basis: int
    groups: tuple[GroupChange, ...] = ()

    @property
    def fires_now(self) -> bool:
        return any(effect.fires_now for effect in self.effects)


def preview(
    reading: Reading, desired: Iterable[Job], now_ms: int, how: UpdateOptions, days: int = DEFAULT_DAYS
) -> Preview:
    desired = list(desired)
    steps = plan_changes(reading, desired, now_ms, how)
    changed = [step for step in steps if step.kind is not Change.UNCHANGED]
    effects = tuple(preview_job(reading, step, now_ms, now_ms + days * DAY_MS) for step in changed)
    changes = tuple(Changed(s.job_id, s.kind, s.job.version if s.job is not None else 0) for s in steps)
    return Preview(changes, effects, head(reading.tx), changed_groups(reading, desired, how.owns))


def preview_job(reading: Reading, step: JobChange, now_ms: int, until_ms: int) -> JobPreview:
    recorded = reading.occurrences(step.job_id)
    waiting = [o for o in recorded if o.state is OccurrenceState.PENDING and not o.manual]
    touched = {one.nominal_ms for one in (*step.rewritten, *step.withdrawn)}
    left = [one for one in waiting if one.nominal_ms not in touched]
    kept = [one for one in step.rewritten if one.state is OccurrenceState.PENDING and not one.manual]
    withdrawn = {one.nominal_ms for one in step.withdrawn}
    staying = [one for one in recorded if one.nominal_ms not in withdrawn]
    old = None if step.old is None else _beside(step.old, recorded, now_ms)
    edited = None if step.job is None else _beside(step.job, staying, now_ms)
    before, _, until_before = _coming(old, waiting, now_ms, until_ms)
    after, barred, until_after = _coming(edited, (*left, *kept, *step.added), now_ms, until_ms)
    until_ms = min(until_before, until_after)
    removed = [one for key, one in before.items() if key not in after and key <= until_ms]
    added = [one for key, one in after.items() if key not in before and key <= until_ms]
    shifted = [Moved(one, after[key]) for key, one in before.items() if key in after and _differ(one, after[key])]
    moved, removed, added = _paired(step, removed, added)
    fires = _fires_now(step, kept, waiting, now_ms)
    parents = () if step.job is None else step.job.after
    may_wait = () if step.job is None else may_wait_for(step.job)
    ordered = tuple(sorted((*shifted, *moved), key=lambda pair: pair.before.nominal_ms))
    found = (tuple(added), tuple(removed), ordered, tuple(fires))
    later = _Later() if edited is None or after else _later(edited, now_ms)
    return JobPreview(step.job_id, *found, until_ms, barred, parents, may_wait, *later)


def _beside(job: Job, recorded: list[Occurrence], now_ms: int) -> Job:
    """The job behind what is on record: `max` counts what waits for its turn, and what a person just asked for."""
    open_ones = (OccurrenceState.QUEUED, OccurrenceState.PENDING)
    asked = [o for o in recorded if o.state in open_ones and (o.manual or o.state is OccurrenceState.QUEUED)]
    return behind_queue(beside_records(job, recorded), asked, now_ms)


class _Later(NamedTuple):
    first: ForecastRun | None = None
    never: bool = False
    not_before_ms: int | None = None


def _later(job: Job, now_ms: int) -> _Later:
    """The first run of a job of which none is near, and whether there is none at all; of a job that is disabled,
    paused or has no schedule nobody can tell by that."""
    if not job.schedule or not job.enabled or job.progress.paused or runs_at_start(job):
        return _Later()
    search = RunSearch()
    try:
        first = next(in_order_of_start(job, schedule_of(job).next(now_ms), now_ms, search=search), None)
    except CustomScheduleError:  # it is not registered in this process
        return _Later()
    if first is not None:
        return _Later(first)
    return _Later(never=search.stopped_ms is None, not_before_ms=search.stopped_ms)


def _differ(before: ForecastRun, after: ForecastRun) -> bool:
    return (before.due_ms, before.latest_ms) != (after.due_ms, after.latest_ms)


def _coming(
    job: Job | None, waiting: Iterable[Occurrence], now_ms: int, until_ms: int
) -> tuple[dict[int, ForecastRun], tuple[ForecastRun, ...], int]:
    """By nominal time: what waits already, and what the schedule names after that; beside it what will not start."""
    if job is None:
        found = {
            o.nominal_ms: ForecastRun(o.nominal_ms, o.job, o.due_ms, o.due_ms) for o in waiting if o.due_ms > now_ms
        }
        return found, (), until_ms
    drawn = drawn_runs(job, waiting, now_ms)  # what starts with the next tick counts for `max` too
    coming = list(islice(forecast_job(job, now_ms, until_ms, drawn), MOST_PER_JOB))
    starting = sorted((*drawn, *(one for one in coming if one.runs)), key=lambda run: run.due_ms)
    overdue = {run.nominal_ms for run in drawn if run.due_ms <= now_ms}
    found = {one.nominal_ms: one for one in starting[: runs_left(job)] if one.nominal_ms not in overdue}
    is_cut = len(coming) == MOST_PER_JOB
    barred = tuple(one for one in coming if not one.runs)
    return dict(sorted(found.items())), barred, coming[-1].nominal_ms if is_cut else until_ms


def _paired(
    step: JobChange, removed: list[ForecastRun], added: list[ForecastRun]
) -> tuple[list[Moved], list[ForecastRun], list[ForecastRun]]:
    """A day that loses as many as it gains has moved them: 03:00 to 05:00 is one change, not two."""
    if step.job is None or not removed or not added:
        return [], removed, added
    zone = load_zone(step.job.timezone)
    days: dict[int, tuple[list[ForecastRun], list[ForecastRun]]] = defaultdict(lambda: ([], []))
    for index, side in enumerate((removed, added)):
        for one in side:
            days[_day(one.nominal_ms, zone)][index].append(one)
    moved: list[Moved] = []
    lost: list[ForecastRun] = []
    gained: list[ForecastRun] = []
    for _, (gone, come) in sorted(days.items()):
        if len(gone) == len(come):
            moved += [Moved(one, other) for one, other in zip(gone, come, strict=True)]
        else:
            lost += gone
            gained += come
    return moved, lost, gained


def _day(ms: int, zone: Zone) -> int:
    second = ms // 1000
    return (second + zone.offset_at(second)) // 86_400


def _fires_now(
    step: JobChange, kept: Iterable[Occurrence], waiting: Iterable[Occurrence], now_ms: int
) -> list[ForecastRun]:
    """What starts with the next tick because of the edit: missed instants that another recovery strategy runs, and
    what waited for later and is placed in the past."""
    if step.job is None:
        return []
    already = {o.nominal_ms for o in waiting if o.due_ms <= now_ms} | (
        _catch_up(step.old, now_ms) if step.old else set()
    )
    early = {o.nominal_ms for o in (*kept, *step.added) if o.due_ms <= now_ms}
    return [
        ForecastRun(nominal_ms, step.job_id, now_ms, now_ms)
        for nominal_ms in sorted((_catch_up(step.job, now_ms) | early) - already)
    ]


def _catch_up(job: Job, now_ms: int) -> set[int]:
    """Instants that a daemon which starts now would run at once."""
    try:
        plan = plan_job(job, schedule_of(job), now_ms, now_ms, NO_CHANCE)
    except CustomScheduleError:
        return set()
    held = {
        o.nominal_ms
        for o, _ in plan.planned
        if job.progress.is_paused_at(now_ms) or job.progress.was_paused_at(o.due_ms)
    }
    return {o.nominal_ms for o, outcome in plan.planned if outcome.runs and o.due_ms <= now_ms} - held
