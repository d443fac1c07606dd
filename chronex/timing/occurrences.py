"""The instants of every kind of schedule, in one zone.

`Occurrences` gives them as integer milliseconds in both directions. `cron_datetimes` gives those of a cron
expression as datetimes in bulk. `stagger_offset` is the part of a start that depends on the job's id alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain, groupby, product, starmap
from typing import Protocol

from chronex.expr.iso8601 import Moment, Period
from chronex.expr.meaning import AtStart, Cron, Every, Meaning, Once, Repeating
from chronex.text.durations import DAY_MS
from chronex.text.instants import EPOCH_ORDINAL, FIRST_MS, LAST_MS
from chronex.timing.calendar import DAY_BLOCK_BITS, calendar_step
from chronex.timing.dst import DEFAULT_POLICY, POSIX_POLICY, DstPolicy, last_instant_of_day, wall_to_instant
from chronex.timing.search import CronSearch
from chronex.timing.zones import Zone

_DAY = 86_400
_FNV_OFFSET = 0x811C_9DC5
_FNV_PRIME = 0x0100_0193
_date_of = date.fromordinal
_combine = datetime.combine
_from_timestamp = datetime.fromtimestamp

# -- one search for each kind of schedule ---------------------------------------------------------------------


class Search(Protocol):
    """Instants in milliseconds. `step` is +1 for the first one at or after the bound, -1 for the last before."""

    def nearest(self, bound: int, step: int) -> int | None: ...


class _CronMilliseconds:
    """A cron search in both directions; the one into the past is made when it is first needed."""

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
    """The instant of `@once`."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at

    def nearest(self, bound: int, step: int) -> int | None:
        return self.at if (self.at - bound) * step >= 0 else None


class _NoInstant:
    """`@start`: the daemon asks for its runs, the calendar knows none."""

    __slots__ = ()

    def nearest(self, bound: int, step: int) -> int | None:
        return None


class FixedRate:
    """start + k·period for k = 1, 2, …: elapsed time, on which clock changes have no effect."""

    __slots__ = ("period", "start")

    def __init__(self, start: int, period: int) -> None:
        self.start = start
        self.period = period

    def nearest(self, bound: int, step: int) -> int | None:
        ahead = bound - self.start
        count = max(-(-ahead // self.period), 1) if step > 0 else ahead // self.period
        return self.start + count * self.period if count >= 1 else None


class _CalendarSteps:
    """An ISO 8601 repeating interval: instants never go back as k grows, so a bound is found by bisection on k.

    k is counted from `origin`: 0, 1, … from a start, 1, 2, … from an anchor, …, -2, -1 before an end.
    """

    __slots__ = ("_counts", "_origin_wall", "_period", "_zone")

    def __init__(self, period: Period, zone: Zone, origin: int, first: int | None, last: int | None) -> None:
        self._period = period
        self._zone = zone
        self._origin_wall = origin + zone.offset_at(origin // 1000) * 1000
        shortest = max((period.months * 28 + period.days) * DAY_MS + period.elapsed_ms, 1)
        most_before = (self._origin_wall - FIRST_MS) // shortest + 1
        most_after = (LAST_MS - self._origin_wall) // shortest + 1
        begin = -most_before if first is None else max(first, -most_before)
        self._counts = range(begin, 1 + (most_after if last is None else min(last, most_after)))

    def nearest(self, bound: int, step: int) -> int | None:
        if step > 0:
            index = bisect_left(self._counts, bound, key=self._instant)
        else:
            index = bisect_right(self._counts, bound, key=self._instant) - 1
        return self._instant(self._counts[index]) if 0 <= index < len(self._counts) else None

    def _instant(self, count: int) -> int:
        wall = calendar_step(self._origin_wall, self._period, count)
        if wall is None:
            return LAST_MS + 1 if count > 0 else FIRST_MS - 1
        return wall_to_instant(wall, self._zone) + count * self._period.elapsed_ms


def _steps_of(body: Repeating, zone: Zone, anchor: int) -> _CalendarSteps:
    count = body.repetitions
    if body.start is not None:
        return _CalendarSteps(body.period, zone, resolve(body.start, zone), 0, count)
    if body.end is not None:
        first = None if count is None else -1 - count
        return _CalendarSteps(body.period, zone, resolve(body.end, zone), first, -1)
    return _CalendarSteps(body.period, zone, anchor, 1, count)


def resolve(moment: Moment, zone: Zone) -> int:
    """The instant of a moment: by its own offset, else on the wall of the zone."""
    instant = moment.instant_ms
    return wall_to_instant(moment.wall_ms, zone) if instant is None else instant


def resolve_until(until: Moment, zone: Zone) -> int:
    """The last instant that `until` includes: of a date, the end of its local day."""
    return last_instant_of_day(until.wall_ms, zone) if until.is_date else resolve(until, zone)


# -- every kind -----------------------------------------------------------------------------------------------


class Occurrences:
    """An expression's instants in a zone, between its `from` and `until`."""

    __slots__ = ("_search", "cron", "high", "low", "meaning", "policy", "zone")

    def __init__(self, meaning: Meaning, zone: Zone, policy: DstPolicy | None = None) -> None:
        self.meaning = meaning
        self.zone = zone
        self.policy = policy or (POSIX_POLICY if meaning.dialect == "posix" else DEFAULT_POLICY)
        options = meaning.options
        self.low = FIRST_MS if options.from_ is None else resolve(options.from_, zone)
        self.high = LAST_MS if options.until is None else resolve_until(options.until, zone)
        self._search = self._fixed_search()
        # The search in seconds, if `from` and `until` do not narrow it; Expression.next takes this short way.
        is_open = options.from_ is None and options.until is None
        self.cron = self._search.seconds if is_open and isinstance(self._search, _CronMilliseconds) else None

    def nearest(self, bound: int, step: int, anchor: int | None = None) -> int | None:
        """The occurrence nearest to `bound`, itself included. What is anchored counts from `anchor`."""
        search = self._search or self._anchored(anchor)
        found = search.nearest(max(bound, self.low) if step > 0 else min(bound, self.high), step)
        return found if found is not None and self.low <= found <= self.high else None

    @property
    def pattern(self) -> CronSearch | None:
        """The cron search without the bounds of `from` and `until`; None for the other kinds."""
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

    def before_grid_point(self, point: int, bound: int) -> int | None:
        """The last step of an anchored repeating interval at or before `bound`, if `point` were one of its steps."""
        body = self.meaning.body
        assert isinstance(body, Repeating)
        found = _CalendarSteps(body.period, self.zone, point, None, -1).nearest(min(bound, self.high), -1)
        return found if found is not None and found > self.low else None

    def interval_start(self, anchor: int) -> int:
        """Where an anchored expression starts to count: at the anchor, or at a later `from`."""
        return max(anchor, self.low)

    def _anchored(self, anchor: int | None) -> Search:
        body = self.meaning.body
        start = self.interval_start(0 if anchor is None else anchor)
        if isinstance(body, Repeating):
            return _steps_of(body, self.zone, start)
        assert isinstance(body, Every)
        return FixedRate(start, body.low)

    def _fixed_search(self) -> Search | None:
        match self.meaning.body:
            case Cron() as cron:
                return _CronMilliseconds(lambda mirrored: CronSearch(cron, self.zone, self.policy, mirrored=mirrored))
            case Once(at=Moment() as moment):
                return _OneInstant(resolve(moment, self.zone))
            case AtStart():
                return _NoInstant()
            case Repeating() as body if not body.is_anchored:
                return _steps_of(body, self.zone, 0)
            case _:
                return None


# -- a cron expression as datetimes ---------------------------------------------------------------------------


def cron_datetimes(search: CronSearch, start: int, end: int) -> Iterator[datetime]:
    """Every match in [start, end] (UTC seconds), in order, as a datetime in the zone.

    On plain days a match is a date combined with a clock reading; around clock changes it is found by instant.
    """
    if not search.clocks:
        return _by_instant(search, start, end)
    return chain.from_iterable(_pieces(search, start, end))


def _pieces(search: CronSearch, start: int, end: int) -> Iterator[Iterable[datetime]]:
    zone = search.zone
    day = (start + zone.offset_at(start)) // _DAY
    # No zone is a day from UTC, so every day before this one has ended at `end`.
    last = _plain_day_before(end // _DAY - 1, zone)
    if day >= last:
        yield _by_instant(search, start, end)
        return
    if zone.is_transition_day(day):
        following = _plain_day_after(day, zone)
        yield _by_instant(search, start, min(_midnight(following, zone) - 1, end))
    else:
        following = day + 1
        second = start + zone.offset_at(start) - day * _DAY
        for days in search.days(day, day):
            yield _on_days(search, days, search.clock_index(second))
    yield from _whole_days(search, following, last)
    yield _by_instant(search, _midnight(max(following, last), zone), end)


def _whole_days(search: CronSearch, first: int, end: int) -> Iterator[Iterable[datetime]]:
    """The matches of the days in [first, end). Transition days that follow each other are searched as one."""
    zone, done_before = search.zone, first
    for days in search.days(first, end - 1):
        for block in range(days[0] >> DAY_BLOCK_BITS, (days[-1] >> DAY_BLOCK_BITS) + 1):
            zone.transition_bits(block)  # adds the days of this block to zone.transition_days
        if zone.transition_days.isdisjoint(days):
            yield _on_days(search, days)
            continue
        for is_transition, group in groupby(days, zone.transition_days.__contains__):
            if not is_transition:
                yield _on_days(search, list(group))
                continue
            for day in group:
                if day >= done_before:
                    begin, done_before = _plain_day_before(day, zone) + 1, _plain_day_after(day, zone)
                    yield _by_instant(search, _midnight(begin, zone), _midnight(done_before, zone) - 1)


def _on_days(search: CronSearch, days: Sequence[int], first_clock: int = 0) -> Iterator[datetime]:
    dates = [_date_of(day + EPOCH_ORDINAL) for day in days]
    return starmap(_combine, product(dates, search.clocks[first_clock:]))


def _by_instant(search: CronSearch, start: int, end: int) -> Iterator[datetime]:
    tz = search.zone.tzinfo
    for instant in search.between(start, end):
        yield _from_timestamp(instant, tz)


def _midnight(day: int, zone: Zone) -> int:
    """The instant at which a day begins: the first that shows its midnight, or the end of the gap around it."""
    return wall_to_instant(day * _DAY * 1000, zone) // 1000


def _plain_day_after(day: int, zone: Zone) -> int:
    while zone.is_transition_day(day):
        day += 1
    return day


def _plain_day_before(day: int, zone: Zone) -> int:
    while zone.is_transition_day(day):
        day -= 1
    return day


# -- the job's own offset -------------------------------------------------------------------------------------


def stagger_offset(identity: str, stagger_ms: int) -> int:
    """Milliseconds in [0, stagger): FNV-1a 32 of the id's UTF-8 bytes, so that an id always has the same offset."""
    value = _FNV_OFFSET
    for byte in identity.encode():
        value = (value ^ byte) * _FNV_PRIME & 0xFFFF_FFFF
    return value % stagger_ms
