"""systemd's calendar events: `Mon..Fri *-*-* 09:00 Europe/Berlin` to a meaning, with what is wrong and where.

The grammar is that of systemd.time(7): weekdays, then a date, then a time, then a zone, each part optional.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from chronex.errors import UnknownZoneError
from chronex.expr.diagnostics import Diagnostic, diagnostic
from chronex.lint.rules.systemd_rules import W161
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted
from chronex.timing.zones import load_zone, zone_names

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
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
}
_TOKEN = re.compile(r"[^ \t]+")
_MOST_EPOCH_DIGITS = 11
_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_MICRO = 1_000_000


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
        self.diagnostic = diagnostic(W161, "OnCalendar", text, start, case, fix=fix, **arguments)


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
    event = CalendarEvent()
    if len(words) > 1 and _is_zone_like(words[-1][0]):
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
    try:
        return load_zone(word).name
    except UnknownZoneError:
        meant = nearest(word, zone_names())
        case = "misspelt zone" if meant else "unknown zone"
        raise _RefusedError(case, word, start, fix=meant, value=quoted(word), meant=meant) from None


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
    years = _values(*parts[0], 0, _LAST_YEAR, "year") if len(parts) == 3 else None
    months = _values(*parts[-2], 1, 12, "month")
    days = _values(*parts[-1], 1, 28 if from_end else 31, "day")
    return event._replace(years=_full_years(years), months=months, days=days, from_end=from_end)


def _full_years(years: Values) -> Values:
    def full(year: int) -> int:
        return year + 1900 if 70 <= year < 100 else year + 2000 if year < 70 else year

    if years is None:
        return None
    return tuple(Chain(full(c.start), None if c.stop is None else full(c.stop), c.step) for c in years)


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
        step = number(step_text) or 0
        if not step:
            raise _RefusedError("repetition", step_text, at + len(body) + 1, value=quoted(step_text))
    if first == "*":
        fix = f"{low}/{step_text}" if slash and not dots else None
        case = "star with a step" if fix else "star in a range"
        raise _RefusedError(case, element, at, fix=fix, value=quoted(element), meant=fix)
    start = _within(first, at, low, high, name, number)
    if not dots:
        return Chain(start, None, step)
    stop = _within(last, at + len(first) + 2, low, high, name, number)
    if stop < start:
        raise _RefusedError("backwards", body, at, value=quoted(body))
    return Chain(start, stop, step or number("1") or 1)


def _within(text: str, at: int, low: int, high: int, name: str, number: Callable[[str], int | None]) -> int:
    value = number(text)
    if value is None:
        raise _RefusedError("not a number", text, at, value=quoted(text), part=name)
    if not low <= value <= high:
        top = 59 if name == "second" else high
        raise _RefusedError("out of range", text, at, value=text, part=name, low=low, high=top)
    return value
