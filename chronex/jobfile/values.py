"""Readers of single values: text, choices, numbers, durations, sizes, names, zones."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from chronex.errors import UnknownZoneError
from chronex.jobfile.entries import Entry, NamedZone, read_each, read_table
from chronex.model.job import KEY_FIELDS, MAX_KEY_BYTES, MAX_NAME, unknown_key_fields
from chronex.text.durations import UNITS, format_duration, parse_duration, suggest_duration
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted
from chronex.timing.zones import load_zone, meant_zone, zone_example, zone_names

LOCAL = "local"
OFF = "off"
# No policy needs to wait longer, and a sum of a few such durations fits in 64 bits by far.
MAX_WAIT_MS = 36_500 * UNITS["d"]

_NAME = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_DURATION_SHAPE = re.compile(r"(?:[0-9]+(?:ms|[smhd]))+", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,12}) ?([KMG]i?)?B?", re.ASCII)
_SIZE_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

Choice = TypeVar("Choice", bound=StrEnum)


# Where the digits between quotes would be wrong as well.
_EXAMPLES = {"schedule": "0 3 * * *", "timezone": "Europe/Berlin", "directory": "/srv/app", "name": "backup"}


def text(entry: Entry) -> str:
    if not isinstance(entry.value, str):
        example = _EXAMPLES.get(entry.label) or _digits(entry.value) or "…"
        entry.refuse_type("text", entry.assignment(f'"{example}"'))
    if "\0" in entry.value:
        at = entry.value.index("\0")
        entry.refuse(f"{entry.label} has a NUL character", "remove it", "J019", entry.span_inside(at, at + 1))
    return entry.value


def filled_text(entry: Entry) -> str:
    value = text(entry)
    if not value.strip():
        entry.refuse(f"{entry.label} is empty", "write something, or remove the key", "J013")
    return value


def key_template(entry: Entry) -> str:
    """The text of an idempotency key, with placeholders such as {scheduled}."""
    value = filled_text(entry)
    unknown = unknown_key_fields(value)
    if unknown:
        meant = nearest(unknown[0], KEY_FIELDS)
        known = ", ".join(f"{{{field}}}" for field in KEY_FIELDS)
        hint = f"did you mean {{{meant}}}?" if meant else f"there are {known}"
        fix = _quoted(value.replace(f"{{{unknown[0]}}}", f"{{{meant}}}")) if meant else None
        entry.refuse(f"{entry.label} has no place for {quoted('{' + unknown[0] + '}')}", hint, "J013", fix=fix)
    if len(value.encode()) > MAX_KEY_BYTES:
        entry.refuse(f"{entry.label} has {len(value.encode())} bytes; at most {MAX_KEY_BYTES}", "shorten it", "J014")
    return value


def _quoted(value: str | None) -> str | None:
    """Text as it stands in TOML and JSON alike; None where that takes escapes, or there is none."""
    is_plain = value is not None and value.isprintable() and not set(value) & set('"\\')
    return f'"{value}"' if is_plain else None


def _digits(value: object) -> str:
    """A number as its writer could put it in quotes; nothing for other values and absurd numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return str(value) if isinstance(value, float) or value.bit_length() <= 64 else ""


def yes_or_no(entry: Entry) -> bool:
    if not isinstance(entry.value, bool):
        entry.refuse_type("true or false", entry.assignment("true"))
    return entry.value


# Readers with bounds are values, so that the schema of the file can be made from them (json_schema.py).


@dataclass(frozen=True, slots=True)
class WordReader:
    """One of a few words."""

    names: tuple[str, ...]

    def __call__(self, entry: Entry) -> str:
        value, names = entry.value, self.names
        if not isinstance(value, str):
            entry.refuse_type(f"one of {', '.join(names)}", entry.assignment(f'"{names[0]}"'))
        if value not in names:
            meant = nearest(value.replace("-", "_"), names) or nearest(value, names)
            hint = f"did you mean {meant}?" if meant else f"it is one of {', '.join(names)}"
            entry.refuse(f"{entry.label} cannot be {quoted(value)}", hint, "J013", fix=_quoted(meant))
        return value


@dataclass(frozen=True, slots=True)
class ChoiceReader(Generic[Choice]):
    """A member of an enumeration, by its word."""

    kind: type[Choice]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.value for member in self.kind)

    def __call__(self, entry: Entry) -> Choice:
        return self.kind(WordReader(self.names)(entry))


@dataclass(frozen=True, slots=True)
class WholeNumberReader:
    low: int
    high: int

    def __call__(self, entry: Entry) -> int:
        value = entry.value
        if not isinstance(value, int) or isinstance(value, bool):
            entry.refuse_type("a whole number", entry.assignment(f"{max(self.low, 1)}"))
        if not self.low <= value <= self.high:
            _refuse_range(entry, value, f"{self.low} to {self.high}")
        return value


@dataclass(frozen=True, slots=True)
class NumberReader:
    low: float
    high: float

    def __call__(self, entry: Entry) -> float:
        value = entry.value
        if not isinstance(value, int | float) or isinstance(value, bool):
            entry.refuse_type("a number", entry.assignment(f"{self.high if self.high == 1 else 2.0}"))
        if (isinstance(value, float) and math.isnan(value)) or not self.low <= value <= self.high:
            _refuse_range(entry, value, f"{self.low:g} to {self.high:g}")
        return float(value)


def choice_of(kind: type[Choice]) -> ChoiceReader[Choice]:
    return ChoiceReader(kind)


def one_of(*names: str) -> WordReader:
    return WordReader(names)


def whole_number(low: int, high: int) -> WholeNumberReader:
    return WholeNumberReader(low, high)


def number(low: float, high: float) -> NumberReader:
    return NumberReader(low, high)


def _refuse_range(entry: Entry, value: float, allowed: str) -> None:
    huge = isinstance(value, int) and value.bit_length() > 64
    shown = "a number this large" if huge else repr(value)
    entry.refuse(f"{entry.label} cannot be {shown}", f"it goes from {allowed}", "J014")


def duration(entry: Entry) -> int:
    """Milliseconds of a text such as 1h30m; 0s is a duration too."""
    value = entry.value
    if not isinstance(value, str):
        seconds = suggest_duration(_digits(value)) or "30s"
        entry.refuse_type("a duration in text", entry.assignment(f'"{seconds}"'))
    found = parse_duration(value)
    if found is None and not _DURATION_SHAPE.fullmatch(value):
        meant = suggest_duration(value)
        hint = f"did you mean {meant}?" if meant else "write a number and ms, s, m, h or d, such as 90s or 1h30m"
        entry.refuse(f"{entry.label}: {quoted(value)} is not a duration", hint, "J015", fix=_quoted(meant))
    if found is None or found > MAX_WAIT_MS:
        hint = f"the longest is {format_duration(MAX_WAIT_MS)}"
        entry.refuse(f"{entry.label}: {quoted(value)} is too long", hint, "J015")
    return found


def positive_duration(entry: Entry) -> int:
    # A bare 0 is no duration either; what would make it one is refused, too.
    found = 0 if type(entry.value) is int and entry.value == 0 else duration(entry)
    if found == 0:
        entry.refuse(f"{entry.label} must be longer than 0", "write for example 30s", "J015")
    return found


def duration_or_off(entry: Entry) -> int | None:
    """A limit, or None for the word that lifts an inherited one."""
    return None if entry.value == OFF else positive_duration(entry)


def size(entry: Entry) -> int:
    """Bytes: a whole number, or text such as 10MiB."""
    value = entry.value
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if value >= 0 and value.bit_length() <= 64 else "-"
    if not isinstance(value, str):
        entry.refuse_type("a size", entry.assignment('"10MiB"'))
    match = _SIZE.fullmatch(value)
    found = int(match[1]) * _SIZE_UNITS[match[2] or ""] if match else 0
    if not 1024 <= found <= 2**50:
        hint = "write bytes, or for example 512KiB or 10MiB; at least 1KiB"
        entry.refuse(f"{entry.label} cannot be {quoted(str(entry.value)[:100])}", hint, "J014")
    return found


def name(entry: Entry) -> str:
    value = text(entry)
    check_name(entry, value, entry.label)
    return value


def check_name(entry: Entry, value: str, what: str, *, at_key: bool = False) -> None:
    """Names of jobs and tasks: they become file names, keys of the store and arguments of commands."""
    span = entry.key_span if at_key else None
    if len(value) > MAX_NAME:
        entry.refuse(f"{what}: the name has {len(value)} characters", f"at most {MAX_NAME} fit", "J017", span)
    if not _NAME.fullmatch(value):
        better = re.sub(r"[^a-zA-Z0-9_-]+", "-", value).strip("-")
        hint = f"use letters, digits, _ and - only, such as {better or 'nightly-backup'}"
        entry.refuse(f"{quoted(value)} is not a name", hint, "J017", span)
    if value.startswith("-"):
        hint = f"a command line would take it for an option; write {value.strip('-') or 'nightly-backup'}"
        entry.refuse(f"{quoted(value)} is not a name", hint, "J017", span)


def zone(entry: Entry) -> str:
    """An IANA name; `local` is the host's zone, by its name."""
    value = text(entry)
    entry.sheet.zones.append(NamedZone(value, entry.node.value))
    wanted = entry.sheet.host_zone if value == LOCAL else value
    try:
        load_zone(wanted)
    except UnknownZoneError:
        if value == LOCAL:
            message = f"the host's time zone {quoted(wanted)} is unknown"
            entry.refuse(message, "name one such as Europe/Berlin", "J016")
        meant = meant_zone(value, (LOCAL, *zone_names()))
        hint = f"did you mean {meant}?" if meant else f"use an IANA name such as {zone_example(value)}, UTC, or local"
        entry.refuse(f"unknown time zone {quoted(value)}", hint, "J016", fix=_quoted(meant))
    return wanted


def texts(entry: Entry) -> tuple[str, ...]:
    """A list of texts that are not empty, none twice."""
    entry.expect_list(entry.assignment('["…"]'))
    found: list[str] = read_each(entry, filled_text)
    refuse_duplicates(entry, found)
    return tuple(found)


def refuse_duplicates(entry: Entry, found: list[str]) -> None:
    seen = set[str]()
    for index, value in enumerate(found):
        if value in seen:
            entry.child(index).refuse(f"{quoted(value)} is given twice", "remove one of them", "J018")
        seen.add(value)


def text_table(entry: Entry) -> dict[str, str]:
    """Free keys with texts as values."""
    table = entry.expect_table(entry.assignment('{ key = "text" }'))
    for key in table:
        child = entry.child(key)
        if not key.strip() or "\0" in key:
            child.report(
                f"{entry.label} has a key that is empty or has a NUL", "give it a name", "J017", child.key_span
            )
    return read_table(entry, dict.fromkeys(table, text))


def codes(entry: Entry) -> tuple[int, ...]:
    """Exit codes."""
    entry.expect_list(entry.assignment("[0, 75]"))
    found: list[int] = read_each(entry, whole_number(0, 255))
    return tuple(dict.fromkeys(found))
