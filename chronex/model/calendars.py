"""Calendars of a job: days and times on which it does not start, or only then.

A calendar is resolved when the job is applied: what a holiday package or a file of events said then is kept as days
and times with the job's version, so a decision depends on nothing but the store. Days are local days, counted from
1 January 1970, and hold in the zone of the schedule that they are asked about.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum

from msgspec import Struct

# Saturday and Sunday, counted from Monday = 1.
USUAL_WEEKEND = (6, 7)


class OnExcluded(StrEnum):
    """What becomes of an instant on a day that the calendars exclude."""

    SKIP = "skip"
    NEXT_WORKDAY = "next_workday"
    PREVIOUS_WORKDAY = "previous_workday"


class CalendarSource(StrEnum):
    """What a calendar was made from."""

    HOLIDAYS = "holidays"
    DATES = "dates"
    ICS = "ics"
    WEEKDAYS = "weekdays"


class JobCalendar(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One calendar as it was when the job was applied."""

    # Its name in the job file.
    name: str
    source: CalendarSource = CalendarSource.DATES
    # The holiday code, or the path of the file of events; empty where the job file has the days.
    origin: str = ""
    # Which data said so: the version of the holiday package, or a hash of the file.
    data: str = ""
    # Whole days: first and last day of each span, one after the other, in order and apart.
    days: tuple[int, ...] = ()
    # Times of day: first second and the second after the last of each span, since the epoch, in order and apart.
    times: tuple[int, ...] = ()
    # Days of every week, Monday = 1.
    weekdays: tuple[int, ...] = ()
    # The days of a week on which nobody works where the calendar holds; it does not contain them.
    weekend: tuple[int, ...] = USUAL_WEEKEND
    # Its last known day; None where it is known for ever.
    until_day: int | None = None

    def day_span(self, day: int) -> tuple[int, int] | None:
        """The whole days around `day` that the calendar contains; None where it does not contain `day`."""
        at = bisect_right(self.days, day)
        if at % 2:
            return self.days[at - 1], self.days[at]
        if at and self.days[at - 1] == day:
            return self.days[at - 2], day
        return (day, day) if weekday_of(day) in self.weekdays else None

    def time_span(self, second: int) -> tuple[int, int] | None:
        """The event with a time that is on at this second: its first second and the one after its last."""
        at = bisect_right(self.times, second)
        return (self.times[at - 1], self.times[at]) if at % 2 else None


def weekday_of(day: int) -> int:
    """Monday = 1; the day zero was a Thursday."""
    return (day + 3) % 7 + 1


class CalendarRules(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What the calendars of a job mean for its instants. One that is left out is none of the job's instants."""

    # No start on these.
    excluded: tuple[JobCalendar, ...] = ()
    # Starts on these only; empty where any day will do.
    only: tuple[JobCalendar, ...] = ()
    on_excluded: OnExcluded = OnExcluded.SKIP
    # Only on these working days of the month: 1 is the first, -1 the last; empty for every day.
    workday: tuple[int, ...] = ()
    # Nothing starts during these; each instant is recorded as skipped.
    blackout: tuple[JobCalendar, ...] = ()

    @property
    def moves_or_removes(self) -> bool:
        """Are the instants others than those of the expression? A blackout leaves them, and skips them."""
        return bool(self.excluded or self.only or self.workday)

    @property
    def all(self) -> tuple[JobCalendar, ...]:
        return (*self.excluded, *self.only, *self.blackout)
