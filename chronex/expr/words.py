"""Schedule bodies that are not cron fields: `@every`, `@once`, and ISO 8601 repeating intervals."""

from __future__ import annotations

import re

from chronex.expr.diagnostics import Report
from chronex.expr.durations import parse_duration, suggest_duration
from chronex.expr.faults import quote
from chronex.expr.meaning import ALIASES, Every, Once, Repeating
from chronex.expr.moments import parse_moment, parse_period
from chronex.expr.options import Span
from chronex.expr.suggest import nearest

_MOST_REPETITIONS_DIGITS = 12
_KNOWN_WORDS = (*ALIASES, "@every", "@once")
_REPEATING = re.compile(r"[Rr]([0-9]*)/([^/]*)/([^/]*)")


def read_word(body: Span, report: Report) -> Every | Once | None:
    """`@every …` or `@once …`; anything else that starts with @ is reported."""
    word, _, rest = body.text.partition(" ")
    value = Span(rest.strip(" "), body.start + len(body.text) - len(rest.lstrip(" ")))
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
            report.error("E010", "expression", f"unknown alias {quote(word)}{hint}", word, body.start, fix=meant)
    return None


def _read_every(value: Span, report: Report) -> Every | None:
    if not value.text:
        report.error("E013", "every", "duration is missing; write @every 30m", value.text, value.start)
        return None
    low_text, dash, high_text = value.text.partition("-")
    low = _read_positive(Span(low_text, value.start), report)
    if not dash:
        return None if low is None else Every(low)
    high = _read_positive(Span(high_text, value.start + len(low_text) + 1), report)
    if low is None or high is None:
        return None
    if low >= high:
        report.error("E014", "every", "min duration must be less than max", value.text, value.start)
        return None
    return Every(low, high)


def _read_positive(span: Span, report: Report) -> int | None:
    ms = parse_duration(span.text)
    if ms is None:
        _report_duration("E013", "every", span, report)
    elif ms == 0:
        report.error("E013", "every", "duration must be positive", span.text, span.start)
        return None
    return ms


def _report_duration(code: str, where: str, span: Span, report: Report) -> None:
    meant = suggest_duration(span.text)
    hint = f"; did you mean {meant}?" if meant else "; write a duration such as 30m or 1h30m"
    message = f"{quote(span.text)} is not a duration{hint}"
    report.error(code, where, message, span.text, span.start, fix=meant)


def _read_once(value: Span, report: Report) -> Once | None:
    if value.text.startswith("+"):
        span = Span(value.text[1:], value.start + 1)
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
        message = f"invalid datetime format {quote(value.text)}; write 2027-03-01T09:00:00+09:00 or +20m"
        report.error("E012", "once", message, value.text, value.start, fix=fix)
        return None
    return Once(moment)


def read_repeating(body: Span, report: Report) -> Repeating | None:
    """`R5/2026-01-01T00:00:00Z/P1M`."""
    match = _REPEATING.fullmatch(body.text)
    if match is None:
        message = "a repeating interval is written R[n]/start/period, such as R5/2026-01-01T09:00:00/P1M"
        report.error("E010", "expression", message, body.text, body.start)
        return None
    count_text, start_text, period_text = match.groups()
    start, period = parse_moment(start_text), parse_period(period_text)
    if start is None:
        message = f"invalid datetime format {quote(start_text)}; write 2027-03-01T09:00:00"
        report.error("E012", "repeating", message, start_text, body.start + match.start(2))
    if period is None:
        message = f"{quote(period_text)} is not a positive ISO 8601 period; write P1M, P3W or PT90M"
        report.error("E013", "repeating", message, period_text, body.start + match.start(3))
    if len(count_text) > _MOST_REPETITIONS_DIGITS:
        message = f"{quote(count_text)} repetitions are too many"
        report.error("E021", "repeating", message, count_text, body.start + 1)
    elif start is not None and period is not None:
        whole = start._replace(is_date=False)
        return Repeating(int(count_text) if count_text else None, whole, period)
    return None
