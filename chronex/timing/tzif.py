"""Read compiled zone data (RFC 8536) into integers.

The standard zoneinfo module answers "what is the offset at this instant?", one datetime at a time. The search
needs the transitions themselves, so this module reads the same files.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from chronex.text.instants import EPOCH_ORDINAL

_DAY = 86_400


class RuleDay(NamedTuple):
    """One end of a yearly rule: a day and a local second of it (which may lie outside the day)."""

    kind: str  # "M" month.week.weekday, "J" day 1..365 without 29 February, "N" day 0..365
    numbers: tuple[int, ...]
    second: int

    def local_second(self, year: int) -> int:
        """Seconds from 1970-01-01 00:00 on the wall to this moment of `year`."""
        return (self._ordinal(year) - EPOCH_ORDINAL) * _DAY + self.second

    def _ordinal(self, year: int) -> int:
        first = date(year, 1, 1).toordinal()
        if self.kind == "N":
            return first + self.numbers[0]
        if self.kind == "J":
            leap_shift = date(year, 3, 1).toordinal() - first - 59 if self.numbers[0] >= 60 else 0
            return first + self.numbers[0] - 1 + leap_shift
        month, week, weekday = self.numbers
        start = date(year, month, 1)
        day = start.toordinal() + (weekday - start.isoweekday()) % 7 + (week - 1) * 7
        next_month = (date(year, month, 28) + timedelta(days=4)).replace(day=1).toordinal()
        return day if day < next_month else day - 7


class YearlyRule(NamedTuple):
    """What the zone does after its last listed transition, every year the same."""

    standard: int
    daylight: int
    start: RuleDay | None
    end: RuleDay | None

    def changes(self, first_year: int, last_year: int) -> Iterator[tuple[int, int]]:
        """(UTC second, offset from then on), in order."""
        if self.start is None or self.end is None:
            return
        for year in range(max(first_year, 1), min(last_year, 9998) + 1):
            to_daylight = (self.start.local_second(year) - self.standard, self.daylight)
            to_standard = (self.end.local_second(year) - self.daylight, self.standard)
            yield from sorted((to_daylight, to_standard))


class ZoneData(NamedTuple):
    """Offsets in seconds: `offsets[0]` before the first transition, `offsets[i + 1]` from `at[i]` on."""

    at: tuple[int, ...]
    offsets: tuple[int, ...]
    rule: YearlyRule | None

    def changes(self, start: int, end: int) -> tuple[int, list[tuple[int, int]]]:
        """The offset in force just before `start`, and the changes in [start, end)."""
        first = bisect_left(self.at, start)
        listed = list(zip(self.at[first:], self.offsets[first + 1 :], strict=True))
        before = self.offsets[first]
        if self.rule is None:
            return before, [change for change in listed if change[0] < end]
        last_listed = self.at[-1] if self.at else -(1 << 60)
        # The rule is evaluated from the year before, to know which of its two offsets holds at `start`.
        earliest = max(_year_of(start) - 1, _year_of(last_listed) if self.at else 1)
        for at, offset in self.rule.changes(earliest, _year_of(end) + 1):
            if at <= last_listed:
                continue
            if at < start:
                before = offset
            else:
                listed.append((at, offset))
        return before, [change for change in listed if change[0] < end]


def _year_of(second: int) -> int:
    ordinal = second // _DAY + EPOCH_ORDINAL
    return date.fromordinal(min(max(ordinal, 1), date.max.toordinal())).year


def read_tzif(data: bytes) -> ZoneData:
    """Parse the 64-bit block of a TZif file and its footer."""
    if data[:4] != b"TZif":
        raise ValueError("not a TZif file")
    version, counts = data[4:5], struct.unpack(">6l", data[20:44])
    position, width = 44, 4
    if version >= b"2":
        position = 44 + _block_size(counts, 4)
        counts = struct.unpack(">6l", data[position + 20 : position + 44])
        position, width = position + 44, 8
    _, _, _, timecnt, typecnt, _ = counts
    at = struct.unpack_from(f">{timecnt}{'q' if width == 8 else 'l'}", data, position)
    kinds = data[position + timecnt * width : position + timecnt * (width + 1)]
    types_at = position + timecnt * (width + 1)
    utc_offsets = [struct.unpack_from(">lBB", data, types_at + 6 * i)[0] for i in range(typecnt)]
    footer = data[position + _block_size(counts, width) :].strip(b"\n").decode("ascii") if width == 8 else ""
    # RFC 8536 3.2: local time before the first transition is type 0.
    offsets = (utc_offsets[0], *(utc_offsets[k] for k in kinds))
    rule = parse_rule(footer) if footer else None
    return _without_idle_changes(at, offsets, rule)


def _block_size(counts: tuple[int, ...], width: int) -> int:
    isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt = counts
    return timecnt * (width + 1) + typecnt * 6 + charcnt + leapcnt * (width + 4) + isstdcnt + isutcnt


def _without_idle_changes(at: tuple[int, ...], offsets: tuple[int, ...], rule: YearlyRule | None) -> ZoneData:
    """Drop transitions that change only the abbreviation: they move no clock."""
    kept = [i for i in range(len(at)) if offsets[i] != offsets[i + 1]]
    if rule is not None and rule.start is not None and at and (not kept or kept[-1] != len(at) - 1):
        kept.append(len(at) - 1)  # the rule holds after the last one listed, whether or not that one moves the clock
    return ZoneData(tuple(at[i] for i in kept), (offsets[0], *(offsets[i + 1] for i in kept)), rule)


# Written out, because to import `string` compiles a regular expression that nothing here uses.
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OF_OFFSETS, _SHORTEST_NAME = "+-:0123456789", 3


def parse_rule(text: str) -> YearlyRule:
    """Parse the footer, a POSIX TZ string such as `EST5EDT,M3.2.0,M11.1.0`.

    By hand, because every command that reads a zone would wait for a pattern to be compiled.
    """
    names, *days = text.split(",")
    offset, summer = _behind_name(names, text)
    standard = -_clock(offset)
    if not summer and not days:
        return YearlyRule(standard, standard, None, None)
    offset, rest = _behind_name(summer, text)
    daylight = -_clock(offset) if offset else standard + 3600
    if rest or len(days) not in (0, 2) or not all(days):
        raise _not_understood(text)
    if not days:
        return YearlyRule(standard, standard, None, None)
    return YearlyRule(standard, daylight, _rule_day(days[0]), _rule_day(days[1]))


def _behind_name(text: str, whole: str) -> tuple[str, str]:
    """The offset behind the name of a time, `<-02>` or `EST`, and what follows that."""
    name, _, behind = text.partition(">") if text.startswith("<") else ("", "", text.lstrip(_LETTERS))
    if len(name) == 1 or (not name and len(text) - len(behind) < _SHORTEST_NAME):
        raise _not_understood(whole)
    rest = behind.lstrip(_OF_OFFSETS)
    return behind.removesuffix(rest), rest


def _not_understood(text: str) -> ValueError:
    return ValueError(f"zone rule not understood: {text!r}")


def _rule_day(text: str) -> RuleDay:
    day, _, clock = text.partition("/")
    kind = day[0] if day[0] in "MJ" else "N"
    numbers = tuple(int(n) for n in day.lstrip("MJ").split("."))
    if kind == "M":
        numbers = (numbers[0], numbers[1], numbers[2])
    return RuleDay(kind, numbers, _clock(clock) if clock else 7200)


def _clock(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(p) for p in text.lstrip("+-").split(":")]
    return sign * sum(p * unit for p, unit in zip(parts, (3600, 60, 1), strict=False))
