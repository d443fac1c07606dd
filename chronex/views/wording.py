"""Instants and spans in a few characters, for tables and dashboards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chronex.model.occurrence import MissedSpan
from chronex.timing.zones import Zone

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_JUST_NOW_MS = 5_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def length(ms: int) -> str:
    """`0.3s`, `42s`, `1m02s`, `3h10m`, `2d4h`: a duration to about two figures."""
    if ms < 10_000:
        return f"{ms / 1000:.1f}s" if ms >= 100 else f"{ms}ms"
    parts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        count, ms = divmod(ms, size)
        if count or parts:
            parts.append((count, unit))
    (first, unit), *rest = parts[:2]
    return f"{first}{unit}" + "".join(f"{count:02d}{unit}" for count, unit in rest if count)


def moment(ms: int, now_ms: int, zone: Zone) -> str:
    """`14:45` within a day of now, `Mon 03:00` within a week, else `28 Mar 2027`; wall clock of `zone`."""
    there, here = _wall(ms, zone), _wall(now_ms, zone)
    days = abs((there.date() - here.date()).days)
    if days == 0:
        return f"{there:%H:%M}" if abs(ms - now_ms) >= 60_000 else f"{there:%H:%M:%S}"
    if days < 7:
        return f"{_WEEKDAYS[there.weekday()]} {there:%H:%M}"
    return f"{there.day} {_MONTHS[there.month - 1]} {there.year}"


def upcoming(ms: int, now_ms: int, zone: Zone) -> str:
    """`15:00 in 4m`; `Tue 03:00` on another day; `due 14:45` where it should have begun."""
    when = moment(ms, now_ms, zone)
    if ms <= now_ms:
        return "now" if now_ms - ms < _JUST_NOW_MS else f"due {when}"
    return when if " " in when else f"{when} in {length(ms - now_ms)}"


def stamp(ms: int, zone: Zone) -> str:
    """`2027-03-28 03:00+02:00`: nothing left to guess; seconds and milliseconds only where there are some."""
    when = _wall(ms, zone)
    precision = "milliseconds" if ms % 1000 else "seconds" if when.second else "minutes"
    return when.isoformat(sep=" ", timespec=precision)


def column(ms: int, zone: Zone) -> str:
    """`2027-03-28 03:00:00+02:00`, for columns under each other."""
    return _wall(ms // 1000 * 1000, zone).isoformat(sep=" ", timespec="seconds")


def full(ms: int, zone: Zone) -> str:
    """`Sun 2027-03-28 03:00:00+02:00`, where the weekday helps."""
    return f"{_WEEKDAYS[_wall(ms, zone).weekday()]} {column(ms, zone)}"


def how_many(span: MissedSpan) -> str:
    """`720 occurrences`, `more than 10000 occurrences`; `all` where nobody counted."""
    if not span.count:
        return "all"
    more = "more than " if span.is_more else ""
    return f"{more}{span.count} occurrence{'s' if span.count > 1 else ''}"


def _wall(ms: int, zone: Zone) -> datetime:
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone.tzinfo)
