"""Text to meaning. The parser never stops at the first fault and never raises on any text."""

from __future__ import annotations

import re
from typing import NamedTuple

from chronex.expr.diagnostics import ParseReport, Rule
from chronex.expr.fields import FIVE_FIELDS, SIX_FIELDS, ZERO_SECONDS, FieldSet, FieldSpec, read_field
from chronex.expr.iso8601 import (
    Moment,
    Period,
    joined_moment,
    parse_moment,
    parse_period,
    period_between,
    why_no_moment,
)
from chronex.expr.meaning import ALIASES, AtStart, Body, Cron, Every, Meaning, Once, Repeating
from chronex.expr.option_block import NO_OPTIONS, Fragment, Options, parse_options
from chronex.expr.syntax_rules import E010, E011, E012, E013, E014, E017, E021
from chronex.text.durations import is_too_long, parse_duration, suggest_duration
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

MAX_TEXT = 4096
DIALECTS = ("chronex", "posix")
_WORD = r"[^ ]+"
_OPENERS = {"{": "}", "<": ">"}
_FOREIGN_ZONE_KEYS = ("CRON_TZ=", "cron_tz=", "tz=", "Tz=", "TIMEZONE=", "timezone=")
_WEEKDAY_STAR = FIVE_FIELDS[4].star
_KNOWN_WORDS = (*ALIASES, "@every", "@once", "@start")
_REPEATING = r"[Rr]([0-9]*)/([^/]*)(?:/([^/]*))?"
_BARE_PERIOD = r"P[0-9T][^ ]*"
_MOST_REPETITIONS_DIGITS = 12


class Parsed(NamedTuple):
    """What was understood of a text; `meaning` is None when there are errors."""

    text: str
    meaning: Meaning | None
    report: ParseReport
    zone: Fragment | None
    body: Fragment
    block: Fragment | None


def parse_text(text: str, dialect: str = "chronex") -> Parsed:
    """Read an expression. Unknown zones are reported by the layer that has zone data."""
    if not isinstance(text, str):
        raise TypeError(f"an expression is a str, not {type(text).__name__}")
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {dialect!r}; the dialects are {' and '.join(DIALECTS)}")
    report = ParseReport()
    if not _is_readable(text, report):
        return Parsed(text, None, report, None, Fragment(text, 0), None)
    plain = text.replace("\t", " ")
    if dialect == "posix":
        return _parse_posix(text, plain, report)
    zone, rest = _split_zone(plain, report)
    body, block = _split_block(rest, report)
    options = parse_options(block, report) if block is not None else NO_OPTIONS
    meaning_body = _read_body(body, report)
    meaning = _meaning(meaning_body, zone, options, report)
    return Parsed(text, meaning, report, zone, body, block)


def _meaning(body: Body | None, zone: Fragment | None, options: Options, report: ParseReport) -> Meaning | None:
    if body is None or report.errors:
        return None
    return Meaning(body, zone.text if zone else None, options)


# -- the parts of a text --------------------------------------------------------------------------------------


def _is_readable(text: str, report: ParseReport) -> bool:
    """Is it short enough, and are its characters printable? Otherwise each bad character is reported."""
    if len(text) > MAX_TEXT:
        report.add(E010, "expression", "", 0, "too long", length=len(text), limit=MAX_TEXT)
        return False
    if text.replace("\t", " ").isprintable():
        return True
    import unicodedata

    for at, char in enumerate(text):
        if char != "\t" and not char.isprintable():
            if "\udc80" <= char <= "\udcff":  # a byte of a crontab that is no UTF-8, as Python hands it on
                report.add(E010, "expression", char, at, "byte", fix="", number=ord(char) - 0xDC00)
                continue
            name = unicodedata.name(char, "control character").lower()
            case, fix = ("blank", " ") if char.isspace() else ("character", "")
            report.add(E010, "expression", char, at, case, fix=fix, number=ord(char), name=name)
    return False


def _split_zone(text: str, report: ParseReport) -> tuple[Fragment | None, Fragment]:
    """`TZ=…` at the start, and what follows it."""
    start = len(text) - len(text.lstrip(" "))
    if not text.startswith("TZ=", start):
        if not text.startswith(_FOREIGN_ZONE_KEYS, start):
            return None, Fragment(text, 0)
        key = text[start : text.index("=", start) + 1]
        report.add(E010, "expression", key, start, "foreign zone key", fix="TZ=", value=quoted(key))
        end = text.find(" ", start)
        return None, Fragment(text[end:], end) if end >= 0 else Fragment("", len(text))
    name_start = start + 3
    name_end = text.find(" ", name_start)
    if name_end < 0:
        name_end = len(text)
    zone = Fragment(text[name_start:name_end], name_start)
    if not zone.text:
        report.add(E011, "timezone", text[start:name_end], start, "missing")
        return None, Fragment(text[name_end:], name_end)
    return zone, Fragment(text[name_end:], name_end)


def _split_block(rest: Fragment, report: ParseReport) -> tuple[Fragment, Fragment | None]:
    """The schedule body, and what stands between the option brackets."""
    text = rest.text
    opener = min((at for at in (text.find("{"), text.find("<")) if at >= 0), default=-1)
    if opener < 0:
        for bracket in "}>":
            if (at := text.find(bracket)) >= 0:
                at_bracket = rest.start + at
                report.add(E010, "expression", bracket, at_bracket, "no opening bracket", value=quoted(bracket))
                return Fragment(text[:at], rest.start), None
        return rest, None
    body = Fragment(text[:opener], rest.start)
    return body, _block_content(text, opener, rest.start, report)


def _block_content(text: str, opener: int, offset: int, report: ParseReport) -> Fragment | None:
    wanted = _OPENERS[text[opener]]
    end = next((at for at in range(opener + 1, len(text)) if text[at] in "{}<>"), None)
    if end is None:
        block = text[opener:].rstrip(" ")
        report.add(E010, "expression", block, offset + opener, "not closed", wanted=quoted(wanted))
        return Fragment(text[opener + 1 :], offset + opener + 1) if text[opener + 1 :].strip(" ") else None
    stray = text[end]
    if stray != wanted:
        fix = wanted if stray in "}>" else None
        brackets = {"opener": quoted(text[opener]), "wanted": quoted(wanted), "value": quoted(stray)}
        report.add(E010, "expression", stray, offset + end, "other bracket", fix=fix, **brackets)
    tail = text[end + 1 :]
    if tail.strip(" "):
        lead = len(tail) - len(tail.lstrip(" "))
        report.add(E010, "expression", tail.strip(" "), offset + end + 1 + lead, "after the options")
    content = Fragment(text[opener + 1 : end], offset + opener + 1)
    if not content.text.strip(" "):
        report.add(E010, "expression", text[opener : end + 1], offset + opener, "empty options", fix="")
        return None
    return content


# -- the schedule body ----------------------------------------------------------------------------------------


def _read_body(body: Fragment, report: ParseReport) -> Body | None:
    trimmed = body.text.strip(" ")
    start = body.start + len(body.text) - len(body.text.lstrip(" "))
    if not trimmed:
        report.add(E010, "expression", trimmed, start, "no schedule")
        return None
    if trimmed[0] == "@":
        alias = trimmed.lower()
        if alias in ALIASES:
            return _ALIAS_BODIES[alias]
        return _read_word(Fragment(trimmed, start), report)
    if trimmed[0] in "Rr" and "/" in trimmed:
        return _read_repeating(Fragment(trimmed, start), report)
    if trimmed[0] == "P" and re.fullmatch(_BARE_PERIOD, trimmed):
        period = _read_period(Fragment(trimmed, start), report)
        return None if period is None else Repeating(None, None, period)
    return _read_cron(body, report)


def _report_foreign(body: Fragment, report: ParseReport) -> bool:
    from chronex.expr.foreign_forms import report_foreign  # only a text that is no expression needs it

    start = body.start + len(body.text) - len(body.text.lstrip(" "))
    return report_foreign(Fragment(body.text.strip(" "), start), report)


def _read_cron(body: Fragment, report: ParseReport) -> Cron | None:
    words = body.text.split()
    specs: tuple[FieldSpec, ...]
    if len(words) == 5:
        specs, found = FIVE_FIELDS, [ZERO_SECONDS]
    elif len(words) == 6:
        specs, found = SIX_FIELDS, []
    else:
        if not _report_foreign(body, report):
            _report_field_count(body, words, report)
        return None
    for spec, word in zip(specs, words, strict=True):
        read = read_field(spec, word)
        if read is None:
            if not _report_foreign(body, report):
                _report_fields(body, specs, report)
            return None
        found.append(read)
    return _cron(found, has_seconds=len(words) == 6)


def _cron(found: list[FieldSet], *, has_seconds: bool, alias: str | None = None) -> Cron:
    second, minute, hour, day, month, weekday = found
    return Cron(second, minute, hour, day, month, weekday, has_seconds, alias)


def _report_fields(body: Fragment, specs: tuple[FieldSpec, ...], report: ParseReport) -> None:
    from chronex.expr.faults import report_field  # only a text with a fault needs it

    for spec, match in zip(specs, re.finditer(_WORD, body.text), strict=True):
        if read_field(spec, match[0]) is None:
            report_field(spec, match[0], body.start + match.start(), report)


def _report_field_count(body: Fragment, words: list[str], report: ParseReport) -> None:
    count = len(words)
    case, fix = "field count", None
    if count == 7:
        case = "seven fields"
    elif count > 7:
        case = "with a command"
    elif count == 1 and words[0].lower() in {alias[1:] for alias in ALIASES}:
        case, fix = "nickname without @", f"@{words[0].lower()}"
    trimmed = body.text.strip(" ")
    start = body.start + len(body.text) - len(body.text.lstrip(" "))
    report.add(E010, "expression", trimmed, start, case, fix=fix, count=count, meant=fix)


# -- aliases --------------------------------------------------------------------------------------------------


def _alias_body(alias: str) -> Cron:
    fields = [read_field(spec, word) for spec, word in zip(FIVE_FIELDS, ALIASES[alias].split(), strict=True)]
    return _cron([ZERO_SECONDS, *(f for f in fields if f is not None)], has_seconds=False, alias=alias)


_ALIAS_BODIES = {alias: _alias_body(alias) for alias in ALIASES}


# -- @every, @once and repeating intervals --------------------------------------------------------------------


def _read_word(body: Fragment, report: ParseReport) -> Every | Once | AtStart | None:
    """`@every …`, `@once …` or `@start`; anything else that starts with @ is reported."""
    word, _, rest = body.text.partition(" ")
    value = Fragment(rest.strip(" "), body.start + len(body.text) - len(rest.lstrip(" ")))
    match word.lower():
        case "@every":
            return _read_every(value, report)
        case "@once":
            return _read_once(value, report)
        case "@start" if not value.text:
            return AtStart()
        case lowered if lowered in ALIASES or lowered == "@start":
            report.add(E010, "expression", value.text, value.start, "after a nickname", nickname=lowered)
        case "@reboot":
            report.add(E010, "expression", word, body.start, "@reboot", fix="@start")
        case lowered if lowered.startswith("@every") and parse_duration(word[6:]):
            fix = f"@every {word[6:]}"
            report.add(E010, "expression", word, body.start, "no blank", fix=fix, value=quoted(word), meant=fix)
        case _:
            meant = nearest(word, _KNOWN_WORDS)
            case = "misspelt nickname" if meant else "unknown nickname"
            names = {"value": quoted(word), "meant": meant, "known": ", ".join(_KNOWN_WORDS)}
            report.add(E010, "expression", word, body.start, case, fix=meant, **names)
    return None


def _read_every(value: Fragment, report: ParseReport) -> Every | None:
    if not value.text:
        report.add(E013, "every", value.text, value.start, "missing")
        return None
    if value.text.startswith("-"):
        report.add(E013, "every", value.text, value.start, "zero")
        return None
    low_text, dash, high_text = value.text.partition("-")
    low = _read_positive(Fragment(low_text, value.start), report)
    if not dash:
        return None if low is None else Every(low)
    high = _read_positive(Fragment(high_text, value.start + len(low_text) + 1), report)
    if low is None or high is None:
        return None
    if low >= high:
        report.add(E014, "every", value.text, value.start)
        return None
    return Every(low, high)


def _read_positive(span: Fragment, report: ParseReport) -> int | None:
    ms = parse_duration(span.text)
    if ms is None:
        _report_duration(E013, "every", span, report)
    elif ms == 0:
        report.add(E013, "every", span.text, span.start, "zero")
        return None
    return ms


def _report_duration(rule: Rule, where: str, span: Fragment, report: ParseReport) -> None:
    meant = suggest_duration(span.text)
    case = "too long" if is_too_long(span.text) else "misspelt duration" if meant else "not a duration"
    report.add(rule, where, span.text, span.start, case, fix=meant, value=quoted(span.text), meant=meant)


def _read_once(value: Fragment, report: ParseReport) -> Once | None:
    if value.text.startswith("+"):
        span = Fragment(value.text[1:], value.start + 1)
        ms = parse_duration(span.text)
        if ms is None:
            _report_duration(E017, "once", span, report)
        elif ms == 0:
            report.add(E017, "once", span.text, span.start, "zero")
        else:
            return Once(None, ms)
        return None
    moment = parse_moment(value.text)
    if moment is None or moment.is_date:
        _report_moment("once", value, moment, report)
        return None
    return Once(moment)


def _report_moment(where: str, span: Fragment, date: Moment | None, report: ParseReport) -> None:
    """E012: a date where a time is needed too, a day or time that does not exist, or no moment at all."""
    why = why_no_moment(span.text)
    fix = f"{span.text}T00:00:00" if date else joined_moment(span.text)
    case = where if why is None else "no such moment"
    report.add(E012, where, span.text, span.start, case, fix=fix, value=quoted(span.text), why=why)


def _read_repeating(body: Fragment, report: ParseReport) -> Repeating | None:
    """`R5/2026-01-01T00:00:00Z/P1M`, `R5/P1M`, `R5/start/end` or `R5/P1M/end`."""
    match = re.fullmatch(_REPEATING, body.text)
    if match is None or (match[3] is None and not match[2].startswith("P")):
        report.add(E010, "expression", body.text, body.start, "repeating interval")
        return None
    first = Fragment(match[2], body.start + match.start(2))
    second = None if match[3] is None else Fragment(match[3], body.start + match.start(3))
    count = _read_repetitions(Fragment(match[1], body.start + 1), report, is_anchored=second is None)
    if second is None:
        period = _read_period(first, report)
        found = None if period is None else Repeating(count, None, period)
    elif first.text.startswith("P"):
        period, end = _read_period(first, report), _read_edge(second, report)
        found = None if period is None or end is None else Repeating(count, None, period, end)
    else:
        found = _read_started(count, first, second, report)
    return None if report.errors else found


def _read_started(count: int | None, first: Fragment, second: Fragment, report: ParseReport) -> Repeating | None:
    """With a start, and a period or an end: the distance between start and end is the period."""
    start = _read_edge(first, report)
    if second.text.startswith("P") or parse_moment(second.text) is None:
        period = _read_period(second, report)
        return None if start is None or period is None else Repeating(count, start, period)
    end = _read_edge(second, report)
    if start is None or end is None:
        return None
    if start.offset is None and end.offset is not None:
        report.add(E012, "repeating", first.text, first.start, "offset at the end only", value=quoted(first.text))
        return None
    if end.offset is None:  # as ISO 8601 has it, the end takes the offset of the start
        end = end._replace(offset=start.offset)
    between = period_between(start, end)
    if between is None:
        report.add(E013, "repeating", second.text, second.start, "end before start")
        return None
    return Repeating(count, start, between)


def _read_repetitions(span: Fragment, report: ParseReport, *, is_anchored: bool) -> int | None:
    """None for no end. An anchored interval fires at its repetitions alone, so that it needs one."""
    if len(span.text) > _MOST_REPETITIONS_DIGITS:
        report.add(E021, "repeating", span.text, span.start, "too many", value=quoted(span.text))
    elif span.text and is_anchored and int(span.text) == 0:
        report.add(E021, "repeating", span.text, span.start, "not positive", count=0)
    elif span.text:
        return int(span.text)
    return None


def _read_edge(span: Fragment, report: ParseReport) -> Moment | None:
    """The start or the end; a date alone is its midnight."""
    moment = parse_moment(span.text)
    if moment is None:
        _report_moment("repeating", span, None, report)
    return None if moment is None else moment._replace(is_date=False)


def _read_period(span: Fragment, report: ParseReport) -> Period | None:
    period = parse_period(span.text)
    if period is None:
        report.add(E013, "repeating", span.text, span.start, "period", value=quoted(span.text))
    return period


# -- the posix dialect ----------------------------------------------------------------------------------------


def _parse_posix(text: str, plain: str, report: ParseReport) -> Parsed:
    from chronex.expr.faults import report_posix_field

    body = Fragment(plain, 0)
    words = plain.split()
    found = [ZERO_SECONDS]
    if len(words) != 5:
        start = len(plain) - len(plain.lstrip(" "))
        report.add(E010, "expression", plain.strip(" "), start, "field count in POSIX", count=len(words))
        return Parsed(text, None, report, None, body, None)
    for spec, match in zip(FIVE_FIELDS, re.finditer(_WORD, plain), strict=True):
        report_posix_field(spec, match[0], match.start(), report)
        read = read_field(spec, match[0])
        found.append(read or _WEEKDAY_STAR)
    meaning = None if report.errors else Meaning(_cron(found, has_seconds=False), dialect="posix")
    return Parsed(text, meaning, report, None, body, None)
