"""Instants on a zone's clock, in as few characters as leave no doubt; and the short form of a reason."""

from __future__ import annotations

from datetime import datetime

from chronex.text.instants import SHORT_MONTHS, SHORT_WEEKDAYS, local_datetime
from chronex.timing.zones import Zone


def local_time(ms: int, zone: Zone) -> datetime:
    return local_datetime(ms, zone.tzinfo)


def clock_time(ms: int, zone: Zone) -> str:
    """14:45, or 14:45:10 where there are seconds."""
    moment = local_time(ms, zone)
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


def exact_clock_time(ms: int, zone: Zone) -> str:
    """14:45:00: always with seconds."""
    return f"{local_time(ms, zone):%H:%M:%S}"


def stamp(ms: int, now_ms: int, zone: Zone) -> str:
    """15:00 today, Mon 03:00 within a week, 28 Mar 02:30 within the year, else with the year."""
    moment, today = local_time(ms, zone), local_time(now_ms, zone).date()
    days = (moment.date() - today).days
    if days == 0:
        return clock_time(ms, zone)
    if abs(days) < 7:
        return f"{SHORT_WEEKDAYS[moment.weekday()]} {clock_time(ms, zone)}"
    if abs(days) < 300:
        return f"{_date(moment).strip()} {moment:%H:%M}"
    return f"{_date(moment).strip()} {moment.year}"


def full_stamp(ms: int, zone: Zone) -> str:
    """Mon 16 Nov 02:30 CET."""
    moment = local_time(ms, zone)
    return f"{SHORT_WEEKDAYS[moment.weekday()]} {_date(moment)} {clock_time(ms, zone)} {abbreviation(ms, zone)}"


def _date(moment: datetime) -> str:
    return f"{moment.day:2} {SHORT_MONTHS[moment.month - 1]}"


def abbreviation(ms: int, zone: Zone) -> str:
    """CET, or the name of a zone that has no abbreviation."""
    return local_time(ms, zone).tzname() or zone.name


def day_of(ms: int, zone: Zone) -> str:
    """Sun 28 Mar 2027."""
    moment = local_time(ms, zone)
    return f"{SHORT_WEEKDAYS[moment.weekday()]} {moment.day} {SHORT_MONTHS[moment.month - 1]} {moment.year}"


def count(number: int, noun: str) -> str:
    """1 run, 1,200 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
