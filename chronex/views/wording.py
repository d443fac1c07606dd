"""Instants and spans in a few characters, for tables and dashboards."""

from __future__ import annotations

from datetime import datetime

from chronex.model.occurrence import MissedSpan
from chronex.model.policies import RetryPolicy, retry_pause
from chronex.text.durations import brief_duration, format_duration
from chronex.text.instants import SHORT_MONTHS, SHORT_WEEKDAYS, local_datetime
from chronex.timing.zones import Zone

_JUST_NOW_MS = 5_000


def moment(ms: int, now_ms: int, zone: Zone) -> str:
    """`14:45` within a day of now, `Mon 03:00` within a week, else `28 Mar 2027`; wall clock of `zone`."""
    there, here = _wall(ms, zone), _wall(now_ms, zone)
    days = abs((there.date() - here.date()).days)
    if days == 0:
        return f"{there:%H:%M}" if abs(ms - now_ms) >= 60_000 else f"{there:%H:%M:%S}"
    if days < 7:
        return f"{SHORT_WEEKDAYS[there.weekday()]} {there:%H:%M}"
    return f"{there.day} {SHORT_MONTHS[there.month - 1]} {there.year}"


def upcoming(ms: int, now_ms: int, zone: Zone) -> str:
    """`15:00 in 4m`; `Tue 03:00` on another day; `due 14:45` where it should have begun."""
    when = moment(ms, now_ms, zone)
    if ms <= now_ms:
        return "now" if now_ms - ms < _JUST_NOW_MS else f"due {when}"
    return when if " " in when else f"{when} in {brief_duration(ms - now_ms)}"


def upcoming_if(ms: int, now_ms: int, zone: Zone, *, has_scheduler: bool) -> str:
    """The same; without a scheduler nothing starts by itself, so it only would."""
    if has_scheduler:
        return upcoming(ms, now_ms, zone)
    when = moment(ms, now_ms, zone)
    return f"would start {when}" if ms > now_ms else f"was due {when}"


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
    return f"{SHORT_WEEKDAYS[_wall(ms, zone).weekday()]} {column(ms, zone)}"


# What `history --state` and programs call it; the state itself is `completed`.
WITH_ERRORS = "completed_with_errors"


def state_words(state: str, errors: int) -> str:
    """The state of an occurrence for people: `completed with errors` where some of its tasks failed."""
    return WITH_ERRORS.replace("_", " ") if errors else state


def retry_words(policy: RetryPolicy) -> str:
    """`never`, `3 times every 30s`, `3 times after 30s, x2 up to 10m, jitter 10%`: with the pauses that hold."""
    if policy.max == 0:
        return "never"
    often = "for ever" if policy.max is None else "once" if policy.max == 1 else f"{policy.max} times"
    first, longest = retry_pause(policy, 1), policy.longest_ms
    grows = policy.backoff > 1 and longest > first and policy.max != 1
    growing = f", x{policy.backoff:g} up to {format_duration(longest)}" if grows else ""
    jitter = f", jitter {policy.jitter:.0%}" if policy.jitter else ""
    return f"{often} {'after' if grows or policy.max == 1 else 'every'} {format_duration(first)}{growing}{jitter}"


def how_many(span: MissedSpan) -> str:
    """`720 occurrences`, `more than 10000 occurrences`; `all` where they were not counted."""
    if not span.count:
        return "all"
    more = "more than " if span.is_more else ""
    return f"{more}{span.count} occurrence{'s' if span.count > 1 else ''}"


def _wall(ms: int, zone: Zone) -> datetime:
    return local_datetime(ms, zone.tzinfo)
