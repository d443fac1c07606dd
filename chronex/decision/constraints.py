"""Which seconds `only` and `avoid` allow: clauses over the local time of the job's zone, and the text of the clauses.

The text is clauses `name=entries` separated by `;`. Repeating a name adds to it. Every error says where in the text
it is (0-based) and what may have been meant.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple, NoReturn, Protocol, TypedDict

from chronex.decision.parameters import shown
from chronex.errors import ConstraintError, NominalTimeError
from chronex.text.instants import EPOCH_ORDINAL
from chronex.timing.zones import Zone

_DAY = 86_400
_LAST_ORDINAL = date.max.toordinal()


class LocalMoment(NamedTuple):
    """What a wall clock and a calendar show; `weekday` counts from Sunday = 0."""

    ordinal: int
    month: int
    day: int
    weekday: int
    minute: int

    @property
    def hour(self) -> int:
        return self.minute // 60


class Clause(Protocol):
    """One kind of clause, with all entries of that kind."""

    @property
    def text(self) -> str: ...

    def holds(self, moment: LocalMoment) -> bool: ...


@dataclass(frozen=True, slots=True)
class FieldClause:
    """Allowed values of one field, as a bit mask."""

    kind: str
    mask: int
    text: str

    def holds(self, moment: LocalMoment) -> bool:
        return bool(self.mask >> _FIELDS[self.kind](moment) & 1)


_FIELDS = {
    "hours": lambda moment: moment.minute // 60,
    "dow": lambda moment: moment.weekday,
    "dom": lambda moment: moment.day,
    "months": lambda moment: moment.month,
    "between": lambda moment: moment.minute,
}


@dataclass(frozen=True, slots=True)
class DateClause:
    """Allowed dates, as ranges of day ordinals in order that neither touch nor overlap."""

    firsts: tuple[int, ...]
    lasts: tuple[int, ...]
    text: str

    def holds(self, moment: LocalMoment) -> bool:
        index = bisect_right(self.firsts, moment.ordinal) - 1
        return index >= 0 and moment.ordinal <= self.lasts[index]


class ClauseReport(TypedDict):
    """A clause as understood, and how many candidates it rejected."""

    clause: str
    rejected: int


class ConstraintMeta(TypedDict):
    """Every clause with its count; plain data that JSON can carry."""

    only: list[ClauseReport]
    avoid: list[ClauseReport]


@dataclass(frozen=True, slots=True)
class Constraints:
    """All kinds of `only` must hold, and no kind of `avoid` may."""

    only: tuple[Clause, ...]
    avoid: tuple[Clause, ...]

    def __bool__(self) -> bool:
        return bool(self.only or self.avoid)

    def rejecting(self, moment: LocalMoment) -> list[int]:
        """The clauses that reject this moment, counted through `only` and then `avoid`."""
        found = [i for i, clause in enumerate(self.only) if not clause.holds(moment)]
        found += [i for i, clause in enumerate(self.avoid, len(self.only)) if clause.holds(moment)]
        return found

    def report(self, rejected: list[int]) -> ConstraintMeta:
        counts = iter(rejected)
        return {
            "only": [{"clause": c.text, "rejected": next(counts)} for c in self.only],
            "avoid": [{"clause": c.text, "rejected": next(counts)} for c in self.avoid],
        }


def local_moment(zone: Zone, second: int) -> LocalMoment:
    """The local time in `zone` at this UTC second."""
    day = local_date(zone, second)
    minute = (second + zone.offset_at(second)) % _DAY // 60
    return LocalMoment(day.toordinal(), day.month, day.day, day.isoweekday() % 7, minute)


def local_date(zone: Zone, second: int) -> date:
    ordinal = (second + zone.offset_at(second)) // _DAY + EPOCH_ORDINAL
    if not 1 <= ordinal <= _LAST_ORDINAL:
        raise NominalTimeError(f"the local time in {zone.name} leaves the years 1 to 9999")
    return date.fromordinal(ordinal)


MAX_TEXT = 4_096

_DAYS = {"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6}
_MONTHS = {
    "JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6,
    "JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11, "DEC": 12,
}  # fmt: skip
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the text with its position, for error messages."""

    field: str
    text: str
    position: int

    def split(self, separator: str) -> Iterator[_Piece]:
        start = 0
        for part in self.text.split(separator):
            yield self.cut(start, start + len(part))
            start += len(part) + len(separator)

    def cut(self, start: int, end: int) -> _Piece:
        part = self.text[start:end]
        lead = len(part) - len(part.lstrip())
        return _Piece(self.field, part.strip(), self.position + start + lead)

    def refuse(self, message: str, suggestion: str | None = None, *, hint: str = "") -> NoReturn:
        raise ConstraintError(
            message,
            hint=hint,
            field=self.field,
            value=self.text,
            suggestion=suggestion,
            position=self.position,
        )


def parse_constraints(only: object, avoid: object) -> Constraints:
    """The constraints that both texts state. Raises ConstraintError."""
    return Constraints(_clauses("only", only), _clauses("avoid", avoid))


def _clauses(field: str, text: object) -> tuple[Clause, ...]:
    if not isinstance(text, str):
        message = f"clauses are text such as dow=MON-FRI, not {shown(text)}"
        raise ConstraintError(message, field=field, value=text)
    return _parse(field, text) if text else ()


# Reading takes longer than deciding, and a job's clauses are the same for each of its periods.
@lru_cache(maxsize=256)
def _parse(field: str, text: str) -> tuple[Clause, ...]:
    if len(text) > MAX_TEXT:
        _Piece(field, text[MAX_TEXT:], MAX_TEXT).refuse(f"clauses take at most {MAX_TEXT} characters")
    masks: dict[str, int] = {}
    dates: list[tuple[int, int]] = []
    for clause in _Piece(field, text, 0).split(";"):
        if not clause.text:
            continue
        kind, entries = _split_clause(clause)
        for entry in entries.split(","):
            if kind in _DATE_READERS:
                dates.append(_DATE_READERS[kind](entry))
            else:
                masks[kind] = masks.get(kind, 0) | _MASK_READERS[kind](entry)
    said = [kind for kind in _MASK_READERS if kind in masks]
    clauses: list[Clause] = [FieldClause(kind, masks[kind], _text_of(kind, masks[kind])) for kind in said]
    return (*clauses, _date_clause(dates)) if dates else tuple(clauses)


def _split_clause(clause: _Piece) -> tuple[str, _Piece]:
    name = clause.cut(0, clause.text.find("=") if "=" in clause.text else len(clause.text))
    kind = name.text.lower()
    kinds = [*_MASK_READERS, *_DATE_READERS]
    if kind not in kinds:
        close = [_OTHER_NAMES[kind]] if kind in _OTHER_NAMES else get_close_matches(kind[:40], kinds, 1, 0.5)
        hint = f"it is one of {', '.join(kinds)}"
        name.refuse(f"unknown clause {shown(name.text)}", close[0] if close else None, hint=hint)
    if "=" not in clause.text:
        clause.refuse(f"{kind} needs values", f"{kind}={_EXAMPLES[kind]}")
    return kind, clause.cut(clause.text.find("=") + 1, len(clause.text))


def _values(kind: str, low: int, high: int, names: dict[str, int]) -> Callable[[_Piece], int]:
    """A reader of one entry `a` or `a-b` of a numeric field, as a bit mask."""

    def value(piece: _Piece) -> int:
        word = piece.text.upper()
        if word in names:
            return names[word]
        if re.fullmatch("[0-9]{1,2}", word, re.ASCII) and low <= int(word) <= high:
            return int(word)
        return no_value(piece)

    def no_value(piece: _Piece) -> NoReturn:
        if not piece.text:
            piece.refuse(f"a value of {kind} is missing", f"{kind}={_EXAMPLES[kind]}")
        close = get_close_matches(piece.text[:40].upper(), names, 1, 0.5)
        allowed = f"{low} to {high}" + (f" or {', '.join(names)}" if names else "")
        message = f"{kind} has no value {shown(piece.text)}"
        piece.refuse(message, close[0] if close else None, hint=f"it takes {allowed}")

    def read(entry: _Piece) -> int:
        first, *rest = entry.split("-")
        if len(rest) > 1:
            entry.refuse(f"{shown(entry.text)} is not a range", f"{kind}={_EXAMPLES[kind]}")
        start = value(first)
        end = value(rest[0]) if rest else start
        if kind == "dow" and end < start and rest[0].text.upper() == "SUN":
            end = 7  # MON-SUN and SAT-SUN: in a range a week ends with Sunday
        if end < start:
            label = _LABELS.get(kind, str)
            highest = label(6 if kind == "dow" else high)
            two_ranges = f"{kind}={first.text}-{highest},{label(low)}-{rest[0].text}"
            entry.refuse(f"the range {shown(entry.text)} runs backwards", two_ranges)
        return (1 << end + 1) - (1 << start)

    return read


def _weekdays(entry: _Piece) -> int:
    mask = _any_weekday(entry)
    return (mask | mask >> 7) & 0x7F  # 7 is Sunday, as 0 is


def _minutes(entry: _Piece) -> int:
    parts = list(entry.split("-"))
    if len(parts) != 2:
        entry.refuse(f"between takes HH:MM-HH:MM, not {shown(entry.text)}", _EXAMPLES["between"])
    start, end = (_minute_of_day(part) for part in parts)
    if end < start:
        split = f"between={_clock(start)}-23:59;between=00:00-{_clock(end)}"
        entry.refuse(f"the range {shown(entry.text)} runs backwards", split, hint="a night takes two clauses")
    return (1 << end + 1) - (1 << start)


def _minute_of_day(piece: _Piece) -> int:
    match = _CLOCK.fullmatch(piece.text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        suggestion = "23:59" if piece.text == "24:00" else None
        piece.refuse(f"{shown(piece.text)} is no time of day", suggestion, hint="write 00:00 to 23:59")
    return int(match[1]) * 60 + int(match[2])


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _one_date(entry: _Piece) -> tuple[int, int]:
    if ".." in entry.text:
        entry.refuse(f"date takes one day, not {shown(entry.text)}", f"dates={entry.text[:40]}")
    day = _ordinal(entry)
    return day, day


def _date_range(entry: _Piece) -> tuple[int, int]:
    parts = list(entry.split(".."))
    if len(parts) != 2:
        suggestion = f"date={entry.text}" if _DATE.fullmatch(entry.text) else _EXAMPLES["dates"]
        entry.refuse(f"dates takes FIRST..LAST, not {shown(entry.text)}", suggestion)
    first, last = (_ordinal(part) for part in parts)
    if last < first:
        entry.refuse(f"the range {shown(entry.text)} runs backwards", f"dates={parts[1].text}..{parts[0].text}")
    return first, last


def _ordinal(piece: _Piece) -> int:
    if not _DATE.fullmatch(piece.text):
        piece.refuse(f"{shown(piece.text)} is no date", _EXAMPLES["date"], hint="write YYYY-MM-DD")
    try:
        return date.fromisoformat(piece.text).toordinal()
    except ValueError:
        piece.refuse(f"{shown(piece.text)} is not in the calendar")


def _text_of(kind: str, mask: int) -> str:
    if kind == "dow":
        mask = (mask & ~1) | (mask & 1) << 7  # a week is written from Monday to Sunday
    labels = _LABELS.get(kind, str)
    runs = [labels(a) if a == b and kind != "between" else f"{labels(a)}-{labels(b)}" for a, b in _runs(mask)]
    return f"{kind}={','.join(runs)}"


def _runs(mask: int) -> Iterator[tuple[int, int]]:
    """The runs of neighbouring bits that are set, lowest first."""
    start = 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        length = (~mask & mask + 1).bit_length() - 1
        yield start + gap, start + gap + length - 1
        mask >>= length
        start += gap + length


def _date_clause(days: list[tuple[int, int]]) -> DateClause:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(days):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    spans = [f"{date.fromordinal(a)}..{date.fromordinal(b)}" for a, b in merged]
    return DateClause(tuple(a for a, _ in merged), tuple(b for _, b in merged), f"dates={','.join(spans)}")


_EXAMPLES = {
    "hours": "8-20",
    "dow": "MON-FRI",
    "dom": "1-15",
    "months": "JAN,MAR-MAY",
    "between": "08:00-20:00",
    "date": "2026-12-24",
    "dates": "2026-12-24..2027-01-06",
}
# What other schedulers and people call our clauses; suggested, not accepted.
_OTHER_NAMES = {
    "day": "dow",
    "days": "dow",
    "wday": "dow",
    "weekday": "dow",
    "mday": "dom",
    "time": "between",
}
_any_weekday = _values("dow", 0, 7, _DAYS)
_MASK_READERS: dict[str, Callable[[_Piece], int]] = {
    "hours": _values("hours", 0, 23, {}),
    "dow": _weekdays,
    "dom": _values("dom", 1, 31, {}),
    "months": _values("months", 1, 12, _MONTHS),
    "between": _minutes,
}
_DATE_READERS: dict[str, Callable[[_Piece], tuple[int, int]]] = {"date": _one_date, "dates": _date_range}
_DAY_NAMES = {number: name for name, number in _DAYS.items()}
_MONTH_NAMES = {number: name for name, number in _MONTHS.items()}
_LABELS: dict[str, Callable[[int], str]] = {
    "dow": lambda day: _DAY_NAMES[day % 7],
    "months": lambda month: _MONTH_NAMES[month],
    "between": _clock,
}
