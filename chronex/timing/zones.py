"""Time zones as integer arithmetic: what the offset is, when it changes, and which zone this host has."""

from __future__ import annotations

import os
import re
import zoneinfo
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from chronex.errors import UnknownZoneError
from chronex.text.instants import EPOCH
from chronex.text.suggestions import is_respelling, nearest
from chronex.timing.calendar import BLOCK_DAYS, DAY_BLOCK_BITS, FIRST_DAY, LAST_DAY
from chronex.timing.tzif import read_tzif

# Zone data is kept in blocks of 2**31 seconds (68 years), so that any instant finds its block by a shift and
# no list of transitions ever grows to the year 9999.
ZONE_BLOCK_BITS = 31
FIRST_SECOND = -62_135_596_800  # 0001-01-01T00:00:00Z
LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z
_DAY = 86_400

_LONGEST_NAME, _MOST_PARTS = 100, 4
_APART_FROM_LETTERS = str.maketrans("", "", "_+-")


class ClockChange(NamedTuple):
    """The wall clock of a zone is set at `at` (UTC seconds)."""

    at: int
    before: int
    after: int

    @property
    def is_gap(self) -> bool:
        return self.after > self.before


class _ChangeSource(Protocol):
    """Where the changes of a zone come from: its file, one fixed offset, or a tzinfo that is asked."""

    def changes(self, start: int, end: int) -> tuple[int, list[tuple[int, int]]]: ...


class Zone:
    """A zone by name. Equal names are the same object for as long as the process lives."""

    __slots__ = (
        "_blocks",
        "_source",
        "_transition_bits",
        "epoch",
        "keeps_fold",
        "name",
        "timelines",
        "transition_days",
        "tzinfo",
    )

    def __init__(self, name: str, tz: tzinfo, source: _ChangeSource, *, keeps_fold: bool = True) -> None:
        self.name = name
        self.tzinfo = tz
        self.epoch = datetime(1970, 1, 1, tzinfo=tz)  # midnight on this zone's wall, not an instant
        # False for a tzinfo of an unknown library, whose wall clock may not be combined freely with a date (pytz).
        self.keeps_fold = keeps_fold
        self._source = source
        self._blocks: dict[int, tuple[list[int], list[int]]] = {}
        self._transition_bits: dict[int, int] = {}
        # The transition days of every block of days that was computed, and of the day before the block.
        self.transition_days: set[int] = set()
        self.timelines: dict[object, object] = {}

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def offset_at(self, second: int) -> int:
        """Seconds east of UTC at this UTC second."""
        starts, offsets = self._block(second >> ZONE_BLOCK_BITS)
        return offsets[bisect_right(starts, second) - 1]

    def changes(self, start: int, end: int) -> list[ClockChange]:
        """Every clock change in [start, end), in order."""
        before, listed = self._source.changes(start, end)
        found: list[ClockChange] = []
        for at, offset in listed:
            if offset != before:
                found.append(ClockChange(at, before, offset))
            before = offset
        return found

    def next_change(self, after: int, *, within_years: int = 3) -> ClockChange | None:
        """The first clock change later than `after`; None when there is none in so many years."""
        found = self.changes(after + 1, after + within_years * 366 * _DAY)
        return found[0] if found else None

    def transition_bits(self, block: int) -> int:
        """The transition days of a block of days (calendar.py): bit i is set when day `block * 512 + i` is one.

        A transition day is a local day that a clock change touches, or one of the two days at either end of the
        calendar. On all others, the plain days, each second of the wall exists once, and in order.
        """
        bits = self._transition_bits.get(block)
        if bits is None:
            first = block << DAY_BLOCK_BITS
            days = {FIRST_DAY, FIRST_DAY + 1, LAST_DAY - 1, LAST_DAY}
            for change in self.changes((first - 2) * _DAY, (first + BLOCK_DAYS + 2) * _DAY):
                walls = sorted((change.at + change.before, change.at + change.after))
                days.update(range((walls[0] - 1) // _DAY, walls[1] // _DAY + 1))
            self.transition_days.update(day for day in days if first - 1 <= day < first + BLOCK_DAYS)
            days = {day for day in days if day >> DAY_BLOCK_BITS == block}
            bits = self._transition_bits[block] = sum(1 << day - first for day in days)
        return bits

    def is_transition_day(self, day: int) -> bool:
        return bool(self.transition_bits(day >> DAY_BLOCK_BITS) >> (day & BLOCK_DAYS - 1) & 1)

    def _block(self, block: int) -> tuple[list[int], list[int]]:
        """The instants of a block from which each offset holds, and the offsets."""
        if block not in self._blocks:
            start, end = block << ZONE_BLOCK_BITS, (block + 1) << ZONE_BLOCK_BITS
            before, _ = self._source.changes(start, start)
            found = self.changes(start, end)
            self._blocks[block] = ([start, *(c.at for c in found)], [before, *(c.after for c in found)])
        return self._blocks[block]


class _FixedSource:
    def __init__(self, offset: int) -> None:
        self.offset = offset

    def changes(self, start: int, end: int) -> tuple[int, list[tuple[int, int]]]:
        return self.offset, []


class _ProbedSource:
    """A tzinfo of an unknown library: it is asked once a day, and a change of its answer is bisected."""

    def __init__(self, tz: tzinfo) -> None:
        self.tz = tz

    def changes(self, start: int, end: int) -> tuple[int, list[tuple[int, int]]]:
        before = self._offset(start - 1)
        found: list[tuple[int, int]] = []
        low, current = start - 1, before
        while low < end - 1:
            high = min(low + _DAY, end - 1)
            if (offset := self._offset(high)) != current:
                high = self._first_second_with_other_offset(low, high, current)
                offset = self._offset(high)
                found.append((high, offset))
                current = offset
            low = high
        return before, found

    def _first_second_with_other_offset(self, low: int, high: int, offset: int) -> int:
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == offset:
                low = middle
            else:
                high = middle
        return high

    def _offset(self, second: int) -> int:
        clamped = min(max(second, FIRST_SECOND + _DAY), LAST_SECOND - _DAY)
        offset = (EPOCH + timedelta(seconds=clamped)).astimezone(self.tz).utcoffset()
        return round(offset.total_seconds()) if offset is not None else 0


@lru_cache(maxsize=1024)
def load_zone(name: str) -> Zone:
    """The zone of this IANA name. Raises UnknownZoneError."""
    if not _is_zone_name(name) or name.startswith(("right/", "posix/")):
        # right/ counts leap seconds, which POSIX time and every clock here do not.
        raise UnknownZoneError(name)
    try:
        tz = UTC if name == "UTC" else zoneinfo.ZoneInfo(name)
        data = read_tzif(_zone_file(name))
    except (OSError, ValueError, LookupError, ModuleNotFoundError):
        raise UnknownZoneError(name) from None
    return Zone(name, tz, data)


def _is_zone_name(name: str) -> bool:
    """Each part starts with a letter, and no name has more than four: no file is looked for under any other name."""
    parts = name.split("/")
    are_words = all(part[:1].isalpha() and part.translate(_APART_FROM_LETTERS).isalnum() for part in parts)
    return are_words and name.isascii() and len(name) <= _LONGEST_NAME and len(parts) <= _MOST_PARTS


def zone_of(tz: str | tzinfo | None) -> Zone:
    """The zone that a caller means by a name, a tzinfo, or nothing (UTC)."""
    if tz is None:
        return utc_zone()
    if isinstance(tz, str):
        return load_zone(tz)
    if isinstance(tz, zoneinfo.ZoneInfo) and tz.key is not None:
        return load_zone(tz.key)
    if isinstance(tz, tzinfo):
        return _zone_of_tzinfo(tz)
    raise TypeError(f"a time zone is an IANA name or a tzinfo, not {type(tz).__name__}")


def utc_zone() -> Zone:
    return load_zone("UTC")


@lru_cache(maxsize=256)
def _zone_of_tzinfo(tz: tzinfo) -> Zone:
    if tz is UTC:
        return utc_zone()
    if isinstance(tz, timezone):
        offset = tz.utcoffset(None)
        return Zone(str(tz), tz, _FixedSource(round(offset.total_seconds())))
    return Zone(str(tz), tz, _ProbedSource(tz), keeps_fold=False)


def _zone_file(name: str) -> bytes:
    """The bytes that zoneinfo itself would read: the system's data first, then the tzdata package."""
    for directory in zoneinfo.TZPATH:
        path = Path(directory, *name.split("/"))
        if path.is_file():
            return path.read_bytes()
    from importlib import resources  # costs as much as reading a zone, and most hosts have zone data

    *folders, last = name.split("/")
    package = ".".join(["tzdata", "zoneinfo", *folders])
    return resources.files(package).joinpath(last).read_bytes()


_UNKNOWN = "unknown"


def zone_version() -> tuple[str, str]:
    """The version of the zone data, and its origin: the first system directory that has some, else tzdata."""
    for directory in map(Path, zoneinfo.TZPATH):
        if (directory / "UTC").is_file():
            return _version_in(directory), f"the system's, in {directory}"
    from importlib import import_module

    return str(import_module("tzdata").IANA_VERSION), "Chronex's own"


def known_zone_version() -> str:
    """The version of the zone data; empty where the system does not say."""
    version, _ = zone_version()
    return "" if version == _UNKNOWN else version


def _version_in(directory: Path) -> str:
    """Distributions write the version into one of two files, or into none."""
    for name in ("tzdata.zi", "+VERSION"):
        try:
            with (directory / name).open(encoding="ascii", errors="replace") as file:
                first = file.readline().strip()
        except OSError:
            continue
        return first.removeprefix("# version ")
    return _UNKNOWN


@lru_cache(maxsize=1)
def zone_names() -> tuple[str, ...]:
    """All names worth suggesting to a person, sorted."""
    from importlib import resources

    try:
        listed = resources.files("tzdata").joinpath("zones").read_text("ascii").split()
    except (OSError, ModuleNotFoundError):
        listed = list(zoneinfo.available_timezones())
    return tuple(sorted(listed))


# -- the zone of this host, and where it was found ------------------------------------------------------------

_FROM_VARIABLE = "the host's, from the TZ variable"
_MOST_ZONE_BYTES = 1 << 20
_POSIX_FIXED = r"(?:<[A-Za-z0-9+-]+>|[A-Za-z]{3,})([+-]?[0-9]{1,2})(?::00){0,2}"
LOCALTIME = Path("/etc/localtime")
TIMEZONE = Path("/etc/timezone")


class ZoneChoice(NamedTuple):
    """A zone, and for people where it was found; `unused` is a TZ variable that is no zone name."""

    zone: Zone
    source: str
    unused: str = ""


def host_zone() -> ZoneChoice:
    """The first zone that the zone data knows. If TZ is none (CET-1CEST), `source` says that it was not used."""
    unused = ""
    for name, source in _host_candidates():
        try:
            return ZoneChoice(load_zone(name), source + _unused_note(unused), unused)
        except UnknownZoneError:
            if source == _FROM_VARIABLE:
                unused = name
    return ZoneChoice(utc_zone(), f"the host names no zone; UTC assumed{_unused_note(unused)}", unused)


def _unused_note(unused: str) -> str:
    return f"; TZ={unused!r} is no zone name and not used" if unused else ""


def _host_candidates() -> Iterator[tuple[str, str]]:
    """Names of zones, the best first; what costs more is looked for only when the others are not known."""
    variable = os.environ.get("TZ", str(LOCALTIME)).lstrip(":") or "UTC"  # so C libraries take an empty one
    if variable.startswith("/") and Path(variable) != LOCALTIME:
        yield _name_of_path(Path(variable)) or _name_of_copy(Path(variable)) or variable, _FROM_VARIABLE
    elif Path(variable) != LOCALTIME:
        yield _fixed_hours(variable) or variable, _FROM_VARIABLE
    yield from _machine_candidates(LOCALTIME, TIMEZONE)


def _machine_candidates(localtime: Path, timezone: Path) -> Iterator[tuple[str, str]]:
    if localtime.is_symlink() and (name := _name_of_path(localtime)):
        yield name, f"the host's, from {localtime}"
    with suppress(OSError, UnicodeDecodeError):
        yield timezone.read_text("utf-8").strip(), f"the host's, from {timezone}"
    if original := _name_of_copy(localtime):
        yield original, f"the host's, {localtime} is a copy of it"


def machine_zone(root: Path = Path("/")) -> Zone | None:
    """The zone of the machine whose files lie below `root`, which its services see; None where it names none.

    A TZ variable is of whoever asks, and no service of the system has it.
    """
    at_home = root == Path("/")
    files = (LOCALTIME, TIMEZONE) if at_home else (root / "etc/localtime", root / "etc/timezone")
    for name, _ in _machine_candidates(*files):
        with suppress(UnknownZoneError):
            return load_zone(name)
    return None


def show_one_time(one: Zone, other: Zone, since: int, until: int) -> bool:
    """Do their clocks agree in these seconds, whatever they are called?"""
    if one.offset_at(since) != other.offset_at(since):
        return False
    return list(one.changes(since, until)) == list(other.changes(since, until))


def _fixed_hours(variable: str) -> str | None:
    """The zone of a POSIX TZ text with whole hours and no daylight time: `JST-9` and `<+09>-9` are Etc/GMT-9."""
    match = re.fullmatch(_POSIX_FIXED, variable, re.ASCII)
    hours = int(match[1]) if match else None
    if hours is None or not -14 <= hours <= 12:
        return None
    return f"Etc/GMT{hours:+d}" if hours else "Etc/UTC"


def _name_of_path(path: Path) -> str:
    """Europe/Paris of /usr/share/zoneinfo/Europe/Paris, through links; empty where the path names none."""
    return os.path.realpath(path).partition("zoneinfo/")[2].removeprefix("posix/")


def _name_of_copy(path: Path) -> str | None:
    """The name of the zone whose file has the same bytes; of several that do, the first that people are offered."""
    with suppress(OSError):
        if not path.is_file() or path.stat().st_size > _MOST_ZONE_BYTES:  # TZ=/dev/zero
            return None
        data = path.read_bytes()
        for name in zone_names():
            for directory in zoneinfo.TZPATH:
                file = Path(directory, name)
                if file.is_file() and file.stat().st_size == len(data) and file.read_bytes() == data:
                    return name
    return None


# What an unknown zone was meant to be. The nearest spelling is no evidence for an abbreviation: PST is not EST.

# Abbreviations that zone data does not have, or not as what people mean by them, and that one place stands for.
_PLACES = {
    "Z": "UTC", "ZULU": "UTC",
    "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "MDT": "America/Denver", "CDT": "America/Chicago",
    "EDT": "America/New_York", "AKST": "America/Anchorage", "AKDT": "America/Anchorage", "NST": "America/St_Johns",
    "NDT": "America/St_Johns", "BRT": "America/Sao_Paulo", "ART": "America/Argentina/Buenos_Aires",
    "CEST": "Europe/Berlin", "EEST": "Europe/Helsinki", "WEST": "Europe/Lisbon", "MSK": "Europe/Moscow",
    "TRT": "Europe/Istanbul", "JST": "Asia/Tokyo", "KST": "Asia/Seoul", "HKT": "Asia/Hong_Kong",
    "SGT": "Asia/Singapore", "PKT": "Asia/Karachi", "WIB": "Asia/Jakarta", "PHT": "Asia/Manila",
    "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "ACST": "Australia/Adelaide",
    "ACDT": "Australia/Adelaide", "AWST": "Australia/Perth", "NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland",
    "SAST": "Africa/Johannesburg",
}  # fmt: skip
# Abbreviations of several places: naming one would be a guess, so that a message names them all.
_SEVERAL = {
    "CST": "America/Chicago or Asia/Shanghai",
    "IST": "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
    "BST": "Europe/London or Asia/Dhaka",
    "AST": "America/Halifax or Asia/Riyadh",
    "GST": "Asia/Dubai or Atlantic/South_Georgia",
}
_SHORTEST_GUESSED = 6
_MOST_EDITS = 2  # what the nearest spelling allows


def meant_zone(name: str, known: Iterable[str]) -> str | None:
    """The zone that an unknown name most likely means, None where nothing speaks for one."""
    if (place := _PLACES.get(name.upper())) is not None:
        return place
    known = list(known)
    names = [zone for zone in known if abs(len(zone) - len(name)) <= _MOST_EDITS]
    if (
        same := next((zone for zone in names if len(zone) == len(name) and is_respelling(name, zone)), None)
    ) is not None:
        return same
    if (city := _city(name, known)) is not None:
        return city
    letters = name.replace("/", "").replace("_", "").replace("-", "").replace(" ", "")
    if not letters.isalpha() or ("/" not in name and len(name) < _SHORTEST_GUESSED):
        return None  # an offset such as UTC+2, or an abbreviation
    return nearest(name, names)


def is_of_several_places(name: str) -> bool:
    return name.upper() in _SEVERAL


def _city(name: str, known: list[str]) -> str | None:
    """The one zone whose last part is this name, as in `Berlin` and `new york`."""
    if "/" in name or not name:
        return None
    places = [zone for zone in known if "/" in zone and not zone.startswith("Etc/")]  # GMT+2 is no Etc/GMT+2
    found = [zone for zone in places if is_respelling(name, zone.rpartition("/")[2])]
    return found[0] if len(found) == 1 else None


def zone_example(name: str) -> str:
    """Names to show beside an unknown one: the places that it may stand for, or any."""
    return _SEVERAL.get(name.upper(), "Europe/Berlin")
