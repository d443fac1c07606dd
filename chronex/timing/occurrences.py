"""The instants of every kind of schedule, in one zone, as integer milliseconds in both directions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Protocol

from chronex.expr.meaning import Cron, Every, Meaning, Once, Repeating
from chronex.expr.moments import Moment
from chronex.timing.search import CronSearch
from chronex.timing.steps import calendar_step
from chronex.timing.timeline import DEFAULT_POLICY, POSIX_POLICY, DstPolicy
from chronex.timing.walls import last_instant_of_day, wall_to_instant
from chronex.timing.zones import FIRST_SECOND, LAST_SECOND, Zone

FIRST_MS = FIRST_SECOND * 1000
LAST_MS = LAST_SECOND * 1000 + 999


class Search(Protocol):
    """Instants in milliseconds. `step` is +1 for the first one at or after the bound, -1 for the last before."""

    def nearest(self, bound: int, step: int) -> int | None: ...


class _CronMilliseconds:
    """A cron search in both directions; the one into the past is made when it is first asked for."""

    __slots__ = ("_make", "_past", "seconds")

    def __init__(self, make: Callable[[bool], CronSearch]) -> None:
        self.seconds = make(False)
        self._make = make
        self._past: CronSearch | None = None

    def nearest(self, bound: int, step: int) -> int | None:
        if step > 0:
            found = self.seconds.first_from(-(-bound // 1000))
            return None if found is None else found * 1000
        if self._past is None:
            self._past = self._make(True)
        found = self._past.first_from(-1 - bound // 1000)
        return None if found is None else (-1 - found) * 1000


class _OneInstant:
    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at

    def nearest(self, bound: int, step: int) -> int | None:
        return self.at if (self.at - bound) * step >= 0 else None


class FixedRate:
    """start + k·period for k = 1, 2, …: elapsed time, untouched by clock changes."""

    __slots__ = ("period", "start")

    def __init__(self, start: int, period: int) -> None:
        self.start, self.period = start, period

    def nearest(self, bound: int, step: int) -> int | None:
        ahead = bound - self.start
        count = max(-(-ahead // self.period), 1) if step > 0 else ahead // self.period
        return self.start + count * self.period if count >= 1 else None


class _CalendarSteps:
    """An ISO 8601 repeating interval: the k-th instant never falls, so a bound is found by bisection on k."""

    __slots__ = ("_body", "_counts", "_start_wall", "_zone")

    def __init__(self, body: Repeating, zone: Zone) -> None:
        self._body, self._zone = body, zone
        start = resolve(body.start, zone)
        self._start_wall = start + zone.offset_at(start // 1000) * 1000
        longest = (LAST_MS - self._start_wall) // max(_shortest_ms(body), 1) + 1
        self._counts = range(longest if body.repetitions is None else min(longest, body.repetitions + 1))

    def nearest(self, bound: int, step: int) -> int | None:
        if step > 0:
            index = bisect_left(self._counts, bound, key=self._instant)
        else:
            index = bisect_right(self._counts, bound, key=self._instant) - 1
        return self._instant(index) if 0 <= index < len(self._counts) else None

    def _instant(self, count: int) -> int:
        wall = calendar_step(self._start_wall, self._body.period, count)
        if wall is None:
            return LAST_MS + 1
        return wall_to_instant(wall, self._zone) + count * self._body.period.elapsed_ms


def _shortest_ms(body: Repeating) -> int:
    period = body.period
    return (period.months * 28 + period.days) * 86_400_000 + period.elapsed_ms


def resolve(moment: Moment, zone: Zone) -> int:
    """The instant of a moment: by its own offset, else on the wall of the zone."""
    instant = moment.instant_ms
    return wall_to_instant(moment.wall_ms, zone) if instant is None else instant


class Occurrences:
    """An expression's instants in a zone, between its `from` and `until`."""

    __slots__ = ("_search", "cron", "high", "low", "meaning", "policy", "zone")

    def __init__(self, meaning: Meaning, zone: Zone, policy: DstPolicy | None = None) -> None:
        self.meaning, self.zone = meaning, zone
        self.policy = policy or (POSIX_POLICY if meaning.dialect == "posix" else DEFAULT_POLICY)
        options = meaning.options
        self.low = FIRST_MS if options.from_ is None else resolve(options.from_, zone)
        self.high = LAST_MS if options.until is None else resolve_until(options.until, zone)
        self._search = self._fixed_search()
        # The search in seconds, where nothing narrows it: the short way of the hot path.
        is_open = options.from_ is None and options.until is None
        self.cron = self._search.seconds if is_open and isinstance(self._search, _CronMilliseconds) else None

    def nearest(self, bound: int, step: int, anchor: int | None = None) -> int | None:
        """The occurrence nearest to `bound`, itself included. `@every` counts from `anchor`."""
        search = self._search or self._anchored(anchor)
        found = search.nearest(max(bound, self.low) if step > 0 else min(bound, self.high), step)
        return found if found is not None and self.low <= found <= self.high else None

    @property
    def pattern(self) -> CronSearch | None:
        """The cron search whatever `from` and `until` say; None for the other kinds."""
        return self._search.seconds if isinstance(self._search, _CronMilliseconds) else None

    def between(self, start: int, end: int, anchor: int | None = None) -> Iterator[int]:
        """Every occurrence in [start, end], in order."""
        end = min(end, self.high)
        if isinstance(self._search, _CronMilliseconds):
            seconds = self._search.seconds.between(-(-max(start, self.low) // 1000), end // 1000)
            yield from (second * 1000 for second in seconds)
            return
        found = self.nearest(start, 1, anchor)
        while found is not None and found <= end:
            yield found
            found = self.nearest(found + 1, 1, anchor)

    def interval_start(self, anchor: int) -> int:
        """Where `@every` starts to count: at the anchor, or at a later `from`."""
        return max(anchor, self.low)

    def _anchored(self, anchor: int | None) -> Search:
        body = self.meaning.body
        assert isinstance(body, Every)
        return FixedRate(self.interval_start(0 if anchor is None else anchor), body.low)

    def _fixed_search(self) -> Search | None:
        match self.meaning.body:
            case Cron() as cron:
                return _CronMilliseconds(lambda mirrored: CronSearch(cron, self.zone, self.policy, mirrored=mirrored))
            case Once(at=Moment() as moment):
                return _OneInstant(resolve(moment, self.zone))
            case Repeating() as body:
                return _CalendarSteps(body, self.zone)
            case _:
                return None


def resolve_until(until: Moment, zone: Zone) -> int:
    return last_instant_of_day(until.wall_ms, zone) if until.is_date else resolve(until, zone)
