"""The peers behind one shape: parse, a single next, and iteration."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import croniter_rs
from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim

import chronex

Single = Callable[[datetime], object]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def exhaust(items: Iterable[object]) -> None:
    deque(items, maxlen=0)


def tzinfo_of(zone: str) -> Any:
    return UTC if zone == "UTC" else ZoneInfo(zone)


@dataclass(frozen=True, slots=True)
class Peer:
    """`single(text, zone)` is the next occurrence after an instant, with whatever can be reused made beforehand;
    `iterate(text, zone)` lists the first n after an instant."""

    name: str
    parse: Callable[[str], object]
    single: Callable[[str, str], Single]
    iterate: Callable[[str, str], Callable[[datetime, int], Iterable[object]]]
    remark: str = ""


def _chronex_single(text: str, zone: str) -> Single:
    return chronex.parse(text, tz=zone).next


def _chronex_iterate(text: str, zone: str) -> Callable[[datetime, int], Iterable[object]]:
    upcoming = chronex.parse(text, tz=zone).upcoming
    return lambda after, count: upcoming(after, limit=count)


def _cronsim_single(text: str, zone: str) -> Single:
    return lambda after: next(CronSim(text, after))


def _cronsim_iterate(text: str, zone: str) -> Callable[[datetime, int], Iterable[object]]:
    return lambda after, count: islice(CronSim(text, after), count)


def _croniter_single(text: str, zone: str) -> Single:
    reused = croniter(text, EPOCH.astimezone(tzinfo_of(zone)))
    return lambda after: reused.get_next(datetime, start_time=after)


def _croniter_iterate(text: str, zone: str) -> Callable[[datetime, int], Iterable[object]]:
    def occurrences(after: datetime, count: int) -> Iterator[object]:
        one_after_another = croniter(text, after)
        for _ in range(count):
            yield one_after_another.get_next(datetime)

    return occurrences


def _apscheduler_trigger(text: str, zone: str) -> Any:
    """Its own words for the day rules. Where both day fields are restricted it wants both to match."""
    minute, hour, day, month, weekday = text.split()
    if weekday == "5#2":
        day, weekday = "2nd fri", "*"
    day = "last" if day == "L" else day
    parts = {"minute": minute, "hour": hour, "day": day, "month": month, "day_of_week": weekday}
    return CronTrigger(timezone=tzinfo_of(zone), **parts)


def _apscheduler_single(text: str, zone: str) -> Single:
    trigger = _apscheduler_trigger(text, zone)
    return lambda after: trigger.get_next_fire_time(after, after)


def _apscheduler_iterate(text: str, zone: str) -> Callable[[datetime, int], Iterable[object]]:
    trigger = _apscheduler_trigger(text, zone)

    def occurrences(after: datetime, count: int) -> Iterator[object]:
        fired = trigger.get_next_fire_time(None, after)
        for _ in range(count):
            yield fired
            fired = trigger.get_next_fire_time(fired, fired)

    return occurrences


def _croniter_rs_single(text: str, zone: str) -> Single:
    reused = croniter_rs.croniter(text, EPOCH)
    return lambda after: reused.get_next(datetime, start_time=after)


def _croniter_rs_iterate(text: str, zone: str) -> Callable[[datetime, int], Iterable[object]]:
    return lambda after, count: croniter_rs.croniter(text, after).get_next_n(count, datetime)


CHRONEX = Peer("chronex", chronex.parse, _chronex_single, _chronex_iterate)
PEERS = (
    Peer(
        "cronsim",
        lambda text: CronSim(text, EPOCH),
        _cronsim_single,
        _cronsim_iterate,
        "single = construct and next: its iterator cannot be sent elsewhere; Debian's DST rules",
    ),
    Peer(
        "croniter",
        lambda text: croniter(text, EPOCH),
        _croniter_single,
        _croniter_iterate,
        "single = one object reused, get_next(datetime, start_time=…)",
    ),
    Peer(
        "apscheduler",
        lambda text: _apscheduler_trigger(text, "UTC"),
        _apscheduler_single,
        _apscheduler_iterate,
        "CronTrigger of version 3; day of month AND day of week, so 13 * FRI is another schedule",
    ),
    Peer(
        "croniter-rs",
        lambda text: croniter_rs.croniter(text, EPOCH),
        _croniter_rs_single,
        _croniter_rs_iterate,
        "Rust; less work: it drops the zone, answers naive wall times and fires inside gaps; a list, not lazily",
    ),
)
