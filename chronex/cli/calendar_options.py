"""`--calendar` of `explain` and `next`: a calendar of the job file by its name, or one that is written out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chronex.cli.options import UsageError, choose, job_file_path
from chronex.expr.fields import WEEKDAYS
from chronex.expr.meaning import Every

if TYPE_CHECKING:
    from chronex.model.calendars import CalendarRules, JobCalendar
    from chronex.timing.expression import Expression
    from chronex.timing.zones import Zone

_SOURCES = ("holidays", "dates", "ics", "weekdays")


def calendar_rules_of(
    calendars: Sequence[str] | None,
    on_excluded: str,
    workday: Sequence[int] | None,
    when: tuple[int, Zone],
    expression: Expression,
) -> CalendarRules | None:
    """The rules of `--calendar`, `--on-excluded` and `--workday`, as of a time and in a zone; None where there are
    none. Raises UsageError."""
    given, workday = calendars or (), workday or ()
    if not given and not workday and on_excluded == "skip":
        return None  # the records are not loaded for it
    from chronex.model.calendars import CalendarRules, OnExcluded

    choose("--on-excluded", on_excluded, tuple(OnExcluded))
    if not given and not workday:
        raise UsageError("--on-excluded needs --calendar: without one nothing is excluded")
    if any(not 1 <= abs(number) <= 23 for number in workday):
        raise UsageError("--workday goes from 1 to 23, and from -1 to -23 counted from the end of the month")
    if on_excluded != OnExcluded.SKIP and workday:  # as in a job file
        raise UsageError("--workday names working days already, so nothing is left to move; leave --on-excluded out")
    if on_excluded != OnExcluded.SKIP and isinstance(expression.meaning.body, Every):
        hint = "leave --on-excluded out, or write a schedule with times of the day"
        raise UsageError(f"an interval has no time of the day to keep on another day; {hint}")
    excluded = tuple(_calendar(one, *when) for one in given)
    return CalendarRules(excluded=excluded, on_excluded=OnExcluded(on_excluded), workday=tuple(workday))


def _calendar(given: str, now_ms: int, zone: Zone) -> JobCalendar:
    from chronex.jobfile.ics_events import CalendarError

    source, equals, value = given.partition("=")
    try:
        return _written(source, value, now_ms, zone) if equals else _named(given)
    except CalendarError as error:
        raise UsageError(f"--calendar {given}: {error}") from None


def _written(source: str, value: str, now_ms: int, zone: Zone) -> JobCalendar:
    from chronex.jobfile.calendar_sources import of_dates, of_holidays, of_ics, of_weekdays
    from chronex.jobfile.calendar_tables import date_range

    name = f"{source}={value}"
    match source:
        case "holidays":
            return of_holidays(name, value.strip().upper(), now_ms)
        case "ics":
            return of_ics(name, Path(value).absolute(), now_ms, zone)
        case "dates":
            ranges = [date_range(part.strip()) for part in value.split(",")]
            known = [one for one in ranges if one is not None and one[0] <= one[1]]
            if len(known) != len(ranges):
                raise UsageError(f"--calendar {name}: write dates=2026-12-24 or dates=2026-12-24..2027-01-02")
            return of_dates(name, known)
        case "weekdays":
            words = [word.strip().upper() for word in value.split(",")]
            if not set(words) <= set(WEEKDAYS):
                raise UsageError(f"--calendar {name}: weekdays are {', '.join(WEEKDAYS)}")
            return of_weekdays(name, ((WEEKDAYS.index(word) - 1) % 7 + 1 for word in words))
    raise UsageError(f"--calendar {name}: write one of {', '.join(f'{one}=…' for one in _SOURCES)}, or a name")


def _named(name: str) -> JobCalendar:
    from chronex.cli.job_file import load_job_file
    from chronex.jobfile.entries import JobFileError
    from chronex.text.suggestions import nearest

    path = job_file_path(None)
    hint = f"write {', '.join(f'{one}=…' for one in _SOURCES)}, or a name under [calendars] of a job file"
    if not path.exists():
        raise UsageError(f"--calendar {name}: there is no job file {path}; {hint}")
    try:
        known = load_job_file(path).calendars
    except JobFileError as error:
        raise UsageError(f"--calendar {name}: {path} has mistakes, the first: {error.problems[0]}") from None
    found = next((one for one in known if one.name == name), None)
    if found is None:
        meant = nearest(name, [one.name for one in known])
        raise UsageError(
            f"--calendar {name}: {path} has no such calendar; " + (f"did you mean {meant}?" if meant else hint)
        )
    return found
