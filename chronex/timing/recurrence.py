"""The days of a recurrence rule (RRULE, RFC 5545), with a bound on the work that any rule can ask for.

Libraries step through a rule that never matches until the year 9999, and through `INTERVAL=0` for ever. A file of
events is somebody else's text, so here every step is counted, and a rule that takes too many is refused.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from chronex.text.instants import EPOCH_ORDINAL

_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BY_DAY = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_NUMBER = re.compile(r"[+-]?[0-9]{1,12}")
_LAST_YEAR = 9999
# Longer ones only repeat themselves, and each of their days is asked of all the others.
_MOST_IN_A_LIST = 800


class RecurrenceError(ValueError):
    """The rule is not one that is followed here; the message says why, for a person."""


class StepBudget:
    """How many days and periods may still be looked at."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise RecurrenceError("it recurs too often to be followed")


class Recurrence(NamedTuple):
    """A rule as it was read; `by_day` are weekdays (Monday = 0) with the number of the week, 0 for every one."""

    frequency: str
    interval: int = 1
    times: int | None = None
    until: int | None = None
    week_start: int = 0
    by_month: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_day: tuple[tuple[int, int], ...] = ()
    positions: tuple[int, ...] = ()


def read_recurrence(text: str, first_day: int) -> Recurrence:
    """The rule of an event that begins on `first_day`. Raises RecurrenceError."""
    parts = dict(part.partition("=")[::2] for part in text.upper().split(";") if part)
    frequency = parts.pop("FREQ", "")
    if frequency not in _FREQUENCIES:
        raise RecurrenceError(f"FREQ={frequency[:20]} is not one of {', '.join(_FREQUENCIES)}")
    rule = Recurrence(frequency)
    for name, value in parts.items():
        rule = _with_part(rule, name, value)
    if rule.by_day and any(number for number, _ in rule.by_day) and frequency not in ("MONTHLY", "YEARLY"):
        raise RecurrenceError(f"a numbered weekday needs FREQ=MONTHLY or YEARLY, not {frequency}")
    return _with_implied(rule, date.fromordinal(first_day + EPOCH_ORDINAL))


def _with_part(rule: Recurrence, name: str, value: str) -> Recurrence:
    match name:
        case "INTERVAL":
            return rule._replace(interval=_numbers(name, value, 1, 100_000)[0])
        case "COUNT":
            return rule._replace(times=_numbers(name, value, 1, 999_999_999_999)[0])
        case "UNTIL":
            return rule._replace(until=_until(value))
        case "WKST":
            return rule._replace(week_start=_by_day(value)[0][1])
        case "BYMONTH":
            return rule._replace(by_month=_numbers(name, value, 1, 12))
        case "BYMONTHDAY":
            return rule._replace(by_month_day=_numbers(name, value, -31, 31))
        case "BYYEARDAY":
            return rule._replace(by_year_day=_numbers(name, value, -366, 366))
        case "BYDAY":
            return rule._replace(by_day=_by_day(value))
        case "BYSETPOS":
            return rule._replace(positions=_numbers(name, value, -366, 366))
    raise RecurrenceError(f"{name[:20]} is not followed here")


def _numbers(name: str, value: str, low: int, high: int) -> tuple[int, ...]:
    words = value.split(",")
    if len(words) > _MOST_IN_A_LIST:
        raise RecurrenceError(f"{name} names {len(words)} numbers, and at most {_MOST_IN_A_LIST} are read")
    if not all(_NUMBER.fullmatch(word) for word in words):
        raise RecurrenceError(f"{name}={value[:30]} is no list of numbers")
    found = tuple(dict.fromkeys(int(word) for word in words))
    if any(not low <= number <= high or number == 0 for number in found):
        raise RecurrenceError(f"{name}={value[:30]} is out of range")
    return found


def _by_day(value: str) -> tuple[tuple[int, int], ...]:
    words = value.split(",")
    if len(words) > _MOST_IN_A_LIST:
        raise RecurrenceError(f"BYDAY names {len(words)} weekdays, and at most {_MOST_IN_A_LIST} are read")
    found = [_BY_DAY.fullmatch(word) for word in words]
    if not all(found):
        raise RecurrenceError(f"{value[:30]} names no weekdays")
    days = ((int(match[1] or 0), _WEEKDAYS.index(match[2])) for match in found if match is not None)
    return tuple(dict.fromkeys(days))


def _until(value: str) -> int:
    try:
        return date(int(value[:4]), int(value[4:6]), int(value[6:8])).toordinal() - EPOCH_ORDINAL
    except ValueError:
        raise RecurrenceError(f"UNTIL={value[:30]} is no date") from None


def _with_implied(rule: Recurrence, first: date) -> Recurrence:
    """What a rule leaves out, the first day of its event says."""
    if rule.by_month_day or rule.by_year_day or rule.by_day:
        return rule
    match rule.frequency:
        case "YEARLY":
            return rule._replace(by_month=rule.by_month or (first.month,), by_month_day=(first.day,))
        case "MONTHLY":
            return rule._replace(by_month_day=(first.day,))
        case "WEEKLY":
            return rule._replace(by_day=((0, first.weekday()),))
    return rule


def recurring_days(rule: Recurrence, first_day: int, begin: int, end: int, budget: StepBudget) -> Iterator[int]:
    """The days of the rule in [begin, end], in order, for an event that begins on `first_day`."""
    first = first_day + EPOCH_ORDINAL
    # How many came before counts where the rule has a COUNT; else the periods before `begin` need not be walked.
    start = first if rule.times is not None else max(first, begin + EPOCH_ORDINAL - 1)
    last = min(end if rule.until is None else min(end, rule.until), date.max.toordinal() - EPOCH_ORDINAL)
    count = 0
    for days in _periods(rule, first, start, last + EPOCH_ORDINAL, budget):
        for ordinal in _chosen(rule, days):
            day = ordinal - EPOCH_ORDINAL
            if day < first_day:
                continue
            count += 1
            if day > last or (rule.times is not None and count > rule.times):
                return
            if day >= begin:
                yield day


def _chosen(rule: Recurrence, days: list[int]) -> list[int]:
    if not rule.positions:
        return days
    indices = {position - 1 if position > 0 else len(days) + position for position in rule.positions}
    return [days[index] for index in sorted(indices) if 0 <= index < len(days)]


def _periods(rule: Recurrence, first: int, start: int, last: int, budget: StepBudget) -> Iterator[list[int]]:
    """The matching days of each period from the one that holds `start`, in steps of the interval from `first`."""
    periods: Iterator[Sequence[int]]
    match rule.frequency:
        case "DAILY":
            skipped = (start - first) // rule.interval * rule.interval
            periods = (range(day, day + 1) for day in range(first + skipped, last + 1, rule.interval))
        case "WEEKLY":
            week = first - (date.fromordinal(first).weekday() - rule.week_start) % 7
            step = 7 * rule.interval
            begins = range(week + (start - week) // step * step, last + 1, step)
            periods = (range(begin, min(begin + 7, date.max.toordinal() + 1)) for begin in begins)
        case "MONTHLY":
            periods = (_month_days(number, rule) for number in _steps(rule, first, start, last, 12))
        case _:
            periods = (_year_days(number, rule) for number in _steps(rule, first, start, last, 1))
    for period in periods:
        budget.take(1 + len(period))
        yield [day for day in period if _matches(rule, date.fromordinal(day))]


def _steps(rule: Recurrence, first: int, start: int, last: int, a_year: int) -> range:
    """Months or years, counted from the year 0."""

    def number(ordinal: int) -> int:
        day = date.fromordinal(ordinal)
        return day.year * a_year + (day.month - 1 if a_year == 12 else 0)

    begin = number(first)
    skipped = (number(start) - begin) // rule.interval * rule.interval
    return range(begin + skipped, number(max(last, 1)) + 1, rule.interval)


def _month_days(number: int, rule: Recurrence) -> list[int]:
    year, month = divmod(number, 12)
    if year > _LAST_YEAR or (rule.by_month and month + 1 not in rule.by_month):
        return []
    begin, length = date(year, month + 1, 1).toordinal(), monthrange(year, month + 1)[1]
    if not rule.by_month_day:
        return list(range(begin, begin + length))
    wanted = {day if day > 0 else length + 1 + day for day in rule.by_month_day}
    return [begin + day - 1 for day in sorted(wanted) if 1 <= day <= length]


def _year_days(year: int, rule: Recurrence) -> list[int]:
    if year > _LAST_YEAR:
        return []
    months = sorted(rule.by_month) or range(1, 13)
    return [day for month in months for day in _month_days(year * 12 + month - 1, rule)]


def _matches(rule: Recurrence, day: date) -> bool:
    if rule.by_month and day.month not in rule.by_month:
        return False
    length = monthrange(day.year, day.month)[1]
    if rule.by_month_day and not {day.day, day.day - length - 1} & {*rule.by_month_day}:
        return False
    of_year = day.timetuple().tm_yday
    year_length = date(day.year, 12, 31).timetuple().tm_yday
    if rule.by_year_day and not {of_year, of_year - year_length - 1} & {*rule.by_year_day}:
        return False
    if not rule.by_day:
        return True
    by_month = rule.frequency == "MONTHLY" or bool(rule.by_month)
    at, whole = (day.day, length) if by_month else (of_year, year_length)
    weeks = {0, (at - 1) // 7 + 1, -((whole - at) // 7 + 1)}
    return any(weekday == day.weekday() and number in weeks for number, weekday in rule.by_day)
