"""How each cron reads the fields of a line: the values that it will match, or where it stops and refuses the line.

The readers go through a field as the programs do, character by character, because the oddities are there: Debian's
cron leaves out what follows a value (`4~59` is 4, `FRI#2` is every Friday), a range that runs backwards is taken and
empty, BusyBox counts `*/2` of the days from 0. They share no code with Chronex's own parser, so that an import can be
proven by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from chronex.lint.cron_programs import BCRON, BSD, BUSYBOX, CRON_PROGRAMS, CRONIE, DEBIAN, SUPERCRONIC, CronProgram

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BLANKS = " \t"
_WORD = re.compile(r"[^ \t]+")
_MEANINGS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *", "@every_minute": "* * * * *",
}  # fmt: skip


class _Bounds(NamedTuple):
    low: int
    high: int
    names: tuple[str, ...] = ()


FIELD_BOUNDS = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, _MONTHS),
    _Bounds(0, 7, (*_WEEKDAYS, "sun")),
)
FIELD_NAMES = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek")


class CronField(NamedTuple):
    """What a cron makes of one field. `used` is how many of its characters count; the rest is left out."""

    text: str
    start: int
    values: frozenset[int]
    is_free: bool  # no restriction beside the other day field
    is_random: bool = False
    used: int = 0
    backwards: tuple[int, int] | None = None  # the part of the text that is a range without a value
    day_rules: tuple[str, ...] = ()  # days by their place, which `values` does not have: `l`, `15w`, `fri#2`
    other_weekday: tuple[int, int] | None = None  # the part whose number is read as Sunday and was meant otherwise


class CronReading(NamedTuple):
    """A line that the program takes. `fields` is empty for @reboot, and for what has seconds or years."""

    fields: tuple[CronField, ...]

    @property
    def is_random(self) -> bool:
        return any(field.is_random for field in self.fields)

    @property
    def ever_matches(self) -> bool:
        """False where a field is empty, as a range that runs backwards is, and no other field stands in for it: of
        two day fields that both restrict, one is enough."""
        minute, hour, day, month, weekday = (bool(field.values or field.day_rules) for field in self.fields)
        is_either = not self.fields[2].is_free and not self.fields[4].is_free
        return minute and hour and month and (day or weekday if is_either else day and weekday)


class CronRefusal(NamedTuple):
    """A line that the program does not take: which field (-1 for the whole), which part of the text, and why."""

    field: int
    start: int
    end: int
    why: str


class _StopError(Exception):
    """The program stops here. `start` and `end` are offsets in the field."""

    def __init__(self, start: int, end: int, why: str) -> None:
        self.start, self.end, self.why = start, end, why


def read_schedule(text: str, program: CronProgram) -> CronReading | CronRefusal:
    """The fields or the nickname of a line, without user and command, as this program reads them."""
    words = list(_WORD.finditer(text))
    if not words:
        return CronRefusal(-1, 0, len(text), "no schedule")
    if words[0][0].startswith("@"):
        return _nickname(words, program)
    if program is SUPERCRONIC and len(words) in (6, 7):
        return _supercronic_with_seconds(words)
    if len(words) != 5:
        return CronRefusal(-1, words[0].start(), words[-1].end(), "field count")
    found = [_field(number, word, program) for number, word in enumerate(words)]
    refusal = next((field for field in found if isinstance(field, CronRefusal)), None)
    return refusal or CronReading(tuple(field for field in found if isinstance(field, CronField)))


def refusals_of(text: str, program: CronProgram) -> list[CronRefusal]:
    """Every field that the program refuses, though it stops at the first itself."""
    reading = read_schedule(text, program)
    if isinstance(reading, CronReading):
        return []
    if reading.field < 0 or len(words := list(_WORD.finditer(text))) != 5:
        return [reading]
    found = (_field(number, word, program) for number, word in enumerate(words))
    return [field for field in found if isinstance(field, CronRefusal)]


def _field(number: int, word: re.Match[str], program: CronProgram) -> CronField | CronRefusal:
    written, start = word[0], word.start()
    if number == 0 and program is CRONIE and written.startswith("-"):
        written, start = written[1:], start + 1  # "do not log this job"
    try:
        return read_cron_field(written, number, program.key, start)
    except _StopError as stop:
        return CronRefusal(number, start + stop.start, start + max(stop.end, stop.start + 1), stop.why)


def _nickname(words: list[re.Match[str]], program: CronProgram) -> CronReading | CronRefusal:
    word = words[0]
    if word[0] not in program.nicknames:
        if program is BSD and word[0][1:].isdigit():
            return CronReading(())  # @600: that many seconds after the last run has ended
        return CronRefusal(-1, word.start(), word.end(), "nickname")
    if word[0] not in _MEANINGS:
        return CronReading(())
    reading = read_schedule(_MEANINGS[word[0]], program)
    assert isinstance(reading, CronReading)
    return reading


@lru_cache(maxsize=4096)
def read_cron_field(text: str, number: int, program: str, start: int = 0) -> CronField:
    """One of the five fields, which begins at `start`. Raises _StopError where the program refuses it."""
    return _field_of(text, number, CRON_PROGRAMS[program])._replace(start=start)


def _field_of(text: str, number: int, program: CronProgram) -> CronField:
    if program is BUSYBOX:
        return _busybox(text, number)
    if program is SUPERCRONIC:
        return _supercronic(text, number)
    if program is BCRON:
        return _bcron(text, number)
    return _VixieReader(text, FIELD_BOUNDS[number], program).read()


# -- Vixie's cron and its descendants: Debian, cronie, the BSDs ------------------------------------------------------

# Debian's cron keeps a character in a signed byte, where 255 is the -1 that means the end of the file.
_BYTE_255 = "\udcff"


class _VixieReader:
    """`list = range {"," range}`; a name or number is a run of letters and digits, whatever comes after it."""

    def __init__(self, text: str, bounds: _Bounds, program: CronProgram) -> None:
        self.text, self.bounds, self.program = text, bounds, program
        self.at = 0
        self.values: set[int] = set()
        self.is_random = False
        self.backwards: tuple[int, int] | None = None

    def read(self) -> CronField:
        if self.program is DEBIAN and (at := self.text.find(_BYTE_255)) >= 0:
            raise _StopError(at, at + 1, "not a value")
        while True:
            self._range()
            if self._next != ",":
                break
            self.at += 1
        if self.bounds.high == 7:
            self.values = {value % 7 for value in self.values}
        is_free = self.text.startswith("*")
        return CronField(
            self.text, 0, frozenset(self.values), is_free, self.is_random, self.at, self.backwards
        )  # fmt: skip

    @property
    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _range(self) -> None:
        start, (low, high, _) = self.at, self.bounds
        if self._next == "*":
            self.at += 1
            self._expect("/,")
            self._stepped(start, low, high)
        elif self._next == "~" and self.program is CRONIE:
            self._random(start, low)
        else:
            first = self._number(",-~")
            if self._next == "~" and self.program is CRONIE:
                self._random(start, first)
            elif self._next == "-":
                self.at += 1
                self._stepped(start, first, self._number("/,"))
            elif self._next == "/" and self.program is BSD:
                self._stepped(start, first, high)
            elif self._next == "/":
                raise _StopError(start, self._end_of_element(), "step on one value")
            else:
                self._add(first, start)

    def _number(self, endings: str, *, is_step: bool = False) -> int:
        start = self.at
        while self._next.isascii() and self._next.isalnum():
            self.at += 1
        word = self.text[start : self.at].lower()
        if not word:
            raise _StopError(start, start + 1, "not a value")
        if not is_step and word in self.bounds.names:
            value = self.bounds.names.index(word) + self.bounds.low
        elif word.isdigit():
            value = _as_c_int(word)
        else:
            raise _StopError(start, self.at, "not a value")
        if self._next == "/" and "/" not in endings and self.program is CRONIE:
            why = "random with a step" if "~" in self.text[:start] else "step on one value"
            raise _StopError(self._start_of_element(start), self._end_of_element(), why)
        self._expect(endings)
        return value

    def _expect(self, endings: str) -> None:
        """cronie refuses what does not belong to a value; the others leave out the rest of the field."""
        if self.program is CRONIE and self._next and self._next not in endings:
            raise _StopError(self._start_of_element(self.at), self._end_of_element(), "not a value")

    def _stepped(self, start: int, first: int, last: int) -> None:
        step = 1
        if self._next == "/":
            self.at += 1
            at = self.at
            step = self._number(",", is_step=True)
            if step <= 0:
                raise _StopError(at, self.at, "step")
        low, high, _ = self.bounds
        if self.program is DEBIAN and not (low <= first <= high and low <= last <= high):
            raise _StopError(start, self.at, "out of range")
        if first > last:
            self.backwards = (start, self.at)
        for value in range(first, last + 1, step):  # ends at the first value out of range
            self._add(value, start)

    def _random(self, start: int, first: int) -> None:
        self.at += 1
        low, high, _ = self.bounds
        last = high if self._next in ("", ",") else self._number(",")
        if first > last:
            raise _StopError(start, self.at, "random backwards")
        if not (low <= first <= high and low <= last <= high):
            raise _StopError(start, self.at, "out of range")
        self.is_random = True
        self.values.update(range(first, last + 1))

    def _add(self, value: int, start: int) -> None:
        if not self.bounds.low <= value <= self.bounds.high:
            raise _StopError(start, self.at, "out of range")
        self.values.add(value)

    def _start_of_element(self, at: int) -> int:
        return self.text.rfind(",", 0, at) + 1

    def _end_of_element(self) -> int:
        end = self.text.find(",", self.at)
        return len(self.text) if end < 0 else end


def _as_c_int(digits: str) -> int:
    """As atoi has it: a number too large for 32 bits comes out as another one."""
    digits = digits.lstrip("0") or "0"
    number = (
        min(int(digits[:20]), (1 << 63) - 1) & 0xFFFF_FFFF
    )  # what has 20 digits is beyond 64 bits, as all longer ones
    return number - (1 << 32) if number >= 1 << 31 else number


# -- BusyBox -----------------------------------------------------------------------------------------------------

# How many values an array has, what is subtracted from a number, and the names.
_BUSYBOX_FIELDS = (
    (60, 0, ()), (24, 0, ()), (32, 0, ()), (12, 1, _MONTHS), (7, 0, _WEEKDAYS),
)  # fmt: skip
_BUSYBOX_ELEMENT = re.compile(r"((?:(?:[0-9]+|[A-Za-z]{3})-)?\*)|([0-9]+|[A-Za-z]{3})(?:-([0-9]+|[A-Za-z]{3}))?")
_BUSYBOX_STEP = re.compile(r"/([+-]?[0-9]*)")
_MOST_TURNS = 1023


def _busybox(text: str, number: int) -> CronField:
    """A range goes round until it meets its end, so that `22-6` is a night; days are counted from 0 to 31."""
    size, offset, _ = _BUSYBOX_FIELDS[number]
    values: set[int] = set()
    at = 0
    while True:
        start = at
        match = _BUSYBOX_ELEMENT.match(text, at)
        if match is None:
            raise _StopError(at, at + 1, "not a value")
        at = match.end()
        if match[1]:
            first, last = 0, size - 1
        else:
            first = _busybox_value(match, 2, number)
            last = first if match[3] is None else _busybox_value(match, 3, number)
        step = 1
        if (slash := _BUSYBOX_STEP.match(text, at)) is not None:
            step, at = int(slash[1]) if slash[1].strip("+-") else 0, slash.end()
        if first < 0 or not 0 <= last < size:
            raise _StopError(start, at, "out of range")
        values.update(_around(first % size, last, step, size))
        if text[at : at + 1] != ",":
            break
        at += 1
    if at < len(text):
        raise _StopError(start, len(text), "not a value")
    is_free = len(values) == size
    return CronField(text, 0, frozenset(value + offset for value in values), is_free, used=len(text))


def _busybox_value(match: re.Match[str], group: int, number: int) -> int:
    _, offset, names = _BUSYBOX_FIELDS[number]
    word = match[group].lower()
    if word.isdigit():
        return _as_c_int(word) - offset
    if word not in names:
        raise _StopError(match.start(group), match.end(group), "not a value")
    return names.index(word)


def _around(first: int, last: int, step: int, size: int) -> Iterator[int]:
    """Every step-th value from the first to the last, over the end of the field; below 1 the first alone."""
    wait, value = 1, first
    for _ in range(min(size, _MOST_TURNS)):
        wait -= 1
        if wait == 0:
            yield value
            wait = step
        if value == last:
            return
        value = (value + 1) % size


# -- bcron ----------------------------------------------------------------------------------------------------------

_BCRON_NAMES = ((), (), (), _MONTHS, _WEEKDAYS)
_BCRON_ELEMENT = re.compile(r"(\*)|([0-9]+|[A-Za-z]+)(?:-([0-9]+|[A-Za-z]+))?")
_BCRON_STEP = re.compile(r"/([0-9]+)")


def _bcron(text: str, number: int) -> CronField:
    """Commas may be left out or too many (`5*`, `1,`, `1,,2`), a name may be written out, and a step on one value has
    no effect. Both day fields must match, whatever its manual says."""
    low, high, _ = FIELD_BOUNDS[number]
    values: set[int] = set()
    at = 0
    while at < len(text):
        start = at
        match = _BCRON_ELEMENT.match(text, at)
        if match is None:
            raise _StopError(at, at + 1, "not a value")
        first, last = (low, high) if match[1] else _bcron_bounds(match, number)
        at, step = match.end(), 1
        if text[at : at + 1] == "/":
            slash = _BCRON_STEP.match(text, at)
            if slash is None or not int(slash[1]):
                raise _StopError(at, at + 1, "step")  # of 0 it would loop for ever
            step, at = int(slash[1]), slash.end()
        if not low <= first <= last <= high:
            raise _StopError(start, at, "backwards" if last < first else "out of range")
        values.update(value % 7 if high == 7 else value for value in range(first, last + 1, step))
        while text[at : at + 1] == ",":
            at += 1
    is_free = number in (2, 4) or text.startswith("*")
    return CronField(text, 0, frozenset(values), is_free, used=len(text))


def _bcron_bounds(match: re.Match[str], number: int) -> tuple[int, int]:
    first = _bcron_value(match, 2, number)
    return first, first if match[3] is None else _bcron_value(match, 3, number)


def _bcron_value(match: re.Match[str], group: int, number: int) -> int:
    word = match[group].lower()
    if word.isdigit():
        return _as_c_int(word)
    names = _BCRON_NAMES[number]
    if word[:3] not in names or (len(word) > 3 and word not in _LONG_NAMES):
        raise _StopError(match.start(group), match.end(group), "not a value")
    return names.index(word[:3]) + FIELD_BOUNDS[number].low


# -- supercronic ---------------------------------------------------------------------------------------------------

_SUPERCRONIC_FIELDS = (*FIELD_BOUNDS[:4], _Bounds(0, 6, _WEEKDAYS))
_LONG_NAMES = (
    "january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december",
    "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
)  # fmt: skip
_SUPERCRONIC_ELEMENT = re.compile(r"(\*|\?)|([0-9]+|[a-z]+)(?:-([0-9]+|[a-z]+))?")
_SUPERCRONIC_DAYS = (
    re.compile(r"l|lw|(?:0?[1-9]|[12][0-9]|3[01])w"),
    re.compile(r"(?:0?[0-7]|[a-z]{3,9})(?:l|#[1-5])"),
)
# Its parser looks weekdays up in a table without a zero in front, and takes what is not there for 0; months had the
# same fault until January 2023. 7 is in that table as 0, also at the end of a range and in front of a step.
_OTHER_WEEKDAY = re.compile(r"(?<![0-9/#])0[1-6]|(?<![0-9/])00?-0?7(?:/[0-9]+)?|(?<![0-9/-])0?7/[0-9]+")


def _supercronic(text: str, number: int) -> CronField:
    bounds = _SUPERCRONIC_FIELDS[number]
    values: set[int] = set()
    day_rules: list[str] = []
    backwards: tuple[int, int] | None = None
    is_free, at = False, 0
    for element in text.lower().split(","):
        if element in ("*", "?"):
            is_free = True
            values.update(range(bounds.low, bounds.high + 1))
        elif number in (2, 4) and _SUPERCRONIC_DAYS[number == 4].fullmatch(element):
            day_rules.append(re.sub("^0[0-7]", "0", element) if number == 4 else element)
        elif element and (found := _supercronic_range(element, bounds, at)):
            values.update(found)
        elif element:
            backwards = (at, at + len(element))
        at += len(element) + 1
    if not text.strip(","):
        raise _StopError(0, len(text), "not a value")
    other = _OTHER_WEEKDAY.search(text) if number == 4 else None
    rules, part = tuple(day_rules), other.span() if other else None
    return CronField(text, 0, frozenset(values), is_free, False, len(text), backwards, rules, part)


def _supercronic_range(element: str, bounds: _Bounds, at: int) -> range:
    body, slash, step_text = element.partition("/")
    match = _SUPERCRONIC_ELEMENT.fullmatch(body)
    step = int(step_text) if step_text.isascii() and step_text.isdigit() and len(step_text) <= 2 else 0
    if match is None or (slash and not 1 <= step <= bounds.high):
        raise _StopError(at, at + len(element), "not a value" if match is None else "step")
    if match[1]:
        if match[1] == "?":
            raise _StopError(at, at + len(element), "not a value")
        return range(bounds.low, bounds.high + 1, step or 1)
    first = _supercronic_value(match[2], bounds, at)
    last = bounds.high if slash and match[3] is None else first
    if match[3] is not None:
        last = _supercronic_value(match[3], bounds, at)
    if last < first and not slash:  # with a step it is taken, and empty
        raise _StopError(at, at + len(element), "backwards")
    return range(first, last + 1, step or 1)


def _supercronic_value(word: str, bounds: _Bounds, at: int) -> int:
    """A number of one or two digits, or a name, short or written out."""
    if word.isdigit() and len(word) <= 2:
        value = int(word)
        if bounds.high == 6 and (value == 7 or (word[0] == "0" and value < 7)):
            return 0
        if bounds.low <= value <= bounds.high:
            return value
        raise _StopError(at, at + len(word), "out of range")
    if word[:3] in bounds.names and (len(word) == 3 or word in _LONG_NAMES):
        return bounds.names.index(word[:3]) + bounds.low
    raise _StopError(at, at + len(word), "not a value")


_YEAR = "(?:19[7-9][0-9]|20[0-9]{2})"
_WIDE = tuple(re.compile(rf"[ \t]*([^ \t]+(?:[ \t]+[^ \t]+){{{more}}})(?=[ \t])") for more in (6, 5))


def wide_schedule(line: str, program: CronProgram) -> re.Match[str] | None:
    """The columns of a line whose schedule has more than five of them.

    supercronic takes as many as it can read, and what is left is the command.
    """
    for pattern in _WIDE if program is SUPERCRONIC else ():
        match = pattern.match(line)
        if match is not None and isinstance(read_schedule(match[1], program), CronReading):
            return match
    return None


def _supercronic_with_seconds(words: list[re.Match[str]]) -> CronReading | CronRefusal:
    """Six fields have a year at the end, seven also a second at the beginning; their next runs are not worked out."""
    fields, years = words[:-1], words[-1]
    if not re.fullmatch(r"(?:[*?]|YEAR(?:-YEAR)?)(?:/[0-9]+)?(?:,[0-9/*?-]+)*".replace("YEAR", _YEAR), years[0]):
        return CronRefusal(-1, years.start(), years.end(), "not a value")
    numbers = [0, 0, 1, 2, 3, 4] if len(fields) == 6 else [0, 1, 2, 3, 4]
    for number, word in zip(numbers, fields, strict=True):
        try:
            read_cron_field(word[0], number, SUPERCRONIC.key)
        except _StopError as stop:
            return CronRefusal(number, word.start() + stop.start, word.start() + stop.end, stop.why)
    return CronReading(())
