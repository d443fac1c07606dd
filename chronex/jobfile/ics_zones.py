"""The time zones that a file of events names, and those that it brings with it (VTIMEZONE, RFC 5545).

Outlook writes names of Windows or of its own, others put the maker in front of the name, and all of them write the
rules of the zone beside it. The package walks such rules from their first day on, without a bound: a rule of every
second since 1601 would be followed for ever. So the zones are taken out of the file before the package has it, and
are read here, with the bound of the file's other rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from chronex.errors import UnknownZoneError
from chronex.text.instants import EPOCH, EPOCH_ORDINAL
from chronex.timing.dst import wall_to_instant
from chronex.timing.recurrence import Recurrence, StepBudget, read_recurrence, recurring_days
from chronex.timing.tzif import ZoneData
from chronex.timing.zones import Zone, load_zone, utc_zone

_DAY = 86_400
_FOLD = re.compile(rb"\r?\n[ \t]")
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3])([0-5][0-9])([0-5][0-9])?")
_MOMENT = re.compile(r"[0-9]{8}T[0-9]{6}Z?")
# What held before the first day that counts was decided by the last change before it: a year ago at the most.
_BEFORE_DAYS = 800

_Properties = list[tuple[str, str]]


class WrittenZone(NamedTuple):
    """A zone as the file has it: what it says of the whole, and of standard and daylight time."""

    properties: _Properties
    observances: list[_Properties]


class FileZones:
    """The zones of one file by their names, for events from day `begin` to day `end`; a time that names none is one
    of `floating`."""

    def __init__(
        self, written: dict[str, WrittenZone], begin: int, end: int, floating: Zone, budget: StepBudget
    ) -> None:
        self.floating = floating
        self._written = written
        self._begin, self._end = begin, end
        self._budget = budget
        self._found: dict[str, Zone] = {}

    def of(self, moment: datetime, named: str | None) -> Zone:
        """The zone of a time with this TZID. The package reads a time whose zone it does not know as one without."""
        if moment.tzinfo is not None and str(moment.tzinfo) in ("UTC", "Z"):
            return utc_zone()
        return self.floating if named is None else self._named(named)

    def resolved(self, moment: date, named: str | None) -> date:
        """A date, a time without a zone, or else a time in UTC."""
        if not isinstance(moment, datetime) or (moment.tzinfo is None and named is None):
            return moment
        second = wall_to_instant(second_on_wall(moment) * 1000, self.of(moment, named)) // 1000
        return EPOCH + timedelta(seconds=second)

    def _named(self, name: str) -> Zone:
        """One of that name, else what the file says of it. Raises ValueError."""
        plain = _plain(name)
        if plain not in self._found:
            zone = _known(plain) or self._read(plain) or _behind_its_maker(plain)
            if zone is None:
                raise ValueError(f"the time zone {plain[:40]} is unknown")
            self._found[plain] = zone
        return self._found[plain]

    def _read(self, name: str) -> Zone | None:
        written = self._written.get(name)
        if written is None:
            return None
        location = dict(written.properties).get("X-LIC-LOCATION", "")
        return _known(location) or Zone(name, UTC, self._data(name, written))

    def _data(self, name: str, written: WrittenZone) -> ZoneData:
        changes: dict[int, tuple[int, int]] = {}
        try:
            for observance in written.observances:
                before, after = (_offset(dict(observance).get(key, "")) for key in ("TZOFFSETFROM", "TZOFFSETTO"))
                for at in self._onsets(observance, before):
                    changes[at] = before, after
        except (ValueError, OverflowError) as error:
            raise ValueError(f"the time zone {name[:40]} cannot be read: {error}") from None
        if not changes:
            raise ValueError(f"the time zone {name[:40]} is empty")
        order = sorted(changes)
        return ZoneData(tuple(order), (changes[order[0]][0], *(changes[at][1] for at in order)), None)

    def _onsets(self, observance: _Properties, before: int) -> Iterator[int]:
        """The instants at which it begins to hold."""
        begins = _moment(dict(observance).get("DTSTART", ""), before)
        yield begins - before
        day, second = divmod(begins, _DAY)
        for key, value in observance:
            self._budget.take(1)
            if key == "RDATE":
                yield from (_moment(one, before) - before for one in value.split(","))
            elif key == "RRULE":
                rule = _with_until(read_recurrence(value, day), value, before, second)
                first = min(self._begin, self._end if rule.until is None else rule.until) - _BEFORE_DAYS
                for one in recurring_days(rule, day, first, self._end + 2, self._budget):
                    yield one * _DAY + second - before


def taken_out(data: bytes) -> tuple[bytes, dict[str, WrittenZone]]:
    """The file without its zones, and these by their names. Raises ValueError."""
    kept: list[bytes] = []
    zones: dict[str, WrittenZone] = {}
    within: WrittenZone | None = None
    for line in _FOLD.sub(b"", data).splitlines():
        word = line.strip().upper()
        if within is None:
            if word == b"BEGIN:VTIMEZONE":
                within = WrittenZone([], [])
            else:
                kept.append(line)
        elif word == b"END:VTIMEZONE":
            zones.setdefault(_plain(dict(within.properties).get("TZID", "")), within)
            within = None
        elif word in (b"BEGIN:STANDARD", b"BEGIN:DAYLIGHT"):
            within.observances.append([])
        else:
            part = within.observances[-1] if within.observances else within.properties
            part.append(_property(line))
    if within is not None:
        raise ValueError("a VTIMEZONE has no end")
    return b"\r\n".join([*kept, b""]), zones


def second_on_wall(moment: datetime) -> int:
    """Seconds from 1970 to this time, as a wall shows both."""
    of_day = moment.hour * 3600 + moment.minute * 60 + moment.second
    return (moment.toordinal() - EPOCH_ORDINAL) * _DAY + of_day


def _property(line: bytes) -> tuple[str, str]:
    """Its name and its value; what stands between them says nothing that a zone needs."""
    head, _, value = line.decode("utf-8", "replace").partition(":")
    return head.partition(";")[0].strip().upper(), value.strip()


def _plain(name: str) -> str:
    return name.strip().strip('"').replace("\\,", ",").replace("\\;", ";")


def _known(name: str) -> Zone | None:
    for one in (name, _of_windows(name)):
        try:
            return load_zone(one)
        except UnknownZoneError:
            continue
    return None


def _of_windows(name: str) -> str:
    """Europe/Berlin for W. Europe Standard Time."""
    try:
        from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON
    except ImportError:  # a table that the package does not promise
        return ""
    return str(WINDOWS_TO_OLSON.get(name, ""))


def _behind_its_maker(name: str) -> Zone | None:
    """Europe/Berlin for /freeassociation.sourceforge.net/Europe/Berlin, which is how Evolution writes it."""
    if not name.startswith("/"):
        return None
    parts = name.strip("/").split("/")[-4:]
    found = (_known("/".join(parts[first:])) for first in range(len(parts)))
    return next((zone for zone in found if zone is not None), None)


def _offset(value: str) -> int:
    match = _OFFSET.fullmatch(value)
    if match is None:
        raise ValueError(f"{value[:20] or 'nothing'} is no offset from UTC")
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0)
    return -seconds if match[1] == "-" else seconds


def _moment(value: str, offset: int) -> int:
    """Seconds from 1970 to this time on the wall; one in UTC is that instant, as the wall shows it."""
    if not _MOMENT.fullmatch(value):
        raise ValueError(f"{value[:20] or 'nothing'} is no time")
    second = second_on_wall(datetime.strptime(value[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC))
    return second + offset if value.endswith("Z") else second


def _with_until(rule: Recurrence, text: str, offset: int, second: int) -> Recurrence:
    """UNTIL is the instant of the last change, in UTC; what counts here is its day on the wall."""
    parts = dict(part.partition("=")[::2] for part in text.upper().split(";"))
    if not _MOMENT.fullmatch(parts.get("UNTIL", "")):
        return rule
    day, of_day = divmod(_moment(parts["UNTIL"], offset), _DAY)
    return rule._replace(until=day if second <= of_day else day - 1)
