"""Schedules made of others: the union of several, those without what calendars exclude, those with moved instants.

Each is a schedule as chronex/timing/job_schedule.py has them: `next`, `previous` and `between` over instants. An
instant that a calendar removes is none of theirs, so nothing that asks them can show or plan it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import NamedTuple, Protocol

from chronex.model.calendars import CalendarRules, OnExcluded
from chronex.text.durations import DAY_MS
from chronex.timing.calendar_days import MOST_DAYS_MOVED, CalendarDays, day_begin, day_end, local_day
from chronex.timing.dst import wall_to_instant
from chronex.timing.zones import Zone

# Where a calendar leaves nothing for so long, the schedule has no next instant.
_FURTHEST_MS = 40 * 366 * DAY_MS


class Instants(Protocol):
    """What a schedule is made from: another schedule."""

    def next(self, after_ms: int) -> int | None: ...

    def previous(self, before_ms: int) -> int | None: ...

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]: ...


class MovedFrom(NamedTuple):
    """The instant that the expression names, and the calendar that excludes it."""

    nominal_ms: int
    calendar: str


class ExcludedInstant(NamedTuple):
    """An instant that an expression names and a calendar excludes; `moved_to_ms` is None where it does not start."""

    nominal_ms: int
    calendar: str
    moved_to_ms: int | None = None


class WithoutExcluded:
    """The instants of a schedule that its calendars leave."""

    __slots__ = ("_base", "_days", "_empty")

    def __init__(self, base: Instants, rules: CalendarRules, zone: Zone) -> None:
        self._base = base
        self._days = CalendarDays(rules, zone)
        self._empty = (0, 0)  # no instant behind the first of these, up to the second

    def next(self, after_ms: int) -> int | None:
        last = after_ms + _FURTHEST_MS
        # Of several expressions one may have no instant left: who walks along the others asks it each time.
        is_known = self._empty[0] <= after_ms < self._empty[1]
        found = self._base.next(self._empty[1] if is_known else after_ms)
        while found is not None and found <= last:
            allowed = self._days.allowed_from(found)
            if allowed == found:
                return found
            found = None if allowed is None else self._base.next(allowed - 1)
        self._empty = (self._empty[0] if is_known else after_ms, last)
        return None

    def previous(self, before_ms: int) -> int | None:
        first = before_ms - _FURTHEST_MS
        found = self._base.previous(before_ms)
        while found is not None and found >= first:
            allowed = self._days.allowed_until(found)
            if allowed == found:
                return found
            found = None if allowed is None else self._base.previous(allowed + 1)
        return None

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return walked(self, after_ms, until_ms)

    def moved_from(self, instant_ms: int) -> MovedFrom | None:
        return None

    def excluded(self, after_ms: int, until_ms: int) -> Iterator[ExcludedInstant]:
        """The instants of the schedule in (after, until] that a calendar excludes, with its name."""
        for instant in self._base.between(after_ms, until_ms):
            if (calendar := self._days.excluding(instant)) is not None:
                yield ExcludedInstant(instant, calendar)


class WithMoved:
    """The same, and each excluded instant at its time of day on the nearest working day.

    A day can get several: one start at one instant is one occurrence. What would move onto an event with a time is
    left out, and so is what no working day is near to.
    """

    __slots__ = ("_base", "_days", "_step", "_zone")

    def __init__(self, base: Instants, rules: CalendarRules, zone: Zone) -> None:
        self._base = base
        self._days = CalendarDays(rules, zone)
        self._zone = zone
        self._step = 1 if rules.on_excluded is OnExcluded.NEXT_WORKDAY else -1

    def next(self, after_ms: int) -> int | None:
        best: int | None = None
        instant = self._base.next(self._first_source(after_ms) - 1 if self._step > 0 else after_ms)
        while instant is not None and instant <= after_ms + _FURTHEST_MS:
            if best is not None and self._earliest(instant) > best:
                break
            found = self._target(instant)
            if found is not None and found > after_ms and (best is None or found < best):
                best = found
            instant = self._base.next(instant if found is not None else self._without_target(instant, 1))
        return best

    def previous(self, before_ms: int) -> int | None:
        best: int | None = None
        instant = self._base.previous(before_ms if self._step > 0 else self._last_source(before_ms) + 1)
        while instant is not None and instant >= before_ms - _FURTHEST_MS:
            if best is not None and self._latest(instant) < best:
                break
            found = self._target(instant)
            if found is not None and found < before_ms and (best is None or found > best):
                best = found
            instant = self._base.previous(instant if found is not None else self._without_target(instant, -1))
        return best

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return walked(self, after_ms, until_ms)

    def moved_from(self, instant_ms: int) -> MovedFrom | None:
        """Which excluded instant this one stands for, the latest where it stands for several; None for an ordinary
        one."""
        if self._base.next(instant_ms - 1) == instant_ms and self._days.excluding(instant_ms) is None:
            return None
        if self._step > 0:
            first, last = self._first_source(instant_ms), instant_ms
        else:
            first, last = instant_ms, self._last_source(instant_ms)
        found: MovedFrom | None = None
        for source in self._base.between(first - 1, last):
            if self._target(source) == instant_ms and (calendar := self._days.excluding(source)) is not None:
                found = MovedFrom(source, calendar)
        return found

    def excluded(self, after_ms: int, until_ms: int) -> Iterator[ExcludedInstant]:
        for instant in self._base.between(after_ms, until_ms):
            if (calendar := self._days.excluding(instant)) is not None:
                yield ExcludedInstant(instant, calendar, self._target(instant))

    def _target(self, instant: int) -> int | None:
        """Where this instant of the schedule starts; None where it does not."""
        if self._days.excluding(instant) is None:
            return instant
        day = local_day(instant, self._zone)
        workday = self._days.workday_beside(day, self._step)
        if workday is None:
            return None
        second = instant // 1000
        time_of_day = (second + self._zone.offset_at(second)) * 1000 + instant % 1000 - day * DAY_MS
        moved = wall_to_instant(workday * DAY_MS + time_of_day, self._zone)
        return moved if self._days.excluding(moved) is None else None

    def _without_target(self, instant: int, step: int) -> int:
        """How far the instants from this one on, in that direction, are excluded and have no working day near to move
        to: weeks of half hours are passed over in one step."""
        day = local_day(instant, self._zone)
        if self._days.workday_beside(day, self._step) is not None:
            return instant
        near = self._day_near_workday(day, step)
        if step > 0:
            begin, allowed = day_begin(near, self._zone), self._days.allowed_from(instant)
            return max((begin if allowed is None else min(begin, allowed)) - 1, instant)
        end, allowed = day_end(near, self._zone), self._days.allowed_until(instant)
        return min((end if allowed is None else max(end, allowed)) + 1, instant)

    def _day_near_workday(self, day: int, step: int) -> int:
        """None of the days before this one, in that direction, has a working day near, where `day` has none."""
        towards = step == self._step
        first = day + step * MOST_DAYS_MOVED if towards else day - step
        found = self._days.workday_beside(first, step)
        if found is None:
            found = first + step * (MOST_DAYS_MOVED + 1)
        return found - step * MOST_DAYS_MOVED if towards else found

    def _first_source(self, instant_ms: int) -> int:
        """What moves forwards to this day or later begins here: on the working day before it, or as far before the
        one behind as an instant moves."""
        day = local_day(instant_ms, self._zone)
        before = self._days.workday_beside(day, -1)
        if before is None:
            behind = self._days.workday_beside(day - 1, 1)
            before = day if behind is None else behind - MOST_DAYS_MOVED
        return day_begin(before, self._zone)

    def _last_source(self, instant_ms: int) -> int:
        day = local_day(instant_ms, self._zone)
        behind = self._days.workday_beside(day, 1)
        if behind is None:
            before = self._days.workday_beside(day + 1, -1)
            behind = day if before is None else before + MOST_DAYS_MOVED
        return day_end(behind, self._zone)

    def _earliest(self, instant: int) -> int:
        """Nothing from this instant on starts before: they move to the working day before it, if that is near."""
        if self._step > 0:
            return instant
        day = local_day(instant, self._zone)
        before = self._days.workday_beside(day, -1)
        return day_begin(day if before is None else before, self._zone)

    def _latest(self, instant: int) -> int:
        if self._step < 0:
            return instant
        day = local_day(instant, self._zone)
        behind = self._days.workday_beside(day, 1)
        return day_end(day if behind is None else behind, self._zone)


class United:
    """The union of several schedules: an instant that two of them name is one."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[Instants]) -> None:
        self._parts = tuple(parts)

    def next(self, after_ms: int) -> int | None:
        return min((found for part in self._parts if (found := part.next(after_ms)) is not None), default=None)

    def previous(self, before_ms: int) -> int | None:
        return max((found for part in self._parts if (found := part.previous(before_ms)) is not None), default=None)

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        last: int | None = None
        for instant in merge(*(part.between(after_ms, until_ms) for part in self._parts)):
            if instant != last:
                yield instant
            last = instant

    def moved_from(self, instant_ms: int) -> MovedFrom | None:
        """None where one of them names it by itself; where several move to it, the latest of what they move."""
        found: MovedFrom | None = None
        for part in self._parts:
            if part.next(instant_ms - 1) != instant_ms:
                continue
            moved = part.moved_from(instant_ms) if isinstance(part, WithoutExcluded | WithMoved) else None
            if moved is None:
                return None
            found = moved if found is None else max(found, moved)
        return found

    def excluded(self, after_ms: int, until_ms: int) -> Iterator[ExcludedInstant]:
        """What the union does not have although one of them names it."""
        parts = (
            part.excluded(after_ms, until_ms) for part in self._parts if isinstance(part, WithoutExcluded | WithMoved)
        )
        last: int | None = None
        for one in merge(*parts, key=lambda one: one.nominal_ms):
            if one.nominal_ms != last and self.next(one.nominal_ms - 1) != one.nominal_ms:
                yield one
            last = one.nominal_ms


def with_calendars(base: Instants, rules: CalendarRules | None, zone: Zone) -> Instants:
    """The schedule as its calendars leave it; itself where they change none of its instants."""
    if rules is None or not rules.moves_or_removes:
        return base
    if rules.on_excluded is OnExcluded.SKIP:
        return WithoutExcluded(base, rules, zone)
    return WithMoved(base, rules, zone)


def walked(schedule: Instants, after_ms: int, until_ms: int) -> Iterator[int]:
    found = schedule.next(after_ms)
    while found is not None and found <= until_ms:
        yield found
        found = schedule.next(found)
