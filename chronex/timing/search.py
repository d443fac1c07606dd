"""The one search: the matching instants of a cron expression, on integer seconds.

There is one direction only. The past is searched in mirrored time, where t becomes -1 - t: the last instant
before a bound is the first one after it in the mirror. Days, times of day and the zone's spans are mirrored as
data, so that no rule (a gap's end, the first pass of an overlap) is written twice.

Two ways lead to a match. `first_from` walks over the zone's spans (dst.py) and finds every match. `next_local` puts
a date and a clock reading together; it is several times faster and valid on plain days only, that is, on days that
no clock change touches (Zone.transition_bits).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, tzinfo
from functools import lru_cache
from itertools import chain, islice, product, starmap, takewhile
from operator import add

from chronex.expr.meaning import Cron
from chronex.text.instants import EPOCH_ORDINAL
from chronex.timing.calendar import (
    BLOCK_DAYS,
    DAY_BLOCK_BITS,
    LONGEST_SEARCH_BLOCKS,
    MANY_DAYS,
    bit_numbers,
    block_bits,
    days_to_next_in_block,
)
from chronex.timing.dst import DstPolicy, Timeline, WallSpan, fires_twice, timeline_of
from chronex.timing.zones import FIRST_SECOND, LAST_SECOND, ZONE_BLOCK_BITS, Zone

_DAY = 86_400
_IN_BLOCK = BLOCK_DAYS - 1
_MOST_CLOCKS = 1440
_MOST_DAYS_AT_ONCE = 64
_NO_ZONE = object()  # is no datetime's tzinfo
_date_of = date.fromordinal
_combine = datetime.combine


class _MatchingDays(dict[int, int]):
    """The matching days of each block as bits, computed when first needed."""

    __slots__ = ("_cron", "_mirrored")

    def __init__(self, cron: Cron, *, mirrored: bool) -> None:
        self._cron = cron
        self._mirrored = mirrored

    def __missing__(self, block: int) -> int:
        bits = block_bits(self._cron, -1 - block if self._mirrored else block)
        if self._mirrored:
            bits = int(f"{bits:0{BLOCK_DAYS}b}"[::-1], 2)
        self[block] = bits
        return bits


class _DaysToNext(dict[int, bytes]):
    """For each day of a block the number of days to the next candidate: what a single `next` looks up.

    A candidate is a matching day. Where a second pass fires too, any transition day is one as well, because its
    second pass may hold a match that comes before the next matching day. Computing an entry adds the transition
    days of its block to `Zone.transition_days`.
    """

    __slots__ = ("_fires_twice", "_matching", "_zone")

    def __init__(self, matching: _MatchingDays, zone: Zone, *, fires_twice: bool) -> None:
        self._matching = matching
        self._zone = zone
        self._fires_twice = fires_twice

    def __missing__(self, block: int) -> bytes:
        transitions = self._zone.transition_bits(block)
        candidates = self._matching[block] | transitions if self._fires_twice else self._matching[block]
        days = self[block] = days_to_next_in_block(candidates)
        return days

    def far_match_day(self, day: int) -> int | None:
        """The first matching day from `day` on, MANY_DAYS or more away; None where only the walk finds it."""
        found = None if self._fires_twice else _first_marked(self._matching, day)
        if found is not None:
            self[found >> DAY_BLOCK_BITS]  # computes the entry, so that the transition days of that block are known
        return found


class CronSearch:
    """A cron expression in a zone under a DST policy, in one direction of time."""

    __slots__ = (
        "_count", "_cron", "_days_to_next", "_epoch", "_first", "_last", "_last_interval", "_mirrored", "_policy",
        "_times", "_transition_days", "clocks", "local_tzinfo", "matching_days", "zone",
    )  # fmt: skip

    def __init__(self, cron: Cron, zone: Zone, policy: DstPolicy, *, mirrored: bool = False) -> None:
        self.zone = zone
        self._epoch = zone.epoch
        self._cron = cron
        self._policy = policy
        self._mirrored = mirrored
        self._times = _times_of_day(cron.hour.values, cron.minute.values, cron.second.values, mirrored)
        self._count = len(self._times)
        self._first = -1 - LAST_SECOND if mirrored else FIRST_SECOND
        self._last = -1 - FIRST_SECOND if mirrored else LAST_SECOND
        # The interval between two clock changes that held the last match: instants low..high, and its offset.
        self._last_interval: tuple[int, int, int] = (1, 0, 0)
        self.matching_days = _MatchingDays(cron, mirrored=mirrored)
        # The times of day as clock readings; none where dates and readings may not be combined.
        self.clocks = () if mirrored or not zone.keeps_fold else _clocks(self._times, zone.tzinfo)
        # `next_local` takes datetimes with this tzinfo only.
        self.local_tzinfo: object = zone.tzinfo if self.clocks else _NO_ZONE
        twice = fires_twice(policy, is_interval=cron.is_interval)
        self._days_to_next = _DaysToNext(self.matching_days, zone, fires_twice=twice)
        self._transition_days = zone.transition_days

    @property
    def is_interval(self) -> bool:
        return self._cron.is_interval

    def first_from(self, bound: int) -> int | None:
        """The first matching instant at or after `bound`."""
        low, high, shift = self._last_interval
        if low <= bound <= high:
            wall = self._wall_from(bound + shift)
            if wall is not None and wall - shift <= high:
                return wall - shift
        return self._walk(bound)

    def next_local(self, after: datetime, inclusive: bool) -> datetime | None:
        """The next match after a datetime whose tzinfo is `local_tzinfo`, if both lie on plain days; else None.

        Within one zone Python subtracts wall clocks, and on plain days a match needs nothing else: no offset is
        looked up, which makes a single `next` cheap. None does not mean that there is no match, but that
        `first_from` must search for it.
        """
        wall = after - self._epoch
        start = day = wall.days
        if inclusive and not wall.microseconds:
            at = bisect_left(self._times, wall.seconds)
        else:
            at = bisect_right(self._times, wall.seconds)
        if at == self._count:
            day += 1
            at = 0
        days_to_next = self._days_to_next[day >> DAY_BLOCK_BITS][day & _IN_BLOCK]
        if start in self._transition_days:
            return None
        if days_to_next:
            found = day + days_to_next if days_to_next < MANY_DAYS else self._days_to_next.far_match_day(day)
            if found is None:
                return None
            day, at = found, 0
        elif day == start:
            return _combine(after, self.clocks[at])
        if day in self._transition_days:
            return None
        return _combine(_date_of(day + EPOCH_ORDINAL), self.clocks[at])

    def _wall_from(self, wall: int) -> int | None:
        """The first matching wall second at or after `wall`."""
        day, second = divmod(wall, _DAY)
        at = bisect_left(self._times, second)
        if at == self._count:
            day += 1
            at = 0
        found = _first_marked(self.matching_days, day)
        if found is None:
            return None
        return found * _DAY + self._times[at if found == day else 0]

    def _walk(self, bound: int) -> int | None:
        found = next(self.matching_spans(bound), None)
        return None if found is None else self._instant(*found)

    def matching_spans(self, bound: int) -> Iterator[tuple[WallSpan, int]]:
        """Each span from `bound` on that holds a match, with its first matching wall second."""
        searched_from, wall = 0, -1  # no match lies in [searched_from, wall)
        bound = max(bound, self._first)
        while bound <= self._last:
            block = bound >> ZONE_BLOCK_BITS
            line = self._timeline(block)
            index = max(bisect_right(line.firsts, bound) - 1, 0)
            while index < len(line.spans):
                span = line.spans[index]
                start = span.entry(bound)
                index += 1
                if start is None:
                    continue
                if not searched_from <= start <= wall:
                    found = self._wall_from(start)
                    if found is None:
                        return
                    searched_from, wall = start, found
                if wall <= span.high:
                    yield span, wall
                else:
                    index = _next_index(line, index, start, wall)
            bound = (block + 1) << ZONE_BLOCK_BITS

    def _instant(self, span: WallSpan, wall: int) -> int | None:
        found = span.collapse
        if found is None:
            found = wall - span.shift
            low, high = span.low - span.shift, span.high - span.shift
            self._last_interval = (max(low, self._first), min(high, self._last), span.shift)
        return found if found <= self._last else None

    def _timeline(self, block: int) -> Timeline:
        is_interval = self._cron.is_interval
        return timeline_of(self.zone, self._policy, is_interval=is_interval, mirrored=self._mirrored, block=block)

    def clock_index(self, second: int) -> int:
        """How many times of day lie before this second of the day."""
        return bisect_left(self._times, second)

    def walls_between(self, low: int, high: int) -> Iterator[int]:
        """The wall seconds in [low, high] that the pattern names, whether or not the zone's clock shows them."""
        return chain.from_iterable(self._instants(0, low, high))

    def between(self, start: int, end: int) -> Iterator[int]:
        """Every matching instant in [start, end], in order."""
        return chain.from_iterable(self._between(start, end))

    def _between(self, start: int, end: int) -> Iterator[Iterable[int]]:
        for span, wall in self.matching_spans(start):
            found = wall - span.shift if span.collapse is None else span.collapse
            if found > end:
                return
            yield (found,)
            if span.collapse is None:
                following = self._wall_from(wall + 1)
                if following is not None and following <= span.high:
                    yield from self._instants(span.shift, following, min(span.high, end + span.shift))

    def _instants(self, shift: int, low: int, high: int) -> Iterator[Iterable[int]]:
        """Each matching wall second in [low, high], less `shift`."""
        first_day, first = low // _DAY, bisect_left(self._times, low % _DAY)
        is_in = (high - shift).__ge__
        if first:
            for day in self._days(first_day, min(first_day, high // _DAY)):
                yield takewhile(is_in, map((day * _DAY - shift).__add__, self._times[first:]))
            first_day += 1
        for days in self.days(first_day, high // _DAY, 8):
            run = starmap(add, product([day * _DAY - shift for day in days], self._times))
            yield run if (days[-1] + 1) * _DAY <= high else takewhile(is_in, run)

    def days(self, first: int, last: int, size: int = 1) -> Iterator[Sequence[int]]:
        """The matching local days from first to last, in lists of `size`, then of twice as many each time."""
        days = self._days(first, last)
        while some := list(islice(days, size)):
            yield some
            size = min(size * 2, _MOST_DAYS_AT_ONCE)

    def _days(self, first: int, last: int) -> Iterator[int]:
        first_block, last_block = first >> DAY_BLOCK_BITS, last >> DAY_BLOCK_BITS
        give_up = first_block + LONGEST_SEARCH_BLOCKS
        for block in range(first_block, last_block + 1):
            base = block << DAY_BLOCK_BITS
            days = bit_numbers(self.matching_days[block])
            if days:
                give_up = block + LONGEST_SEARCH_BLOCKS
            elif block > give_up:
                return
            if block in (first_block, last_block):
                days = days[bisect_left(days, first - base) : bisect_right(days, last - base)]
            for day in days:
                yield base + day


def _first_marked(blocks: dict[int, int], day: int) -> int | None:
    """The first day at or after `day` whose bit is set; None when there is none."""
    block = day >> DAY_BLOCK_BITS
    ahead = blocks[block] >> (day & _IN_BLOCK)
    if ahead:
        return day + (ahead & -ahead).bit_length() - 1
    for later in range(block + 1, block + LONGEST_SEARCH_BLOCKS + 1):
        if ahead := blocks[later]:
            return (later << DAY_BLOCK_BITS) + (ahead & -ahead).bit_length() - 1
    return None


def _next_index(line: Timeline, following: int, start: int, wall: int) -> int:
    """The next span that can hold a match, knowing that none lies in [start, wall).

    A second pass begins at a wall second that was searched before, so it is searched on its own. All other spans
    up to the match are skipped at once, so that a rare date costs no walk over the years.
    """
    if following < len(line.spans) and line.lows[following] < start:
        return following
    return bisect_left(line.highs, wall, following)


def _clocks(times: Sequence[int], tz: tzinfo) -> tuple[time, ...]:
    """The times of day as clock readings in the zone; empty when there are too many to keep."""
    if len(times) > _MOST_CLOCKS:
        return ()
    return _few_clocks(tuple(times), tz)


@lru_cache(maxsize=512)
def _few_clocks(times: tuple[int, ...], tz: tzinfo) -> tuple[time, ...]:
    return tuple(time(t // 3600, t // 60 % 60, t % 60, tzinfo=tz) for t in times)


@lru_cache(maxsize=512)
def _times_of_day(hours: int, minutes: int, seconds: int, mirrored: bool) -> Sequence[int]:
    """Matching seconds of the day, rising; a dense one (`* * * * * *`) is packed."""
    times = [
        3600 * hour + 60 * minute + second
        for hour in bit_numbers(hours)
        for minute in bit_numbers(minutes)
        for second in bit_numbers(seconds)
    ]
    if mirrored:
        times = [_DAY - 1 - time for time in reversed(times)]
    return tuple(times) if len(times) <= _MOST_CLOCKS else array("i", times)
