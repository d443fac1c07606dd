"""Instants and spans in a few characters, for tables and dashboards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chronex.model.placed import MissedSpan
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


def sortable(ms: int, zone: Zone) -> str:
    """`2026-11-16 03:00:00`, for columns under each other."""
    return f"{_wall(ms, zone):%Y-%m-%d %H:%M:%S}"


def full(ms: int, zone: Zone) -> str:
    """`Mon 16 Nov 2026 03:00:00 CET`: nothing left to guess."""
    there = _wall(ms, zone)
    day = f"{_WEEKDAYS[there.weekday()]} {there.day:2d} {_MONTHS[there.month - 1]} {there.year}"
    return f"{day} {there:%H:%M:%S} {there.tzname() or zone.name}"


def how_many(span: MissedSpan) -> str:
    """`720 occurrences`, `more than 10000 occurrences`; `all` where nobody counted."""
    if not span.count:
        return "all"
    more = "more than " if span.is_more else ""
    return f"{more}{span.count} occurrence{'s' if span.count > 1 else ''}"


def _wall(ms: int, zone: Zone) -> datetime:
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone.tzinfo)
