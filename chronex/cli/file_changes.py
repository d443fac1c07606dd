"""Whether job files and the sources of calendars say something else than what is applied: saved is not applied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.update.calendar_changes import say_the_same
from chronex.errors import ChronexError, JobChainError
from chronex.jobfile.calendar_sources import current_data, made_again
from chronex.jobfile.ics_events import CalendarError
from chronex.model.calendars import CalendarRules, JobCalendar
from chronex.model.job import Job
from chronex.model.reasons import Severity, TroubleCode
from chronex.storage.records import Reading
from chronex.text.durations import DAY_MS
from chronex.timing.calendar_days import day_text
from chronex.timing.job_schedule import schedule_of
from chronex.timing.zones import load_zone
from chronex.views.source_changes import SourceChanges, source_changes
from chronex.views.troubles import Trouble
from chronex_store.opening import OpenedStore

_MOST_FILES = 50


def unapplied_changes(store: OpenedStore) -> list[Trouble]:
    """One for each file of stored jobs that is newer than they are and differs, or has a mistake."""
    by_file: dict[str, list[Job]] = defaultdict(list)

    def read(reading: Reading) -> None:
        after: str | None = None
        while jobs := reading.jobs(after):
            after = jobs[-1].id
            for job in jobs:
                if job.source.startswith("/"):
                    by_file[job.source].append(job)

    store.view(lambda tx: read(Reading(tx)))
    newer = [path for path, jobs in sorted(by_file.items()) if _is_newer(Path(path), jobs)]
    found = (_difference(store, Path(path)) for path in newer[:_MOST_FILES])
    return [one for one in found if one is not None]


def _is_newer(path: Path, applied: list[Job]) -> bool:
    try:
        saved_ms = path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return False  # on another machine, or removed: its jobs are still what was applied
    return saved_ms > max(job.updated_ms for job in applied)


def _difference(store: OpenedStore, path: Path) -> Trouble | None:
    shown = str(path)
    try:
        names = _changes(store, path).names
    except ChronexError as error:
        first = str(error).partition("\n")[0]
        words = f"{shown} has a mistake and is not applied: {first}"
        # What the jobs of other files have to do with it no linter of one file can tell.
        command = "apply --dry-run" if isinstance(error, JobChainError) else "lint"
        return Trouble(Severity.WARNING, TroubleCode.UNAPPLIED_CHANGES, words, f"chronex {command} {quote(shown)}")
    if not names:
        return None
    of = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    words = f"{shown} has changes that are not applied: {of}"
    hint = f"chronex apply --dry-run {quote(shown)} shows what"
    return Trouble(Severity.WARNING, TroubleCode.UNAPPLIED_CHANGES, words, hint)


def _changes(store: OpenedStore, path: Path) -> SourceChanges:
    """What an apply would do, and nothing else, is a change that is not applied."""
    from chronex.cli.job_file import load_job_file
    from chronex.daemon.reload import file_source

    found = load_job_file(path)
    source = file_source(path)._replace(groups=found.groups)
    return store.view(lambda tx: source_changes(Reading(tx), found.jobs, source, store.now()))


# Whether the calendars of the stored jobs are still what their sources say: new holiday data, a changed file.

# A calendar that ends sooner than this is worth a word.
_NEAR_DAYS = 366
_AHEAD_DAYS = 366
_MOST_COMPARED = 5_000


class StaleCalendar(NamedTuple):
    """A calendar that is not what its source says now; `moved_from` is the first day on which a run would move."""

    name: str
    problem: str
    jobs: tuple[str, ...]
    moved_from: str | None = None


def stale_calendars(jobs: Iterable[Job], now_ms: int) -> list[StaleCalendar]:
    """One for each calendar with a source outside of the job file that says something else now, or soon ends."""
    users: dict[JobCalendar, list[Job]] = {}
    for job in jobs:
        for calendar in dict.fromkeys(() if job.calendars is None else job.calendars.all):
            users.setdefault(calendar, []).append(job)
    found = (_stale(calendar, used_by, now_ms) for calendar, used_by in users.items())
    return [one for one in found if one is not None]


def _stale(calendar: JobCalendar, jobs: list[Job], now_ms: int) -> StaleCalendar | None:
    names, today = tuple(job.shown_name for job in jobs), now_ms // DAY_MS
    if calendar.until_day is None:
        return None
    try:
        new = None
        if current_data(calendar) != calendar.data:
            new = made_again(calendar, now_ms, load_zone(jobs[0].timezone))
    except CalendarError as error:
        return StaleCalendar(calendar.name, f"calendar {calendar.name} cannot be made again: {error.problem}", names)
    if new is not None and not say_the_same(calendar, new, today):
        moved = [(at, job.shown_name) for job in jobs if (at := _first_move(job, calendar, new, now_ms)) is not None]
        if moved:
            first = day_text(min(moved)[0] // DAY_MS)
            of = ", ".join(name for _, name in moved[:3]) + (f" and {len(moved) - 3} more" if len(moved) > 3 else "")
            text = f"calendar {calendar.name} has new data ({new.data}), and runs of {of} would move from {first} on"
            return StaleCalendar(calendar.name, text, tuple(name for _, name in moved), first)
    if calendar.until_day - today < _NEAR_DAYS:
        text = f"calendar {calendar.name} is known until {day_text(calendar.until_day)} only"
        return StaleCalendar(calendar.name, text, names)
    return None


def _first_move(job: Job, old: JobCalendar, new: JobCalendar, now_ms: int) -> int | None:
    """The first instant within a year that only one of the two calendars leaves, or that a blackout bars in one."""
    end_ms = now_ms + _AHEAD_DAYS * DAY_MS
    if job.calendars is not None and old in job.calendars.blackout:
        return now_ms  # whatever is due on the days that differ
    changed = replace(job, calendars=_with(job.calendars, old, new))
    before, after = (schedule_of(one).between(now_ms, end_ms) for one in (job, changed))
    for _ in range(_MOST_COMPARED):
        ours, theirs = next(before, None), next(after, None)
        if ours != theirs:
            return min(one for one in (ours, theirs) if one is not None)
        if ours is None:
            return None
    return None


def _with(rules: CalendarRules | None, old: JobCalendar, new: JobCalendar) -> CalendarRules | None:
    if rules is None:
        return None
    return replace(
        rules,
        excluded=tuple(new if one == old else one for one in rules.excluded),
        only=tuple(new if one == old else one for one in rules.only),
    )
