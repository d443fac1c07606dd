"""Text to meaning. The parser never stops at the first fault and never raises on any text."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from chronex.expr.diagnostics import Report
from chronex.expr.faults import report_field, report_posix_field
from chronex.expr.fields import FIVE_FIELDS, SIX_FIELDS, ZERO_SECONDS, FieldSet, FieldSpec, read_field
from chronex.expr.iso8601 import parse_moment, parse_period
from chronex.expr.meaning import ALIASES, Body, Cron, Every, Meaning, Once, Repeating
from chronex.expr.option_block import NO_OPTIONS, Fragment, Options, parse_options
from chronex.text.durations import parse_duration, suggest_duration
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

MAX_TEXT = 4096
DIALECTS = ("chronex", "posix")
_WORD = re.compile(r"[^ ]+")
_OPENERS = {"{": "}", "<": ">"}
_FOREIGN_ZONE = re.compile(r"(?:CRON_TZ|cron_tz|tz|Tz|TIMEZONE|timezone)=")
_WEEKDAY_STAR = FIVE_FIELDS[4].star
_KNOWN_WORDS = (*ALIASES, "@every", "@once")
_REPEATING = re.compile(r"[Rr]([0-9]*)/([^/]*)/([^/]*)")
_MOST_REPETITIONS_DIGITS = 12


class Parsed(NamedTuple):
    """What was understood of a text; `meaning` is None when there are errors."""

    text: str
    meaning: Meaning | None
    report: Report
    zone: Fragment | None
    body: Fragment
    block: Fragment | None


def parse_text(text: str, dialect: str = "chronex") -> Parsed:
    """Read an expression. Unknown zones are reported by the layer that has zone data."""
    if not isinstance(text, str):
        raise TypeError(f"an expression is a str, not {type(text).__name__}")
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {dialect!r}; the dialects are {' and '.join(DIALECTS)}")
    report = Report()
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


def _meaning(body: Body | None, zone: Fragment | None, options: Options, report: Report) -> Meaning | None:
    if body is None or report.errors:
        return None
    return Meaning(body, zone.text if zone else None, options)


# -- the parts of a text --------------------------------------------------------------------------------------


def _is_readable(text: str, report: Report) -> bool:
    """Is it short enough, and are its characters printable? Otherwise each bad character is reported."""
    if len(text) > MAX_TEXT:
        message = f"the expression has {len(text)} characters; at most {MAX_TEXT} are read"
        report.error("E010", "expression", message, "", 0)
        return False
    if text.replace("\t", " ").isprintable():
        return True
    messages = {char: _not_allowed(char) for char in set(text) if char != "\t" and not char.isprintable()}
    for at, char in enumerate(text):
        if char in messages:
            report.error("E010", "expression", messages[char], char, at, fix=" " if char.isspace() else "")
    return False


def _not_allowed(char: str) -> str:
    name = unicodedata.name(char, "control character").lower()
    return f"character U+{ord(char):04X} ({name}) is not allowed; use a plain space between fields"


def _split_zone(text: str, report: Report) -> tuple[Fragment | None, Fragment]:
    """`TZ=…` at the start, and what follows it."""
    start = len(text) - len(text.lstrip(" "))
    if not text.startswith("TZ=", start):
        if (foreign := _FOREIGN_ZONE.match(text, start)) is None:
            return None, Fragment(text, 0)
        message = f"a zone is written TZ=Area/City, not {quoted(foreign[0])}"
        report.error("E010", "expression", message, foreign[0], start, fix="TZ=")
        end = text.find(" ", start)
        return None, Fragment(text[end:], end) if end >= 0 else Fragment("", len(text))
    name_start = start + 3
    name_end = text.find(" ", name_start)
    if name_end < 0:
        name_end = len(text)
    zone = Fragment(text[name_start:name_end], name_start)
    if not zone.text:
        message = "the zone after TZ= is missing; write TZ=Europe/Berlin with no space in it"
        report.error("E011", "timezone", message, text[start:name_end], start)
        return None, Fragment(text[name_end:], name_end)
    return zone, Fragment(text[name_end:], name_end)


def _split_block(rest: Fragment, report: Report) -> tuple[Fragment, Fragment | None]:
    """The schedule body, and what stands between the option brackets."""
    text = rest.text
    opener = min((at for at in (text.find("{"), text.find("<")) if at >= 0), default=-1)
    if opener < 0:
        for bracket in "}>":
            if (at := text.find(bracket)) >= 0:
                message = f"{quoted(bracket)} has no opening bracket; options are written {{key:value}}"
                report.error("E010", "expression", message, bracket, rest.start + at)
                return Fragment(text[:at], rest.start), None
        return rest, None
    body = Fragment(text[:opener], rest.start)
    return body, _block_content(text, opener, rest.start, report)


def _block_content(text: str, opener: int, offset: int, report: Report) -> Fragment | None:
    wanted = _OPENERS[text[opener]]
    stray = re.compile(r"[{}<>]").search(text, opener + 1)
    if stray is None:
        message = f"the options block is not closed; {quoted(wanted)} is missing"
        report.error("E010", "expression", message, text[opener:].rstrip(" "), offset + opener)
        return Fragment(text[opener + 1 :], offset + opener + 1) if text[opener + 1 :].strip(" ") else None
    end = stray.start()
    if stray[0] != wanted:
        message = f"{quoted(text[opener])} is closed by {quoted(wanted)}, not {quoted(stray[0])}"
        fix = wanted if stray[0] in "}>" else None
        report.error("E010", "expression", message, stray[0], offset + end, fix=fix)
    tail = text[end + 1 :]
    if tail.strip(" "):
        lead = len(tail) - len(tail.lstrip(" "))
        message = "nothing may follow the options block"
        report.error("E010", "expression", message, tail.strip(" "), offset + end + 1 + lead)
    content = Fragment(text[opener + 1 : end], offset + opener + 1)
    if not content.text.strip(" "):
        message = "the options block is empty; remove it"
        report.error("E010", "expression", message, text[opener : end + 1], offset + opener, fix="")
        return None
    return content


# -- the schedule body ----------------------------------------------------------------------------------------


def _read_body(body: Fragment, report: Report) -> Body | None:
    trimmed = body.text.strip(" ")
    start = body.start + len(body.text) - len(body.text.lstrip(" "))
    if not trimmed:
        message = "the schedule is missing; write five fields such as 0 9 * * MON-FRI, or @daily"
        report.error("E010", "expression", message, trimmed, start)
        return None
    if trimmed[0] == "@":
        alias = trimmed.lower()
        if alias in ALIASES:
            return _ALIAS_BODIES[alias]
        return _read_word(Fragment(trimmed, start), report)
    if trimmed[0] in "Rr" and "/" in trimmed:
        return _read_repeating(Fragment(trimmed, start), report)
    return _read_cron(body, report)


def _read_cron(body: Fragment, report: Report) -> Cron | None:
    words = body.text.split()
    specs: tuple[FieldSpec, ...]
    if len(words) == 5:
        specs, found = FIVE_FIELDS, [ZERO_SECONDS]
    elif len(words) == 6:
        specs, found = SIX_FIELDS, []
    else:
        _report_field_count(body, words, report)
        return None
    for spec, word in zip(specs, words, strict=True):
        read = read_field(spec, word)
        if read is None:
            _report_fields(body, specs, report)
            return None
        found.append(read)
    return _cron(found, has_seconds=len(words) == 6)


def _cron(found: list[FieldSet], *, has_seconds: bool, alias: str | None = None) -> Cron:
    second, minute, hour, day, month, weekday = found
    return Cron(second, minute, hour, day, month, weekday, has_seconds, alias)


def _report_fields(body: Fragment, specs: tuple[FieldSpec, ...], report: Report) -> None:
    for spec, match in zip(specs, _WORD.finditer(body.text), strict=True):
        if read_field(spec, match[0]) is None:
            report_field(spec, match[0], body.start + match.start(), report)


def _report_field_count(body: Fragment, words: list[str], report: Report) -> None:
    count = len(words)
    hint, fix = "", None
    if count == 7:
        hint = "; a seventh field for years is not supported, use {from:…, until:…}"
    elif count > 7:
        hint = "; a command does not belong to the expression"
    elif count == 1 and words[0].lower() in {alias[1:] for alias in ALIASES}:
        fix = f"@{words[0].lower()}"
        hint = f"; did you mean {fix}?"
    trimmed = body.text.strip(" ")
    start = body.start + len(body.text) - len(body.text.lstrip(" "))
    report.error("E010", "expression", f"expected 5 or 6 fields, got {count}{hint}", trimmed, start, fix=fix)


# -- aliases --------------------------------------------------------------------------------------------------


def _alias_body(alias: str) -> Cron:
    fields = [read_field(spec, word) for spec, word in zip(FIVE_FIELDS, ALIASES[alias].split(), strict=True)]
    return _cron([ZERO_SECONDS, *(f for f in fields if f is not None)], has_seconds=False, alias=alias)


_ALIAS_BODIES = {alias: _alias_body(alias) for alias in ALIASES}


# -- @every, @once and repeating intervals --------------------------------------------------------------------


def _read_word(body: Fragment, report: Report) -> Every | Once | None:
    """`@every …` or `@once …`; anything else that starts with @ is reported."""
    word, _, rest = body.text.partition(" ")
    value = Fragment(rest.strip(" "), body.start + len(body.text) - len(rest.lstrip(" ")))
    match word.lower():
        case "@every":
            return _read_every(value, report)
        case "@once":
            return _read_once(value, report)
        case lowered if lowered in ALIASES:
            message = f"{lowered} takes nothing after it"
            report.error("E010", "expression", message, value.text, value.start)
        case "@reboot":
            message = "@reboot is not a schedule: it has no next run; use @once or run the command at start-up"
            report.error("E010", "expression", message, word, body.start)
        case _:
            meant = nearest(word, _KNOWN_WORDS)
            hint = f"; did you mean {meant}?" if meant else f"; the words are {', '.join(_KNOWN_WORDS)}"
            report.error("E010", "expression", f"unknown alias {quoted(word)}{hint}", word, body.start, fix=meant)
    return None


def _read_every(value: Fragment, report: Report) -> Every | None:
    if not value.text:
        report.error("E013", "every", "duration is missing; write @every 30m", value.text, value.start)
        return None
    low_text, dash, high_text = value.text.partition("-")
    low = _read_positive(Fragment(low_text, value.start), report)
    if not dash:
        return None if low is None else Every(low)
    high = _read_positive(Fragment(high_text, value.start + len(low_text) + 1), report)
    if low is None or high is None:
        return None
    if low >= high:
        report.error("E014", "every", "min duration must be less than max", value.text, value.start)
        return None
    return Every(low, high)


def _read_positive(span: Fragment, report: Report) -> int | None:
    ms = parse_duration(span.text)
    if ms is None:
        _report_duration("E013", "every", span, report)
    elif ms == 0:
        report.error("E013", "every", "duration must be positive", span.text, span.start)
        return None
    return ms


def _report_duration(code: str, where: str, span: Fragment, report: Report) -> None:
    meant = suggest_duration(span.text)
    hint = f"; did you mean {meant}?" if meant else "; write a duration such as 30m or 1h30m"
    message = f"{quoted(span.text)} is not a duration{hint}"
    report.error(code, where, message, span.text, span.start, fix=meant)


def _read_once(value: Fragment, report: Report) -> Once | None:
    if value.text.startswith("+"):
        span = Fragment(value.text[1:], value.start + 1)
        ms = parse_duration(span.text)
        if ms is None:
            _report_duration("E017", "once", span, report)
        elif ms == 0:
            report.error("E017", "once", "relative duration must be positive", span.text, span.start)
        else:
            return Once(None, ms)
        return None
    moment = parse_moment(value.text)
    if moment is None or moment.is_date:
        fix = f"{value.text}T00:00:00" if moment else None
        message = f"invalid datetime format {quoted(value.text)}; write 2027-03-01T09:00:00+09:00 or +20m"
        report.error("E012", "once", message, value.text, value.start, fix=fix)
        return None
    return Once(moment)


def _read_repeating(body: Fragment, report: Report) -> Repeating | None:
    """`R5/2026-01-01T00:00:00Z/P1M`."""
    match = _REPEATING.fullmatch(body.text)
    if match is None:
        message = "a repeating interval is written R[n]/start/period, such as R5/2026-01-01T09:00:00/P1M"
        report.error("E010", "expression", message, body.text, body.start)
        return None
    count_text, start_text, period_text = match.groups()
    start, period = parse_moment(start_text), parse_period(period_text)
    if start is None:
        message = f"invalid datetime format {quoted(start_text)}; write 2027-03-01T09:00:00"
        report.error("E012", "repeating", message, start_text, body.start + match.start(2))
    if period is None:
        message = f"{quoted(period_text)} is not a positive ISO 8601 period; write P1M, P3W or PT90M"
        report.error("E013", "repeating", message, period_text, body.start + match.start(3))
    if len(count_text) > _MOST_REPETITIONS_DIGITS:
        message = f"{quoted(count_text)} repetitions are too many"
        report.error("E021", "repeating", message, count_text, body.start + 1)
    elif start is not None and period is not None:
        whole = start._replace(is_date=False)
        return Repeating(int(count_text) if count_text else None, whole, period)
    return None


# -- the posix dialect ----------------------------------------------------------------------------------------


def _parse_posix(text: str, plain: str, report: Report) -> Parsed:
    body = Fragment(plain, 0)
    words = plain.split()
    found = [ZERO_SECONDS]
    if len(words) != 5:
        message = f"expected 5 fields in the posix dialect, got {len(words)}"
        report.error("E010", "expression", message, plain.strip(" "), len(plain) - len(plain.lstrip(" ")))
        return Parsed(text, None, report, None, body, None)
    for spec, match in zip(FIVE_FIELDS, _WORD.finditer(plain), strict=True):
        report_posix_field(spec, match[0], match.start(), report)
        read = read_field(spec, match[0])
        found.append(read or _WEEKDAY_STAR)
    meaning = None if report.errors else Meaning(_cron(found, has_seconds=False), dialect="posix")
    return Parsed(text, meaning, report, None, body, None)
