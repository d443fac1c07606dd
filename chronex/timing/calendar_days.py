"""Which local days and times the calendars of a job leave: a pure question of its rules, a zone and an instant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import lru_cache

from chronex.model.calendars import USUAL_WEEKEND, CalendarRules, CalendarSource, JobCalendar, OnExcluded, weekday_of
from chronex.text.instants import EPOCH_ORDINAL, SHORT_WEEKDAYS
from chronex.timing.calendar import FIRST_DAY, LAST_DAY
from chronex.timing.dst import last_instant_of_day
from chronex.timing.zones import Zone, utc_zone

_DAY = 86_400
_DAY_MS = 86_400_000
# What excludes an instant where no calendar does.
WORKDAY = "workday"
# No run is moved further than this; where all days in between are excluded, the instant is left out.
MOST_DAYS_MOVED = 62


def local_day(ms: int, zone: Zone) -> int:
    """The day that the wall of `zone` shows, counted from 1 January 1970."""
    second = ms // 1000
    return (second + zone.offset_at(second)) // _DAY


@lru_cache(maxsize=4096)
def day_begin(day: int, zone: Zone) -> int:
    """The first instant whose local day is `day` or later."""
    midnight = day * _DAY
    since, offset = midnight - 2 * _DAY, zone.offset_at(midnight - 2 * _DAY)
    for change in zone.changes(midnight - 2 * _DAY, midnight + 2 * _DAY):
        if midnight - offset < change.at:
            break
        since, offset = change.at, change.after
    return max(midnight - offset, since) * 1000


@lru_cache(maxsize=4096)
def day_end(day: int, zone: Zone) -> int:
    """The last instant whose local day is `day` or earlier."""
    return last_instant_of_day(day * _DAY_MS, zone)


def calendar_on(calendars: Iterable[JobCalendar], ms: int, zone: Zone) -> JobCalendar | None:
    """The first of these that contains the instant."""
    day, second = local_day(ms, zone), ms // 1000
    return next((c for c in calendars if c.day_span(day) is not None or c.time_span(second) is not None), None)


def calendar_end(calendar: JobCalendar, ms: int, zone: Zone) -> int:
    """The first instant behind what the calendar contains around `ms`; `ms` itself where that is nothing."""
    if (days := calendar.day_span(local_day(ms, zone))) is not None:
        return max(day_begin(days[1] + 1, zone), ms + 1)
    times = calendar.time_span(ms // 1000)
    return ms if times is None else times[1] * 1000


class CalendarDays:
    """The rules of one job in one zone. `allowed_from` and `allowed_until` step over what the rules leave out."""

    __slots__ = ("_beside", "_only", "_rules", "_weekend", "zone")

    def __init__(self, rules: CalendarRules, zone: Zone) -> None:
        self._rules = rules
        self._beside: dict[tuple[int, int], int | None] = {}
        self.zone = zone
        self._only = bool(rules.only)
        self._weekend = _weekend(rules.excluded)

    # -- single days and instants --------------------------------------------------------------------------

    def excluding(self, ms: int) -> str | None:
        """The name of the calendar that leaves this instant out; WORKDAY where only the day of the month does."""
        day, second = local_day(ms, self.zone), ms // 1000
        for calendar in self._rules.excluded:
            if calendar.day_span(day) is not None or calendar.time_span(second) is not None:
                return calendar.name
        if self._only and not any(c.day_span(day) or c.time_span(second) for c in self._rules.only):
            return self._rules.only[0].name
        return WORKDAY if self._rules.workday and not self.is_wanted_workday(day) else None

    def is_workday(self, day: int) -> bool:
        """Neither in the weekend nor a whole day that the calendars leave out."""
        if weekday_of(day) in self._weekend or any(c.day_span(day) for c in self._rules.excluded):
            return False
        return not self._only or any(c.day_span(day) for c in self._rules.only)

    def is_wanted_workday(self, day: int) -> bool:
        """Is it one of the working days of its month that `workday` counts?"""
        return day in self._wanted_workdays(_month_of(day))

    def _wanted_workdays(self, month: tuple[int, int]) -> tuple[int, ...]:
        found = _workdays_of(self._rules, month)
        wanted = (number - 1 if number > 0 else len(found) + number for number in self._rules.workday)
        return tuple(sorted({found[index] for index in wanted if 0 <= index < len(found)}))

    def workday_beside(self, day: int, step: int) -> int | None:
        """The nearest working day before or after `day`; None where none is near."""
        if (day, step) not in self._beside:
            self._find_beside(day, step)
        return self._beside[day, step]

    def _find_beside(self, day: int, step: int) -> None:
        """It looks twice as far, and so answers for the days between too: where none is near, each of them would look
        at all the others again."""
        found = self._next_workday(day, step, 2 * MOST_DAYS_MOVED)
        end = day + step * (MOST_DAYS_MOVED + 1) if found is None else found
        for between in range(day, end, step):
            is_near = found is not None and abs(found - between) <= MOST_DAYS_MOVED
            self._beside[between, step] = found if is_near else None

    def _next_workday(self, day: int, step: int, most: int) -> int | None:
        """The nearest one before or after `day`, at most so many days away."""
        at = day + step
        while abs(at - day) <= most:
            span = next((found for c in self._rules.excluded if (found := c.day_span(at)) is not None), None)
            if span is not None:
                at = span[1] + 1 if step > 0 else span[0] - 1
            elif weekday_of(at) in self._weekend:
                at += step
            elif self._only and not any(c.day_span(at) for c in self._rules.only):
                beside = self._day_of_only(at, step)
                if beside is None:
                    return None
                at = beside
            else:
                return at
        return None

    def _day_of_only(self, day: int, step: int) -> int | None:
        """The nearest whole day of `only` in that direction."""
        found: list[int] = []
        for calendar in self._rules.only:
            edges = calendar.days[::2] if step > 0 else calendar.days[1::2]
            ahead = [edge for edge in edges if (edge - day) * step > 0]
            found += [day + step] if calendar.weekdays else ahead[:1] if step > 0 else ahead[-1:]
        return min(found, key=lambda one: abs(one - day), default=None)

    # -- steps ---------------------------------------------------------------------------------------------

    def allowed_from(self, ms: int) -> int | None:
        """The first instant from `ms` on, or one before it, that the rules do not leave out; None where none is.

        Nothing that they allow lies between `ms` and the result.
        """
        day, second = local_day(ms, self.zone), ms // 1000
        for calendar in self._rules.excluded:
            if (span := calendar.day_span(day)) is not None:
                return max(day_begin(span[1] + 1, self.zone), ms + 1)
            if (times := calendar.time_span(second)) is not None:
                return times[1] * 1000
        if self._only and not any(c.day_span(day) or c.time_span(second) for c in self._rules.only):
            return self._next_of_only(day, ms)
        if self._rules.workday and not self.is_wanted_workday(day):
            return self._workday_begin(day, ms)
        return ms

    def allowed_until(self, ms: int) -> int | None:
        """The same into the past: the last instant up to `ms`."""
        day, second = local_day(ms, self.zone), ms // 1000
        for calendar in self._rules.excluded:
            if (span := calendar.day_span(day)) is not None:
                return min(day_end(span[0] - 1, self.zone), ms - 1)
            if (times := calendar.time_span(second)) is not None:
                return times[0] * 1000 - 1
        if self._only and not any(c.day_span(day) or c.time_span(second) for c in self._rules.only):
            return self._last_of_only(day, ms)
        if self._rules.workday and not self.is_wanted_workday(day):
            return self._workday_end(day, ms)
        return ms

    def _next_of_only(self, day: int, ms: int) -> int | None:
        begins = [at for calendar in self._rules.only for at in self._begins_after(calendar, day, ms)]
        return min(begins, default=None)

    def _begins_after(self, calendar: JobCalendar, day: int, ms: int) -> Iterable[int]:
        first = next((begin for begin in calendar.days[::2] if begin > day), None)
        if first is not None:
            yield max(day_begin(first, self.zone), ms + 1)
        if calendar.weekdays:
            ahead = next(n for n in range(1, 8) if weekday_of(day + n) in calendar.weekdays)
            yield max(day_begin(day + ahead, self.zone), ms + 1)
        if (begin := next((at * 1000 for at in calendar.times[::2] if at * 1000 > ms), None)) is not None:
            yield begin

    def _last_of_only(self, day: int, ms: int) -> int | None:
        ends = [at for calendar in self._rules.only for at in self._ends_before(calendar, day, ms)]
        return max(ends, default=None)

    def _ends_before(self, calendar: JobCalendar, day: int, ms: int) -> Iterable[int]:
        last = next((end for end in reversed(calendar.days[1::2]) if end < day), None)
        if last is not None:
            yield min(day_end(last, self.zone), ms - 1)
        if calendar.weekdays:
            back = next(n for n in range(1, 8) if weekday_of(day - n) in calendar.weekdays)
            yield min(day_end(day - back, self.zone), ms - 1)
        ends = (at * 1000 - 1 for at in reversed(calendar.times[1::2]) if at * 1000 - 1 < ms)
        if (end := next(ends, None)) is not None:
            yield end

    def _workday_begin(self, day: int, ms: int) -> int | None:
        month = _month_of(day)
        for _ in range(13):  # a month may have none: all of it is excluded, or it has fewer working days
            found = next((wanted for wanted in self._wanted_workdays(month) if wanted > day), None)
            if found is not None:
                return max(day_begin(found, self.zone), ms + 1)
            month = _month_beside(month, 1)
        return day_begin(_first_of(month), self.zone) if _first_of(month) < LAST_DAY - 1 else None

    def _workday_end(self, day: int, ms: int) -> int | None:
        month = _month_of(day)
        for _ in range(13):
            found = next((wanted for wanted in reversed(self._wanted_workdays(month)) if wanted < day), None)
            if found is not None:
                return min(day_end(found, self.zone), ms - 1)
            month = _month_beside(month, -1)
        return day_end(_first_of(month), self.zone) if _first_of(month) > FIRST_DAY + 1 else None


def _weekend(excluded: Iterable[JobCalendar]) -> frozenset[int]:
    """What the calendars say of their weekend; a calendar of weekdays says it all by itself."""
    calendars = tuple(excluded)
    if any(calendar.weekdays for calendar in calendars):
        return frozenset(day for calendar in calendars for day in calendar.weekdays)
    weekends = [calendar.weekend for calendar in calendars if calendar.weekend != USUAL_WEEKEND]
    return frozenset(weekends[0] if weekends else USUAL_WEEKEND)


@lru_cache(maxsize=1024)
def _workdays_of(rules: CalendarRules, month: tuple[int, int]) -> tuple[int, ...]:
    days = CalendarDays(rules, utc_zone())  # whole days are the same in every zone
    first = _first_of(month)
    return tuple(day for day in range(first, _first_of(_month_beside(month, 1))) if days.is_workday(day))


def _month_of(day: int) -> tuple[int, int]:
    found = date.fromordinal(min(max(day, FIRST_DAY), LAST_DAY) + EPOCH_ORDINAL)
    return found.year, found.month


def _month_beside(month: tuple[int, int], step: int) -> tuple[int, int]:
    years, index = divmod(month[0] * 12 + month[1] - 1 + step, 12)
    return years, index + 1


def _first_of(month: tuple[int, int]) -> int:
    if not 1 <= month[0] <= 9999:
        return FIRST_DAY if month[0] < 1 else LAST_DAY
    return date(month[0], month[1], 1).toordinal() - EPOCH_ORDINAL


# The calendars of a job in words, for `show`, the language server and the dashboard.

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
