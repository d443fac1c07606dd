"""When a CronJob runs on the days on which a clock is set, by the steps of robfig/cron 3, which its controller asks.

Elsewhere the sets of a pattern are enough. Around a change of the clock that library steps from midnight to midnight
and from hour to hour, and loses runs where midnight is missing or comes twice (Cairo, Beirut, Havana), and where the
clock is set by half an hour (Lord Howe). The steps here are its own, and so is the way in which Go's `time.Date`
meets a wall time that is missing or doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from chronex.text.instants import EPOCH_ORDINAL
from chronex.timing.zones import Zone

_HOUR = 3_600
_DAY = 86_400
_DAYS_AROUND = 3
_MOST_YEARS = 5  # after which it gives up

# The pattern of a schedule, of which only these are asked.
Wanted = tuple[frozenset[int], frozenset[int], frozenset[int], Callable[[date], bool]]  # minutes, hours, months, days
Plain = Callable[[int, int], Iterator[int]]


def kubernetes_instants(wanted: Wanted, zone: Zone, start: int, end: int, plain: Plain) -> Iterator[int]:
    """Every second in [start, end) at which it runs. `plain` gives those of spans in which no clock is set."""
    at = start
    for change in zone.changes(start - _DAYS_AROUND * _DAY, end + _DAYS_AROUND * _DAY):
        begin, until = change.at - _DAYS_AROUND * _DAY, change.at + _DAYS_AROUND * _DAY
        if begin > at:
            yield from plain(at, min(begin, end))
        last = begin - 1
        found = _next(wanted, zone, last)
        while found is not None and last < found < until:
            if at <= found < end and found >= begin:
                yield found
            last, found = found, _next(wanted, zone, found)
        if found is None:
            return
        at = max(at, until, found)
    if at < end:
        yield from plain(at, end)


def _next(wanted: Wanted, zone: Zone, after: int) -> int | None:
    return _Steps(wanted, zone, after + 1).run()


class _Steps:
    """`SpecSchedule.Next`: a time that is moved on by its parts, from the month to the minute, until all match."""

    def __init__(self, wanted: Wanted, zone: Zone, second: int) -> None:
        self.minutes, self.hours, self.months, self.holds_on = wanted
        self.zone = zone
        self.second = second
        self.is_cut = False  # what is smaller than the part that was moved on counts from its beginning

    def run(self) -> int | None:
        last_year = self._date().year + _MOST_YEARS
        while self._date().year <= last_year:
            if self._month() and self._day() and self._hour() and self._minute() and self._second():
                return self.second
        return None

    def _wall(self) -> int:
        return self.second + self.zone.offset_at(self.second)

    def _date(self) -> date:
        return date.fromordinal(self._wall() // _DAY + EPOCH_ORDINAL)

    def _cut(self, wall: int) -> None:
        if not self.is_cut:
            self.is_cut = True
            self.second = self._of_wall(wall)

    def _of_wall(self, wall: int) -> int:
        """Go's time.Date: it looks the offset up as if the wall were UTC, and again where that was too far off."""
        offset = self.zone.offset_at(wall)
        return wall if offset == 0 else wall - self.zone.offset_at(wall - offset)

    def _month(self) -> bool:
        """False where the year was left, and all begins again."""
        while (day := self._date()).month not in self.months:
            self._cut((day.replace(day=1).toordinal() - EPOCH_ORDINAL) * _DAY)
            day = self._date()
            first = date(day.year + day.month // 12, day.month % 12 + 1, 1)
            wall = (first.toordinal() + day.day - 1 - EPOCH_ORDINAL) * _DAY + self._wall() % _DAY
            self.second = self._of_wall(wall)
            if self._date().month == 1:
                return False
        return True

    def _day(self) -> bool:
        while not self.holds_on(self._date()):
            self._cut(self._wall() // _DAY * _DAY)
            self.second = self._of_wall(self._wall() + _DAY)
            hour = self._wall() % _DAY // _HOUR
            if hour > 12:
                self.second += (24 - hour) * _HOUR
            else:
                self.second -= hour * _HOUR
            if self._date().day == 1:
                return False
        return True

    def _hour(self) -> bool:
        while self._wall() % _DAY // _HOUR not in self.hours:
            self._cut(self._wall() // _HOUR * _HOUR)
            self.second += _HOUR
            if self._wall() % _DAY // _HOUR == 0:
                return False
        return True

    def _minute(self) -> bool:
        while self._wall() % _HOUR // 60 not in self.minutes:
            if not self.is_cut:
                self.is_cut, self.second = True, self.second - self.second % 60
            self.second += 60
            if self._wall() % _HOUR // 60 == 0:
                return False
        return True

    def _second(self) -> bool:
        """Five fields have second 0; it is reached one by one, and all begins again."""
        if self.second % 60 == 0:
            return True
        self.is_cut = True
        self.second += 60 - self.second % 60
        return False
