"""Instants and durations in as few characters as leave no doubt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chronex.timing.zones import Zone

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def local(ms: int, zone: Zone) -> datetime:
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone.tzinfo)


def clock(ms: int, zone: Zone) -> str:
    """14:45, or 14:45:10 where seconds matter."""
    moment = local(ms, zone)
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


def exact_clock(ms: int, zone: Zone) -> str:
    return f"{local(ms, zone):%H:%M:%S}"


def date(moment: datetime) -> str:
    return f"{moment.day:2} {MONTHS[moment.month - 1]}"


def stamp(ms: int, now_ms: int, zone: Zone) -> str:
    """15:00 today, Mon 03:00 within a week, 28 Mar 02:30 within the year, else with the year."""
    moment, today = local(ms, zone), local(now_ms, zone).date()
    days = (moment.date() - today).days
    if days == 0:
        return clock(ms, zone)
    if abs(days) < 7:
        return f"{WEEKDAYS[moment.weekday()]} {clock(ms, zone)}"
    if abs(days) < 300:
        return f"{date(moment).strip()} {moment:%H:%M}"
    return f"{date(moment).strip()} {moment.year}"


def full_stamp(ms: int, zone: Zone) -> str:
    """Mon 16 Nov 02:30 CET."""
    moment = local(ms, zone)
    return f"{WEEKDAYS[moment.weekday()]} {date(moment)} {clock(ms, zone)} {abbreviation(ms, zone)}"


def abbreviation(ms: int, zone: Zone) -> str:
    return local(ms, zone).tzname() or zone.name


def day_of(ms: int, zone: Zone) -> str:
    """Sun 28 Mar 2027."""
    moment = local(ms, zone)
    return f"{WEEKDAYS[moment.weekday()]} {moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def countdown(ms: int) -> str:
    """3:10 below an hour, 4h 12m below a day, else 2d 4h. Rounded up, so that it ends at the instant."""
    seconds = max(0, -(-ms // SECOND))
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02}"
    return _two_units(seconds)


def elapsed(ms: int) -> str:
    """The same for time that has passed: rounded down."""
    seconds = max(0, ms // SECOND)
    return f"{seconds // 60}:{seconds % 60:02}" if seconds < 3600 else _two_units(seconds)


def away(ms: int) -> str:
    """4m, 50s, 3h, 12d: one unit, for a glance."""
    seconds = max(0, -(-ms // SECOND))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _two_units(seconds: int) -> str:
    if seconds < 86_400:
        return f"{seconds // 3600}h {seconds // 60 % 60:02}m"
    return f"{seconds // 86_400}d {seconds // 3600 % 24}h"


def duration(ms: int | None) -> str:
    """0.3s, 12s, 1m02s, 2h05m, 3d4h."""
    if ms is None:
        return ""
    if ms < 9_950:
        return f"{ms / 1000:.1f}s"
    seconds = round(ms / 1000)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    if seconds < 86_400:
        return f"{seconds // 3600}h{seconds // 60 % 60:02}m"
    return f"{seconds // 86_400}d{seconds // 3600 % 24}h"


def offset(seconds: int) -> str:
    sign, rest = ("-" if seconds < 0 else "+"), abs(seconds)
    return f"{sign}{rest // 3600:02}" + (f":{rest // 60 % 60:02}" if rest % 3600 else "")


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
