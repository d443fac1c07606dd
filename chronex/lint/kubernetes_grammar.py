"""How Kubernetes and Argo Workflows read a schedule: the parser of robfig/cron 3, element by element.

It shares no code with Chronex's own parser. What it takes is given back in Chronex's language, so that next runs can
be told of texts that Chronex itself would not take: `5,,6`, `?` in any field, `*-5`, `@every 1.5h`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BLANKS = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")  # of Go's strings.Fields
_NUMBER = re.compile(r"\+?[0-9]{1,18}")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 6, _WEEKDAYS),
)  # fmt: skip
_NICKNAMES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_SECOND = 10**9
_UNITS = {
    "ns": 1, "us": 1_000, "\u00b5s": 1_000, "\u03bcs": 1_000, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}  # fmt: skip
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_DURATION = re.compile(rf"([+-]?)((?:{_PART.pattern})+|0)")
_MOST_NANOSECONDS = (1 << 63) - 1


class KubernetesReading(NamedTuple):
    """`text` says the same in Chronex's language; None where no value is left and it never runs."""

    text: str | None
    misread: str | None = None  # the part of the written text that it takes for something else
    taken_as: str = ""


class _NotTakenError(Exception):
    """The parser stops here."""


def read_for_kubernetes(text: str) -> KubernetesReading | None:
    """What the controller makes of the text; None where it refuses it."""
    if text.startswith("@"):
        return _nickname(text)
    words = [word for word in _BLANKS.split(text) if word]
    if len(words) != len(_BOUNDS):
        return None
    try:
        fields = [_field(word, number) for number, word in enumerate(words)]
    except _NotTakenError:
        return None
    pairs = zip(words, fields, strict=True)
    odd = next((word for word, field in pairs if field == "" or "*-" in word or "?-" in word), None)
    taken = None if "" in fields else " ".join(fields)
    return KubernetesReading(taken, odd, fields[words.index(odd)] if odd else "")


def _nickname(text: str) -> KubernetesReading | None:
    if text in _NICKNAMES:
        return KubernetesReading(text)
    if not text.startswith("@every "):
        return None
    written = text.removeprefix("@every ")
    match = _DURATION.fullmatch(written)
    if match is None:
        return None
    exact = sum(_nanoseconds(number, unit) for number, unit in _PART.findall(match[2]))
    if exact > _MOST_NANOSECONDS:
        return None
    signed = -exact if match[1] == "-" else exact
    seconds = max(signed // _SECOND, 1)
    taken = f"@every {seconds}s"
    is_other = signed != seconds * _SECOND
    return KubernetesReading(taken, written if is_other else None, f"{seconds}s")


def _nanoseconds(number: str, unit: str) -> int:
    whole, _, fraction = number.partition(".")
    scale = _UNITS[unit]
    return int(whole or 0) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)


def _field(word: str, number: int) -> str:
    elements = [_element(element, number) for element in word.split(",") if element]
    return "*" if "*" in elements else ",".join(elements)


def _element(element: str, number: int) -> str:
    body, *steps = element.split("/")
    first, *others = body.split("-")
    low, high, names = _BOUNDS[number]
    is_star = first in ("*", "?")
    if len(steps) > 1 or (len(others) > 1 and not is_star):
        raise _NotTakenError
    start = low if is_star else _value(first, low, names)
    end = high if is_star else _value(others[0], low, names) if others else start
    step = _number(steps[0]) if steps else 1
    if steps and not others:
        end = high
    if start < low or end > high or start > end or step == 0:
        raise _NotTakenError
    if is_star:
        return "*" if step == 1 else f"*/{step}"
    return f"{start}-{end}/{step}" if steps else f"{start}-{end}" if others else str(start)


def _value(word: str, low: int, names: tuple[str, ...]) -> int:
    return names.index(word.lower()) + low if word.lower() in names else _number(word)


def _number(word: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise _NotTakenError
    return int(word)
