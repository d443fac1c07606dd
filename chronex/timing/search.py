"""The one search: the matching instants of a cron expression, on integer seconds.

There is one direction only. The past is searched in mirrored time, where t becomes -1 - t: the last instant
before a bound is the first one after it in the mirror. Days, times of day and the zone's spans are mirrored as
data, so that no rule (a gap's end, the first pass of an overlap) is ever written twice.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, tzinfo
from functools import lru_cache

from chronex.expr.meaning import Cron
from chronex.timing.calendar import BLOCK_BITS, BLOCK_DAYS, LONGEST_WAIT_BLOCKS, bit_numbers, block_bits
from chronex.timing.timeline import DstPolicy, Span, Timeline, fires_twice, timeline_of
from chronex.timing.zones import ERA_BITS, FIRST_SECOND, KNOWN_DAYS, LAST_SECOND, Zone

_DAY = 86_400
_IN_BLOCK = BLOCK_DAYS - 1
_MOST_CLOCKS = 1440
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LAST_CALM = KNOWN_DAYS.stop - 1
_date_of = date.fromordinal
_combine = datetime.combine


class CronSearch:
    """A cron expression in a zone under a DST policy, in one direction of time."""

    __slots__ = (
        "_blocks", "_count", "_cron", "_epoch", "_first", "_first_calm", "_last", "_mirrored", "_policy", "_reach",
        "_restless", "_stretch", "_times", "clocks", "tzinfo", "zone",
    )  # fmt: skip

    def __init__(self, cron: Cron, zone: Zone, policy: DstPolicy, *, mirrored: bool = False) -> None:
        self.zone, self.tzinfo, self._epoch = zone, zone.tzinfo, zone.epoch
        self._cron, self._policy, self._mirrored = cron, policy, mirrored
        self._times = _times_of_day(cron.hour.values, cron.minute.values, cron.second.values, mirrored)
        self._count = len(self._times)
        self._blocks: dict[int, int] = {}
        self._first, self._last = FIRST_SECOND, LAST_SECOND
        if mirrored:
            self._first, self._last = -1 - LAST_SECOND, -1 - FIRST_SECOND
        # The stretch between two clock changes that answered last: instants low..high, and its offset.
        self._stretch: tuple[int, int, int] = (1, 0, 0)
        # Local days where a match needs no zone arithmetic: those that no clock change touches. Where a second
        # pass fires too, a match beyond a change may wait behind it; changes are five restless days wide.
        self.clocks = () if mirrored else _clocks(self._times, zone.tzinfo)
        self._restless = zone.restless_days if self.clocks else frozenset()
        self._first_calm = KNOWN_DAYS.start if self.clocks else LAST_SECOND
        self._reach = 4 if fires_twice(policy, is_interval=cron.is_interval) else len(KNOWN_DAYS)

    @property
    def is_interval(self) -> bool:
        return self._cron.is_interval

    def first_from(self, bound: int) -> int | None:
        """The first matching instant at or after `bound`."""
        low, high, shift = self._stretch
        if low <= bound <= high:
            wall = self._wall_from(bound + shift)
            if wall is not None and wall - shift <= high:
                return wall - shift
        return self._walk(bound)

    def next_local(self, after: datetime, inclusive: bool) -> datetime | None:
        """The next match after a datetime of this very zone, where no clock change is near; else None.

        Within one zone Python subtracts wall clocks, and on calm days that is all a match needs: no offset is
        looked up, which is what makes a single `next` cheap. None means: ask first_from.
        """
        wall = after - self._epoch
        start = wall.days
        if start < self._first_calm or start in self._restless:
            return None
        exclusive = not inclusive or wall.microseconds
        match = self._match_from(start, wall.seconds + 1 if exclusive else wall.seconds)
        if match is None:
            return None
        day, at = match
        if day - start > self._reach or day > _LAST_CALM or day in self._restless:
            return None
        return _combine(_date_of(day + _EPOCH_ORDINAL), self.clocks[at])

    def matching_days(self, first: int, stop: int) -> Iterator[int]:
        """The matching local days in [first, stop)."""
        for block in range(first >> BLOCK_BITS, (stop - 1 >> BLOCK_BITS) + 1):
            base = block << BLOCK_BITS
            for in_block in bit_numbers(self._read_block(block)):
                if first <= base + in_block < stop:
                    yield base + in_block

    def walls_between(self, low: int, high: int) -> Iterator[int]:
        """The wall seconds in [low, high] that the pattern names, whether or not the zone's clock shows them."""
        return self._within(low, high, 0)

    def clock_index(self, second: int) -> int:
        """How many times of day lie before this second of the day."""
        return bisect_left(self._times, second)

    def _wall_from(self, wall: int) -> int | None:
        """The first matching wall second at or after `wall`."""
        match = self._match_from(*divmod(wall, _DAY))
        return None if match is None else match[0] * _DAY + self._times[match[1]]

    def _match_from(self, day: int, second: int) -> tuple[int, int] | None:
        """(day, index of the time of day) of the first match at or after this second of this day."""
        at = bisect_left(self._times, second)
        if at == self._count:
            day += 1
            at = 0
        try:
            ahead = self._blocks[day >> BLOCK_BITS] >> (day & _IN_BLOCK)
        except KeyError:
            ahead = self._read_block(day >> BLOCK_BITS) >> (day & _IN_BLOCK)
        if ahead & 1:
            return day, at
        if ahead:
            return day + (ahead & -ahead).bit_length() - 1, 0
        block = day >> BLOCK_BITS
        give_up = block + LONGEST_WAIT_BLOCKS
        while block < give_up:
            block += 1
            if ahead := self._blocks.get(block) or self._read_block(block):
                return (block << BLOCK_BITS) + (ahead & -ahead).bit_length() - 1, 0
        return None

    def _read_block(self, block: int) -> int:
        bits = self._blocks.get(block)
        if bits is None:
            bits = block_bits(self._cron, -1 - block if self._mirrored else block)
            if self._mirrored:
                bits = int(f"{bits:0{BLOCK_DAYS}b}"[::-1], 2)
            self._blocks[block] = bits
        return bits

    def _walk(self, bound: int) -> int | None:
        """From span to span, over clock changes and eras."""
        while self._first <= bound <= self._last:
            era = bound >> ERA_BITS
            line = self._timeline(era)
            index = max(bisect_right(line.firsts, bound) - 1, 0)
            while index < len(line.spans):
                span = line.spans[index]
                start = span.entry(bound)
                if start is None:
                    index += 1
                    continue
                wall = self._wall_from(start)
                if wall is None:
                    return None
                if wall <= span.high:
                    return self._instant(span, wall)
                index = _next_index(line, index, start, wall)
            bound = (era + 1) << ERA_BITS
        return None

    def _instant(self, span: Span, wall: int) -> int | None:
        found = span.collapse
        if found is None:
            found = wall - span.shift
            self._stretch = (span.low - span.shift, span.high - span.shift, span.shift)
        return found if found <= self._last else None

    def _timeline(self, era: int) -> Timeline:
        is_interval = self._cron.is_interval
        return timeline_of(self.zone, self._policy, is_interval=is_interval, mirrored=self._mirrored, era=era)

    def between(self, start: int, end: int) -> Iterator[int]:
        """Every matching instant in [start, end], in order, stretch by stretch."""
        found = self.first_from(start)
        while found is not None and found <= end:
            low, high, shift = self._stretch
            if not low <= found <= high:  # a gap's end stands alone
                yield found
                found = self.first_from(found + 1)
                continue
            yield from self._within(found + shift, min(high, end) + shift, shift)
            found = self.first_from(high + 1)

    def _within(self, low: int, high: int, shift: int) -> Iterator[int]:
        """Every matching wall second in [low, high], each less `shift`."""
        first_day, last_day = low // _DAY, high // _DAY
        times = self._times
        for day in self.matching_days(first_day, last_day + 1):
            midnight = day * _DAY - shift
            if first_day < day < last_day:
                for time_of_day in times:
                    yield midnight + time_of_day
            else:
                yield from [midnight + t for t in times if low <= midnight + t + shift <= high]


def _next_index(line: Timeline, index: int, start: int, wall: int) -> int:
    """The next span that can hold a match, knowing that none lies in [start, wall).

    A second pass begins at a wall second that was passed before: it is looked at on its own. All other spans
    up to the match are skipped at once, so that a rare date costs no walk over the years.
    """
    following = index + 1
    if following < len(line.spans) and line.lows[following] < start:
        return following
    return bisect_left(line.highs, wall, following)


def _clocks(times: Sequence[int], tz: tzinfo) -> tuple[time, ...]:
    """The times of day as clock readings in the zone; empty when there are more than are worth keeping."""
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
