"""Schedule bodies that are not cron fields: `@every`, `@once`, and ISO 8601 repeating intervals."""

from __future__ import annotations

import re

from chronex.expr.diagnostics import ParseReport, Rule
from chronex.expr.durations import parse_duration, suggest_duration
from chronex.expr.faults import quote
from chronex.expr.meaning import ALIASES, Every, Once, Repeating
from chronex.expr.moments import parse_moment, parse_period
from chronex.expr.options import Span
from chronex.expr.suggest import nearest
from chronex.expr.syntax_rules import E010, E012, E013, E014, E017, E021

_MOST_REPETITIONS_DIGITS = 12
_KNOWN_WORDS = (*ALIASES, "@every", "@once")
_REPEATING = re.compile(r"[Rr]([0-9]*)/([^/]*)/([^/]*)")


def read_word(body: Span, report: ParseReport) -> Every | Once | None:
    """`@every …` or `@once …`; anything else that starts with @ is reported."""
    word, _, rest = body.text.partition(" ")
    value = Span(rest.strip(" "), body.start + len(body.text) - len(rest.lstrip(" ")))
    match word.lower():
        case "@every":
            return _read_every(value, report)
        case "@once":
            return _read_once(value, report)
        case lowered if lowered in ALIASES:
            report.add(E010, "expression", value.text, value.start, "after a nickname", nickname=lowered)
        case "@reboot":
            report.add(E010, "expression", word, body.start, "@reboot")
        case _:
            meant = nearest(word, _KNOWN_WORDS)
            case = "misspelt nickname" if meant else "unknown nickname"
            names = {"value": quote(word), "meant": meant, "known": ", ".join(_KNOWN_WORDS)}
            report.add(E010, "expression", word, body.start, case, fix=meant, **names)
    return None


def _read_every(value: Span, report: ParseReport) -> Every | None:
    if not value.text:
        report.add(E013, "every", value.text, value.start, "missing")
        return None
    low_text, dash, high_text = value.text.partition("-")
    low = _read_positive(Span(low_text, value.start), report)
    if not dash:
        return None if low is None else Every(low)
    high = _read_positive(Span(high_text, value.start + len(low_text) + 1), report)
    if low is None or high is None:
        return None
    if low >= high:
        report.add(E014, "every", value.text, value.start)
        return None
    return Every(low, high)


def _read_positive(span: Span, report: ParseReport) -> int | None:
    ms = parse_duration(span.text)
    if ms is None:
        _report_duration(E013, "every", span, report)
    elif ms == 0:
        report.add(E013, "every", span.text, span.start, "zero")
        return None
    return ms


def _report_duration(rule: Rule, where: str, span: Span, report: ParseReport) -> None:
    meant = suggest_duration(span.text)
    case = "misspelt duration" if meant else "not a duration"
    report.add(rule, where, span.text, span.start, case, fix=meant, value=quote(span.text), meant=meant)


def _read_once(value: Span, report: ParseReport) -> Once | None:
    if value.text.startswith("+"):
        span = Span(value.text[1:], value.start + 1)
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
        fix = f"{value.text}T00:00:00" if moment else None
        report.add(E012, "once", value.text, value.start, "once", fix=fix, value=quote(value.text))
        return None
    return Once(moment)


def read_repeating(body: Span, report: ParseReport) -> Repeating | None:
    """`R5/2026-01-01T00:00:00Z/P1M`."""
    match = _REPEATING.fullmatch(body.text)
    if match is None:
        report.add(E010, "expression", body.text, body.start, "repeating interval")
        return None
    count_text, start_text, period_text = match.groups()
    start, period = parse_moment(start_text), parse_period(period_text)
    if start is None:
        start_at = body.start + match.start(2)
        report.add(E012, "repeating", start_text, start_at, "repeating", value=quote(start_text))
    if period is None:
        period_at = body.start + match.start(3)
        report.add(E013, "repeating", period_text, period_at, "period", value=quote(period_text))
    if len(count_text) > _MOST_REPETITIONS_DIGITS:
        report.add(E021, "repeating", count_text, body.start + 1, "too many", value=quote(count_text))
    elif start is not None and period is not None:
        whole = start._replace(is_date=False)
        return Repeating(int(count_text) if count_text else None, whole, period)
    return None
