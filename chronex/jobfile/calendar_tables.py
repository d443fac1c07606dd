"""[calendars.NAME], and what a job and the scheduler say of them: except, only, on_excluded, workday, blackout."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from chronex.errors import UnknownZoneError
from chronex.expr.fields import WEEKDAYS
from chronex.jobfile.calendar_sources import of_dates, of_holidays, of_ics, of_weekdays
from chronex.jobfile.entries import Entry, Reader, RefusedError, read_each, read_table
from chronex.jobfile.ics_events import CalendarError
from chronex.jobfile.values import check_name, choice_of, filled_text, refuse_duplicates, texts, whole_number
from chronex.model.calendars import CalendarRules, JobCalendar, OnExcluded
from chronex.model.job import Job
from chronex.text.durations import DAY_MS
from chronex.text.instants import EPOCH_ORDINAL
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted
from chronex.timing.job_schedule import is_interval, schedule_of
from chronex.timing.zones import load_zone, utc_zone

MOST_CALENDARS = 200
MOST_DATES = 1_000
_RANGE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:\.\.([0-9]{4}-[0-9]{2}-[0-9]{2}))?", re.ASCII)
# A job that starts more often than this in a day has no day to move a run to.
MOST_MOVED_A_DAY = 48
_A_YEAR = 1_798_761_600_000  # 2027: one year has as many runs as another


def _date_range(entry: Entry) -> tuple[int, int]:
    if isinstance(entry.value, date) and not isinstance(entry.value, datetime):
        day = entry.value.toordinal() - EPOCH_ORDINAL  # TOML has dates of its own
        return day, day
    written = filled_text(entry)
    found = date_range(written.strip())
    if found is None:
        hint = 'write "2026-12-24", or from the first to the last day "2026-12-24..2027-01-02"'
        entry.refuse(f"{quoted(written)} is neither a date nor a range of dates", hint, "J031")
    if found[1] < found[0]:
        first, _, last = written.strip().partition("..")
        fix = f'"{last}..{first}"'
        entry.refuse(f"{quoted(written)} ends before it begins", f"write {fix}", "J031", fix=fix)
    return found


def date_range(written: str) -> tuple[int, int] | None:
    """The first and the last day of `2026-12-24..2027-01-02`, or of a single date; None where it is neither."""
    match = _RANGE.fullmatch(written)
    try:
        days = [date.fromisoformat(text) for text in (match[1], match[2] or match[1])] if match else []
    except ValueError:
        return None
    return (days[0].toordinal() - EPOCH_ORDINAL, days[1].toordinal() - EPOCH_ORDINAL) if days else None


def _dates(entry: Entry) -> list[tuple[int, int]]:
    if len(entry.expect_list(entry.assignment('["2026-12-24..2027-01-02"]'))) > MOST_DATES:
        entry.refuse(f"{entry.label} has more than {MOST_DATES} dates", "join neighbours to ranges", "J031")
    found: list[tuple[int, int]] = read_each(entry, _date_range)
    if not found:
        entry.refuse(f"{entry.label} is empty", 'write for example ["2026-12-24"]', "J013")
    return found


def _weekday(entry: Entry) -> int:
    written = filled_text(entry).upper()
    if written not in WEEKDAYS:
        meant = nearest(written, WEEKDAYS)
        hint = f"did you mean {meant}?" if meant else f"it is one of {', '.join(WEEKDAYS)}"
        entry.refuse(f"{entry.label} cannot be {quoted(written)}", hint, "J013", fix=f'"{meant}"' if meant else None)
    return (WEEKDAYS.index(written) - 1) % 7 + 1  # cron counts from Sunday = 0, calendars from Monday = 1


def _weekdays(entry: Entry) -> tuple[int, ...]:
    entry.expect_list(entry.assignment('["SAT", "SUN"]'))
    found: list[int] = read_each(entry, _weekday)
    if not found:
        entry.refuse(f"{entry.label} is empty", 'write for example ["SAT", "SUN"]', "J013")
    refuse_duplicates(entry, [WEEKDAYS[day % 7] for day in found])
    return tuple(found)


def _workdays(entry: Entry) -> tuple[int, ...]:
    """Working days of the month: a number, or a list of them; the negative ones count from its end."""
    if isinstance(entry.value, int) and not isinstance(entry.value, bool):
        return (_workday(entry),)
    entry.expect_list(entry.assignment("[1, -1]"))
    found: list[int] = read_each(entry, _workday)
    refuse_duplicates(entry, [str(number) for number in found])
    return tuple(found)


def _workday(entry: Entry) -> int:
    found = whole_number(-23, 23)(entry)
    if found == 0:
        entry.refuse(f"{entry.label} cannot be 0", "1 is the first working day of the month, -1 the last", "J014")
    return found


CALENDAR: dict[str, Reader] = {
    "holidays": filled_text,
    "dates": _dates,
    "ics": filled_text,
    "weekdays": _weekdays,
}
# What [defaults] and a job say of calendars; `workday` only a job.
CALENDAR_DEFAULTS: dict[str, Reader] = {
    "except": texts,
    "only": texts,
    "on_excluded": choice_of(OnExcluded),
}
CALENDAR_KEYS: dict[str, Reader] = {**CALENDAR_DEFAULTS, "workday": _workdays}


def read_calendars(entry: Entry, zone: str) -> None:
    """The calendars of the file onto its sheet; a name whose calendar is refused is known all the same."""
    table = entry.expect_table("[calendars.NAME] and its keys below it")
    if len(table) > MOST_CALENDARS:
        entry.refuse(f"there are more than {MOST_CALENDARS} calendars", "join some of them", "J031", entry.key_span)
    for name in table:
        entry.sheet.calendars[name] = None
        child = entry.child(name)
        try:
            check_name(child, name, f"calendar {quoted(name)}", at_key=True)
            entry.sheet.calendars[name] = _calendar(child, name, zone)
        except RefusedError:
            continue


def _calendar(entry: Entry, name: str, zone: str) -> JobCalendar:
    example = f'[calendars.{entry.label}] with holidays = "DE-BY" below it'
    found = read_table(entry, CALENDAR, example)
    written = [key for key in entry.expect_table() if key in CALENDAR]
    if not written:
        hint = 'write holidays = "DE-BY", dates = ["2026-12-24"], ics = "company.ics" or weekdays = ["SAT", "SUN"]'
        entry.refuse(f"calendar {quoted(name)} has no days", hint, "J012", entry.key_span)
    if len(written) > 1:
        message = f"calendar {quoted(name)} has both {written[0]} and {written[1]}"
        entry.refuse(message, "make two calendars; a job can name several", "J024", entry.child(written[1]).key_span)
    if written[0] not in found:
        raise RefusedError
    try:
        return _resolved(entry, name, written[0], found[written[0]], zone)
    except CalendarError as error:
        entry.child(written[0]).refuse(error.problem, error.hint, "J031")


def _resolved(entry: Entry, name: str, source: str, value: Any, zone: str) -> JobCalendar:
    now_ms = entry.sheet.now_ms
    match source:
        case "holidays":
            return of_holidays(name, value.strip().upper(), now_ms)
        case "dates":
            return of_dates(name, value)
        case "weekdays":
            return of_weekdays(name, value)
    path = Path(entry.sheet.path).parent / Path(value)
    try:
        floating = load_zone(zone)
    except UnknownZoneError:
        floating = utc_zone()  # which the file is refused for already
    return of_ics(name, path.absolute(), now_ms, floating)


def named_calendars(entry: Entry, names: Iterable[str]) -> tuple[JobCalendar, ...]:
    """The calendars of these names, which `entry` lists; an unknown name is reported where it stands."""
    known = entry.sheet.calendars
    found: list[JobCalendar] = []
    for index, name in enumerate(names):
        calendar = known.get(name)
        if calendar is not None:
            found.append(calendar)
        elif name not in known:
            meant = nearest(name, known)
            hint = f"did you mean {meant}?" if meant else _known_hint(name, known)
            place = entry.child(index) if isinstance(entry.value, list) else entry
            place.report(f"unknown calendar {quoted(name)}", hint, "J030", fix=f'"{meant}"' if meant else None)
    return tuple(found)


def _known_hint(name: str, known: dict[str, JobCalendar | None]) -> str:
    if known:
        return f"the calendars here are {', '.join(sorted(known))}"
    return f"write [calendars.{quoted(name)[1:-1]}] with holidays, dates, ics or weekdays below it"


def calendar_rules(
    entry: Entry, own: dict[str, Any], defaults: dict[str, Any], blackout: tuple[JobCalendar, ...]
) -> CalendarRules | None:
    """The rules of a job; None where it has none. Names of [defaults] were checked there."""
    excluded, only = (_of_key(key, entry, own, defaults) for key in ("except", "only"))
    layered = {**defaults, **own}
    rules = CalendarRules(
        excluded=excluded,
        only=only,
        on_excluded=layered.get("on_excluded", OnExcluded.SKIP),
        workday=own.get("workday", ()),
        blackout=blackout,
    )
    if not excluded and not only:
        _check_nothing_to_exclude(entry, own, layered)
        rules = CalendarRules(workday=rules.workday, blackout=blackout)
    if rules.workday and rules.on_excluded is not OnExcluded.SKIP:
        place = entry.child("workday")
        hint = "remove one of them"
        place.report("workday names working days already, so nothing is left to move", hint, "J024", place.key_span)
    return rules if rules != CalendarRules() else None


def _of_key(key: str, entry: Entry, own: dict[str, Any], defaults: dict[str, Any]) -> tuple[JobCalendar, ...]:
    if key in own:
        return named_calendars(entry.child(key), own[key])
    found = (entry.sheet.calendars.get(name) for name in defaults.get(key, ()))
    return tuple(calendar for calendar in found if calendar is not None)


def _check_nothing_to_exclude(entry: Entry, own: dict[str, Any], layered: dict[str, Any]) -> None:
    is_named = any(layered.get(key) for key in ("except", "only"))  # by a name that was refused
    if own.get("on_excluded", OnExcluded.SKIP) is not OnExcluded.SKIP and not is_named:
        place = entry.child("on_excluded")
        hint = 'name calendars with except = ["…"], or remove it'
        place.report(
            "on_excluded says what becomes of excluded runs, and no calendar excludes any",
            hint,
            "J024",
            place.key_span,
        )


def check_moves(entry: Entry, job: Job) -> None:
    """A run is moved to the same time of another day: that is for schedules with few runs a day."""
    if job.calendars is None or job.calendars.on_excluded is OnExcluded.SKIP:
        return
    place = entry.child("on_excluded") if "on_excluded" in entry.expect_table() else entry
    if is_interval(job):
        hint = 'write on_excluded = "skip", or a schedule with times of the day'
        place.report("an interval has no time of the day to keep on another day", hint, "J024", place.key_span)
        return
    plain = schedule_of(
        Job(id=job.id, schedule=job.schedule, timezone=job.timezone, dialect=job.dialect, dst=job.dst)
    )
    first = plain.next(_A_YEAR)
    if first is None:
        return
    # Where the first run of the year is, a day of the schedule has as many as it ever has, within one.
    busiest = list(islice(plain.between(first - 1, first + 31 * DAY_MS), 31 * MOST_MOVED_A_DAY + 1))
    if len(busiest) > 31 * MOST_MOVED_A_DAY or _most_in_a_day(busiest) > MOST_MOVED_A_DAY:
        hint = 'write on_excluded = "skip"'
        place.report(f"more than {MOST_MOVED_A_DAY} runs of a day would be moved", hint, "J024", place.key_span)


def _most_in_a_day(instants: list[int]) -> int:
    most = first = 0
    for index, instant in enumerate(instants):
        while instant - instants[first] >= DAY_MS:
            first += 1
        most = max(most, index - first + 1)
    return most
