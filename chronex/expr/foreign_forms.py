"""Schedules as other programs and people write them: what is suggested, and never accepted."""

from __future__ import annotations

import re

from chronex.expr.diagnostics import ParseReport
from chronex.expr.fields import FIVE_FIELDS, SIX_FIELDS, read_field
from chronex.expr.iso8601 import joined_moment, parse_moment
from chronex.expr.meaning import ALIASES
from chronex.expr.option_block import Fragment
from chronex.expr.syntax_rules import E010
from chronex.text.durations import parse_duration

_UNITS = {"second": "s", "sec": "s", "minute": "m", "min": "m", "hour": "h", "day": "d", "s": "s", "m": "m", "h": "h"}
_INTERVAL = r"([0-9]{1,6}) *(second|sec|minute|min|hour|day|[smh])s?"
_IN_WORDS = re.compile(rf"(?i:every +{_INTERVAL})")
_RATE = re.compile(rf"(?i:rate\( *{_INTERVAL} *\))")
_AWS_CRON = re.compile(r"(?i:cron\(.*\)?)")
_AWS_FIELDS = re.compile(r"(?i:cron)\( *([^ ]+) +([^ ]+) +([^ ]+) +([^ ]+) +([^ ]+) +\* *\)")
_WEEKDAY = r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*"
_CALENDAR = re.compile(rf"(?i:{_WEEKDAY}(?:\.\.{_WEEKDAY})?) +(?:\*-\*-\* +)?([0-9]{{1,2}}):([0-9]{{2}})(?::00)?")
_EVERY_DAY_EVENT = re.compile(r"\*-\*-(\*|[0-9]{1,2}) +([0-9]{1,2}):([0-9]{2})(?::00)?")
_CLOCK = r"(?: +at +([0-9]{1,2})(?::([0-9]{2}))? *(am|pm)?)?"
_TIME_ALONE = re.compile(
    rf"(?i:(?:daily +)?(?:at +)?([0-9]{{1,2}})(?::([0-9]{{2}})(?::00)?)? ?(am|pm)?"
    rf"(?: +({_WEEKDAY}(?:-{_WEEKDAY})?))?)"
)
_QUOTES = "\"'`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
_ZONE_AT_END = re.compile(r"(.+) +(?:TZ=)?([A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_+-]+)+|UTC|TZ=[^ ]+)")
_DAY_IN_WORDS = re.compile(rf"(?i:(?:every +(?:day|{_WEEKDAY}|(weekday|weekend))|daily){_CLOCK})")
_UNIT_IN_WORDS = re.compile(r"(?i:every +(minute|hour|week|month|year))")
_OF_UNITS = {"minute": "* * * * *", "hour": "@hourly", "week": "@weekly", "month": "@monthly", "year": "@yearly"}
_OF_DAYS = {"weekday": "MON-FRI", "weekend": "SAT,SUN"}
_COMMAND = re.compile(r"[./~$]|[A-Za-z_-]{4}|(?:sh|cd|php)$")
_RANGES = re.compile(r"([0-9]{1,4})-([0-9]{1,4})")
_COMMENT = re.compile(r"((?:[^ #]+ +){4,5}[^ #]+) +(#.*)")


def report_foreign(body: Fragment, report: ParseReport) -> bool:
    """Was the text one of these forms, and was it reported as such?"""
    text = body.text
    if match := _COMMENT.fullmatch(text):
        report.add(E010, "expression", match[2], body.start + match.start(2), "comment", fix="")
        return True
    case, meant = _form(" ".join(text.split()))
    if case is None:
        return False
    report.add(E010, "expression", text, body.start, case, fix=meant, count=len(text.split()), meant=meant)
    return True


def _form(text: str) -> tuple[str | None, str | None]:
    """The case, and what to write instead where that can be said."""
    if len(text) > 2 and text[0] in _QUOTES and text[-1] in _QUOTES:
        return "quotes", text[1:-1].strip(" ")
    if text.upper().startswith(("RRULE:", "FREQ=", "DTSTART")):
        return "iCalendar", None
    for find in (_with_blanks, _with_a_zone, _with_a_command, _alone):
        if (found := find(text)) is not None:
            return found
    for case, pattern in (("in words", _IN_WORDS), ("AWS rate", _RATE)):
        if match := pattern.fullmatch(text):
            return case, f"@every {match[1]}{_UNITS[match[2].lower()]}"
    if (meant := _day_in_words(text)) is not None:
        return "time in words", meant
    if _AWS_CRON.fullmatch(text):
        meant = _five_fields_of_aws(text)
        return "AWS cron" if meant is None else "AWS cron in five fields", meant
    if match := _CALENDAR.fullmatch(text.removeprefix("OnCalendar=")):
        first, last = match[1][:3].upper(), match[2] and match[2][:3].upper()
        days = f"{first}-{last}" if last else first
        return "calendar event", f"{int(match[4])} {int(match[3])} * * {days}"
    event = text.removeprefix("OnCalendar=")
    if event != text and f"@{event.lower()}" in ALIASES:
        return "calendar event", f"@{event.lower()}"
    if match := _EVERY_DAY_EVENT.fullmatch(event):
        return "calendar event", f"{int(match[3])} {int(match[2])} {match[1].lstrip('0') or '*'} * *"
    return None, None


def _is_schedule(text: str) -> bool:
    """Five or six fields, all of which can be read."""
    words = text.split()
    specs = FIVE_FIELDS if len(words) == 5 else SIX_FIELDS if len(words) == 6 else ()
    return bool(specs) and all(read_field(spec, word) for spec, word in zip(specs, words, strict=True))


def _with_blanks(text: str) -> tuple[str, str] | None:
    """`0 9 * * MON - FRI`: blanks around a dash or behind a comma. `4- 0 6 * * *` hardly means from 4 to 0."""
    joined = re.sub(r" ?([-,/]) ?", r"\1", text)
    if joined == text or any(int(low) > int(high) for low, high in _RANGES.findall(joined)):
        return None
    return ("blanks in a field", joined) if _is_schedule(joined) else None


def _with_a_zone(text: str) -> tuple[str, str] | None:
    match = _ZONE_AT_END.fullmatch(text)
    if match is None or not _is_schedule(match[1]):
        return None
    return "zone at the end", f"TZ={match[2].removeprefix('TZ=')} {match[1].rstrip()}"


def _with_a_command(text: str) -> tuple[str, None] | None:
    """A line of a crontab: five fields, and behind them what is no field."""
    words = text.split()
    is_line = len(words) > 5 and _is_schedule(" ".join(words[:5])) and not words[5].startswith("#")
    return (
        ("command" if len(words) == 6 else "with a command", None) if is_line and _COMMAND.match(words[5]) else None
    )


def _alone(text: str) -> tuple[str, str] | None:
    """A duration, a moment or a time of day without the word that makes a schedule of it."""
    if parse_duration(text):
        return "in words", f"@every {text}"
    moment = joined_moment(text) or text
    found = parse_moment(moment)
    if found is not None:
        return "moment", f"@once {moment}T00:00:00" if found.is_date else f"@once {moment}"
    match = _TIME_ALONE.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        return None
    fields = _fields_of_clock(match[1], match[2], match[3], (match[4] or "*").upper())
    return None if fields is None or not _is_schedule(fields) else ("time in words", fields)


def _day_in_words(text: str) -> str | None:
    """`every day at 9:30`, `every Monday`, `daily at 5 pm`, `every hour` in fields; midnight where no time is said.

    `daily` alone is a nickname without its @, which is told elsewhere."""
    if match := _UNIT_IN_WORDS.fullmatch(text):
        return _OF_UNITS[match[1].lower()]
    match = _DAY_IN_WORDS.fullmatch(text)
    if match is None or text.lower() == "daily":
        return None
    days = match[1][:3].upper() if match[1] else _OF_DAYS.get((match[2] or "").lower(), "*")
    return _fields_of_clock(match[3], match[4], match[5], days)


def _fields_of_clock(hour_text: str | None, minute_text: str | None, half: str | None, days: str) -> str | None:
    hour, minute = int(hour_text or 0), int(minute_text or 0)
    if half and not 1 <= hour <= 12:
        return None
    hour = hour % 12 + 12 * (half.lower() == "pm") if half else hour
    return f"{minute} {hour} * * {days}" if hour < 24 and minute < 60 else None


def _five_fields_of_aws(text: str) -> str | None:
    """The five fields without the year; None where the year or a weekday by number means something else there."""
    match = _AWS_FIELDS.fullmatch(text)
    if match is None or re.search(r"[0-9]", match[5].partition("#")[0]):
        return None
    fields = ["*" if field == "?" else field for field in match.groups()]
    is_readable = all(read_field(spec, field) for spec, field in zip(FIVE_FIELDS, fields, strict=True))
    return " ".join(fields) if is_readable else None
