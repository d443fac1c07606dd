"""Values of distribution parameters: exact numbers and durations, from text or from Python values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from chronex.errors import DistributionParameterError

MICROSECONDS = 1_000_000

_NUMBER = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,12}))?", re.ASCII)
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:ms|[dhms]))+", re.ASCII)
_DURATION_PART = re.compile(r"([0-9]+)(ms|[dhms])", re.ASCII)
_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000}


@dataclass(frozen=True, slots=True)
class Exact:
    """A positive rational number, with the text it is shown as."""

    numerator: int
    denominator: int
    text: str


def read_number(name: str, value: object, most: int) -> Exact:
    """A number above 0 and at most `most`; a float counts as the shortest decimal that means it."""
    text = _plain_text(value)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise bad_parameter(name, value, f"takes a number such as 2 or 0.5, above 0 and at most {most}")
    whole, part = match[1], (match[2] or "").rstrip("0")
    numerator, denominator = int(whole + part), 10 ** len(part)
    if not 0 < numerator <= most * denominator:
        raise bad_parameter(name, value, f"must be above 0 and at most {most}")
    return Exact(numerator, denominator, f"{int(whole)}.{part}" if part else str(int(whole)))


def read_duration(name: str, value: object) -> Exact:
    """A duration above 0, in seconds: 10m, 1h30m, 500ms, a timedelta, or a bare number of seconds."""
    microseconds = _microseconds(value)
    if microseconds is None:
        raise bad_parameter(name, value, "takes a duration such as 90s, 10m or 1h30m")
    if microseconds <= 0:
        raise bad_parameter(name, value, "must be longer than 0")
    return Exact(microseconds, MICROSECONDS, duration_text(microseconds))


def duration_text(microseconds: int) -> str:
    """The shortest text of a duration, largest units first."""
    if microseconds % 1_000:
        return f"{Decimal(microseconds).scaleb(-6).normalize():f}"
    parts: list[str] = []
    for unit, size in _UNITS.items():
        count, microseconds = divmod(microseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def bad_parameter(name: str, value: object, rule: str) -> DistributionParameterError:
    return DistributionParameterError(f"{name} {rule}, not {shown(value)}", value=value)


def shown(value: object) -> str:
    """A value as an error message quotes it: short, whatever was given."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a very large number"
    if isinstance(value, str | int | float | Decimal | timedelta):
        text = repr(value[:60] if isinstance(value, str) else value)
        return text if len(text) <= 60 else text[:57] + "..."
    return f"a value of type {type(value).__name__}"


def _plain_text(value: object) -> str:
    """Digits as a person writes them, or the empty text when the value is no number."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int):
        return str(value) if 0 <= value < 10**12 else ""
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal) and value.is_finite() and -40 < value.adjusted() < 12:
        return f"{value:f}"
    return ""


def _microseconds(value: object) -> int | None:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    text = _plain_text(value)
    if match := _NUMBER.fullmatch(text):
        part = (match[2] or "").ljust(6, "0")
        return int(match[1] + part[:6]) if not part[6:].strip("0") else None
    if len(text) <= 60 and _DURATION.fullmatch(text):
        return sum(int(count) * _UNITS[unit] for count, unit in _DURATION_PART.findall(text))
    return None
