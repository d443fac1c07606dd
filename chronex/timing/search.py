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
from chronex.timing.timeline import DstPolicy, Span, Timeline, timeline_of
from chronex.timing.zones import ERA_BITS, FIRST_SECOND, LAST_SECOND, Zone

_DAY = 86_400
_IN_BLOCK = BLOCK_DAYS - 1
_MOST_CLOCKS = 1440
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_date_of = date.fromordinal
_combine = datetime.combine


class CronSearch:
    """A cron expression in a zone under a DST policy, in one direction of time."""

    __slots__ = ("_blocks", "_calm_days", "_clocks", "_cron", "_first", "_last", "_mirrored", "_policy", "_stretch", "_times", "zone")

    def __init__(self, cron: Cron, zone: Zone, policy: DstPolicy, *, mirrored: bool = False) -> None:
        self.zone = zone
        self._cron, self._policy, self._mirrored = cron, policy, mirrored
        self._times = _times_of_day(cron.hour.values, cron.minute.values, cron.second.values, mirrored)
        self._blocks: dict[int, int] = {}
        self._first, self._last = FIRST_SECOND, LAST_SECOND
        if mirrored:
            self._first, self._last = -1 - LAST_SECOND, -1 - FIRST_SECOND
        # The stretch between two clock changes that answered last: instants low..high, and its offset.
        self._stretch: tuple[int, int, int] = (1, 0, 0)
        # The local days well inside it; none in the mirror, nor for more times of day than are worth keeping.
        self._calm_days: tuple[int, int] = (1, 0)
        keeps_clocks = not mirrored and isinstance(self._times, tuple)
        self._clocks = _clocks(self._times, zone.tzinfo) if keeps_clocks else ()

    def first_from(self, bound: int) -> int | None:
        """The first matching instant at or after `bound`."""
        low, high, shift = self._stretch
        if low <= bound <= high:
            wall = self._wall_from(bound + shift)
            if wall is not None and wall - shift <= high:
                return wall - shift
        return self._walk(bound)

    def local_from(self, day: int, second: int) -> datetime | None:
        """The first match at or after this local second, where no clock change is near; else None: ask first_from.

        On calm days a local time needs no zone arithmetic at all, which is what makes a single `next` cheap.
        """
        first, last = self._calm_days
        if day < first or day > last:
            return None
        match = self._match_from(day, second)
        if match is None or match[0] > last:
            return None
        return _combine(_date_of(match[0] + _EPOCH_ORDINAL), self._clocks[match[1]])

    def _wall_from(self, wall: int) -> int | None:
        """The first matching wall second at or after `wall`."""
        match = self._match_from(*divmod(wall, _DAY))
        return None if match is None else match[0] * _DAY + self._times[match[1]]

    def _match_from(self, day: int, second: int) -> tuple[int, int] | None:
        """(day, index of the time of day) of the first match at or after this second of this day."""
        at = bisect_left(self._times, second)
        if at == len(self._times):
            day += 1
            at = 0
        bits = self._blocks.get(day >> BLOCK_BITS)
        ahead = (self._read_block(day >> BLOCK_BITS) if bits is None else bits) >> (day & _IN_BLOCK)
        if ahead & 1:
            return day, at
        if ahead:
            return day + (ahead & -ahead).bit_length() - 1, 0
        for block in range((day >> BLOCK_BITS) + 1, (day >> BLOCK_BITS) + LONGEST_WAIT_BLOCKS):
            if ahead := self._read_block(block):
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
            if self._clocks:
                self._calm_days = (span.low // _DAY + 2, span.high // _DAY - 2)
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
        for block in range(first_day >> BLOCK_BITS, (last_day >> BLOCK_BITS) + 1):
            base = block << BLOCK_BITS
            for in_block in bit_numbers(self._read_block(block)):
                day = base + in_block
                if first_day < day < last_day:
                    midnight = day * _DAY - shift
                    for time in times:
                        yield midnight + time
                elif day == first_day or day == last_day:
                    midnight = day * _DAY
                    yield from [midnight + t - shift for t in times if low <= midnight + t <= high]


def _next_index(line: Timeline, index: int, start: int, wall: int) -> int:
    """The next span that can hold a match, knowing that none lies in [start, wall).

    A second pass begins at a wall second that was passed before: it is looked at on its own. All other spans
    up to the match are skipped at once, so that a rare date costs no walk over the years.
    """
    following = index + 1
    if following < len(line.spans) and line.lows[following] < start:
        return following
    return bisect_left(line.highs, wall, following)


@lru_cache(maxsize=512)
def _clocks(times: Sequence[int], tz: tzinfo) -> tuple[time, ...]:
    """The times of day as clock readings in the zone."""
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
