"""Schedules as other programs and people write them: what is suggested, and never accepted."""

from __future__ import annotations

import re

from chronex.expr.diagnostics import ParseReport
from chronex.expr.fields import FIVE_FIELDS, read_field
from chronex.expr.option_block import Fragment
from chronex.expr.syntax_rules import E010

_UNITS = {"second": "s", "sec": "s", "minute": "m", "min": "m", "hour": "h", "day": "d", "s": "s", "m": "m", "h": "h"}
_INTERVAL = r"([0-9]{1,6}) *(second|sec|minute|min|hour|day|[smh])s?"
_IN_WORDS = re.compile(rf"(?i:every +{_INTERVAL})")
_RATE = re.compile(rf"(?i:rate\( *{_INTERVAL} *\))")
_AWS_CRON = re.compile(r"(?i:cron\(.*\)?)")
_AWS_FIELDS = re.compile(r"(?i:cron)\( *([^ ]+) +([^ ]+) +([^ ]+) +([^ ]+) +([^ ]+) +\* *\)")
_WEEKDAY = r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*"
_CALENDAR = re.compile(rf"(?i:{_WEEKDAY}(?:\.\.{_WEEKDAY})?) +(?:\*-\*-\* +)?([0-9]{{1,2}}):([0-9]{{2}})(?::00)?")
_CLOCK = r"(?: +at +([0-9]{1,2})(?::([0-9]{2}))? *(am|pm)?)?"
_DAY_IN_WORDS = re.compile(rf"(?i:(?:every +(?:day|{_WEEKDAY}|(weekday|weekend))|daily){_CLOCK})")
_UNIT_IN_WORDS = re.compile(r"(?i:every +(minute|hour|week|month|year))")
_OF_UNITS = {"minute": "* * * * *", "hour": "@hourly", "week": "@weekly", "month": "@monthly", "year": "@yearly"}
_OF_DAYS = {"weekday": "MON-FRI", "weekend": "SAT,SUN"}
_COMMENT = re.compile(r"((?:[^ #]+ +){4,5}[^ #]+) +(#.*)")


def report_foreign(body: Fragment, report: ParseReport) -> bool:
    """Was the text one of these forms, and was it reported as such?"""
    text = body.text
    if match := _COMMENT.fullmatch(text):
        report.add(E010, "expression", match[2], body.start + match.start(2), "comment", fix="")
        return True
    case, meant = _form(text)
    if case is None:
        return False
    report.add(E010, "expression", text, body.start, case, fix=meant, count=len(text.split()), meant=meant)
    return True


def _form(text: str) -> tuple[str | None, str | None]:
    """The case, and what to write instead where that can be said."""
    for case, pattern in (("in words", _IN_WORDS), ("AWS rate", _RATE)):
        if match := pattern.fullmatch(text):
            return case, f"@every {match[1]}{_UNITS[match[2].lower()]}"
    if (meant := _day_in_words(text)) is not None:
        return "time in words", meant
    if _AWS_CRON.fullmatch(text):
        meant = _five_fields_of_aws(text)
        return "AWS cron" if meant is None else "AWS cron in five fields", meant
    if match := _CALENDAR.fullmatch(text):
        first, last = match[1][:3].upper(), match[2] and match[2][:3].upper()
        days = f"{first}-{last}" if last else first
        return "calendar event", f"{int(match[4])} {int(match[3])} * * {days}"
    return None, None


def _day_in_words(text: str) -> str | None:
    """`every day at 9:30`, `every Monday`, `daily at 5 pm`, `every hour` in fields; midnight where no time is said.

    `daily` alone is a nickname without its @, which is told elsewhere."""
    if match := _UNIT_IN_WORDS.fullmatch(text):
        return _OF_UNITS[match[1].lower()]
    match = _DAY_IN_WORDS.fullmatch(text)
    if match is None or text.lower() == "daily":
        return None
    days = match[1][:3].upper() if match[1] else _OF_DAYS.get((match[2] or "").lower(), "*")
    hour, minute, half = int(match[3] or 0), int(match[4] or 0), (match[5] or "").lower()
    if half and not 1 <= hour <= 12:
        return None
    hour = hour % 12 + 12 * (half == "pm") if half else hour
    return f"{minute} {hour} * * {days}" if hour < 24 and minute < 60 else None


def _five_fields_of_aws(text: str) -> str | None:
    """The five fields without the year; None where the year or a weekday by number means something else there."""
    match = _AWS_FIELDS.fullmatch(text)
    if match is None or re.search(r"[0-9]", match[5].partition("#")[0]):
        return None
    fields = ["*" if field == "?" else field for field in match.groups()]
    is_readable = all(read_field(spec, field) for spec, field in zip(FIVE_FIELDS, fields, strict=True))
    return " ".join(fields) if is_readable else None
