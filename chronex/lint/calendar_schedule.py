"""When a calendar event elapses, in words and as instants: weekday AND date, as systemd reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from chronex.expr.advice_rules import W101, W111, W112
from chronex.expr.diagnostics import Diagnostic, Rule, diagnostic
from chronex.lint.calendar_event import WEEKDAYS, CalendarEvent, Chain, Values, parse_calendar
from chronex.timing.clock_changes import wall_clock, wall_date
from chronex.timing.zones import ClockChange, Zone, load_zone

_DAY = 86_400
_MICRO = 1_000_000
_FIRST_YEAR, _LAST_YEAR = 1970, 2199  # systemd looks no further
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_YEAR_SECONDS = 366 * _DAY
_MOST_WALLS = 400


def judge_calendar(text: str, zone: Zone, reference_ms: int) -> tuple[Diagnostic, ...]:
    """What is wrong with the event, and what the coming clock changes do to it."""
    event, faults = parse_calendar(text)
    if event is None:
        return tuple(faults)
    schedule = CalendarSchedule(event, load_zone(event.zone) if event.zone else zone)
    if not schedule.upcoming(reference_ms, 1):
        return (diagnostic(W101, "OnCalendar", text, 0, "calendar event"),)
    return tuple(schedule.clock_findings(text, reference_ms))


def calendar_schedule(text: str, zone: Zone) -> CalendarSchedule | None:
    event, _ = parse_calendar(text)
    if event is None:
        return None
    return CalendarSchedule(event, load_zone(event.zone) if event.zone else zone)


class CalendarSchedule(NamedTuple):
    event: CalendarEvent
    zone: Zone

    # -- instants -----------------------------------------------------------------------------------------

    def upcoming(self, after_ms: int, count: int) -> list[int]:
        return list(islice(self.instants(after_ms), count))

    def instants(self, after_ms: int) -> Iterator[int]:
        if self.event.at is not None:
            if self.event.at * 1000 > after_ms:
                yield self.event.at * 1000
            return
        after = after_ms // 1000
        wall = after + min(self.zone.offset_at(after), self.zone.offset_at(after + _DAY))
        latest = after_ms
        for day in self._days(wall // _DAY):
            for micros in self._times():
                instant = self._instant(day * _DAY + micros // _MICRO)
                ms = None if instant is None else instant * 1000 + micros % _MICRO // 1000
                if ms is not None and ms > latest:
                    latest = ms
                    yield ms

    def _instant(self, wall: int) -> int | None:
        """A wall time that comes twice elapses on its first pass; one that is missing does not elapse."""
        offsets = (self.zone.offset_at(wall - _DAY), self.zone.offset_at(wall + _DAY))
        found = [wall - offset for offset in offsets if self.zone.offset_at(wall - offset) == offset]
        return min(found, default=None)

    def _days(self, first: int) -> Iterator[int]:
        """Matching days since 1970, from `first` on."""
        start = date(1970, 1, 1) + timedelta(days=max(first, 0))
        years, months = self.event.years, _numbers(self.event.months, 1, 12)
        for year in range(start.year, _LAST_YEAR + 1):
            if years is not None and not any(year in chain.expand(_LAST_YEAR) for chain in years):
                continue
            for month in months:
                for day in self._days_of_month(year, month):
                    found = date(year, month, day)
                    if found >= start and self._weekday_matches(found):
                        yield found.toordinal() - _EPOCH

    def _days_of_month(self, year: int, month: int) -> list[int]:
        length = _LENGTHS[month - 1] + (month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
        if self.event.from_end and self.event.days is not None:
            counted = {length + 1 - n for chain in self.event.days for n in _from_end(chain)}
            return sorted(day for day in counted if 1 <= day <= length)
        return [day for day in _numbers(self.event.days, 1, 31) if day <= length]

    def _weekday_matches(self, day: date) -> bool:
        return self.event.weekdays is None or bool(self.event.weekdays >> day.weekday() & 1)

    def _times(self) -> Iterator[int]:
        """Microseconds of the day."""
        seconds = self._microseconds()
        for hour in _numbers(self.event.hours, 0, 23):
            for minute in _numbers(self.event.minutes, 0, 59):
                base = (hour * 3600 + minute * 60) * _MICRO
                yield from (base + micro for micro in seconds)

    def _microseconds(self) -> list[int]:
        if self.event.micros is None:
            return [second * _MICRO for second in range(60)]
        found = {m for c in self.event.micros for m in islice(c.expand(60 * _MICRO - 1), 60_000)}
        return sorted(found)

    # -- clock changes ------------------------------------------------------------------------------------

    def clock_findings(self, text: str, reference_ms: int) -> Iterator[Diagnostic]:
        if self.event.at is not None or self.event.hours is None:
            return
        start = reference_ms // 1000
        seen = set[Rule]()
        for change in self.zone.changes(start, start + _YEAR_SECONDS):
            rule = W111 if change.is_gap else W112
            effect = self._effect(change)
            if effect and rule not in seen:
                seen.add(rule)
                names = {"date": wall_date(change.at + change.before), "zone": self.zone.name, "effect": effect}
                yield diagnostic(rule, "OnCalendar", text, 0, **names)

    def clock_note(self, after_ms: int) -> str:
        change = self.zone.next_change(after_ms // 1000)
        if change is None:
            return f"{self.zone.name} does not change its clock."
        effect = self._effect(change) or "no run is touched"
        return f"Clock change on {wall_date(change.at + change.before)} ({self.zone.name}): {effect}."

    def _effect(self, change: ClockChange) -> str:
        low, high = sorted((change.at + change.before, change.at + change.after))
        walls = self._walls(low, high)
        if not walls:
            return ""
        shown = wall_clock(walls[0]) + (f" and {len(walls) - 1} more" if len(walls) > 1 else "")
        several = len(walls) > 1
        if change.is_gap:
            runs = f"{len(walls)} runs are" if several else "the run is"
            return f"{shown} {'do' if several else 'does'} not exist: {runs} skipped"
        return f"{shown} {'happen' if several else 'happens'} twice: only the first pass counts"

    def _walls(self, low: int, high: int) -> list[int]:
        found: list[int] = []
        for day in islice(self._days(low // _DAY), 3):
            for micros in self._times():
                wall = day * _DAY + micros // _MICRO
                if wall >= high or len(found) >= _MOST_WALLS:
                    break
                if wall >= low and (not found or found[-1] != wall):
                    found.append(wall)
        return found

    # -- words --------------------------------------------------------------------------------------------

    def words(self) -> str:
        if self.event.at is not None:
            return f"Once at {datetime.fromtimestamp(self.event.at, UTC):%Y-%m-%d %H:%M:%S} UTC"
        parts = [self._time_words(), self._day_words(), self._month_words(), self._year_words()]
        zone = f" ({self.event.zone})" if self.event.zone else ""
        return "".join(part for part in parts if part) + zone

    def _time_words(self) -> str:
        event = self.event
        single = [_single(v) for v in (event.hours, event.minutes, event.micros)]
        if None not in single:
            hour, minute, micro = (value or 0 for value in single)
            return f"At {wall_clock(hour * 3600 + minute * 60 + micro // _MICRO)}"
        hours, minutes = _words(event.hours), _words(event.minutes)
        seconds = "" if _single(event.micros) == 0 else f", second {_words(event.micros, _MICRO)}"
        if event.hours is None and event.minutes is None:
            return f"Every minute{seconds}"
        if event.hours is None:
            return f"Every hour at minute {minutes}{seconds}"
        return f"In hour {hours}, at minute {minutes}{seconds}" if event.minutes else f"Every minute of hour {hours}"

    def _day_words(self) -> str:
        parts = ""
        if self.event.weekdays is not None:
            names = [WEEKDAYS[n] for n in range(7) if self.event.weekdays >> n & 1]
            parts = f" on {', '.join(names)}"
        if self.event.days is not None:
            which = " counted from the end of the month" if self.event.from_end else ""
            both = ", only if it is" if parts else " on"
            parts += f"{both} day {_words(self.event.days)}{which}"
        return parts

    def _month_words(self) -> str:
        if self.event.months is None:
            return ""
        return f" of {', '.join(_MONTHS[m - 1] for m in _numbers(self.event.months, 1, 12))}"

    def _year_words(self) -> str:
        return "" if self.event.years is None else f" in {_words(self.event.years)}"


_EPOCH = date(1970, 1, 1).toordinal()


def _numbers(values: Values, low: int, high: int) -> list[int]:
    if values is None:
        return list(range(low, high + 1))
    return sorted({n for chain in values for n in chain.expand(high) if low <= n <= high})


def _from_end(chain: Chain) -> range:
    """Days counted from the end of the month: a step walks towards the end, as in `~07/1`, the last seven."""
    if not chain.step or chain.stop is not None:
        return chain.expand(31)
    return range(chain.start, 0, -chain.step)


def _single(values: Values) -> int | None:
    if values is None or len(values) != 1 or values[0].stop is not None or values[0].step:
        return None
    return values[0].start


def _words(values: Values, unit: int = 1) -> str:
    if values is None:
        return "*"
    return ", ".join(_chain_words(chain, unit) for chain in values)


def _chain_words(chain: Chain, unit: int) -> str:
    def shown(value: int) -> str:
        return f"{value / unit:g}"

    text = shown(chain.start)
    if chain.stop is not None:
        text += f" to {shown(chain.stop)}"
    if chain.step and (chain.stop is None or chain.step != unit):
        text += f" and every {shown(chain.step)} from there"
    return text
