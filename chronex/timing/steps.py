"""Steps on the wall calendar: months clamp to the month's end, counted from the start and not from the last step."""

from __future__ import annotations

from datetime import date

from chronex.expr.moments import Period
from chronex.timing.calendar import FIRST_DAY, LAST_DAY

_DAY_MS = 86_400_000
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_CYCLE_DAYS, _CYCLE_MONTHS = 146_097, 4800  # the Gregorian calendar repeats after 400 years


def calendar_step(wall_ms: int, period: Period, count: int) -> int | None:
    """The wall time `count` periods later (date parts only); None beyond the calendar."""
    day, time_of_day = divmod(wall_ms, _DAY_MS)
    if period.months:
        moved = _add_months(day, period.months * count)
        if moved is None:
            return None
        day = moved
    day += period.days * count
    return day * _DAY_MS + time_of_day if day <= LAST_DAY else None


def _add_months(day: int, months: int) -> int | None:
    if months == 0:
        return day
    if day < FIRST_DAY:  # west of UTC the year 1 begins on the eve of the calendar: count from 400 years on
        day, months = day + _CYCLE_DAYS, months - _CYCLE_MONTHS
    start = date.fromordinal(day + _EPOCH_ORDINAL)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if year > 9999:
        return None
    following = date(year + month // 11, (month + 1) % 12 + 1, 1) if (year, month) < (9999, 11) else None
    last = (following.toordinal() if following else date.max.toordinal() + 1) - 1
    first = date(year, month + 1, 1).toordinal()
    return min(first + start.day - 1, last) - _EPOCH_ORDINAL
