"""The calendar: which days match a cron expression, and how dates step by months and days.

A year has one of 14 shapes, and a shape's matching days are one integer of 366 bits.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from chronex.expr.fields import Anchor, DayRule, FieldSet
from chronex.expr.iso8601 import Period
from chronex.expr.meaning import Cron
from chronex.text.durations import DAY_MS
from chronex.text.instants import EPOCH_ORDINAL

FIRST_DAY = date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY = date.max.toordinal() - EPOCH_ORDINAL
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# Days are looked up in blocks of 512, one integer each, so that the next matching day is a shift away.
DAY_BLOCK_BITS = 9
BLOCK_DAYS = 1 << DAY_BLOCK_BITS
# Every shape of year recurs within 40 years, so a pattern that matches nothing for longer matches nothing.
LONGEST_SEARCH_BLOCKS = 40 * 366 // BLOCK_DAYS + 2

MANY_DAYS = 255  # in a table of days to the next match: so many days or more
_COUNTDOWN = bytes([MANY_DAYS] * (BLOCK_DAYS - MANY_DAYS) + list(range(MANY_DAYS, -1, -1)))

# The Gregorian calendar repeats after 400 years.
_CYCLE_DAYS = 146_097
_CYCLE_MONTHS = 4800

# -- matching days --------------------------------------------------------------------------------------------


def first_day_of(year: int) -> int:
    """Days from 1970-01-01 to 1 January of `year`."""
    before = year - 1
    return before * 365 + before // 4 - before // 100 + before // 400 + FIRST_DAY


def year_of(day: int) -> int:
    """The year of a day; the nearest one that exists for a day beyond the calendar."""
    return date.fromordinal(min(max(day, FIRST_DAY), LAST_DAY) + EPOCH_ORDINAL).year


def shape_of(year: int) -> tuple[int, bool]:
    """(weekday of 1 January with Sunday 0, leap year?)."""
    return (first_day_of(year) + 4) % 7, year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def block_bits(cron: Cron, block: int) -> int:
    """Bit i is set when day `block * 512 + i` matches."""
    start = block << DAY_BLOCK_BITS
    bits = 0
    for year in range(year_of(start), year_of(start + BLOCK_DAYS - 1) + 1):
        weekday, leap = shape_of(year)
        of_year = _shape_bits(cron.day_of_month, cron.month.values, cron.day_of_week, weekday, leap)
        shift = first_day_of(year) - start
        bits |= of_year << shift if shift >= 0 else of_year >> -shift
    return bits & ((1 << BLOCK_DAYS) - 1)


@lru_cache(maxsize=4096)
def bit_numbers(mask: int) -> tuple[int, ...]:
    """The numbers of the bits that are set, lowest first."""
    return tuple(at for at, digit in enumerate(reversed(bin(mask))) if digit == "1")


@lru_cache(maxsize=4096)
def days_to_next_in_block(bits: int) -> bytes:
    """For each day of a block, how many days later a marked one comes; MANY_DAYS when that is not soon."""
    *gaps, rest = f"{bits:0{BLOCK_DAYS}b}"[::-1].split("1")
    return b"".join([_COUNTDOWN[-1 - len(gap) :] for gap in gaps]) + bytes([MANY_DAYS]) * len(rest)


@lru_cache(maxsize=4096)
def _shape_bits(dom: FieldSet, months: int, dow: FieldSet, new_year_weekday: int, leap: bool) -> int:
    bits, day_of_year = 0, 0
    for month, usual_length in enumerate(_MONTH_LENGTHS, 1):
        length = usual_length + (1 if leap and month == 2 else 0)
        if months >> month & 1:
            first_weekday = (new_year_weekday + day_of_year) % 7
            bits |= _month_bits(dom, dow, length, first_weekday) << day_of_year
        day_of_year += length
    return bits


def _month_bits(dom: FieldSet, dow: FieldSet, length: int, first_weekday: int) -> int:
    """Bit 0 is the 1st. Two restricted day fields are joined by OR, as in Vixie cron."""
    whole = (1 << length) - 1
    if dom.is_star and dow.is_star:
        return whole
    by_day = 0 if dom.is_star else _day_bits(dom, length, first_weekday)
    by_weekday = 0 if dow.is_star else _weekday_bits(dow, length, first_weekday)
    return (by_day | by_weekday) & whole


def _day_bits(dom: FieldSet, length: int, first_weekday: int) -> int:
    bits = dom.values >> 1
    for rule in dom.rules:
        day = _ruled_day(rule, length, first_weekday)
        if day:
            bits |= 1 << (day - 1)
    return bits


def _ruled_day(rule: DayRule, length: int, first_weekday: int) -> int | None:
    """The day that L, LW, L-3 or 15W names in a month of this length; None when the month has none."""
    day = rule.number if rule.anchor is Anchor.NEAREST_WEEKDAY else length - rule.number
    if not 1 <= day <= length:
        return None  # 31W in April, L-30 in a month of 30 days: skipped, as a plain 31 is
    return day if rule.anchor is Anchor.LAST_DAY else _nearest_weekday(day, length, first_weekday)


def _nearest_weekday(day: int, length: int, first_weekday: int) -> int:
    """The Monday-to-Friday day nearest to `day` without leaving the month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _weekday_bits(dow: FieldSet, length: int, first_weekday: int) -> int:
    week = dow.values & 0x7F
    # Rotate so that bit 0 is the weekday of the 1st, then repeat over the month.
    rotated = (week >> first_weekday | week << (7 - first_weekday)) & 0x7F
    bits = _repeat_week(rotated)
    for rule in dow.rules:
        day = _ruled_weekday(rule, length, first_weekday)
        if day <= length:
            bits |= 1 << (day - 1)
    return bits


def _ruled_weekday(rule: DayRule, length: int, first_weekday: int) -> int:
    """The day that MON#2 or FRIL names; beyond the end of a month that has none."""
    first = (rule.weekday - first_weekday) % 7 + 1
    if rule.anchor is Anchor.NTH_OF_WEEKDAY:
        return first + (rule.number - 1) * 7
    return first + (length - first) // 7 * 7


def _repeat_week(week: int) -> int:
    return week | week << 7 | week << 14 | week << 21 | week << 28


# -- steps ----------------------------------------------------------------------------------------------------


def calendar_step(wall_ms: int, period: Period, count: int) -> int | None:
    """The wall time `count` periods later, or earlier (date parts only); None beyond the calendar.

    Months are counted from the start and not from the last step: 31 January by months is 28 February, 31 March.
    """
    day, time_of_day = divmod(wall_ms, DAY_MS)
    if period.months:
        moved = _add_months(day, period.months * count)
        if moved is None:
            return None
        day = moved
    day += period.days * count
    return day * DAY_MS + time_of_day if FIRST_DAY - 1 <= day <= LAST_DAY else None


def _add_months(day: int, months: int) -> int | None:
    """The same day of another month, or that month's last day."""
    if months == 0:
        return day
    if day < FIRST_DAY:  # west of UTC the year 1 begins on the day before the calendar: count from 400 years later
        day, months = day + _CYCLE_DAYS, months - _CYCLE_MONTHS
    start = date.fromordinal(day + EPOCH_ORDINAL)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    following = date(year + month // 11, (month + 1) % 12 + 1, 1) if (year, month) < (9999, 11) else None
    last = (following.toordinal() if following else date.max.toordinal() + 1) - 1
    first = date(year, month + 1, 1).toordinal()
    return min(first + start.day - 1, last) - EPOCH_ORDINAL
