"""A file of events (iCalendar, RFC 5545) as days and times, for the calendar of a job.

All-day events are whole local days. Events with a time are spans of seconds: in their own zone, in UTC, or, where
they name none, in the zone of the job file. The file may be anybody's: its size, its events and the work of its rules
are bounded, and what goes beyond a bound is refused in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from chronex.errors import UnknownZoneError
from chronex.text.instants import EPOCH_ORDINAL
from chronex.text.terminal import escaped, quoted
from chronex.timing.dst import wall_to_instant
from chronex.timing.recurrence import RecurrenceError, StepBudget, read_recurrence, recurring_days
from chronex.timing.zones import Zone, load_zone

MOST_BYTES = 4 << 20
MOST_COMPONENTS = 20_000
# Steps of all rules of a file together: about a second of work.
MOST_STEPS = 200_000
_DAY = 86_400
_BROKEN = re.compile(r"broken property '([A-Z-]+)'.*?\): (.*)")


class CalendarError(ValueError):
    """A calendar cannot be made from its source; `hint` says what to do."""

    def __init__(self, problem: str, hint: str) -> None:
        self.problem, self.hint = problem, hint
        super().__init__(f"{problem}; {hint}")


class EventSpans(NamedTuple):
    """First and last days, and first and following seconds, in any order."""

    days: list[tuple[int, int]]
    times: list[tuple[int, int]]


class _Event(NamedTuple):
    """One event before it recurs: its first day, the second of the day at which it begins, and how long it is."""

    day: int
    second: int | None  # None for whole days
    length: int  # in days, or in seconds
    zone: Zone


def read_events(data: bytes, begin: int, end: int, floating: Zone) -> EventSpans:
    """What the events of the file cover from day `begin` to day `end`. Raises CalendarError."""
    try:
        import icalendar
    except ImportError:
        hint = "install it with: pip install 'chronex[calendars]'"
        raise CalendarError("reading .ics files needs the package icalendar, which is not installed", hint) from None
    if len(data) > MOST_BYTES:
        raise CalendarError(f"the file has more than {MOST_BYTES >> 20} MiB", "keep only the events that matter")
    if data.upper().count(b"BEGIN:") > MOST_COMPONENTS:
        raise CalendarError(f"the file has more than {MOST_COMPONENTS} entries", "keep only the events that matter")
    try:
        calendars = icalendar.Calendar.from_ical(data, multiple=True)
        events: list[Any] = [event for calendar in calendars for event in calendar.walk("VEVENT")]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise CalendarError(f"it is no iCalendar file: {_short(error)}", "export it again as .ics") from None
    if not calendars:
        raise CalendarError("it is no iCalendar file: it has no BEGIN:VCALENDAR", "export it again as .ics")
    return _spans(events, begin, end, floating)


def _short(error: Exception) -> str:
    return quoted(str(error).splitlines()[0][:100] if str(error) else type(error).__name__)


def _spans(events: list[Any], begin: int, end: int, floating: Zone) -> EventSpans:
    found, budget = EventSpans([], []), StepBudget(MOST_STEPS)
    overridden = {(str(event.get("UID", "")), _key(event["RECURRENCE-ID"].dt)) for event in events if _moves(event)}
    for event in events:
        if str(event.get("STATUS", "")).upper() == "CANCELLED":
            continue
        try:
            read = _event(event, floating)
            if read is not None:
                _add(found, event, read, (begin, end), overridden, budget)
        except (RecurrenceError, ValueError, OverflowError, AttributeError, TypeError) as error:
            title = quoted(str(event.get("SUMMARY", "without a title"))[:60])
            what = escaped(_words_of(error)[:160])
            raise CalendarError(f"event {title}: {what}", "mend or remove the event") from None
    return found


def _words_of(error: Exception) -> str:
    """What is wrong, without what the package says of its own classes: `Cannot access 'dt' on … 'DTSTART' …): `."""
    first = str(error).partition("\n")[0]
    broken = _BROKEN.search(first)
    return f"{broken[1]}: {broken[2]}" if broken else first or type(error).__name__


def _moves(event: Any) -> bool:
    return hasattr(event.get("RECURRENCE-ID"), "dt")


def _key(moment: date) -> str:
    """One recurrence of an event, in UTC where it has a zone."""
    if isinstance(moment, datetime):
        return (moment.astimezone(UTC) if moment.tzinfo is not None else moment).strftime("%Y%m%dT%H%M%S")
    return moment.strftime("%Y%m%d")


def _event(event: Any, floating: Zone) -> _Event | None:
    start = event.get("DTSTART")
    if start is None:
        return None
    begins = start.dt
    ends = event["DTEND"].dt if "DTEND" in event else None
    length = event["DURATION"].dt if "DURATION" in event else None
    if not isinstance(begins, datetime):
        day = begins.toordinal() - EPOCH_ORDINAL
        days = ends.toordinal() - begins.toordinal() if ends is not None else length.days if length is not None else 1
        return _Event(day, None, max(days, 1), floating)
    zone = _zone(begins, floating, start.params.get("TZID"))
    if ends is not None:
        length = ends - begins if (ends.tzinfo is None) == (begins.tzinfo is None) else timedelta(0)
    seconds = 0 if length is None else round(length.total_seconds())
    wall = begins.replace(tzinfo=None)
    second = wall.hour * 3600 + wall.minute * 60 + wall.second
    return _Event(wall.toordinal() - EPOCH_ORDINAL, second, max(seconds, 1), zone)


def _zone(moment: datetime, floating: Zone, named: str | None) -> Zone:
    """The package reads a time whose zone it does not know as one without a zone; `named` is what the event says."""
    if moment.tzinfo is None:
        if named is not None:
            raise ValueError(f"the time zone {str(named)[:40]} is unknown")
        return floating
    name = getattr(moment.tzinfo, "key", None) or str(moment.tzinfo)
    try:
        return load_zone("UTC" if name in ("UTC", "Z") else name)
    except UnknownZoneError:
        raise ValueError(f"the time zone {name[:40]} is unknown") from None


def _add(
    found: EventSpans,
    event: Any,
    read: _Event,
    span: tuple[int, int],
    overridden: set[tuple[str, str]],
    budget: StepBudget,
) -> None:
    """Every recurrence of the event that touches the span, except those that EXDATE or another event takes out."""
    begin, end = span
    longest = read.length if read.second is None else read.length // _DAY + 2
    uid, is_override = str(event.get("UID", "")), _moves(event)
    without = {_key(moment) for moment in _moments(event.get("EXDATE"))}
    for day in _days(event, read, begin - longest, end + 1, budget):
        wall = date.fromordinal(day + EPOCH_ORDINAL)
        if read.second is None:
            key = _key(wall)
            last = day + read.length - 1
            if key not in without and ((uid, key) not in overridden or is_override) and day <= end and last >= begin:
                found.days.append((max(day, begin), min(last, end)))
            continue
        second = wall_to_instant((day * _DAY + read.second) * 1000, read.zone) // 1000
        keys = {_wall_key(wall, read.second), datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%S")}
        is_taken = any((uid, key) in overridden for key in keys) and not is_override
        if not keys & without and not is_taken and day <= end:
            found.times.append((second, second + read.length))


def _wall_key(wall: date, second: int) -> str:
    return f"{wall:%Y%m%d}T{second // 3600:02}{second // 60 % 60:02}{second % 60:02}"


def _days(event: Any, read: _Event, begin: int, end: int, budget: StepBudget) -> Iterator[int]:
    rule = event.get("RRULE")
    if isinstance(rule, list):
        raise RecurrenceError("it has several RRULEs")
    if rule is None or _moves(event):
        yield read.day
    else:
        text = _rule_text(rule)
        yield from recurring_days(read_recurrence(text, read.day), read.day, begin, end, budget)
    for moment in _moments(event.get("RDATE")):
        budget.take(1)
        yield (moment.date() if isinstance(moment, datetime) else moment).toordinal() - EPOCH_ORDINAL


def _rule_text(rule: Any) -> str:
    """One that the package could not read is a plain text to it, in which it escapes what joins the parts."""
    if not hasattr(rule, "items"):
        raise RecurrenceError(f"RRULE:{str(rule)[:100]} cannot be read")
    written: str = rule.to_ical().decode()
    return written


def _moments(given: Any) -> Iterable[date]:
    """The dates of EXDATE or RDATE, which an event may have none of, one, or several lists."""
    lists = given if isinstance(given, list) else [] if given is None else [given]
    for one in lists:
        for moment in one.dts:
            value = moment.dt
            yield value[0] if isinstance(value, tuple) else value
