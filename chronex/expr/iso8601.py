"""ISO 8601 dates, date-times and calendar periods, kept as they were written."""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from chronex.text.durations import DAY_MS, MAX_DURATION_MS
from chronex.text.instants import EPOCH_ORDINAL, utc_offset

# Patterns are text, which re compiles when one is first needed: most expressions hold no date.
_MOMENT = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_PERIOD = (
    r"P(?=[0-9T])(?:([0-9]{1,6})Y)?(?:([0-9]{1,6})M)?(?:([0-9]{1,6})W)?(?:([0-9]{1,8})D)?"
    r"(?:T(?=[0-9])(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,10})(?:\.([0-9]{1,3}))?S)?)?"
)


class Moment(NamedTuple):
    """A point on a wall clock; with `offset` (seconds east) it is an instant."""

    wall_ms: int  # milliseconds from 1970-01-01 00:00 on that wall
    offset: int | None
    is_date: bool

    @property
    def instant_ms(self) -> int | None:
        return None if self.offset is None else self.wall_ms - self.offset * 1000

    def __str__(self) -> str:
        days, ms = divmod(self.wall_ms, DAY_MS)
        text = date.fromordinal(days + EPOCH_ORDINAL).isoformat()
        if self.is_date:
            return text
        return f"{text}T{_clock_text(ms)}{_offset_text(self.offset)}"


def moment_from_instant(ms: int) -> Moment:
    return Moment(ms, 0, is_date=False)


def _clock_text(ms: int) -> str:
    seconds, fraction = divmod(ms, 1000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:03}".rstrip("0") if fraction else text


def _offset_text(offset: int | None) -> str:
    if offset is None:
        return ""
    return utc_offset(offset) if offset else "Z"


def parse_moment(text: str) -> Moment | None:
    """A date or date-time; None when it is not one, or no such day or time exists."""
    match = re.fullmatch(_MOMENT, text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - EPOCH_ORDINAL
    except ValueError:
        return None
    if hour is None:
        return Moment(days * DAY_MS, None, is_date=True)
    h, m, s = int(hour), int(minute), int(second or 0)
    ms = _milliseconds(fraction or "")
    offset = _parse_offset(zone)
    if h > 23 or m > 59 or s > 59 or ms is None or (zone and offset is None):
        return None
    return Moment(days * DAY_MS + ((h * 60 + m) * 60 + s) * 1000 + ms, offset, is_date=False)


def why_no_moment(text: str) -> str | None:
    """Why there is no such day or time, of a text in the right form; None for any other."""
    match = re.fullmatch(_MOMENT, text)
    if match is None or parse_moment(text) is not None:
        return None
    year, month, day = (int(number) for number in match.groups()[:3])
    if year < 1 or not 1 <= month <= 12 or day < 1:
        return "months go from 01 to 12, and days and years begin with 1"
    days = 31 if month == 12 else (date(year, month + 1, 1) - date(year, month, 1)).days
    if day > days:
        return f"{year}-{month:02} has {days} days"
    if match[7] and _milliseconds(match[7]) is None:
        return "milliseconds are the finest"
    return "times go from 00:00:00 to 23:59:59, and offsets to 23:59"


def joined_moment(text: str) -> str | None:
    """A date and a time with a blank between them, as ISO 8601 joins them."""
    joined = re.sub(r" +", "T", text, count=1)
    return joined if " " in text and parse_moment(joined) is not None else None


def _milliseconds(fraction: str) -> int | None:
    """Thousandths of a second; None for a finer fraction, which no clock here could keep."""
    return int(fraction[:3].ljust(3, "0")) if not fraction[3:].strip("0") else None


def _parse_offset(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        return None
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60)


class Period(NamedTuple):
    """Months and days step on the wall calendar; `elapsed_ms` is real time."""

    months: int
    days: int
    elapsed_ms: int

    def __str__(self) -> str:
        years, months = divmod(self.months, 12)
        weeks, days = divmod(self.days, 7) if self.days % 7 == 0 else (0, self.days)
        date_part = "".join(f"{n}{u}" for n, u in ((years, "Y"), (months, "M"), (weeks, "W"), (days, "D")) if n)
        seconds, ms = divmod(self.elapsed_ms, 1000)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        time_part = "".join(f"{n}{u}" for n, u in ((hours, "H"), (minutes, "M")) if n)
        if seconds or ms:
            time_part += f"{seconds}.{ms:03}".rstrip("0").rstrip(".") + "S"
        return f"P{date_part}" + (f"T{time_part}" if time_part else "")


def parse_period(text: str) -> Period | None:
    """A positive ISO 8601 duration; None when it is not one, is zero, or outlasts the calendar."""
    match = re.fullmatch(_PERIOD, text)
    if match is None:
        return None
    numbers = [int(n or 0) for n in match.groups()[:7]]
    years, months, weeks, days, hours, minutes, seconds = numbers
    elapsed = ((hours * 60 + minutes) * 60 + seconds) * 1000 + int((match[8] or "").ljust(3, "0"))
    period = Period(years * 12 + months, weeks * 7 + days, elapsed)
    approximate_ms = (period.months * 31 + period.days) * DAY_MS + elapsed
    return period if 0 < approximate_ms <= MAX_DURATION_MS else None


def period_between(start: Moment, end: Moment) -> Period | None:
    """The distance of two moments, None when it is not positive: of wall times whole days and the rest, of instants
    elapsed time."""
    distance = end.wall_ms - start.wall_ms - ((end.offset or 0) - (start.offset or 0)) * 1000
    if distance <= 0:
        return None
    if start.offset is not None:
        return Period(0, 0, distance)
    days, rest = divmod(distance, DAY_MS)
    return Period(0, days, rest)
