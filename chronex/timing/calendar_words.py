"""The calendars of a job in words, for `show`, the language server and the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from chronex.model.calendars import CalendarRules, CalendarSource, JobCalendar, OnExcluded
from chronex.text.instants import EPOCH_ORDINAL, SHORT_WEEKDAYS

_MOVED = {
    OnExcluded.SKIP: "",
    OnExcluded.NEXT_WORKDAY: ", moved to the next working day",
    OnExcluded.PREVIOUS_WORKDAY: ", moved to the working day before",
}
_ORDINALS = {1: "first", 2: "second", 3: "third", -1: "last", -2: "last but one"}


def rules_in_words(rules: CalendarRules) -> str:
    """`except bavaria, moved to the next working day; nothing starts during freeze`."""
    parts = []
    if rules.only:
        parts.append(f"only on {_names(rules.only)}")
    if rules.excluded:
        parts.append(f"except {_names(rules.excluded)}")
    if parts:
        parts[-1] += _MOVED[rules.on_excluded]
    if rules.workday:
        days = " and ".join(_ordinal(number) for number in rules.workday)
        parts.append(f"only on the {days} working day of the month")
    if rules.blackout:
        parts.append(f"nothing starts during {_names(rules.blackout)}")
    return "; ".join(parts)


def _names(calendars: Iterable[JobCalendar]) -> str:
    return ", ".join(calendar.name for calendar in calendars)


def _ordinal(number: int) -> str:
    if number in _ORDINALS:
        return _ORDINALS[number]
    return f"{number}." if number > 0 else f"{-number}. from the end"


def calendar_in_words(calendar: JobCalendar) -> str:
    """`bavaria: holidays of DE-BY (holidays 0.108), known until 2031-12-31`."""
    match calendar.source:
        case CalendarSource.HOLIDAYS:
            what = f"holidays of {calendar.origin} ({calendar.data})"
        case CalendarSource.ICS:
            what = f"events of {calendar.origin} ({calendar.data})"
        case CalendarSource.WEEKDAYS:
            what = "every " + ", ".join(SHORT_WEEKDAYS[day - 1] for day in calendar.weekdays)
        case _:
            spans = len(calendar.days) // 2
            what = f"{spans} {'day or range' if spans == 1 else 'days or ranges'} of days"
    if calendar.until_day is not None:
        what += f", known until {day_text(calendar.until_day)}"
    return f"{calendar.name}: {what}"


def day_text(day: int) -> str:
    """A day that is counted from 1 January 1970, as `2031-12-31`."""
    return date.fromordinal(day + EPOCH_ORDINAL).isoformat()
