"""The six cron fields: text to a set of values held as bits."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class Anchor(Enum):
    """A day named by its place in the month rather than by a number."""

    LAST_DAY = "L"  # number = days before the last one
    LAST_WEEKDAY = "LW"  # the Monday-to-Friday day nearest to LAST_DAY
    NEAREST_WEEKDAY = "W"  # the Monday-to-Friday day nearest to day `number`
    LAST_OF_WEEKDAY = "xL"  # the last `weekday` of the month
    NTH_OF_WEEKDAY = "x#n"  # the `number`-th `weekday` of the month


class DayRule(NamedTuple):
    """`L`, `L-3`, `LW`, `15W`, `FRIL` or `MON#2`."""

    anchor: Anchor
    number: int
    weekday: int = -1


class FieldSet(NamedTuple):
    """What one field means. `text` is as written, for the canonical form and for messages.

    A day matches when its value or one of the `rules` names it. The rules are sorted, each once, so that fields that
    differ in their order alone are equal.
    """

    text: str
    values: int  # bit v is set when value v matches; Sunday is 0
    is_star: bool  # exactly `*`: the wildcard of the day-of-month OR day-of-week rule
    is_interval: bool  # has `*`, a range or a step somewhere: the interval kind of the DST rule
    rules: tuple[DayRule, ...] = ()

    @property
    def added_rules(self) -> tuple[DayRule, ...]:
        """The rules that name a day beyond the values: a list with FRI has the last Friday in it already."""
        return tuple(rule for rule in self.rules if rule.weekday < 0 or not self.values >> rule.weekday & 1)


class FieldSpec:
    """The vocabulary of one field: its range, its names, and every single value by its spelling."""

    __slots__ = ("code", "high", "low", "name", "singles", "star", "words", "wrap_high")

    def __init__(
        self,
        name: str,
        code: str,
        low: int,
        high: int,
        words: tuple[str, ...] = (),
        *,
        wrap_high: int | None = None,
    ) -> None:
        self.name = name
        self.code = code
        self.low = low
        self.high = high
        self.words = words
        self.wrap_high = high if wrap_high is None else wrap_high
        self.singles = {str(v): v for v in range(low, high + 1)}
        self.singles |= {f"{v:02}": v for v in range(low, min(high, 9) + 1)}
        self.singles |= {word: v for v, word in enumerate(words, low)}
        everything = ((2 << self.wrap_high) - 1) >> low << low
        self.star = FieldSet("*", everything, is_star=True, is_interval=True)


SECOND = FieldSpec("second", "E001", 0, 59)
MINUTE = FieldSpec("minute", "E002", 0, 59)
HOUR = FieldSpec("hour", "E003", 0, 23)
DAY_OF_MONTH = FieldSpec("dayOfMonth", "E004", 1, 31)
MONTH = FieldSpec("month", "E005", 1, 12, MONTHS)
DAY_OF_WEEK = FieldSpec("dayOfWeek", "E006", 0, 7, WEEKDAYS, wrap_high=6)  # 7 is Sunday too
FIVE_FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
SIX_FIELDS = (SECOND, *FIVE_FIELDS)
_DAY_FIELDS = (DAY_OF_MONTH, DAY_OF_WEEK)

ZERO_SECONDS = FieldSet("0", 1, is_star=False, is_interval=False)

# _EVERY[s] has bits 0, s, 2s, … up to 63; shifted to a start and cut at an end it is a stepped range.
_EVERY = [0] + [sum(1 << bit for bit in range(0, 64, step)) for step in range(1, 64)]

ELEMENT = re.compile(r"(\*|[0-9]+|[A-Z]{3})(?:-([0-9]+|[A-Z]{3}))?(?:/([0-9]+))?")
# Few fields are day rules, so these two are compiled when the first one is read.
_DOM_RULE = r"L(?:-0*([1-9]|[12][0-9]|30))?(W)?|0*([1-9]|[12][0-9]|3[01])W"
_DOW_RULE = r"(?:0*([0-7])|([A-Z]{3}))(?:(L)|#([1-5]))"

_NO_RULES: frozenset[DayRule] = frozenset()


def read_field(spec: FieldSpec, text: str) -> FieldSet | None:
    """The meaning of one field, or None when something in it is wrong (faults.py says what)."""
    if text == "*":
        return spec.star
    if not text.isascii():
        return None  # "ſun".upper() would be SUN
    values, is_interval = 0, False
    rules = _NO_RULES
    upper = text.upper()
    for element in upper.split(","):
        single = spec.singles.get(element)
        if single is not None:
            values |= 1 << single
            continue
        bits = _read_range(spec, element)
        if bits is None:
            rule = read_day_rule(spec, element)
            if rule is None:
                return spec.star._replace(text="?") if text == "?" and spec in _DAY_FIELDS else None
            rules |= {rule}
            continue
        values |= bits
        is_interval = is_interval or not element.isdigit()
    if values & 0x80 and spec is DAY_OF_WEEK:
        values = (values | 1) & 0x7F
    if not rules:
        return FieldSet(text, values, is_star=False, is_interval=is_interval)
    if values and any(rule.anchor is Anchor.NEAREST_WEEKDAY for rule in rules):
        return None  # in `1,2W` nobody can tell whether W is meant for the 1st too; other crons refuse it
    ordered = tuple(sorted(rules, key=_order_of_rules))
    return FieldSet(text, values, is_star=False, is_interval=is_interval, rules=ordered)


def read_day_rule(spec: FieldSpec, element: str) -> DayRule | None:
    """An element that is `L`, `LW`, `L-n`, `L-nW`, `nW`, `xL` or `x#n`, in upper case."""
    if spec is DAY_OF_MONTH and (match := re.fullmatch(_DOM_RULE, element)):
        before, last_weekday, day = match.groups()
        if day:
            return DayRule(Anchor.NEAREST_WEEKDAY, int(day))
        return DayRule(Anchor.LAST_WEEKDAY if last_weekday else Anchor.LAST_DAY, int(before or 0))
    if spec is DAY_OF_WEEK and (match := re.fullmatch(_DOW_RULE, element)):
        digit, word, _, nth = match.groups()
        number = spec.singles.get(digit or word)
        if number is None:
            return None
        anchor = Anchor.NTH_OF_WEEKDAY if nth else Anchor.LAST_OF_WEEKDAY
        return DayRule(anchor, int(nth or 0), number % 7)
    return None


def _order_of_rules(rule: DayRule) -> tuple[int, int, str]:
    return rule.weekday, rule.number, rule.anchor.value


def _read_range(spec: FieldSpec, element: str) -> int | None:
    """The bits of `*/n`, `a-b`, `a-b/n`, `a/n`; or of a number with leading zeros."""
    match = ELEMENT.fullmatch(element)
    if match is None:
        return None
    first, last, step_text = match.groups()
    step = 1 if step_text is None else _small_int(step_text)
    if step == 0:
        return None
    if first == "*":
        low, high = spec.low, spec.wrap_high
        if last is not None:
            return None
    else:
        start = value_of(spec, first)
        end = spec.high if last is None else value_of(spec, last)
        if start is None or end is None:
            return None
        if last is None and step_text is None:
            return 1 << start
        low, high = start, end
    return _stepped(spec, low, high, step)


def _stepped(spec: FieldSpec, low: int, high: int, step: int) -> int:
    """Bits low..high by step. A range that runs backwards wraps, and the step keeps its phase over the wrap."""
    every = _EVERY[step] if step < 64 else 1
    if low > high and low == spec.high > spec.wrap_high:
        low = spec.low  # `7-2` starts on Sunday, which is also 0: nothing to wrap
    if low <= high:
        return (every << low) & ((2 << high) - 1)
    before_wrap = spec.wrap_high - low + 1
    restart = spec.low + -before_wrap % step
    wrapped = (every << restart) & ((2 << high) - 1) if restart <= high else 0
    return (every << low) & ((2 << spec.wrap_high) - 1) | wrapped


def value_of(spec: FieldSpec, word: str) -> int | None:
    """The number a word stands for, None when out of range or unknown."""
    single = spec.singles.get(word)
    if single is not None or not word.isdigit():
        return single
    number = _small_int(word)
    return number if spec.low <= number <= spec.high else None


def _small_int(digits: str) -> int:
    """The number; 9999 stands for anything too large to matter, so that a page of digits costs nothing."""
    return int(digits) if len(digits) <= 4 or (len(digits.lstrip("0")) <= 4 and len(digits) < 500) else 9999
