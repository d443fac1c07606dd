"""What exactly is wrong with a field that read_field refused, element by element."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.expr.diagnostics import Report
from chronex.expr.fields import DAY_OF_MONTH, DAY_OF_WEEK, ELEMENT, FieldSpec, value_of
from chronex.text.suggestions import nearest

_LONGEST_QUOTE = 40
_NUMBER = re.compile(r"-?[0-9]+")
_DAY_RULE_IN_LIST = re.compile(r"L.*|[0-9]+W|.+L|.+#.*|W", re.IGNORECASE)
_POSIX_FIELD = re.compile(r"\*|[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*")


def quote(text: str) -> str:
    """A value as shown in a message: short, and inert in a terminal."""
    shown = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    return "'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown) + "'"


def report_field(spec: FieldSpec, text: str, start: int, report: Report) -> None:
    """Report every fault of the field; at least one, since the reader refused it."""
    before = len(report.found)
    for element, at in _elements(text, start):
        if not _report_whole_field_rule(spec, text, element, at, report):
            _report_element(spec, element, at, report)
    if len(report.found) == before:
        report.error(spec.code, spec.name, f"{quote(text)} is not understood", text, start)


def _elements(text: str, start: int) -> Iterator[tuple[str, int]]:
    at = start
    for element in text.split(","):
        yield element, at
        at += len(element) + 1


def _report_element(spec: FieldSpec, element: str, at: int, report: Report) -> None:
    if element == "":
        message = "an element of the list is missing; remove the extra comma"
        report.error(spec.code, spec.name, message, element, at)
        return
    body, slash, step = element.partition("/")
    if slash:
        _report_step(spec, step, at + len(body) + 1, report)
    if body in ("*", ""):
        if not body:
            report.error(spec.code, spec.name, "a value is missing before '/'; use */n", element, at)
        return
    first, last, last_at = _split_range(body)
    _report_value(spec, first, at, report)
    if last is not None:
        _report_value(spec, last, at + last_at, report)


def _split_range(body: str) -> tuple[str, str | None, int]:
    """`a-b` at the dash that is not a sign: -5 is one value, JAN--1 ends with -1."""
    dash = body.find("-", 1)
    if dash < 0:
        return body, None, 0
    return body[:dash], body[dash + 1 :], dash + 1


def _report_step(spec: FieldSpec, step: str, at: int, report: Report) -> None:
    if step.isascii() and step.isdigit() and step.strip("0"):
        return
    if step.isascii() and step.lstrip("-").isdigit():
        report.error("E007", spec.name, f"step must be positive, got {quote(step)[1:-1]}", step, at)
    else:
        what = quote(step) if step else "nothing"
        report.error("E007", spec.name, f"step must be a positive number, got {what}", step, at)


def _report_value(spec: FieldSpec, word: str, at: int, report: Report) -> None:
    if word.isascii() and value_of(spec, word.upper()) is not None:
        return
    if word == "":
        report.error(spec.code, spec.name, "a range needs a value on both sides of '-'", word, at)
    elif _NUMBER.fullmatch(word):
        shown = quote(word)[1:-1]
        message = f"value {shown} out of range [{spec.low}, {spec.high}]"
        report.error(spec.code, spec.name, message, word, at)
    elif spec.words and report.may_guess and (meant := _meant_name(spec, word)):
        report.error(spec.code, spec.name, f"unknown name {quote(word)}; did you mean {meant}?", word, at, fix=meant)
    else:
        report.error(spec.code, spec.name, _not_a_value(spec, word), word, at, fix=_foreign_fix(word))


def _meant_name(spec: FieldSpec, word: str) -> str | None:
    upper = word.upper()
    if len(upper) > 3 and upper.isascii() and upper[:3] in spec.words:
        return upper[:3]
    return nearest(word, spec.words)


def _not_a_value(spec: FieldSpec, word: str) -> str:
    expected = f"a number from {spec.low} to {spec.high}"
    if spec.words:
        expected += f" or a name such as {spec.words[0]}"
    if word == "?":
        return "'?' is for the day fields of Quartz; use *"
    if word in ("H", "h"):
        return "'H' is Jenkins' hash; use a fixed value and {stagger:…}"
    if not word.isascii():
        return f"{quote(word)} is not a value: only the digits 0-9 count; expected {expected}"
    return f"{quote(word)} is not a value; expected {expected}"


def _foreign_fix(word: str) -> str | None:
    return {"?": "*", "H": "0", "h": "0"}.get(word)


def _report_whole_field_rule(spec: FieldSpec, text: str, element: str, at: int, report: Report) -> bool:
    """L, W and # name one day a month: they stand alone, with their own ranges."""
    if spec not in (DAY_OF_MONTH, DAY_OF_WEEK) or not _DAY_RULE_IN_LIST.fullmatch(element):
        return False
    if spec is DAY_OF_WEEK and element.upper() in spec.words:
        return False
    if element != text:
        message = f"{quote(element)} must be the whole field: L, W and # cannot be part of a list"
        report.error(spec.code, spec.name, message, element, at)
    elif spec is DAY_OF_MONTH:
        _report_day_of_month_rule(spec, element, at, report)
    else:
        _report_day_of_week_rule(spec, element, at, report)
    return True


def _report_day_of_month_rule(spec: FieldSpec, element: str, at: int, report: Report) -> None:
    upper = element.upper()
    if upper.startswith("L-") and upper[2:].rstrip("W").isdigit():
        message = f"{quote(element)}: the days before the last one go from 1 to 30"
    elif upper.endswith("W") and upper[:-1].isdigit():
        message = f"value {quote(upper[:-1])[1:-1]} out of range [1, 31] in {quote(element)}"
    elif upper.endswith("W") and ELEMENT.fullmatch(upper[:-1]):
        message = f"{quote(element)}: W takes one day such as 15W, not a range or a step"
    else:
        message = f"{quote(element)} is not understood; the forms are L, LW, L-3 and 15W"
    report.error(spec.code, spec.name, message, element, at)


def _report_day_of_week_rule(spec: FieldSpec, element: str, at: int, report: Report) -> None:
    day, hash_sign, nth = element.partition("#")
    known = value_of(spec, day.upper()) is not None if day.isascii() else False
    fix = None
    if hash_sign and known and nth.upper() == "L":
        message, fix = (
            f"{quote(element)}: the last one of a month is written {day.upper()}L",
            f"{day.upper()}L",
        )
    elif hash_sign and known:
        message = f"{quote(element)}: the number after # goes from 1 to 5"
    elif element.upper() == "L":
        message, fix = "'L' needs a weekday here, such as FRIL for the last Friday", None
    else:
        message = f"{quote(element)} is not understood; the forms are FRIL and MON#2"
    report.error(spec.code, spec.name, message, element, at, fix=fix)


def report_posix_field(spec: FieldSpec, text: str, start: int, report: Report) -> None:
    """The strict profile: numbers, ranges that run forwards, and lists of them."""
    if not _POSIX_FIELD.fullmatch(text):
        message = f"{quote(text)} is not POSIX: only *, numbers, ranges and lists are allowed"
        report.error("E007" if "/" in text else spec.code, spec.name, message + _posix_reason(text), text, start)
        return
    if text == "*":
        return
    for element, at in _elements(text, start):
        first, _, last = element.partition("-")
        for word, word_at in ((first, at), (last, at + len(first) + 1)):
            number = value_of(spec, word) if word else spec.low
            if number is None or number > spec.wrap_high:
                message = f"value {quote(word)[1:-1]} out of range [{spec.low}, {spec.wrap_high}]"
                report.error(spec.code, spec.name, message, word, word_at)
                break
        else:
            if last and (value_of(spec, first) or 0) > (value_of(spec, last) or 0):
                message = f"range {quote(element)} runs backwards; POSIX ranges do not wrap"
                report.error(spec.code, spec.name, message, element, at)


def _posix_reason(text: str) -> str:
    if "/" in text:
        return " (steps are not)"
    if any(c.isalpha() for c in text):
        return " (names and L, W are not)"
    return ""
