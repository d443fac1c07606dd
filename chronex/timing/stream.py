"""Occurrences as datetimes in bulk: whole days at once where the clock is left alone, one by one elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime

from chronex.timing.search import CronSearch
from chronex.timing.zones import KNOWN_DAYS, Zone

_DAY = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_date_of = date.fromordinal
_combine = datetime.combine
_from_timestamp = datetime.fromtimestamp


def stream(search: CronSearch, start: int, end: int) -> Iterator[datetime]:
    """Every matching instant in [start, end] (UTC seconds), in order."""
    zone = search.zone
    day = _local_day(start, zone)
    stop = min(_local_day(end, zone), KNOWN_DAYS.stop)
    while stop in zone.restless_days:
        stop -= 1
    if not search.clocks or day not in KNOWN_DAYS or day >= stop:
        yield from _one_by_one(search, start, end)
        return
    if day in zone.restless_days:
        day = _calm_day_after(day, zone)
        yield from _one_by_one(search, start, min(_midnight(day, zone) - 1, end))
    else:
        yield from _rest_of_day(search, day, start)
        day += 1
    yield from _whole_days(search, day, stop)
    yield from _one_by_one(search, _midnight(max(day, stop), zone), end)


def _rest_of_day(search: CronSearch, day: int, start: int) -> Iterator[datetime]:
    second = start + search.zone.offset_at(start) - day * _DAY
    for _ in search.matching_days(day, day + 1):
        date_of_day = _date_of(day + _EPOCH_ORDINAL)
        for clock in search.clocks[search.clock_index(second) :]:
            yield _combine(date_of_day, clock)


def _whole_days(search: CronSearch, first: int, stop: int) -> Iterator[datetime]:
    """The matches of the days in [first, stop). A clock change is walked over with the days around it."""
    restless, clocks = search.zone.restless_days, search.clocks
    done_before = first
    for day in search.matching_days(first, stop):
        if day < done_before:
            continue
        if day in restless:
            begin = day
            while begin - 1 in restless and begin > done_before:
                begin -= 1
            done_before = _calm_day_after(day, search.zone)
            midnight = _midnight(begin, search.zone)
            yield from _one_by_one(search, midnight, _midnight(done_before, search.zone) - 1)
            continue
        date_of_day = _date_of(day + _EPOCH_ORDINAL)
        for clock in clocks:
            yield _combine(date_of_day, clock)


def _one_by_one(search: CronSearch, start: int, end: int) -> Iterator[datetime]:
    tz = search.tzinfo
    for instant in search.between(start, end):
        yield _from_timestamp(instant, tz)


def _local_day(second: int, zone: Zone) -> int:
    return (second + zone.offset_at(second)) // _DAY


def _midnight(day: int, zone: Zone) -> int:
    """The instant a day begins, given that no clock change is within a day of it."""
    return day * _DAY - zone.offset_at(day * _DAY)


def _calm_day_after(day: int, zone: Zone) -> int:
    day += 1
    while day in zone.restless_days:
        day += 1
    return day
