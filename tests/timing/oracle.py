"""A slow and simple second opinion on when an expression fires. It shares no code with Chronex.

It makes its own expressions: every text comes with the value sets it stands for, drawn here and never parsed.
It then looks at the clock on the wall, second by second (minute by minute where no second but 0 can match), with
datetime and zoneinfo alone. Minutes, hours and days are passed over only when the offset is the same at both ends
and nothing on the wall between them can match.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo

MONTH_NAMES = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAY_NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
HOUR, DAY = 3600, 86_400
ONE = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1)


class Days(NamedTuple):
    """One of the two day fields: `kind` is any, set, last, last-weekday, nearest, last-of, nth-of or some (of parts)."""

    kind: str
    values: frozenset[int] = frozenset()
    number: int = 0
    parts: tuple[Days, ...] = ()


ANY = Days("any")


def _any_of(found: list[Days]) -> Days:
    """A list of days: its plain values are one set, the rest stands beside it, each once."""
    sets = [days.values for days in found if days.kind == "set"]
    plain = [Days("set", frozenset().union(*sets))] if sets else []
    parts = [*plain, *sorted({days for days in found if days.kind != "set"}, key=repr)]
    return parts[0] if len(parts) == 1 else Days("some", parts=tuple(parts))


class Spec(NamedTuple):
    """What an expression means, as plain sets."""

    text: str
    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    dom: Days
    months: frozenset[int]
    dow: Days  # Sunday is 0
    repeats: bool  # fires on both passes of a doubled hour
    posix: bool = False  # a missing time is skipped, a doubled one fires once

    @property
    def step(self) -> int:
        return 60 if self.seconds == {0} else 1


# -- days -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=200_000)
def day_matches(spec: Spec, day: date) -> bool:
    if day.month not in spec.months:
        return False
    if spec.dom == ANY and spec.dow == ANY:
        return True
    by_dom = spec.dom != ANY and dom_matches(spec.dom, day)
    by_dow = spec.dow != ANY and dow_matches(spec.dow, day)
    return by_dom or by_dow


def dom_matches(dom: Days, day: date) -> bool:
    if dom.kind == "some":
        return any(dom_matches(part, day) for part in dom.parts)
    length = calendar.monthrange(day.year, day.month)[1]
    if dom.kind == "set":
        return day.day in dom.values
    wanted = dom.number if dom.kind == "nearest" else length - dom.number
    if not 1 <= wanted <= length:
        return False
    if dom.kind == "last":
        return day.day == wanted
    office_days = [d for d in range(1, length + 1) if date(day.year, day.month, d).weekday() < 5]
    return day.day == min(office_days, key=lambda d: abs(d - wanted))


def dow_matches(dow: Days, day: date) -> bool:
    if dow.kind == "some":
        return any(dow_matches(part, day) for part in dow.parts)
    weekday = day.isoweekday() % 7
    if weekday not in dow.values:
        return False
    if dow.kind == "nth-of":
        return (day.day + 6) // 7 == dow.number
    if dow.kind == "last-of":
        return day.day + 7 > calendar.monthrange(day.year, day.month)[1]
    return True


# -- the wall, second by second -------------------------------------------------------------------------------


def wall_matches(spec: Spec, wall: datetime) -> bool:
    return (
        wall.second in spec.seconds
        and wall.minute in spec.minutes
        and wall.hour in spec.hours
        and day_matches(spec, wall.date())
    )


def fires_at(spec: Spec, second: int, zone: ZoneInfo) -> bool:
    """Is this UTC second an occurrence? Looks at the wall now and at what the wall jumped over to get here."""
    now = datetime.fromtimestamp(second, zone)
    offset, before = now.utcoffset(), datetime.fromtimestamp(second - 1, zone).utcoffset()
    assert offset is not None
    assert before is not None
    if offset > before and not spec.posix:
        shown = second + offset // ONE
        first = shown - (offset - before) // ONE
        minutes = (minute for minute in range(first // 60, shown // 60 + 1) if minute_matches(spec, minute))
        missing = (range(max(first, 60 * minute), min(shown, 60 * minute + 59) + 1) for minute in minutes)
        return any(wall_matches(spec, EPOCH + ONE * wall) for walls in missing for wall in walls)
    return (spec.repeats or now.fold == 0) and wall_matches(spec, now)


def may_fire_within(spec: Spec, second: int, length: int, zone: ZoneInfo) -> bool:
    """False only when no second of [second, second + length) can be an occurrence."""
    if not is_calm(second, length, zone):
        return True
    first, last = (datetime.fromtimestamp(t, zone) for t in (second, second + length - 1))
    if not any(day_matches(spec, wall.date()) for wall in (first, last)):
        return False
    return length > HOUR or first.hour in spec.hours or last.hour in spec.hours


def is_calm(second: int, length: int, zone: ZoneInfo) -> bool:
    """The clock shows the same offset just before these seconds and just after them."""
    before, after = (datetime.fromtimestamp(t, zone).utcoffset() for t in (second - 1, second + length))
    return before == after


def possible(spec: Spec, seconds: range, zone: ZoneInfo) -> Sequence[int]:
    """Of an hour or less, the seconds whose time on the wall matches, and those around which it is set."""
    if not is_calm(seconds[0], seconds[-1] + 1 - seconds[0], zone):
        half = len(seconds) // 2
        return [*possible(spec, seconds[:half], zone), *possible(spec, seconds[half:], zone)] if half else seconds
    offset = datetime.fromtimestamp(seconds.start, zone).utcoffset()
    assert offset is not None
    ahead = offset // ONE
    return [s for s in seconds if (s + ahead) % 60 in spec.seconds and minute_matches(spec, (s + ahead) // 60)]


def minute_matches(spec: Spec, minute: int) -> bool:
    """Minutes are counted from any midnight."""
    return minute % 60 in spec.minutes and minute // 60 % 24 in spec.hours


def scan(spec: Spec, start: int, end: int, zone: ZoneInfo) -> Iterator[int]:
    """Every occurrence in [start, end], in UTC seconds, the slow way."""
    at = -(-start // spec.step) * spec.step
    busy = at  # until here the hours are asked for one by one
    while at <= end:
        hour = at // HOUR * HOUR + HOUR
        if at >= busy and at % HOUR == 0:
            if not may_fire_within(spec, at, DAY, zone):
                at += DAY
                continue
            busy = at + DAY
        if may_fire_within(spec, at, hour - at, zone):
            seconds = range(at, min(hour, end + 1), spec.step)
            yield from (second for second in possible(spec, seconds, zone) if fires_at(spec, second, zone))
        at = hour


def scan_back(spec: Spec, start: int, end: int, zone: ZoneInfo) -> Iterator[int]:
    """The same instants from `start` down to `end`."""
    above, last = start // spec.step * spec.step + spec.step, -(-end // spec.step) * spec.step
    busy = above
    while above > last:
        hour = (above - 1) // HOUR * HOUR
        if above <= busy and above % HOUR == 0:
            if not may_fire_within(spec, above - DAY, DAY, zone):
                above -= DAY
                continue
            busy = above - DAY
        if may_fire_within(spec, hour, above - hour, zone):
            found = possible(spec, range(max(hour, last), above, spec.step), zone)
            yield from (second for second in reversed(found) if fires_at(spec, second, zone))
        above = hour


def next_after(spec: Spec, second: int, zone: ZoneInfo, horizon_days: int = 366) -> int | None:
    return next(scan(spec, second + 1, second + horizon_days * DAY, zone), None)


def previous_before(spec: Spec, second: int, zone: ZoneInfo, horizon_days: int = 366) -> int | None:
    return next(scan_back(spec, second - 1, second - horizon_days * DAY, zone), None)


# -- single wall times ----------------------------------------------------------------------------------------


def first_instant(wall: datetime, zone: ZoneInfo) -> int:
    """The first UTC second at which the wall shows this time or, where it never does, a later one."""
    guess = int(wall.replace(tzinfo=UTC).timestamp()) // 900 * 900
    low, high = guess - 2 * DAY, guess + 2 * DAY

    def reached(second: int) -> bool:
        return datetime.fromtimestamp(second, zone).replace(tzinfo=None) >= wall

    # Clocks change on the quarter hour: find the first quarter that reaches the time, then the second in it.
    at = next(t for t in range(low, high, 900) if reached(t) or reached(min(t + 899, high)))
    low, high = at - 1, at + 899
    if reached(at):
        return at
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def transitions(name: str, first_year: int = 1972, last_year: int = 2099) -> tuple[int, ...]:
    """UTC seconds at which the offset changes, as zoneinfo shows them on a walk of ten-day steps."""
    zone, found = ZoneInfo(name), []
    start, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (first_year, last_year + 1))
    for begin in range(start, end, 10 * DAY):
        low, high = begin, begin + 10 * DAY
        old = datetime.fromtimestamp(low, zone).utcoffset()
        if datetime.fromtimestamp(high, zone).utcoffset() == old:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            same = datetime.fromtimestamp(middle, zone).utcoffset() == old
            low, high = (middle, high) if same else (low, middle)
        found.append(high)
    return tuple(found)


# -- expressions of its own -----------------------------------------------------------------------------------


def _walk(low: int, high: int, start: int, stop: int, step: int) -> frozenset[int]:
    """From start upwards to stop, over the end of the field if need be, every step-th value."""
    values, at = [start], start
    while at != stop:
        at = low if at == high else at + 1
        values.append(at)
    return frozenset(values[::step])


class _Field(NamedTuple):
    text: str
    values: frozenset[int]
    ranged: bool


def _spell(value: int, names: list[str] | None, low: int, rng: Random) -> str:
    if names and value - low < len(names) and rng.random() < 0.5:
        return rng.choice([str.upper, str.lower, str.title])(names[value - low])
    return f"{value:02}" if rng.random() < 0.1 else str(value)


def _element(rng: Random, low: int, high: int, names: list[str] | None, *, weekday: bool) -> _Field:
    top = 7 if weekday else high
    start, stop = rng.randint(low, top), rng.randint(low, top)
    step = rng.choice([1, 2, 3, 4, 5, 6, 7, 10, 15, 20, 25, 30, rng.randint(1, 70)])
    first, last = _spell(start, names, low, rng), _spell(stop, names, low, rng)
    kind = rng.choice(["single", "single", "range", "range/step", "star/step", "value/step"])
    if kind == "single":
        return _Field(first, frozenset([start]), False)
    if kind == "star/step":
        return _Field(f"*/{step}", frozenset(range(low, high + 1, step)), True)
    if kind == "value/step":
        return _Field(f"{first}/{step}", frozenset(range(start, top + 1, step)), True)
    every = 1 if kind == "range" else step
    text = f"{first}-{last}" + (f"/{step}" if kind == "range/step" else "")
    if start <= stop:
        return _Field(text, frozenset(range(start, stop + 1, every)), True)
    return _Field(text, _walk(low, high, 0 if weekday and start == 7 else start, stop, every), True)


def _field(rng: Random, low: int, high: int, names: list[str] | None = None, *, weekday: bool = False) -> _Field:
    elements = [_element(rng, low, high, names, weekday=weekday) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    values = frozenset().union(*(e.values for e in elements))
    if weekday:
        values = frozenset(value % 7 for value in values)
    return _Field(",".join(e.text for e in elements), values, any(e.ranged for e in elements))


def _time_field(rng: Random, high: int) -> _Field:
    kind = rng.random()
    if kind < 0.25:
        return _Field("*", frozenset(range(high + 1)), True)
    if kind < 0.6:
        value = rng.randint(0, high)
        return _Field(str(value), frozenset([value]), False)
    return _field(rng, 0, high)


def _some(rng: Random, chosen: Callable[[Random], tuple[str, Days]]) -> tuple[str, Days]:
    """One of the forms, or a list of two or three."""
    found = [chosen(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    return ",".join(text for text, _ in found), _any_of([days for _, days in found])


def _dom(rng: Random) -> tuple[str, Days]:
    kind = rng.random()
    if kind < 0.5:
        return "*", ANY
    if kind < 0.75:
        return _dom_set(rng)
    while True:
        text, days = _some(rng, lambda rng: _dom_rule(rng) if rng.random() < 0.7 else _dom_set(rng))
        kinds = {
            element.lstrip("0123456789").upper() for element in text.split(",") if not element.upper().startswith("L")
        }
        if kinds <= {"W"} or "W" not in kinds:  # `1,2W` is refused: is W meant for the 1st too?
            return text, days


def _dom_set(rng: Random) -> tuple[str, Days]:
    field = _field(rng, 1, 31)
    return field.text, Days("set", field.values)


def _dom_rule(rng: Random) -> tuple[str, Days]:
    number = rng.randint(1, 31)
    before = min(number, 30)
    return rng.choice(
        [
            ("L", Days("last")),
            ("l", Days("last")),
            ("LW", Days("last-weekday")),
            (f"L-{before}", Days("last", number=before)),
            (f"{number}W", Days("nearest", number=number)),
            (f"{number}w", Days("nearest", number=number)),
        ]
    )


def _dow(rng: Random) -> tuple[str, Days]:
    kind = rng.random()
    if kind < 0.5:
        return "*", ANY
    if kind < 0.75:
        return _dow_set(rng)
    return _some(rng, lambda rng: _dow_rule(rng) if rng.random() < 0.7 else _dow_set(rng))


def _dow_set(rng: Random) -> tuple[str, Days]:
    field = _field(rng, 0, 6, DAY_NAMES, weekday=True)
    return field.text, Days("set", field.values)


def _dow_rule(rng: Random) -> tuple[str, Days]:
    day = rng.randint(0, 7)
    name = _spell(day, DAY_NAMES, 0, rng).lstrip("0") or "0"
    only = frozenset([day % 7])
    if rng.random() < 0.5:
        return f"{name}L", Days("last-of", only)
    nth = rng.randint(1, 5)
    return f"{name}#{nth}", Days("nth-of", only, nth)


def random_spec(rng: Random, *, seconds: bool | None = None) -> Spec:
    """An expression of the language with the sets it stands for."""
    six = rng.random() < 0.3 if seconds is None else seconds
    second = _time_field(rng, 59) if six else _Field("", frozenset([0]), False)
    minute, hour = _time_field(rng, 59), _time_field(rng, 23)
    month = _Field("*", frozenset(range(1, 13)), True) if rng.random() < 0.7 else _field(rng, 1, 12, MONTH_NAMES)
    (dom_text, dom), (dow_text, dow) = _dom(rng), _dow(rng)
    text = " ".join([second.text] * six + [minute.text, hour.text, dom_text, month.text, dow_text])
    repeats = (six and second.ranged) or minute.ranged or hour.ranged
    return Spec(text, second.values, minute.values, hour.values, dom, month.values, dow, repeats)


def random_posix_spec(rng: Random) -> Spec:
    """The strict profile: five numeric fields, lists and forward ranges."""
    fields = []
    for low, high in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6)):
        if rng.random() < 0.45:
            fields.append(("*", frozenset(range(low, high + 1))))
            continue
        pairs = [sorted((rng.randint(low, high), rng.randint(low, high))) for _ in range(rng.randint(1, 2))]
        pairs = [[a, a] if rng.random() < 0.5 else [a, b] for a, b in pairs]
        text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pairs)
        fields.append((text, frozenset(v for a, b in pairs for v in range(a, b + 1))))
    minute, hour, dom, month, dow = fields
    days = [ANY if text == "*" else Days("set", values) for text, values in (dom, dow)]
    text = " ".join(text for text, _ in fields)
    return Spec(text, frozenset([0]), minute[1], hour[1], days[0], month[1], days[1], False, posix=True)


# -- a reader of its own, for tables of written expressions ---------------------------------------------------


def _read_values(text: str, low: int, high: int, names: list[str]) -> tuple[frozenset[int], bool]:
    """(values, has a star, a range or a step)."""
    top = 7 if high == 6 else high
    found: set[int] = set()

    def number(word: str) -> int:
        return names.index(word) + low if word in names else int(word)

    for element in text.split(","):
        body, slash, step = element.partition("/")
        first, dash, last = body.partition("-")
        if body == "*":
            values = list(range(low, high + 1))
        elif dash and number(first) > number(last):
            start = 0 if number(first) == 7 == top else number(first)
            values = (
                list(range(start, high + 1)) + list(range(low, number(last) + 1))
                if start
                else list(range(number(last) + 1))
            )
        else:
            values = list(range(number(first), (number(last) if dash else top if slash else number(first)) + 1))
        found.update(values[:: int(step or 1)])
    if high == 6:
        found = {value % 7 for value in found}
    return frozenset(found), any(mark in text for mark in "*-/")


def _read_dom(text: str) -> Days:
    if text == "*":
        return ANY
    if "," in text:
        return _any_of([_read_dom_part(part) for part in text.split(",")])
    return _read_dom_part(text)


def _read_dom_part(text: str) -> Days:
    if text.startswith("L"):
        weekday, before = text.endswith("W"), text.strip("LW-")
        return Days("last-weekday" if weekday else "last", number=int(before or 0))
    if text.endswith("W"):
        return Days("nearest", number=int(text[:-1]))
    return Days("set", _read_values(text, 1, 31, [])[0])


def _read_dow(text: str) -> Days:
    if text == "*":
        return ANY
    if "," in text:
        return _any_of([_read_dow_part(part) for part in text.split(",")])
    return _read_dow_part(text)


def _read_dow_part(text: str) -> Days:
    day, nth, number = text.partition("#")
    if nth:
        return Days("nth-of", _read_values(day, 0, 6, DAY_NAMES)[0], int(number))
    if text.endswith("L"):
        return Days("last-of", _read_values(text[:-1], 0, 6, DAY_NAMES)[0])
    return Days("set", _read_values(text, 0, 6, DAY_NAMES)[0])


def read(text: str, *, posix: bool = False) -> Spec:
    """The sets of a valid expression of five or six fields."""
    fields = text.upper().split()
    times = [
        _read_values(f, 0, high, []) for f, high in zip(fields[-6:-3], (59, 59, 23)[6 - len(fields) :], strict=True)
    ]
    times = [(frozenset([0]), False)] * (3 - len(times)) + times
    months = _read_values(fields[-2], 1, 12, MONTH_NAMES)[0]
    repeats = any(ranged for _, ranged in times) and not posix
    (seconds, _), (minutes, _), (hours, _) = times
    dom, dow = _read_dom(fields[-3]), _read_dow(fields[-1])
    return Spec(text, seconds, minutes, hours, dom, months, dow, repeats, posix=posix)
