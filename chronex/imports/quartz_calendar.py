"""When Quartz would fire: an evaluator of its cron expressions that is independent of Chronex's own.

Six fields from the second to the day of the week, and perhaps a year. One of the two day fields is `?`. Weekdays are
written as names. What Quartz does with a time that a clock change skips or repeats depends on its version and on the
virtual machine, so nothing is claimed there: `unclear_change` finds such a time.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from chronex.text.instants import EPOCH_ORDINAL
from chronex.timing.zones import ClockChange, Zone

_DAY = 86_400
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LAST_DAY = re.compile(r"L(?:-([0-9]+))?")
_NEAREST = re.compile(r"([0-9]+)W")
_LAST_WEEKDAY = re.compile(r"([A-Z]{3})L")
_NTH_WEEKDAY = re.compile(r"([A-Z]{3})#([1-5])")


class QuartzPattern(NamedTuple):
    """The fields as sets; `days` and `weekdays` keep their text, which may be a rule."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: str
    months: frozenset[int]
    weekdays: str
    years: frozenset[int] | None = None

    @property
    def times(self) -> list[int]:
        """Seconds of a day, in order."""
        return sorted(h * 3600 + m * 60 + s for h in self.hours for m in self.minutes for s in self.seconds)

    def holds_on(self, day: date) -> bool:
        if day.month not in self.months or (self.years is not None and day.year not in self.years):
            return False
        return _is_weekday(self.weekdays, day) if self.days == "?" else _is_day(self.days, day)


def read_quartz(text: str) -> QuartzPattern | None:
    """The fields of an expression, None for what is not of the forms above."""
    fields = text.split()
    if len(fields) not in (6, 7) or (fields[3] == "?") == (fields[5] == "?"):
        return None
    seconds, minutes, hours = (_numbers(f, 0, high) for f, high in zip(fields[:3], (59, 59, 23), strict=True))
    years = _numbers(fields[6], 1970, 2099) if len(fields) == 7 else None
    return QuartzPattern(seconds, minutes, hours, fields[3], _numbers(fields[4], 1, 12), fields[5], years)


def _numbers(text: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for element in text.split(","):
        span, _, step = element.partition("/")
        first, dash, last = span.partition("-")
        start = low if span == "*" else int(first)
        stop = high if span == "*" or (step and not dash) else int(last or first)
        found.update(range(start, stop + 1, int(step or 1)))
    return frozenset(found)


def _is_day(text: str, day: date) -> bool:
    length = monthrange(day.year, day.month)[1]
    if text == "LW":
        return day.day == _nearest_office_day(day.replace(day=length)).day
    if match := _LAST_DAY.fullmatch(text):
        return day.day == length - int(match[1] or 0)
    if match := _NEAREST.fullmatch(text):
        return int(match[1]) <= length and day == _nearest_office_day(day.replace(day=int(match[1])))
    return day.day in _numbers(text, 1, 31)


def _nearest_office_day(day: date) -> date:
    """The nearest day from Monday to Friday of the same month."""
    length = monthrange(day.year, day.month)[1]
    candidates = [day.replace(day=n) for n in range(max(1, day.day - 2), min(length, day.day + 2) + 1)]
    return min((c for c in candidates if c.weekday() < 5), key=lambda c: abs(c.day - day.day))


def _is_weekday(text: str, day: date) -> bool:
    name = _WEEKDAYS[day.isoweekday() % 7]
    if match := _LAST_WEEKDAY.fullmatch(text):
        return name == match[1] and day.day + 7 > monthrange(day.year, day.month)[1]
    if match := _NTH_WEEKDAY.fullmatch(text):
        return name == match[1] and (day.day - 1) // 7 + 1 == int(match[2])
    return any(name in _weekday_range(element) for element in text.split(","))


def _weekday_range(text: str) -> tuple[str, ...]:
    first, _, last = text.partition("-")
    return _WEEKDAYS[_WEEKDAYS.index(first) : _WEEKDAYS.index(last or first) + 1]


def instants(pattern: QuartzPattern, zone: Zone, start: int, end: int) -> Iterator[int]:
    """Every UTC second in [start, end) at which Quartz fires, where no clock change touches one of its times."""
    times = pattern.times
    first, last = ((second + zone.offset_at(second)) // _DAY for second in (start, end))
    for day in range(first - 1, last + 2):
        if pattern.holds_on(date.fromordinal(day + EPOCH_ORDINAL)):
            walls = (day * _DAY + time for time in times)
            yield from (second for wall in walls if start <= (second := _second(wall, zone)) < end)


def _second(wall: int, zone: Zone) -> int:
    """The instant of a wall time that comes once."""
    for offset in (zone.offset_at(wall - _DAY), zone.offset_at(wall + _DAY)):
        if zone.offset_at(wall - offset) == offset:
            return wall - offset
    return wall - zone.offset_at(wall)


def unclear_change(pattern: QuartzPattern, zone: Zone, start: int, end: int) -> ClockChange | None:
    """The first clock change that skips or repeats a time of the pattern."""
    times = pattern.times
    for change in zone.changes(start, end):
        low, high = sorted((change.at + change.before, change.at + change.after))
        for day in range(low // _DAY, high // _DAY + 1):
            held = pattern.holds_on(date.fromordinal(day + EPOCH_ORDINAL))
            if held and any(low <= day * _DAY + time < high for time in times):
                return change
    return None
