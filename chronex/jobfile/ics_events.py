"""A file of events (iCalendar, RFC 5545) as days and times, for the calendar of a job.

All-day events are whole local days. Events with a time are spans of seconds: in their own zone, in UTC, or, where
they name none, in the zone of the job file. The file may be anybody's: its size, its events and the work of its rules
are bounded, and what goes beyond a bound is refused in a sentence.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from chronex.jobfile.ics_zones import FileZones, second_on_wall, taken_out
from chronex.text.instants import EPOCH_ORDINAL
from chronex.text.terminal import escaped, quoted
from chronex.timing.dst import wall_to_instant
from chronex.timing.recurrence import RecurrenceError, StepBudget, read_recurrence, recurring_days
from chronex.timing.zones import Zone

MOST_BYTES = 4 << 20
MOST_COMPONENTS = 20_000
# Steps of all rules of a file together: about a second of work.
MOST_STEPS = 200_000
_DAY = 86_400
_TIMES = ("DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID")
_ONCE = ("DTSTART", "DTEND", "DURATION", "RECURRENCE-ID")
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
        without_zones, written = taken_out(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names of zones that it guesses; they are read here
            calendars = icalendar.Calendar.from_ical(without_zones, multiple=True)
        events: list[Any] = [event for calendar in calendars for event in calendar.walk("VEVENT")]
    except RecursionError:  # the name of a zone with thousands of parts
        raise CalendarError("a value in it has too many parts to be read", "export it again as .ics") from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise CalendarError(f"it is no iCalendar file: {_short(error)}", "export it again as .ics") from None
    if not calendars:
        lacking = "END" if b"BEGIN:VCALENDAR" in data.upper() else "BEGIN"
        raise CalendarError(f"it is no iCalendar file: it has no {lacking}:VCALENDAR", "export it again as .ics")
    budget = StepBudget(MOST_STEPS)
    return _spans(events, (begin, end), FileZones(written, begin, end, floating, budget), budget)


def _short(error: Exception) -> str:
    return escaped(str(error).splitlines()[0][:100] if str(error) else type(error).__name__)


def _spans(events: list[Any], span: tuple[int, int], zones: FileZones, budget: StepBudget) -> EventSpans:
    found = EventSpans([], [])
    replaced: set[tuple[str, str]] = set()
    for event in events:
        with _named_event(event):
            if _moves(event):
                (moment,) = _moments(event["RECURRENCE-ID"], zones)
                replaced.add((str(event.get("UID", "")), _key(moment)))
    for event in events:
        if str(event.get("STATUS", "")).upper() == "CANCELLED":
            continue
        with _named_event(event):
            _refuse_unfollowed(event)
            _refuse_dropped(event)
            _add(found, event, _event(event, zones), span, replaced, zones, budget)
    return found


@contextmanager
def _named_event(event: Any) -> Iterator[None]:
    """What is wrong with one event, by its title."""
    try:
        yield
    except (RecurrenceError, ValueError, OverflowError, AttributeError, TypeError) as error:
        title = quoted(str(event.get("SUMMARY", "without a title"))[:60])
        what = escaped(_words_of(error)[:160])
        raise CalendarError(f"event {title}: {what}", "mend or remove the event") from None


def _words_of(error: Exception) -> str:
    """What is wrong, without what the package says of its own classes: `Cannot access 'dt' on … 'DTSTART' …): `."""
    first = str(error).partition("\n")[0]
    broken = _BROKEN.search(first)
    return f"{broken[1]}: {broken[2]}" if broken else first or type(error).__name__


def _moves(event: Any) -> bool:
    return hasattr(event.get("RECURRENCE-ID"), "dt")


def _refuse_unfollowed(event: Any) -> None:
    if "EXRULE" in event:  # RFC 2445 had it, and older programs write it still
        raise ValueError("EXRULE, which takes days out by a rule, is not followed here; write EXDATE")
    for name in _ONCE:
        if isinstance(event.get(name), list):
            raise ValueError(f"it has several {name}s")
    if "RANGE" in getattr(event.get("RECURRENCE-ID"), "params", ()):
        raise ValueError("RANGE=THISANDFUTURE, which changes all that follow, is not followed here")


def _refuse_dropped(event: Any) -> None:
    """Releases of the package before 7 leave out what they cannot read, and an event would lose its rule."""
    for name, why in getattr(event, "errors", ()):
        if str(name).upper() in _TIMES and name not in event:
            raise ValueError(f"{name} cannot be read: {why}")


def _key(moment: date | tuple[Any, Any]) -> str:
    """One recurrence of an event, in UTC where it has a zone; a period by its beginning."""
    if isinstance(moment, tuple):
        return _key(moment[0])
    return moment.strftime("%Y%m%dT%H%M%S" if isinstance(moment, datetime) else "%Y%m%d")


def _event(event: Any, zones: FileZones) -> _Event:
    start = event.get("DTSTART")
    if start is None:
        raise ValueError("it has no DTSTART, so nobody knows when it is")
    begins = start.dt
    end = event.get("DTEND")
    length = event["DURATION"].dt if "DURATION" in event else None
    if not isinstance(begins, datetime):
        days = 1 if length is None else length.days
        return _Event(
            _day(begins), None, max(days if end is None else _day(end.dt) - _day(begins), 1), zones.floating
        )
    zone = zones.of(begins, start.params.get("TZID"))
    seconds = 0 if length is None else round(length.total_seconds())
    if end is not None and isinstance(end.dt, datetime):
        # Between instants: a night in which the clock is set is an hour longer or shorter than its wall times say.
        ends_in = zones.of(end.dt, end.params.get("TZID"))
        seconds = _second(end.dt, ends_in) - _second(begins, zone)
    return _Event(_day(begins), _second_of_day(begins), max(seconds, 1), zone)


def _day(moment: date) -> int:
    return moment.toordinal() - EPOCH_ORDINAL


def _second_of_day(moment: datetime) -> int:
    return second_on_wall(moment) % _DAY


def _second(moment: datetime, zone: Zone) -> int:
    """The instant at which the wall of `zone` shows this time."""
    return wall_to_instant(second_on_wall(moment) * 1000, zone) // 1000


def _wall(moment: datetime, zone: Zone) -> datetime:
    """What the wall of `zone` shows at this time; a time without a zone is one of that wall."""
    if moment.tzinfo is None:
        return moment
    second = round(moment.timestamp())
    return datetime.fromtimestamp(second + zone.offset_at(second), UTC)


def _add(
    found: EventSpans,
    event: Any,
    read: _Event,
    span: tuple[int, int],
    replaced: set[tuple[str, str]],
    zones: FileZones,
    budget: StepBudget,
) -> None:
    """Every recurrence of the event that touches the span, except those that EXDATE or another event takes out."""
    begin, end = span
    longest = read.length if read.second is None else read.length // _DAY + 2
    uid, is_override = str(event.get("UID", "")), _moves(event)
    without = {_key(moment) for moment in _moments(event.get("EXDATE"), zones)}
    for one in _recurrences(event, read, (begin - longest, end + 1), zones, budget):
        wall = date.fromordinal(one.day + EPOCH_ORDINAL)
        if one.second is None:
            key = _key(wall)
            last = one.day + one.length - 1
            is_inside = one.day <= end and last >= begin
            if key not in without and ((uid, key) not in replaced or is_override) and is_inside:
                found.days.append((max(one.day, begin), min(last, end)))
            continue
        second = wall_to_instant((one.day * _DAY + one.second) * 1000, one.zone) // 1000
        keys = {_wall_key(wall, one.second), datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%S")}
        is_taken = any((uid, key) in replaced for key in keys) and not is_override
        if not keys & without and not is_taken and one.day <= end:
            found.times.append((second, second + one.length))


def _wall_key(wall: date, second: int) -> str:
    return f"{wall:%Y%m%d}T{second // 3600:02}{second // 60 % 60:02}{second % 60:02}"


def _recurrences(
    event: Any, read: _Event, span: tuple[int, int], zones: FileZones, budget: StepBudget
) -> Iterator[_Event]:
    rule = event.get("RRULE")
    if isinstance(rule, list):
        raise RecurrenceError("it has several RRULEs")
    if rule is None or _moves(event):
        yield read
    else:
        recurrence = read_recurrence(_rule_text(rule), read.day)
        for until in rule.get("UNTIL", ()):
            recurrence = recurrence._replace(until=_last_day(until, read))
        for day in recurring_days(recurrence, read.day, *span, budget):
            yield read._replace(day=day)
    for moment in _moments(event.get("RDATE"), zones):
        budget.take(1)
        yield _further(moment, read)


def _last_day(until: date, read: _Event) -> int:
    """The last day on which the event may begin. An UNTIL with a time is an instant, most often written in UTC: its
    date alone is that of another day east and west of Greenwich."""
    if not isinstance(until, datetime) or read.second is None:
        return _day(until)
    wall = _wall(until, read.zone)
    return _day(wall) if read.second <= _second_of_day(wall) else _day(wall) - 1


def _further(moment: date | tuple[Any, Any], read: _Event) -> _Event:
    """One of RDATE: a date, a time, or a period with an end or a length of its own."""
    if isinstance(moment, tuple):
        begins, ends = moment
        one = _further(begins, read)
        if one.second is None:
            return one  # of an event of whole days, which has no times
        if isinstance(ends, timedelta):
            seconds = round(ends.total_seconds())
        else:
            seconds = _second(_wall(ends, read.zone), read.zone) - _second(_wall(begins, read.zone), read.zone)
        return one._replace(length=max(seconds, 1))
    if not isinstance(moment, datetime) or read.second is None:
        return read._replace(day=_day(moment))
    wall = _wall(moment, read.zone)
    return read._replace(day=_day(wall), second=_second_of_day(wall))


def _rule_text(rule: Any) -> str:
    """One that the package could not read is a plain text to it, in which it escapes what joins the parts."""
    if not hasattr(rule, "items"):
        raise RecurrenceError(f"RRULE:{str(rule)[:100]} cannot be read")
    written: str = rule.to_ical().decode()
    return written


def _moments(given: Any, zones: FileZones) -> Iterator[date | tuple[Any, Any]]:
    """The dates, times and periods of EXDATE or RDATE, which an event may have none of, one, or several lists."""
    for one in given if isinstance(given, list) else [] if given is None else [given]:
        named = one.params.get("TZID")
        for moment in getattr(one, "dts", (one,)):
            if isinstance(moment.dt, tuple):
                begins, ends = moment.dt
                yield (
                    zones.resolved(begins, named),
                    ends if isinstance(ends, timedelta) else zones.resolved(ends, named),
                )
            else:
                yield zones.resolved(moment.dt, named)
