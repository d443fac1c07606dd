"""What takes longer than a key press: lanes, clock changes and density, counted beside the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from chronex.errors import ChronexError
from chronex.model.records import Job
from chronex.timing.job_schedule import is_interval, schedule_of
from chronex.timing.zones import Zone
from chronex.views.jobs import Row
from chronex_tui.model.crowd import Crowd, busiest_minute, crowd_of
from chronex_tui.model.density import Density, Tally, first_midnight
from chronex_tui.model.snapshot import RunItem
from chronex_tui.model.timeline import Lane, Mark, Window, past_marks, sorted_lanes
from chronex_tui.model.wording import DAY, HOUR

MOST_LANES = 200
_MOST_PLANNED = 400
# A job that starts more often than this in a week is counted by its first day.
_MOST_COUNTED = 20_000


def lanes(rows: Sequence[Row], items: Iterable[RunItem], window: Window, now_ms: int) -> tuple[Lane, ...]:
    """Past, present and planned runs inside the window, for the jobs that have any."""
    marks = past_marks(items, window)
    for row in rows:
        found = list(_planned(row, window, now_ms))
        if found:
            marks.setdefault(row.job.id, []).extend(found)
    return tuple(sorted_lanes(marks, now_ms, MOST_LANES))


def _planned(row: Row, window: Window, now_ms: int) -> Iterable[Mark]:
    if row.retry is not None and window.start_ms <= row.retry.at_ms <= window.end_ms:
        yield Mark(row.retry.at_ms, None, "retry-due")
    if row.next is None or row.next.due_ms > window.end_ms or row.is_paused:
        return
    yield Mark(row.next.due_ms, None, "planned")
    after = max(row.next.nominal_ms, now_ms, window.start_ms)
    for nominal in islice(_instants(row.job, after, window.end_ms), _MOST_PLANNED):
        yield Mark(nominal, None, "planned")


def _instants(job: Job, after_ms: int, until_ms: int) -> Iterator[int]:
    """Those of its schedule; none where the schedule is known to another program only."""
    try:
        return schedule_of(job).between(after_ms, until_ms)
    except ChronexError:
        return iter(())


def coming_density(jobs: Iterable[Job], now_ms: int, zone: Zone) -> Density:
    """Starts by day and hour of the seven days that begin with today, from now on."""
    tally = Tally(first_midnight(now_ms, zone), zone)
    end = tally.start_ms + 7 * DAY
    known: dict[tuple[object, ...], list[int]] = {}
    for job in jobs:
        key = (job.schedule, job.timezone, job.dialect, job.dst, job.anchor_ms if is_interval(job) else None)
        instants = known.get(key)
        if instants is None:
            instants = known[key] = list(islice(_instants(job, now_ms, end), _MOST_COUNTED + 1))
        if len(instants) <= _MOST_COUNTED:
            tally.add(job.id, instants)
        else:
            _carry_on(tally, job, now_ms, end)
    return tally.density()


def _carry_on(tally: Tally, job: Job, now_ms: int, end_ms: int) -> None:
    """One minute of each hour, weighed: exact where every minute is alike, as it is for such schedules."""
    tally.is_cut = True
    for hour in range(now_ms // HOUR, end_ms // HOUR):
        start = max(hour * HOUR, now_ms)
        tally.add(job.id, islice(_instants(job, start - 1, start + 59_999), 60), weight=60)


def usual_times(items: Iterable[RunItem]) -> dict[str, int]:
    """How long each job's runs took, the middle one of those that are known."""
    found: dict[str, list[int]] = {}
    for item in items:
        if item.started_ms is not None and item.finished_ms is not None:
            found.setdefault(item.key.job, []).append(item.finished_ms - item.started_ms)
    return {name: sorted(times)[len(times) // 2] for name, times in found.items()}


def coming_time(jobs: Iterable[Job], usual: dict[str, int], now_ms: int, zone: Zone) -> Density:
    """Minutes of run time to come, if every run takes as long as usual; jobs that never ran count nothing."""
    tally = Tally(first_midnight(now_ms, zone), zone)
    end = tally.start_ms + 7 * DAY
    for job in jobs:
        took = usual.get(job.id, 0)
        instants = list(islice(_instants(job, now_ms, end), _MOST_COUNTED + 1)) if took else []
        if len(instants) > _MOST_COUNTED:
            tally.is_cut = True
            hours = (max(hour * HOUR, now_ms) for hour in range(now_ms // HOUR, end // HOUR))
            found = [(ms, 60) for start in hours for ms in islice(_instants(job, start - 1, start + 59_999), 60)]
        else:
            found = [(ms, 1) for ms in instants]
        for ms, weight in found:
            tally.add_time(job.id, ms, ms + took, weight)
    return tally.time()


def past_time(items: Iterable[RunItem], now_ms: int, zone: Zone) -> Density:
    """Minutes of run time of the last seven days; what still runs counts up to now."""
    tally = Tally(first_midnight(now_ms, zone, past=True), zone)
    for item in items:
        if item.started_ms is not None:
            tally.add_time(item.key.job, item.started_ms, now_ms if item.finished_ms is None else item.finished_ms)
    return tally.time(is_past=True)


def busiest_crowd(jobs: Sequence[Job], now_ms: int, zone: Zone) -> Crowd | None:
    """The fullest minute of the coming week, and how it could be spread; None where no two start together."""
    at_ms = busiest_minute(list(coming_density(jobs, now_ms, zone).minutes.values()))
    return None if at_ms is None else crowd_of(jobs, at_ms)


def past_density(items: Iterable[RunItem], now_ms: int, zone: Zone) -> Density:
    """The same of what did start, over the last seven days."""
    tally = Tally(first_midnight(now_ms, zone, past=True), zone)
    for item in items:
        if item.started_ms is not None and item.started_ms >= tally.start_ms:
            tally.add(item.key.job, (item.started_ms,))
    return tally.density(is_past=True)
