"""A time as people say it to at(1): `now + 2h`, `14:30`, `tomorrow 09:00`, `monday noon`, or RFC 3339."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from chronex.text.durations import DAY_MS, parse_duration
from chronex.text.instants import FIRST_MS, LAST_MS
from chronex.timing.zones import Zone

_CLOCK = re.compile(r"([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2}))?)?\s*(am|pm)?")
_SHORT_CLOCK = re.compile(r"([0-9]{2})([0-9]{2})")
_NAMED_CLOCKS = {"noon": time(12), "midnight": time(0), "teatime": time(16)}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNT = re.compile(r"([0-9]{1,6})\s*([a-z]+)")
_ELAPSED = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600}
_DAYS = {"day": 1, "week": 7}
EXAMPLES = "now + 2h, 14:30, tomorrow 09:00, monday noon or 2027-03-01T09:00:00+01:00"


class AtTime(NamedTuple):
    """The instant in milliseconds; or `problem`, and what to say instead."""

    ms: int = 0
    problem: str = ""


_BEYOND = AtTime(problem="this time is beyond the calendar, the years 1 to 9999")


def read_at_time(text: str, now_ms: int, zone: Zone) -> AtTime:
    """The instant that the words mean at `now_ms` in `zone`. One that has passed is a problem."""
    words = " ".join(text.lower().split())
    try:
        found = _written(text.strip()) or _spoken(words, now_ms, zone)
    except OverflowError:
        return _BEYOND
    if found.problem:
        return found
    if not FIRST_MS + DAY_MS <= found.ms <= LAST_MS - DAY_MS:  # within them in every zone
        return _BEYOND
    if found.ms <= now_ms:
        shown = datetime.fromtimestamp(found.ms / 1000, zone.tzinfo).strftime("%Y-%m-%d %H:%M:%S")
        return AtTime(problem=f"{shown} has passed; say a later time")
    return found


def _written(text: str) -> AtTime | None:
    """RFC 3339 with an offset is one instant, whatever zone applies."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else AtTime(round(moment.timestamp() * 1000))


def _spoken(words: str, now_ms: int, zone: Zone) -> AtTime:
    base, plus, distance = words.partition("+")
    base = base.strip().removeprefix("at ")
    if not plus and base.startswith("in "):
        base, plus, distance = "", "+", base.removeprefix("in ")
    now = datetime.fromtimestamp(now_ms / 1000, zone.tzinfo)
    begin = now if base in ("", "now") and (plus or base) else _wall(base, now)
    if begin is None:
        return AtTime(problem=f"this time is not understood; say for example {EXAMPLES}")
    if not plus:
        return _instant(begin, zone)
    return _later(begin, distance.strip(), zone)


def _wall(words: str, now: datetime) -> datetime | None:
    """The wall time that a day and a time of day name, in either order; without a day the next one of that time."""
    if "t" in words and words[:4].isdecimal():
        words = words.replace("t", " ", 1)
    parts = words.split()
    for at in range(len(parts) + 1):
        for day_words, clock_words in ((parts[:at], parts[at:]), (parts[at:], parts[:at])):
            day = _day(" ".join(day_words), now.date()) if day_words else None
            clock = _clock(" ".join(clock_words)) if clock_words else None
            if (day_words and day is None) or (clock_words and clock is None) or not parts:
                continue
            return _joined(day, clock, now)
    return None


def _joined(day: date | None, clock: time | None, now: datetime) -> datetime:
    """As at(1): a time of day alone is today or, when that has passed, tomorrow; a day alone is at this time."""
    found = datetime.combine(day or now.date(), clock or now.time().replace(microsecond=0))
    if day is None and found <= now.replace(tzinfo=None):
        found += timedelta(days=1)
    return found


def _day(words: str, today: date) -> date | None:
    if words in ("today", "tomorrow"):
        return today + timedelta(days=words == "tomorrow")
    word = words.removeprefix("next ")
    full = next((name for name in _WEEKDAYS if word == name or (len(word) == 3 and name.startswith(word))), None)
    if full is not None:
        return today + timedelta(days=(_WEEKDAYS.index(full) - today.weekday() - 1) % 7 + 1)
    try:
        return date.fromisoformat(words)
    except ValueError:
        return None


def _clock(words: str) -> time | None:
    if words in _NAMED_CLOCKS:
        return _NAMED_CLOCKS[words]
    short = _SHORT_CLOCK.fullmatch(words)
    match = _CLOCK.fullmatch(f"{short[1]}:{short[2]}" if short else words)
    if match is None or not (match[2] or match[4]):
        return None
    hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if match[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4] == "pm" else 0)
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def _later(begin: datetime, distance: str, zone: Zone) -> AtTime:
    """Days and weeks keep the wall time; hours and less are elapsed."""
    count = _COUNT.fullmatch(distance)
    unit = count[2] if count else ""
    unit = unit if unit in _DAYS or unit in _ELAPSED else unit.removesuffix("s")
    if count and unit in _DAYS:
        return _instant(begin.replace(tzinfo=None) + timedelta(days=int(count[1]) * _DAYS[unit]), zone)
    ms = int(count[1]) * _ELAPSED[unit] * 1000 if count and unit in _ELAPSED else parse_duration(distance)
    if not ms:
        return AtTime(problem="the distance is not understood; say for example + 2h, + 30 min or + 3 days")
    start = _instant(begin, zone)
    return start if start.problem else AtTime(start.ms + ms)


def _instant(wall: datetime, zone: Zone) -> AtTime:
    """A wall time that comes twice is meant the first time; one that the clock skips is no time at all."""
    if wall.tzinfo is not None:
        return AtTime(round(wall.timestamp() * 1000))
    moment = wall.replace(tzinfo=zone.tzinfo)
    back = moment.astimezone(UTC).astimezone(zone.tzinfo).replace(tzinfo=None)
    if back != wall:
        return AtTime(problem=f"the clock skips {wall:%H:%M} on {wall:%Y-%m-%d} in {zone.name}; say {back:%H:%M}")
    return AtTime(round(moment.timestamp() * 1000))
