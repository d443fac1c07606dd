"""The options block: `{jitter:30s, until:2027-12-31}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from chronex.expr.diagnostics import ParseReport
from chronex.expr.iso8601 import Moment, joined_moment, parse_moment, why_no_moment
from chronex.expr.syntax_rules import E010, E015, E016, E021, E023, E024, W001, W123
from chronex.text.durations import format_duration, parse_duration, suggest_duration
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

_TAG = r"[A-Za-z][A-Za-z0-9_-]*"
_INTEGER = r"[+-]?[0-9]+"
_MAX_COUNT_DIGITS = 18


class Options(NamedTuple):
    """Durations in milliseconds; `from_` and `until` as written, resolved where the zone is known."""

    jitter: int | None = None
    stagger: int | None = None
    window: int | None = None
    from_: Moment | None = None
    until: Moment | None = None
    max: int | None = None
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        """`from:…, jitter:…`, keys in alphabetical order; empty when no option is set."""
        return ", ".join(f"{key}:{text}" for key, text in sorted(self.as_texts().items()))

    def as_texts(self) -> dict[str, str]:
        durations = {"jitter": self.jitter, "stagger": self.stagger, "window": self.window}
        texts = {key: format_duration(ms) for key, ms in durations.items() if ms is not None}
        texts |= {key: str(m) for key, m in (("from", self.from_), ("until", self.until)) if m is not None}
        if self.max is not None:
            texts["max"] = str(self.max)
        if self.tags:
            texts["tag"] = "+".join(self.tags)
        return texts

    def meaning_key(self) -> tuple[Any, ...]:
        return (self.jitter or None, *self[1:])


NO_OPTIONS = Options()


class Fragment(NamedTuple):
    """A part of the expression's text, and where it starts in the whole."""

    text: str
    start: int


def parse_options(block: Fragment, report: ParseReport) -> Options:
    """Read what stands between the brackets, reporting every fault."""
    values: dict[str, Any] = {}
    at = block.start
    for pair in block.text.split(","):
        _read_pair(_trimmed(pair, at), values, report)
        at += len(pair) + 1
    return Options(**values)


def _read_pair(pair: Fragment, values: dict[str, Any], report: ParseReport) -> None:
    if not pair.text:
        report.add(E010, "expression", pair.text, pair.start, "missing option")
        return
    key_text, colon, value_text = pair.text.partition(":")
    key = _trimmed(key_text, pair.start)
    value = _trimmed(value_text, pair.start + len(key_text) + 1)
    name = key.text.lower()
    if name not in _READERS:
        _report_unknown(key, value.text, report)
        return
    if not colon or not value.text:
        where = f"options.{name}"
        report.add(E016, where, pair.text, pair.start, "no value", value=quoted(key.text), name=name)
        return
    attribute, read = _READERS[name]
    if attribute in values:
        report.add(W123, f"options.{name}", key.text, key.start, name=name)
    result = read(name, value, report)
    if result is not None:
        values[attribute] = result


def _trimmed(text: str, start: int) -> Fragment:
    stripped = text.strip(" ")
    return Fragment(stripped, start + len(text) - len(text.lstrip(" ")))


def _report_unknown(key: Fragment, written: str, report: ParseReport) -> None:
    name, equals, value = key.text.partition("=")
    if name.lower() in ("tz", "zone", "timezone"):
        zone = written or value or "Europe/Berlin"
        report.add(E015, "options", key.text, key.start, "zone", zone=quoted(zone)[1:-1])
        return
    if equals and name.strip(" ").lower() in _READERS:
        pair = f"{name.strip(' ')}:{value.strip(' ')}"
        report.add(E015, "options", key.text, key.start, "with an equals sign", fix=pair, meant=pair)
        return
    meant = nearest(key.text, _READERS) if report.may_guess else None
    names = {"value": quoted(key.text), "meant": meant, "known": ", ".join(sorted(_READERS))}
    report.add(E015, "options", key.text, key.start, "misspelt" if meant else "unknown", fix=meant, **names)


def _read_duration(name: str, value: Fragment, report: ParseReport) -> int | None:
    ms = parse_duration(value.text)
    if ms is None:
        meant = suggest_duration(value.text)
        case = "misspelt duration" if meant else "not a duration"
        names = {"value": quoted(value.text), "meant": meant}
        report.add(E016, f"options.{name}", value.text, value.start, case, fix=meant, **names)
        return None
    if ms == 0 and name in ("window", "stagger"):
        report.add(E023 if name == "window" else E024, f"options.{name}", value.text, value.start)
        return None
    return ms


def _read_moment(name: str, value: Fragment, report: ParseReport) -> Moment | None:
    moment = parse_moment(value.text)
    if moment is None:
        why = why_no_moment(value.text)
        case, shown = "not a date" if why is None else "no such date", quoted(value.text)
        fix = joined_moment(value.text)
        report.add(E016, f"options.{name}", value.text, value.start, case, fix=fix, value=shown, why=why)
    return moment


def _read_max(name: str, value: Fragment, report: ParseReport) -> int | None:
    if not re.fullmatch(_INTEGER, value.text) or len(value.text) > _MAX_COUNT_DIGITS:
        shown = quoted(value.text)
        report.add(E016, f"options.{name}", value.text, value.start, "not a count", value=shown)
        return None
    count = int(value.text)
    if count <= 0:
        report.add(E021, f"options.{name}", value.text, value.start, "not positive", count=count)
        return None
    return count


def _read_tags(name: str, value: Fragment, report: ParseReport) -> tuple[str, ...] | None:
    tags: list[str] = []
    seen: set[str] = set()
    at = value.start
    for tag in value.text.split("+"):
        if not re.fullmatch(_TAG, tag):
            report.add(E016, f"options.{name}", tag, at, "not a tag", value=quoted(tag))
        elif tag in seen:
            report.add(W001, f"options.{name}", tag, at, tag=tag)
        tags.append(tag)
        seen.add(tag)
        at += len(tag) + 1
    return tuple(tags)


_READERS: dict[str, tuple[str, Callable[[str, Fragment, ParseReport], Any]]] = {
    "jitter": ("jitter", _read_duration),
    "stagger": ("stagger", _read_duration),
    "window": ("window", _read_duration),
    "from": ("from_", _read_moment),
    "until": ("until", _read_moment),
    "max": ("max", _read_max),
    "tag": ("tags", _read_tags),
}
OPTION_NAMES = tuple(_READERS)
