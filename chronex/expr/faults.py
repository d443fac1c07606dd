"""What exactly is wrong with a field that read_field refused, element by element."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.expr.diagnostics import ParseReport, Rule
from chronex.expr.fields import DAY_OF_MONTH, DAY_OF_WEEK, ELEMENT, FieldSpec, read_day_rule, read_field, value_of
from chronex.expr.syntax_rules import E004, E006, E007, FIELD_RULES
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

_NUMBER = r"-?[0-9]+"
_LIKE_A_DAY_RULE = r"(?i:L.*|[0-9]+W|.+L|.+#.*|W)"
_LONG_NAMES = {
    "month": ("JANUARY", "FEBRUARY", "MARCH", "APRIL", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER",
              "DECEMBER"),
    "dayOfWeek": ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"),
}  # fmt: skip
_LOOK_ALIKES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d", "-") | {
    "\u2217": "*", "\uff0a": "*", "\u00d7": "*", "\uff0c": ",", "\u3001": ",", "\uff0f": "/", "\u2044": "/",
}  # fmt: skip
_OTHER_DAY_RULES = {
    DAY_OF_MONTH.name: (r"^(?i:W([0-9]+)|last)$", lambda match: f"{match[1]}W" if match[1] else "L"),
    DAY_OF_WEEK.name: (
        r"^(?i:L([0-7]|[A-Z]{3})|([1-5])#([A-Z]{3}))$",
        lambda match: f"{match[1]}L" if match[1] else f"{match[3]}#{match[2]}",
    ),
}
_POSIX_FIELD = r"\*|[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*"


def report_field(spec: FieldSpec, text: str, start: int, report: ParseReport) -> None:
    """Report every fault of the field; at least one, since the reader refused it."""
    before = len(report.found)
    if (likely := _likely_field(spec, text)) is not None:
        case, meant = likely
        report.add(FIELD_RULES[spec.code], spec.name, text, start, case, fix=meant, value=quoted(text), meant=meant)
        return
    for element, at in _elements(text, start):
        if not _report_day_rule(spec, element, at, report):
            _report_element(spec, element, at, report)
    if len(report.found) == before and (beside := _weekday_beside_days(spec, text, start)) is not None:
        element, at = beside
        report.add(E004, spec.name, element, at, "W beside days", value=quoted(element))
    if len(report.found) == before:
        report.add(FIELD_RULES[spec.code], spec.name, text, start, "not understood", value=quoted(text))


def _likely_field(spec: FieldSpec, text: str) -> tuple[str, str] | None:
    """The case and the field that was meant, where another spelling of the whole text can be read: `MON–FRI` with a
    dash of word processors, `MON;TUE`, `1..5`, `9am`, `1st`, `W15`."""
    plain = "".join(_plain(character) for character in text)
    if plain != text and not text.isascii() and read_field(spec, plain) is not None:
        return "look-alikes", plain
    if spec in (DAY_OF_MONTH, DAY_OF_WEEK):
        turned = re.sub(*_OTHER_DAY_RULES[spec.name], plain)
        if turned != plain and read_field(spec, turned) is not None:
            return "another day rule", turned
    other = re.sub(r"\.\.", "-", re.sub(r"[;|&]", ",", plain))
    if spec is DAY_OF_MONTH:
        other = re.sub(r"([0-9])(?i:st|nd|rd|th)(?![a-z])", r"\1", other)
    if spec.name == "hour":
        other = re.sub(r"(?<![0-9])([0-9]{1,2})(?i:(am|pm))(?![a-z])", _hour_of_half, other)
    return ("another spelling", other) if other != plain and read_field(spec, other) is not None else None


def _plain(character: str) -> str:
    """The character of ASCII that this one looks like, or is a digit of another script for."""
    if character.isascii():
        return character
    import unicodedata

    digit = unicodedata.decimal(character, None)
    return _LOOK_ALIKES.get(character, character) if digit is None else str(digit)


def _hour_of_half(match: re.Match[str]) -> str:
    hour = int(match[1])
    return str(hour % 12 + 12 * (match[2].lower() == "pm")) if 1 <= hour <= 12 else match[0]


def _weekday_beside_days(spec: FieldSpec, text: str, start: int) -> tuple[str, int] | None:
    """The first `2W` of a day of month that has plain days too."""
    found = ((element, at) for element, at in _elements(text, start) if re.fullmatch(r"(?i:[0-9]+W)", element))
    return next(found, None) if spec is DAY_OF_MONTH else None


def _elements(text: str, start: int) -> Iterator[tuple[str, int]]:
    at = start
    for element in text.split(","):
        yield element, at
        at += len(element) + 1


def _report_element(spec: FieldSpec, element: str, at: int, report: ParseReport) -> None:
    if element == "":
        report.add(FIELD_RULES[spec.code], spec.name, element, at, "empty element")
        return
    body, slash, step = element.partition("/")
    if slash:
        _report_step(spec, step, at + len(body) + 1, report)
    if body in ("*", ""):
        if not body:
            report.add(FIELD_RULES[spec.code], spec.name, element, at, "no value before step")
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


def _report_step(spec: FieldSpec, step: str, at: int, report: ParseReport) -> None:
    if step.isascii() and step.isdigit() and step.strip("0"):
        return
    if step.isascii() and step.lstrip("-").isdigit():
        report.add(E007, spec.name, step, at, "not positive", value=_bare(step))
    else:
        report.add(E007, spec.name, step, at, "not a number", value=quoted(step) if step else "nothing")


def _report_value(spec: FieldSpec, word: str, at: int, report: ParseReport) -> None:
    if word.isascii() and value_of(spec, word.upper()) is not None:
        return
    rule = FIELD_RULES[spec.code]
    if word == "":
        report.add(rule, spec.name, word, at, "open range")
    elif re.fullmatch(_NUMBER, word):
        _report_range(rule, spec, word, at, spec.high, report)
    elif spec.words and (short := _short_name(spec, word)):
        report.add(rule, spec.name, word, at, "long name", fix=short, value=quoted(word), meant=short)
    elif spec.words and report.may_guess and (meant := _meant_name(spec, word)):
        report.add(rule, spec.name, word, at, "unknown name", fix=meant, value=quoted(word), meant=meant)
    elif word == "?":
        report.add(rule, spec.name, word, at, "question mark", fix="*")
    elif word in ("H", "h"):
        report.add(rule, spec.name, word, at, "Jenkins hash", fix="0")
    else:
        case = "not a value" if word.isascii() else "foreign digits"
        report.add(rule, spec.name, word, at, case, value=quoted(word), expected=_expected(spec))


def _report_range(rule: Rule, spec: FieldSpec, word: str, at: int, high: int, report: ParseReport) -> None:
    report.add(rule, spec.name, word, at, "out of range", value=_bare(word), low=spec.low, high=high)


def _bare(number: str) -> str:
    """A number as shown in a message: short, without quotes."""
    return quoted(number)[1:-1]


def _short_name(spec: FieldSpec, word: str) -> str | None:
    """The three letters of a name that is written out, or further than cron does: MONDAY, Thurs, March."""
    upper = word.upper()
    is_long = len(upper) > 3 and any(name.startswith(upper) for name in _LONG_NAMES[spec.name])
    return upper[:3] if is_long else None


def _meant_name(spec: FieldSpec, word: str) -> str | None:
    upper = word.upper()
    if len(upper) > 3 and upper.isascii() and upper[:3] in spec.words:
        return upper[:3]
    return nearest(word, spec.words)


def _expected(spec: FieldSpec) -> str:
    expected = f"a number from {spec.low} to {spec.high}"
    return f"{expected} or a name such as {spec.words[0]}" if spec.words else expected


def _report_day_rule(spec: FieldSpec, element: str, at: int, report: ParseReport) -> bool:
    """L, W and # have ranges of their own. True for an element with one of them, whether it is wrong or not."""
    if spec not in (DAY_OF_MONTH, DAY_OF_WEEK) or not re.fullmatch(_LIKE_A_DAY_RULE, element):
        return False
    if spec is DAY_OF_WEEK and element.upper() in spec.words:
        return False
    if element.isascii() and read_day_rule(spec, element.upper()) is not None:
        return True
    if spec is DAY_OF_MONTH:
        _report_day_of_month_rule(element, at, report)
    else:
        _report_day_of_week_rule(spec, element, at, report)
    return True


def _report_day_of_month_rule(element: str, at: int, report: ParseReport) -> None:
    upper = element.upper()
    if upper.startswith("L-") and upper[2:].rstrip("W").isdigit():
        case = "days before the last"
    elif upper.endswith("W") and upper[:-1].isdigit():
        case = "day before W"
    elif upper.endswith("W") and ELEMENT.fullmatch(upper[:-1]):
        case = "range before W"
    else:
        case = "day forms"
    report.add(E004, DAY_OF_MONTH.name, element, at, case, value=quoted(element), day=_bare(upper[:-1]))


def _report_day_of_week_rule(spec: FieldSpec, element: str, at: int, report: ParseReport) -> None:
    day, hash_sign, nth = element.partition("#")
    known = value_of(spec, day.upper()) is not None if day.isascii() else False
    value = quoted(element)
    if hash_sign and known and nth.upper() == "L":
        meant = f"{day.upper()}L"
        report.add(E006, spec.name, element, at, "last by number", fix=meant, value=value, meant=meant)
    elif hash_sign and known:
        report.add(E006, spec.name, element, at, "number after #", value=value)
    elif element.upper() == "L":
        report.add(E006, spec.name, element, at, "L alone", value="'L'")
    else:
        report.add(E006, spec.name, element, at, "weekday forms", value=value)


def report_posix_field(spec: FieldSpec, text: str, start: int, report: ParseReport) -> None:
    """The strict profile: numbers, ranges that run forwards, and lists of them."""
    if not re.fullmatch(_POSIX_FIELD, text):
        _report_not_posix(spec, text, start, report)
        return
    if text == "*":
        return
    rule = FIELD_RULES[spec.code]
    for element, at in _elements(text, start):
        first, _, last = element.partition("-")
        for word, word_at in ((first, at), (last, at + len(first) + 1)):
            number = value_of(spec, word) if word else spec.low
            if number is None or number > spec.wrap_high:
                _report_range(rule, spec, word, word_at, spec.wrap_high, report)
                break
        else:
            if last and (value_of(spec, first) or 0) > (value_of(spec, last) or 0):
                report.add(rule, spec.name, element, at, "backwards in POSIX", value=quoted(element))


def _report_not_posix(spec: FieldSpec, text: str, start: int, report: ParseReport) -> None:
    rule, case = FIELD_RULES[spec.code], "not POSIX"
    if "/" in text:
        rule, case = E007, "steps in POSIX"
    elif any(c.isalpha() for c in text):
        case = "letters in POSIX"
    report.add(rule, spec.name, text, start, case, value=quoted(text))
