"""systemd's calendar events: rule E161, their grammar, and when they elapse.

`Mon..Fri *-*-* 09:00 Europe/Berlin` becomes a meaning, with what is wrong and where. The grammar is that of
systemd.time(7): weekdays, then a date, then a time, then a zone, each part optional. Weekday AND date must match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from chronex.errors import UnknownZoneError
from chronex.expr.advice_rules import W101, W111, W112
from chronex.expr.diagnostics import ERROR, SAME_MEANING, SAME_WORD, Diagnostic, Message, Rule, diagnostic
from chronex.lint.rules import timer
from chronex.text.instants import EPOCH_ORDINAL
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted
from chronex.timing.clock_changes import wall_clock, wall_date
from chronex.timing.zones import ClockChange, Zone, load_zone, meant_zone, zone_example, zone_names

_DID_YOU_MEAN = "did you mean {meant}?"

E161 = Rule(
    "E161",
    "calendar event not understood",
    ERROR,
    "systemd refuses the calendar event, and with it the timer: weekdays, date, time and zone, in "
    "this order, as systemd.time(7) has them.",
    bad=timer("Mon..Fri 25:00"),
    good=timer("Mon..Fri 09:00"),
    messages={
        "not ASCII": Message("only ASCII letters, digits and signs are read here"),
        "empty": Message("the calendar event is empty", "write one such as daily or Mon..Fri 09:00"),
        "order": Message("{value} is not expected here", "the order is weekdays, date, time, zone"),
        "tab": Message("systemd takes no tab here", "write a blank", fix_is=SAME_MEANING),
        "blanks before the zone": Message(
            "systemd takes one blank between time and zone and refuses more", "write one", fix_is=SAME_MEANING
        ),
        "misspelt zone": Message("unknown time zone {value}", _DID_YOU_MEAN, fix_is=SAME_WORD),
        "unknown zone": Message("unknown time zone {value}", "use an IANA name such as {example}"),
        "epoch": Message("@ is followed by seconds since 1970"),
        "end of the week": Message(
            "{value} runs over the end of the week, which systemd refuses", "write {first}..Sun,Mon..{last}"
        ),
        "misspelt weekday": Message("{value} is not a weekday", _DID_YOU_MEAN, fix_is=SAME_WORD),
        "not a weekday": Message(
            "{value} is not a weekday", "a calendar event starts with weekdays, a date or a time"
        ),
        "not a date": Message("{value} is not a date", "write *-*-* as year-month-day"),
        "not a time": Message("{value} is not a time", "write hour:minute or hour:minute:second"),
        "repetition": Message("a repetition is a positive number, not {value}"),
        "shorter than a second": Message("the range {value} is shorter than a second, which systemd refuses"),
        "step too long": Message("{value}: the step reaches over the last {part}, which systemd refuses"),
        "star with a step": Message(
            "{value}: * stands alone, without a range or a step", "write {meant}", fix_is=SAME_MEANING
        ),
        "star in a range": Message("{value}: * stands alone, without a range or a step"),
        "backwards": Message("the range {value} runs backwards, which systemd refuses"),
        "not a number": Message("{value} is not a {part}"),
        "out of range": Message("{part} {value} is out of range [{low}, {high}]"),
        "list from the end": Message(
            "{value}: of days from the end systemd takes the lowest up to 28, the next up to 25, and so on",
            "write two lines OnCalendar=",
        ),
    },
)
SYSTEMD_RULES = (E161,)

# -- text to a calendar event ---------------------------------------------------------------------------------

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONG_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY_NUMBERS = {name: number for number, name in enumerate(_LONG_WEEKDAYS)} | {
    name.lower(): number for number, name in enumerate(WEEKDAYS)
}
NICKNAMES = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
    "anually": "*-01-01 00:00:00",  # as systemd once misspelt it, and goes on to read it
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
    "semi-annually": "*-01,07-01 00:00:00",
    "biannually": "*-01,07-01 00:00:00",
    "bi-annually": "*-01,07-01 00:00:00",
}
_TOKEN = re.compile(r"[^ \t]+")
_MOST_EPOCH_DIGITS = 11
_FIRST_YEAR, _LAST_YEAR = 1970, 2199  # systemd looks no further
_MICRO = 1_000_000
_DAYS_FROM_END = 28


class Chain(NamedTuple):
    """One element of a list: a value, a range, or either with a step. `stop` None and `step` 0: just `start`."""

    start: int
    stop: int | None
    step: int

    def expand(self, high: int) -> range:
        if not self.step:
            return range(self.start, (self.start if self.stop is None else self.stop) + 1)
        return range(self.start, min(high, high if self.stop is None else self.stop) + 1, self.step)


Values = tuple[Chain, ...] | None  # None is `*`


class CalendarEvent(NamedTuple):
    weekdays: int | None = None  # bit 0 is Monday
    years: Values = None
    months: Values = None
    days: Values = None
    from_end: bool = False  # days count from the end of the month
    hours: Values = (Chain(0, None, 0),)
    minutes: Values = (Chain(0, None, 0),)
    micros: Values = (Chain(0, None, 0),)
    zone: str | None = None
    at: int | None = None  # seconds since 1970, for `@…`


class _RefusedError(Exception):
    def __init__(self, case: str, text: str, start: int, /, *, fix: str | None = None, **arguments: object) -> None:
        self.diagnostic = diagnostic(E161, "OnCalendar", text, start, case, fix=fix, **arguments)


def parse_calendar(text: str) -> tuple[CalendarEvent | None, list[Diagnostic]]:
    """The event, or what is wrong with it; never raises."""
    try:
        return _parse(text), []
    except _RefusedError as error:
        return None, [error.diagnostic]


def _parse(text: str) -> CalendarEvent:
    if not text.isascii() or not text.replace("\t", " ").isprintable():
        bad = next(c for c in text if not c.isascii() or not (c.isprintable() or c == "\t"))
        raise _RefusedError("not ASCII", bad, text.index(bad))
    words = [(match[0], match.start()) for match in _TOKEN.finditer(text)]
    if not words:
        raise _RefusedError("empty", "", 0)
    if (at := text.strip().find("\t")) >= 0:
        raise _RefusedError("tab", "\t", at + len(text) - len(text.lstrip()), fix=" ")
    event = CalendarEvent()
    if len(words) > 1 and _is_zone_like(words[-1][0]):
        before, zone_at = words[-2], words[-1][1]
        blanks_at = before[1] + len(before[0])
        is_after_time = ":" in before[0] or before[0].startswith("@") or before[0].lower() in NICKNAMES
        if zone_at - blanks_at > 1 and is_after_time:
            raise _RefusedError("blanks before the zone", text[blanks_at:zone_at], blanks_at, fix=" ")
        event = event._replace(zone=_zone(*words.pop()))
    if len(words) == 1 and (nickname := NICKNAMES.get(words[0][0].lower())) is not None:
        return _parse(nickname)._replace(zone=event.zone)
    if len(words) == 1 and words[0][0].startswith("@"):
        return _epoch(*words[0])
    for reads, part in (
        (lambda word: word[0].isalpha(), _weekdays),
        (lambda word: ":" not in word, _date),
        (lambda word: ":" in word, _time),
    ):
        if words and reads(words[0][0]):
            event = part(event, *words.pop(0))
    if words:
        word, start = words[0]
        raise _RefusedError("order", word, start, value=quoted(word))
    return event


def _is_zone_like(word: str) -> bool:
    if not word[0].isalpha() or ".." in word or "," in word:
        return False
    return word.lower() not in _WEEKDAY_NUMBERS and word.partition("-")[0].lower() not in _WEEKDAY_NUMBERS


def _zone(word: str, start: int) -> str:
    if word.upper() == "UTC":
        return "UTC"  # in any case, unlike all others
    try:
        return load_zone(word).name
    except UnknownZoneError:
        meant = meant_zone(word, zone_names())
        case = "misspelt zone" if meant else "unknown zone"
        names = {"value": quoted(word), "meant": meant, "example": zone_example(word)}
        raise _RefusedError(case, word, start, fix=meant, **names) from None


def _epoch(word: str, start: int) -> CalendarEvent:
    digits = word[1:]
    if not digits.isdigit() or len(digits) > _MOST_EPOCH_DIGITS:
        raise _RefusedError("epoch", word, start)
    return CalendarEvent(at=int(digits))


def _weekdays(event: CalendarEvent, word: str, start: int) -> CalendarEvent:
    bits, at = 0, start
    for element in word.split(","):
        if element or at != start + len(word):  # a comma at the end is allowed
            bits |= _weekday_range(element, at)
        at += len(element) + 1
    return event._replace(weekdays=bits)


def _weekday_range(element: str, at: int) -> int:
    first, dots, last = element.partition(".." if ".." in element else "-")
    low = _weekday(first, at)
    if not dots:
        return 1 << low
    high = _weekday(last, at + len(first) + len(dots))
    if low > high:
        days = {"first": WEEKDAYS[low], "last": WEEKDAYS[high]}
        raise _RefusedError("end of the week", element, at, value=quoted(element), **days)
    return sum(1 << day for day in range(low, high + 1))


def _weekday(word: str, at: int) -> int:
    number = _WEEKDAY_NUMBERS.get(word.lower())
    if number is None:
        known = (*(name.capitalize() for name in _LONG_WEEKDAYS), *WEEKDAYS, *NICKNAMES)
        meant = nearest(word, known)
        case = "misspelt weekday" if meant else "not a weekday"
        raise _RefusedError(case, word, at, fix=meant, value=quoted(word), meant=meant)
    return number


def _date(event: CalendarEvent, word: str, start: int) -> CalendarEvent:
    from_end = "~" in word
    parts, at = [], start
    for part in re.split(r"[-~]", word):
        parts.append((part, at))
        at += len(part) + 1
    if len(parts) not in (2, 3) or word.count("~") > 1 or (from_end and word.rfind("~") < word.rfind("-")):
        raise _RefusedError("not a date", word, start, value=quoted(word))
    years = _values(*parts[0], _FIRST_YEAR, _LAST_YEAR, "year", _full_year) if len(parts) == 3 else None
    months = _values(*parts[-2], 1, 12, "month")
    days = _values(*parts[-1], 1, _DAYS_FROM_END if from_end else 31, "day")
    if from_end:
        _check_steps_to_the_end(days, *parts[-1])
    return event._replace(years=years, months=months, days=days, from_end=from_end)


def _check_steps_to_the_end(days: Values, text: str, start: int) -> None:
    """Days that are counted from the end of the month are stepped towards it, and must not reach over it."""
    at = start
    for chain, element in zip(days or (), text.split(","), strict=False):
        if chain.stop is None and chain.step >= chain.start:
            raise _RefusedError("step too long", element, at, value=quoted(element), part="day")
        at += len(element) + 1
    # systemd sorts them, and takes three days off the bound for each; what is there twice counts once.
    for number, chain in enumerate(sorted(set(days or ()), key=lambda chain: (chain.start, chain.stop or 0))):
        if max(chain.start, chain.stop or 0) > _DAYS_FROM_END - 3 * number:
            raise _RefusedError("list from the end", text, start, value=quoted(text))


def _full_year(text: str) -> int | None:
    """Two digits are a year from 1970 to 2069."""
    year = _number(text)
    if year is None or year >= 100:
        return year
    return year + 1900 if year >= 70 else year + 2000


def _time(event: CalendarEvent, word: str, start: int) -> CalendarEvent:
    parts, at = [], start
    for part in word.split(":"):
        parts.append((part, at))
        at += len(part) + 1
    if len(parts) not in (2, 3):
        raise _RefusedError("not a time", word, start, value=quoted(word))
    hours = _values(*parts[0], 0, 23, "hour")
    minutes = _values(*parts[1], 0, 59, "minute")
    micros: Values = (Chain(0, None, 0),)
    if len(parts) == 3:
        micros = _values(*parts[2], 0, 60 * _MICRO - 1, "second", _micros)
    return event._replace(hours=hours, minutes=minutes, micros=micros)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() and len(text) <= 6 else None


def _micros(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,2})(?:\.([0-9]{1,9}))?", text)
    if match is None:
        return None
    fraction = ((match[2] or "") + "000000000")[:9]
    return int(match[1]) * _MICRO + (int(fraction) + 500) // 1000


def _values(
    text: str, at: int, low: int, high: int, name: str, number: Callable[[str], int | None] = _number
) -> Values:
    if text == "*":
        return None
    chains = []
    for element in text.split(","):
        chains.append(_chain(element, at, (low, high), name, number))
        at += len(element) + 1
    return tuple(chains)


def _chain(element: str, at: int, bounds: tuple[int, int], name: str, number: Callable[[str], int | None]) -> Chain:
    low, high = bounds
    body, slash, step_text = element.partition("/")
    first, dots, last = body.partition("..")
    step = 0
    if slash:
        step = (_number if number is _full_year else number)(step_text) or 0
        if not step:
            raise _RefusedError("repetition", step_text, at + len(body) + 1, value=quoted(step_text))
    if first == "*":
        fix = f"{low}/{step_text}" if slash and not dots and name != "year" else None
        case = "star with a step" if fix else "star in a range"
        raise _RefusedError(case, element, at, fix=fix, value=quoted(element), meant=fix)
    start = _within(first, at, low, high, name, number)
    if not dots:
        from_end = name == "day" and high == _DAYS_FROM_END
        if step > high - start and not from_end:
            raise _RefusedError("step too long", element, at, value=quoted(element), part=name)
        return Chain(start, None, step)
    last_at = at + len(first) + 2
    stop = _numbered(last, last_at, name, number)
    if step and stop > start:
        stop -= (stop - start) % step  # the last value that the step reaches is the one that must be in range
    _check_range(stop, last, last_at, (low, high), name)
    if stop < start:
        raise _RefusedError("backwards", body, at, value=quoted(body))
    if number is _micros and not slash and stop - start < _MICRO:
        raise _RefusedError("shorter than a second", body, at, value=quoted(body))
    return Chain(start, stop, step or (_MICRO if number is _micros else 1))


def _within(text: str, at: int, low: int, high: int, name: str, number: Callable[[str], int | None]) -> int:
    value = _numbered(text, at, name, number)
    _check_range(value, text, at, (low, high), name)
    return value


def _numbered(text: str, at: int, name: str, number: Callable[[str], int | None]) -> int:
    value = number(text)
    if value is None:
        raise _RefusedError("not a number", text, at, value=quoted(text), part=name)
    return value


def _check_range(value: int, text: str, at: int, bounds: tuple[int, int], name: str) -> None:
    low, high = bounds
    if not low <= value <= high:
        top = 59 if name == "second" else high
        raise _RefusedError("out of range", text, at, value=text, part=name, low=low, high=top)


# -- when a calendar event elapses, in words and as instants --------------------------------------------------

_DAY = 86_400
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_YEAR_SECONDS = 366 * _DAY
_MOST_WALLS = 400


def judge_calendar(text: str, zone: Zone, reference_ms: int) -> tuple[Diagnostic, ...]:
    """What is wrong with the event, and what the coming clock changes do to it."""
    event, faults = parse_calendar(text)
    if event is None:
        return tuple(faults)
    schedule = CalendarSchedule(event, load_zone(event.zone) if event.zone else zone)
    if not schedule.upcoming(reference_ms, 1):
        return (diagnostic(W101, "OnCalendar", text, 0, "calendar event"),)
    return tuple(schedule.clock_findings(text, reference_ms))


def calendar_schedule(text: str, zone: Zone) -> CalendarSchedule | None:
    event, _ = parse_calendar(text)
    if event is None:
        return None
    return CalendarSchedule(event, load_zone(event.zone) if event.zone else zone)


class CalendarSchedule(NamedTuple):
    event: CalendarEvent
    zone: Zone

    # -- instants -----------------------------------------------------------------------------------------

    def upcoming(self, after_ms: int, count: int) -> list[int]:
        return list(islice(self.instants(after_ms), count))

    def instants(self, after_ms: int) -> Iterator[int]:
        if self.event.at is not None:
            if self.event.at * 1000 > after_ms:
                yield self.event.at * 1000
            return
        after = after_ms // 1000
        wall = after + min(self.zone.offset_at(after), self.zone.offset_at(after + _DAY))
        latest = after_ms
        for day in self._days(wall // _DAY):
            for micros in self._times():
                instant = self._instant(day * _DAY + micros // _MICRO)
                ms = None if instant is None else instant * 1000 + micros % _MICRO // 1000
                if ms is not None and ms > latest:
                    latest = ms
                    yield ms

    def _instant(self, wall: int) -> int | None:
        """A wall time that comes twice elapses on its first pass; one that is missing does not elapse."""
        offsets = (self.zone.offset_at(wall - _DAY), self.zone.offset_at(wall + _DAY))
        found = [wall - offset for offset in offsets if self.zone.offset_at(wall - offset) == offset]
        return min(found, default=None)

    def _days(self, first: int) -> Iterator[int]:
        """Matching days since 1970, from `first` on."""
        start = date(1970, 1, 1) + timedelta(days=max(first, 0))
        years, months = self.event.years, _numbers(self.event.months, 1, 12)
        for year in range(start.year, _LAST_YEAR + 1):
            if years is not None and not any(year in chain.expand(_LAST_YEAR) for chain in years):
                continue
            for month in months:
                for day in self._days_of_month(year, month):
                    found = date(year, month, day)
                    if found >= start and self._weekday_matches(found):
                        yield found.toordinal() - EPOCH_ORDINAL

    def _days_of_month(self, year: int, month: int) -> list[int]:
        length = _LENGTHS[month - 1] + (month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
        if self.event.from_end and self.event.days is not None:
            counted = {length + 1 - n for chain in self.event.days for n in _from_end(chain)}
            return sorted(day for day in counted if 1 <= day <= length)
        return [day for day in _numbers(self.event.days, 1, 31) if day <= length]

    def _weekday_matches(self, day: date) -> bool:
        return self.event.weekdays is None or bool(self.event.weekdays >> day.weekday() & 1)

    def _times(self) -> Iterator[int]:
        """Microseconds of the day."""
        seconds = self._microseconds()
        for hour in _numbers(self.event.hours, 0, 23):
            for minute in _numbers(self.event.minutes, 0, 59):
                base = (hour * 3600 + minute * 60) * _MICRO
                yield from (base + micro for micro in seconds)

    def _microseconds(self) -> list[int]:
        if self.event.micros is None:
            return [second * _MICRO for second in range(60)]
        found = {m for c in self.event.micros for m in islice(c.expand(60 * _MICRO - 1), 60_000)}
        return sorted(found)

    # -- clock changes ------------------------------------------------------------------------------------

    def clock_findings(self, text: str, reference_ms: int) -> Iterator[Diagnostic]:
        if self.event.at is not None or self.event.hours is None:
            return
        start = reference_ms // 1000
        seen = set[Rule]()
        for change in self.zone.changes(start, start + _YEAR_SECONDS):
            rule = W111 if change.is_gap else W112
            effect = self._effect(change)
            if effect and rule not in seen:
                seen.add(rule)
                names = {"date": wall_date(change.at + change.before), "zone": self.zone.name, "effect": effect}
                yield diagnostic(rule, "OnCalendar", text, 0, **names)

    def clock_note(self, after_ms: int) -> str:
        change = self.zone.next_change(after_ms // 1000)
        if change is None:
            return f"{self.zone.name} does not change its clock."
        effect = self._effect(change) or "no runs affected"
        return f"Clock change on {wall_date(change.at + change.before)} ({self.zone.name}): {effect}."

    def _effect(self, change: ClockChange) -> str:
        low, high = sorted((change.at + change.before, change.at + change.after))
        walls = self._walls(low, high)
        if not walls:
            return ""
        shown = wall_clock(walls[0]) + (f" and {len(walls) - 1} more" if len(walls) > 1 else "")
        several = len(walls) > 1
        if change.is_gap:
            runs = f"{len(walls)} runs are" if several else "the run is"
            return f"{shown} {'do' if several else 'does'} not exist: {runs} skipped"
        return f"{shown} {'happen' if several else 'happens'} twice: only the first pass counts"

    def _walls(self, low: int, high: int) -> list[int]:
        found: list[int] = []
        for day in islice(self._days(low // _DAY), 3):
            for micros in self._times():
                wall = day * _DAY + micros // _MICRO
                if wall >= high or len(found) >= _MOST_WALLS:
                    break
                if wall >= low and (not found or found[-1] != wall):
                    found.append(wall)
        return found

    # -- words --------------------------------------------------------------------------------------------

    def words(self) -> str:
        if self.event.at is not None:
            return f"Once at {datetime.fromtimestamp(self.event.at, UTC):%Y-%m-%d %H:%M:%S} UTC"
        parts = [self._time_words(), self._day_words(), self._month_words(), self._year_words()]
        zone = f" ({self.event.zone})" if self.event.zone else ""
        return "".join(part for part in parts if part) + zone

    def _time_words(self) -> str:
        event = self.event
        single = [_single(v) for v in (event.hours, event.minutes, event.micros)]
        if None not in single:
            hour, minute, micro = (value or 0 for value in single)
            return f"At {wall_clock(hour * 3600 + minute * 60 + micro // _MICRO)}"
        hours, minutes = _words(event.hours), _words(event.minutes)
        seconds = "" if _single(event.micros) == 0 else f", second {_words(event.micros, _MICRO)}"
        if event.hours is None and event.minutes is None:
            return f"Every minute{seconds}"
        if event.hours is None:
            return f"Every hour at minute {minutes}{seconds}"
        return f"In hour {hours}, at minute {minutes}{seconds}" if event.minutes else f"Every minute of hour {hours}"

    def _day_words(self) -> str:
        parts = ""
        if self.event.weekdays is not None:
            names = [WEEKDAYS[n] for n in range(7) if self.event.weekdays >> n & 1]
            parts = f" on {', '.join(names)}"
        if self.event.days is not None:
            which = " counted from the end of the month" if self.event.from_end else ""
            both = ", only if it is" if parts else " on"
            parts += f"{both} day {_words(self.event.days)}{which}"
        return parts

    def _month_words(self) -> str:
        if self.event.months is None:
            return ""
        return f" of {', '.join(_MONTHS[m - 1] for m in _numbers(self.event.months, 1, 12))}"

    def _year_words(self) -> str:
        return "" if self.event.years is None else f" in {_words(self.event.years)}"


def _numbers(values: Values, low: int, high: int) -> list[int]:
    if values is None:
        return list(range(low, high + 1))
    return sorted({n for chain in values for n in chain.expand(high) if low <= n <= high})


def _from_end(chain: Chain) -> range:
    """Days counted from the end of the month: a step walks towards the end, as in `~07/1`, the last seven."""
    if not chain.step or chain.stop is not None:
        return chain.expand(31)
    return range(chain.start, 0, -chain.step)


def _single(values: Values) -> int | None:
    if values is None or len(values) != 1 or values[0].stop is not None or values[0].step:
        return None
    return values[0].start


def _words(values: Values, unit: int = 1) -> str:
    if values is None:
        return "*"
    return ", ".join(_chain_words(chain, unit) for chain in values)


def _chain_words(chain: Chain, unit: int) -> str:
    def shown(value: int) -> str:
        return f"{value / unit:g}"

    text = shown(chain.start)
    if chain.stop is not None:
        text += f" to {shown(chain.stop)}"
    if chain.step and (chain.stop is None or chain.step != unit):
        text += f" and every {shown(chain.step)} from there"
    return text
