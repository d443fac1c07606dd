"""The one search: the matching instant nearest to a bound, in either direction, on integer seconds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache

from chronex.expr.meaning import Cron
from chronex.timing.calendar import MatchingDays, bit_numbers
from chronex.timing.timeline import DstPolicy, Span, Timeline, timeline_of
from chronex.timing.zones import ERA_BITS, FIRST_SECOND, LAST_SECOND, Zone

_DAY = 86_400


class MatchingWalls:
    """The wall seconds (from 1970-01-01 00:00) that a cron expression matches."""

    __slots__ = ("days", "minutes", "seconds")

    def __init__(self, cron: Cron) -> None:
        self.days = MatchingDays(cron)
        self.minutes, self.seconds = _times_of_day(cron.hour.values, cron.minute.values, cron.second.values)

    def nearest(self, wall: int, step: int) -> int | None:
        """The matching wall second nearest to `wall`, itself included, in direction `step`."""
        day, second = divmod(wall, _DAY)
        found_day = self.days.nearest(day, step)
        if found_day == day:
            time = self._time_nearest(second, step)
            if time is not None:
                return day * _DAY + time
            found_day = self.days.nearest(day + step, step)
        if found_day is None:
            return None
        return found_day * _DAY + self.edge_of_day(step)

    def edge_of_day(self, step: int) -> int:
        """The first matching second of a day going forwards, the last going backwards."""
        at = 0 if step > 0 else -1
        return self.minutes[at] + self.seconds[at]

    def within(self, low: int, high: int, shift: int) -> Iterator[int]:
        """Every matching wall second in [low, high], each less `shift`."""
        first_day, last_day = low // _DAY, high // _DAY
        minutes, seconds = self.minutes, self.seconds
        for day in self.days.between(first_day, last_day):
            base = day * _DAY - shift
            instants = [base + minute + second for minute in minutes for second in seconds]
            if first_day < day < last_day:
                yield from instants
            else:
                yield from (at for at in instants if low <= at + shift <= high)

    def _time_nearest(self, second: int, step: int) -> int | None:
        """The matching second of the day nearest to `second`; None when the day has no more."""
        minute = second - second % 60
        at = bisect_left(self.minutes, minute)
        if at < len(self.minutes) and self.minutes[at] == minute:
            within = _neighbour(self.seconds, second - minute, step)
            if within is not None:
                return minute + within
        index = bisect_right(self.minutes, minute) if step > 0 else at - 1
        if not 0 <= index < len(self.minutes):
            return None
        return self.minutes[index] + self.seconds[0 if step > 0 else -1]


def _neighbour(values: tuple[int, ...], value: int, step: int) -> int | None:
    index = bisect_left(values, value) if step > 0 else bisect_right(values, value) - 1
    return values[index] if 0 <= index < len(values) else None


@lru_cache(maxsize=1024)
def _times_of_day(hours: int, minutes: int, seconds: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Matching minutes of the day, in seconds, and matching seconds of the minute."""
    in_hour = [60 * minute for minute in bit_numbers(minutes)]
    return tuple(3600 * hour + m for hour in bit_numbers(hours) for m in in_hour), bit_numbers(seconds)


class CronSearch:
    """A cron expression in a zone under a DST policy."""

    __slots__ = ("_is_interval", "_policy", "walls", "zone")

    def __init__(self, cron: Cron, zone: Zone, policy: DstPolicy) -> None:
        self.walls = MatchingWalls(cron)
        self.zone = zone
        self._policy = policy
        self._is_interval = cron.is_interval

    def nearest(self, bound: int, step: int) -> int | None:
        """The matching instant nearest to `bound`, itself included, in direction `step`."""
        while FIRST_SECOND <= bound <= LAST_SECOND:
            era = bound >> ERA_BITS
            found, bound = self._nearest_in(self.timeline(era), bound, step, era)
            if found is not None:
                return found if FIRST_SECOND <= found <= LAST_SECOND else None
        return None

    def between(self, start: int, end: int) -> Iterator[int]:
        """Every matching instant in [start, end], in order, span by span."""
        found = self.nearest(start, 1)
        while found is not None and found <= end:
            line = self.timeline(found >> ERA_BITS)
            span = line.spans[bisect_right(line.firsts, found) - 1]
            if span.collapse is not None:
                yield found
                found = self.nearest(found + 1, 1)
                continue
            yield from self.walls.within(found + span.shift, min(span.high, end + span.shift), span.shift)
            found = self.nearest(span.high - span.shift + 1, 1)

    def timeline(self, era: int) -> Timeline:
        return timeline_of(self.zone, self._policy, is_interval=self._is_interval, era=era)

    def _nearest_in(self, line: Timeline, bound: int, step: int, era: int) -> tuple[int | None, int]:
        """(the instant, 0), or (None, where in another era to go on; outside the calendar when nowhere)."""
        index = bisect_right(line.firsts, bound) - 1
        wall = self._entry(line.spans[index], bound, step) if index >= 0 else None
        if wall is None:
            index += step
            wall = self._far_edge(line, index, step)
        while wall is not None:
            matching = self.walls.nearest(wall, step)
            if matching is None:
                return None, LAST_SECOND + 1
            span = line.spans[index]
            if span.low <= matching <= span.high:
                return (matching - span.shift if span.collapse is None else span.collapse), 0
            index = self._next_index(line, index, wall, matching, step)
            wall = self._far_edge(line, index, step)
        return None, (era + 1) << ERA_BITS if step > 0 else (era << ERA_BITS) - 1

    def _entry(self, span: Span, bound: int, step: int) -> int | None:
        """The wall second of `span` to start from; None when the span lies wholly behind the bound."""
        if span.collapse is not None:
            if step > 0:
                return span.low if span.collapse >= bound else None
            return span.high
        wall = bound + span.shift
        if step > 0:
            return max(wall, span.low) if wall <= span.high else None
        return min(wall, span.high) if wall >= span.low else None

    def _far_edge(self, line: Timeline, index: int, step: int) -> int | None:
        if not 0 <= index < len(line.spans):
            return None
        return line.lows[index] if step > 0 else line.highs[index]

    def _next_index(self, line: Timeline, index: int, wall: int, matching: int, step: int) -> int:
        """The next span that can hold a match, knowing that none lies between `wall` and `matching`.

        A second pass starts at a wall second that was passed before; it is looked at on its own. All other
        spans up to the matching one are skipped at once, so that a rare date costs no walk over the years.
        """
        neighbour = index + step
        if not 0 <= neighbour < len(line.spans):
            return neighbour
        if step > 0:
            if line.lows[neighbour] < wall:
                return neighbour
            return bisect_left(line.highs, matching, neighbour)
        if line.highs[neighbour] > wall:
            return neighbour
        return bisect_right(line.lows, matching, 0, neighbour + 1) - 1
