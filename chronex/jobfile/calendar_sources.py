"""From where a calendar comes to its days: a holiday package, a file of events, dates or weekdays that are written.

What is found is a value with the version of its data. It reaches from the year before the one in which it is made to
five years behind that; `apply` makes it anew.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from chronex.jobfile.ics_events import MOST_BYTES, CalendarError, read_events
from chronex.model.calendars import USUAL_WEEKEND, CalendarSource, JobCalendar
from chronex.text.instants import EPOCH_ORDINAL, utc_datetime
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted
from chronex.timing.zones import Zone

YEARS_AHEAD = 5
# A calendar is stored with every version of every job that uses it.
MOST_SPANS = 2_000


class Reach(NamedTuple):
    """The first and the last day for which a calendar is made."""

    first: int
    last: int


def reach_of(now_ms: int) -> Reach:
    year = utc_datetime(now_ms).year
    return Reach(_day(date(year - 1, 1, 1)), _day(date(min(year + YEARS_AHEAD, 9999), 12, 31)))


def _day(moment: date) -> int:
    return moment.toordinal() - EPOCH_ORDINAL


def of_weekdays(name: str, weekdays: Iterable[int]) -> JobCalendar:
    return JobCalendar(name=name, source=CalendarSource.WEEKDAYS, weekdays=tuple(sorted(set(weekdays))))


def of_dates(name: str, spans: Iterable[tuple[int, int]]) -> JobCalendar:
    """Dates are written for good, so such a calendar has no end."""
    return JobCalendar(name=name, days=_flat(name, _joined(spans, 1)))


def of_holidays(name: str, code: str, now_ms: int) -> JobCalendar:
    """The public holidays of a country, of a part of it, or of a stock exchange. Raises CalendarError."""
    reach = reach_of(now_ms)
    found = _holidays(code, reach)
    return JobCalendar(
        name=name,
        source=CalendarSource.HOLIDAYS,
        origin=code,
        data=f"holidays {found.version}",
        days=_flat(name, _joined(((day, day) for day in found.days), 1)),
        weekend=found.weekend,
        until_day=reach.last,
    )


def of_ics(name: str, path: Path, now_ms: int, floating: Zone) -> JobCalendar:
    """The events of a file. Raises CalendarError."""
    data = _file(path)
    reach = reach_of(now_ms)
    events = read_events(data, reach.first, reach.last, floating)
    return JobCalendar(
        name=name,
        source=CalendarSource.ICS,
        origin=str(path),
        data=f"sha256 {sha256(data).hexdigest()[:16]}",
        days=_flat(name, _joined(events.days, 1)),
        times=_flat(name, _joined(events.times, 0)),
        until_day=reach.last,
    )


# Without O_NONBLOCK, opening a named pipe would wait for its other end.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def _file(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, _READ)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError("it is not a regular file")
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CalendarError(
            f"cannot read {quoted(str(path))}: {reason}", "name the .ics file beside the job file"
        ) from None


class _Found(NamedTuple):
    days: tuple[int, ...]
    weekend: tuple[int, ...]
    version: str


@lru_cache(maxsize=64)
def _holidays(code: str, reach: Reach) -> _Found:
    try:
        import holidays
    except ImportError:
        hint = "install it with: pip install 'chronex[calendars]'"
        raise CalendarError("holidays need the package of that name, which is not installed", hint) from None
    years = range(_year(reach.first), _year(reach.last) + 1)
    country, _, part = code.partition("-")
    try:
        if not part and country in holidays.list_supported_financial():
            found = holidays.financial_holidays(country, years=years)
        else:
            found = holidays.country_holidays(country, subdiv=part or None, years=years)
    except (NotImplementedError, ValueError, KeyError) as error:
        raise _unknown_code(code, country, part) from error
    days = tuple(sorted(_day(day) for day in found))
    weekend = tuple(sorted(day + 1 for day in getattr(found, "weekend", ()))) or USUAL_WEEKEND
    return _Found(days, weekend, _version_of_holidays() or "")


def _year(day: int) -> int:
    return date.fromordinal(day + EPOCH_ORDINAL).year


def _unknown_code(code: str, country: str, part: str) -> CalendarError:
    import holidays

    known = holidays.list_supported_countries()
    if part and country in known:
        parts = list(known[country])
        meant = nearest(part, parts)
        hint = f"did you mean {country}-{meant}?" if meant else f"it has {', '.join(parts[:30])}" if parts else ""
        return CalendarError(f"{country} has no part {quoted(part)}", hint or f"write {country} alone")
    meant = _code_of(country) or nearest(country, _in_likely_order(country, part, known))
    hint = f"did you mean {meant}?" if meant else "write a country such as DE, with a part of it such as DE-BY"
    return CalendarError(f"no holidays are known for {quoted(code)}", hint)


def _code_of(name: str) -> str | None:
    """DE for GERMANY and for DEU: the package knows countries by their names and by longer codes too."""
    try:
        from holidays.registry import COUNTRIES
    except ImportError:  # a table that the package does not promise
        return None
    plain = name.casefold().replace(" ", "_")
    for module, (_, short, *longer) in COUNTRIES.items():
        if plain == module or name in longer:
            return str(short)
    return None


def _in_likely_order(country: str, part: str, known: Mapping[str, Iterable[str]]) -> list[str]:
    """Of codes that differ in one letter, one that has such a part is meant, and then one that begins alike: for
    DX-BY that is DE."""
    return sorted(known, key=lambda code: (bool(part) and part not in known[code], code[:1] != country[:1], code))


def _joined(spans: Iterable[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """In order, with those that overlap or touch made one; days touch at a distance of one, seconds at none."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1] + gap:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _flat(name: str, spans: list[tuple[int, int]]) -> tuple[int, ...]:
    if len(spans) > MOST_SPANS:
        hint = f"at most {MOST_SPANS} fit; join them, or use a schedule for what recurs this often"
        raise CalendarError(f"calendar {quoted(name)} has {len(spans)} separate spans", hint)
    return tuple(edge for span in spans for edge in span)


def _version_of_holidays() -> str | None:
    """None where the package is not installed."""
    # Every command that reads a job file would pay for this import: it brings email, csv and zipfile with it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("holidays")
    except PackageNotFoundError:
        return None


def current_data(calendar: JobCalendar) -> str:
    """Which data its source has now, in the words of `data`; that of the calendar where it has no source.

    Raises CalendarError where the source is gone.
    """
    match calendar.source:
        case CalendarSource.HOLIDAYS:
            version = _version_of_holidays()
            if version is None:
                hint = "install it with: pip install 'chronex[calendars]'"
                raise CalendarError("the package holidays is not installed any more", hint)
            return f"holidays {version}"
        case CalendarSource.ICS:
            return f"sha256 {sha256(_file(Path(calendar.origin))).hexdigest()[:16]}"
    return calendar.data


def made_again(calendar: JobCalendar, now_ms: int, floating: Zone) -> JobCalendar | None:
    """The calendar as its source says now; None where its source is the job file. Raises CalendarError."""
    match calendar.source:
        case CalendarSource.HOLIDAYS:
            return of_holidays(calendar.name, calendar.origin, now_ms)
        case CalendarSource.ICS:
            return of_ics(calendar.name, Path(calendar.origin), now_ms, floating)
    return None
