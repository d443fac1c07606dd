"""Occurrences as datetimes in bulk: by date and clock reading on calm days, by instant around clock changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain, groupby, product, starmap

from chronex.timing.calendar import BLOCK_BITS
from chronex.timing.search import CronSearch
from chronex.timing.walls import wall_to_instant
from chronex.timing.zones import Zone

_DAY = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_date_of = date.fromordinal
_combine = datetime.combine
_from_timestamp = datetime.fromtimestamp


def stream(search: CronSearch, start: int, end: int) -> Iterator[datetime]:
    """Every matching instant in [start, end] (UTC seconds), in order."""
    if not search.clocks:
        return _by_instant(search, start, end)
    return chain.from_iterable(_pieces(search, start, end))


def _pieces(search: CronSearch, start: int, end: int) -> Iterator[Iterable[datetime]]:
    zone = search.zone
    day = (start + zone.offset_at(start)) // _DAY
    stop = _calm_day_before(end // _DAY - 1, zone)  # no zone is a day from UTC: what precedes it has ended by then
    if day >= stop:
        yield _by_instant(search, start, end)
        return
    if zone.is_restless(day):
        calm = _calm_day_after(day, zone)
        yield _by_instant(search, start, min(_midnight(calm, zone) - 1, end))
    else:
        calm = day + 1
        second = start + zone.offset_at(start) - day * _DAY
        for days in search.days(day, day):
            yield _on_days(search, days, search.clock_index(second))
    yield from _whole_days(search, calm, stop)
    yield _by_instant(search, _midnight(max(calm, stop), zone), end)


def _whole_days(search: CronSearch, first: int, stop: int) -> Iterator[Iterable[datetime]]:
    """The matches of the days in [first, stop). A clock change is walked over with the days around it."""
    zone, done_before = search.zone, first
    for days in search.days(first, stop - 1):
        for block in range(days[0] >> BLOCK_BITS, (days[-1] >> BLOCK_BITS) + 1):
            zone.restless_bits(block)  # from here on zone.restless knows the days of this block
        if zone.restless.isdisjoint(days):
            yield _on_days(search, days)
            continue
        for is_restless, group in groupby(days, zone.restless.__contains__):
            if not is_restless:
                yield _on_days(search, list(group))
                continue
            for day in group:
                if day >= done_before:
                    begin, done_before = _calm_day_before(day, zone) + 1, _calm_day_after(day, zone)
                    yield _by_instant(search, _midnight(begin, zone), _midnight(done_before, zone) - 1)


def _on_days(search: CronSearch, days: Sequence[int], first_clock: int = 0) -> Iterator[datetime]:
    dates = [_date_of(day + _EPOCH_ORDINAL) for day in days]
    return starmap(_combine, product(dates, search.clocks[first_clock:]))


def _by_instant(search: CronSearch, start: int, end: int) -> Iterator[datetime]:
    tz = search.zone.tzinfo
    for instant in search.between(start, end):
        yield _from_timestamp(instant, tz)


def _midnight(day: int, zone: Zone) -> int:
    """The instant a day begins: the first that shows its midnight, or the end of the gap that swallowed it."""
    return wall_to_instant(day * _DAY * 1000, zone) // 1000


def _calm_day_after(day: int, zone: Zone) -> int:
    while zone.is_restless(day):
        day += 1
    return day


def _calm_day_before(day: int, zone: Zone) -> int:
    while zone.is_restless(day):
        day -= 1
    return day
