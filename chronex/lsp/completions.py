"""Completion: fields, names, nicknames, zones, options and the keys of chronex.toml, from what stands left of the
cursor on its line. The rest of the file may be half typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from chronex.expr.fields import MONTHS, WEEKDAYS
from chronex.expr.meaning import ALIASES
from chronex.expr.option_block import OPTION_NAMES
from chronex.lint.source_files import Document
from chronex.lint.systemd_calendar import NICKNAMES
from chronex.timing.zones import zone_names

KEYWORD, VALUE, PROPERTY = "keyword", "value", "property"

_ZONE_KEY = re.compile(
    r"""(?:(?:timezone|timeZone)["']?[ \t]*[:=][ \t]*["']?|(?:CRON_TZ|TZ)[ \t]*=[ \t]*["']?)([A-Za-z0-9_+/-]*)$"""
)
_EXPRESSION_STARTS = {
    "chronex": re.compile(r"""\bschedule[ \t]*=[ \t]*(?:\[(?:[^\]"']|"[^"]*"|'[^']*')*)?["']([^"']*)$"""),
    "github": re.compile(r"""\bcron["']?[ \t]*:[ \t]*["']?([^"']*)$"""),
    "azure": re.compile(r"""\bcron["']?[ \t]*:[ \t]*["']?([^"']*)$"""),
    "dependabot": re.compile(r"""\bcronjob["']?[ \t]*:[ \t]*["']?([^"']*)$"""),
    "k8s": re.compile(r"""\bschedule["']?[ \t]*:[ \t]*["']?([^"']*)$"""),
    "trigger": re.compile(r""""expression"[ \t]*:[ \t]*"([^"]*)$"""),
    "python": re.compile(r"""\b(?:parse|job)\([ \t]*["']([^"']*)$"""),
    "crontab": re.compile(r"^[ \t]*([^#=]*)$"),
    "cron.d": re.compile(r"^[ \t]*([^#=]*)$"),
    "systemd": re.compile(r"^[ \t]*OnCalendar[ \t]*=[ \t]*(.*)$"),
}
_LONGEST_LEFT = 2_000  # enough for any line typed by hand; some patterns look back from every character
_OPTIONS = re.compile(r"[{<](?:[^{}<>]*,)?[ \t]*([a-z]*)$")
_HEADER = re.compile(r"^[ \t]*\[\[?[ \t]*([^\]\n]+?)[ \t]*\]", re.MULTILINE)
_CALENDAR_HEADER = re.compile(r"^[ \t]*\[calendars\.([A-Za-z0-9_-]+)\]", re.MULTILINE)
_CALENDAR_NAME = re.compile(
    r"""\b(?:except|only|blackout)[ \t]*=[ \t]*\[(?:[^\]"']|"[^"]*"|'[^']*')*["']([A-Za-z0-9_-]*)$"""
)
_GROUP_HEADER = re.compile(r"^[ \t]*\[groups\.([A-Za-z0-9_-]+)\]", re.MULTILINE)
_GROUP_NAME = re.compile(r"""\bgroups[ \t]*=[ \t]*\[(?:[^\]"']|"[^"]*"|'[^']*')*["']([A-Za-z0-9_-]*)$""")
_CONDITION = re.compile(r"""\bwait_for[ \t]*=[ \t]*\[(?:[^\]"']|"[^"]*"|'[^']*')*["']([a-z]*)$""")
_CHANNEL_HEADER = re.compile(r"^[ \t]*\[notify\.([A-Za-z0-9_-]+)\]", re.MULTILINE)
_CHANNEL_NAME = re.compile(r"""\b(?:notify|to)[ \t]*=[ \t]*\[(?:[^\]"']|"[^"]*"|'[^']*')*["']([A-Za-z0-9_-]*)$""")
_NEED = re.compile(r"""\bneeds[ \t]*=[ \t]*\[(?:[^\]"']|"[^"]*"|'[^']*')*["']([A-Za-z0-9_-]*)$""")
_PARENT = re.compile(r"""\bafter[ \t]*=[ \t]*(?:\[(?:[^\]"']|"[^"]*"|'[^']*')*)?["']([A-Za-z0-9_-]*)$""")
_WORD = re.compile(r"""(?:^|[{,])[ \t]*([a-z_]+)[ \t]*=[ \t]*["']([a-zA-Z_-]*)$""")
_WITHIN = re.compile(r"""\b([A-Za-z0-9_-]+)[ \t]*=[ \t]*\{[^{}]*$""")
_JOB_HEADER = re.compile(r"^[ \t]*\[jobs\.([A-Za-z0-9_-]+)\]", re.MULTILINE)
_TASKS_HEADER = re.compile(r"^[ \t]*\[\[jobs\.([A-Za-z0-9_-]+)\.tasks\]\]", re.MULTILINE)
_TASK_NAME = re.compile(r"""^[ \t]*name[ \t]*=[ \t]*["']([A-Za-z0-9_-]+)["']""", re.MULTILINE)
_INLINE = re.compile(r"\b([a-z_]+)[ \t]*=[ \t]*\{(?:[^{}\"']|\"[^\"]*\"|'[^']*')*?([A-Za-z_]*)$")
_KEY_START = re.compile(r"^[ \t]*([A-Za-z_]*)$")
# Tables whose keys stand under a name that the user gives.
_OF_NAMES = {"jobs": "job", "calendars": "calendar", "groups": "group", "notify": "channel"}
_CONDITIONS = (
    ("mains", "the machine is not on its battery"),
    ("network", "an address beyond this machine can be reached"),
    ("tcp:", "a port answers: tcp:db:5432"),
    ("path:", "a file or directory is there: path:/mnt/nas"),
    ("command:", "a command ends with 0: command:./ready"),
)
_WITH_OWN_OPTIONS = ("chronex", "trigger", "python")
_FIELDS = (
    (("*/5", "every 5 minutes"), ("*/15", "every 15 minutes"), ("*/30", "every half hour"), ("0", "on the hour"),
     ("17", "at minute 17, away from the crowd"), ("*", "every minute")),
    (("*", "every hour"), ("*/2", "every second hour"), ("*/6", "every 6 hours"), ("9-17", "office hours"),
     ("0", "midnight"), ("4", "at night, outside clock changes")),
    (("*", "every day"), ("1", "the first"), ("15", "the fifteenth"), ("1-7", "the first week")),
    (("*", "every month"), *((name, "") for name in MONTHS)),
    (("*", "every weekday"), ("MON-FRI", "working days"), *((name, "") for name in WEEKDAYS)),
)  # fmt: skip


class Completion(NamedTuple):
    """Replace what stands between the offsets."""

    label: str
    detail: str
    kind: str
    start: int
    end: int


@lru_cache(maxsize=1)
def job_file_keys() -> dict[str, tuple[str, ...]]:
    """The keys of each table of a job file, by the name under which the table is written."""
    from chronex.jobfile.reader import TABLES

    return {name: tuple(keys) for name, keys in TABLES.items()}


def completions_at(document: Document, offset: int) -> list[Completion]:
    line_start = document.text.rfind("\n", 0, offset) + 1
    left = document.text[max(line_start, offset - _LONGEST_LEFT) : offset]
    if document.kind is None:
        return []
    if (zone := _ZONE_KEY.search(left)) is not None:
        return _items(((name, "", VALUE) for name in zone_names()), offset - len(zone[1]), offset)
    if document.kind == "chronex" and (named := _CALENDAR_NAME.search(left)) is not None:
        calendars = dict.fromkeys(header[1] for header in _CALENDAR_HEADER.finditer(document.text))
        return _items(((name, "calendar", VALUE) for name in calendars), offset - len(named[1]), offset)
    if document.kind == "chronex" and (named := _GROUP_NAME.search(left)) is not None:
        groups = dict.fromkeys(header[1] for header in _GROUP_HEADER.finditer(document.text))
        return _items(((name, "group", VALUE) for name in groups), offset - len(named[1]), offset)
    if document.kind == "chronex" and (typed := _CONDITION.search(left)) is not None:
        return _items(((word, detail, VALUE) for word, detail in _CONDITIONS), offset - len(typed[1]), offset)
    if document.kind == "chronex" and (named := _CHANNEL_NAME.search(left)) is not None:
        channels = dict.fromkeys(header[1] for header in _CHANNEL_HEADER.finditer(document.text))
        return _items(((name, "channel", VALUE) for name in channels), offset - len(named[1]), offset)
    if document.kind == "chronex" and (ordered := _names_at(document.text, line_start, left)) is not None:
        return _items(ordered[0], offset - len(ordered[1]), offset)
    starts = _EXPRESSION_STARTS.get(document.kind)
    inside = starts.search(left) if starts is not None else None
    if inside is not None:
        return list(_in_expression(inside[1], offset, document.kind))
    if document.kind == "chronex" and (table := _INLINE.search(left)) is not None:
        is_parameter = _table_at(document.text, line_start) == "parameters"
        names = job_file_keys().get("parameter" if is_parameter else table[1], ())
        return _items(((name, "", PROPERTY) for name in names), offset - len(table[2]), offset)
    if document.kind == "chronex" and (key := _KEY_START.match(left)) is not None:
        names = job_file_keys().get(_table_at(document.text, line_start), ())
        return _items(((name, "", PROPERTY) for name in names), offset - len(key[1]), offset)
    return []


def _names_at(text: str, line_start: int, left: str) -> tuple[Iterator[tuple[str, str, str]], str] | None:
    """What can stand behind `needs`, `after` and keys of few words, and what is typed of it; None elsewhere."""
    if (need := _NEED.search(left)) is not None:
        return ((name, "task", VALUE) for name in _tasks_of_job(text, line_start)), need[1]
    if (word := _WORD.search(left)) is not None and (words := _words_of(text, line_start, left, word[1])):
        return ((one, "", VALUE) for one in words), word[2]
    if (parent := _PARENT.search(left)) is not None:
        jobs = dict.fromkeys(header[1] for header in _JOB_HEADER.finditer(text))
        own = [header[1] for header in _JOB_HEADER.finditer(text, 0, line_start)][-1:]
        return ((name, "job", VALUE) for name in jobs if name not in own), parent[1]
    return None


def _words_of(text: str, line_start: int, left: str, key: str) -> tuple[str, ...]:
    """The words that this key takes, where it takes nothing else."""
    from chronex.jobfile.reader import TABLES
    from chronex.jobfile.values import ChoiceReader, WordReader

    table, within = _table_at(text, line_start), _WITHIN.search(left)
    if within is not None:
        table = "parameter" if table == "parameters" else within[1]
    if key == "recovery":  # a strategy alone, in place of its table
        table, key = "recovery", "strategy"
    reader = TABLES.get(table, {}).get(key)
    return tuple(reader.names) if isinstance(reader, ChoiceReader | WordReader) else ()


def _tasks_of_job(text: str, line_start: int) -> list[str]:
    """The names of the other tasks of the job whose table the line is in."""
    headers = list(_HEADER.finditer(text))
    here = [header for header in headers if header.start() < line_start]
    job = _TASKS_HEADER.match(text, here[-1].start()) if here else None
    if job is None:
        return []
    found: list[str] = []
    for index, header in enumerate(headers):
        own = _TASKS_HEADER.match(text, header.start())
        if own is not None and own[1] == job[1] and header.start() != here[-1].start():
            end = headers[index + 1].start() if index + 1 < len(headers) else len(text)
            found += _TASK_NAME.findall(text, header.end(), end)
    return found


def _items(found: Iterator[tuple[str, str, str]], start: int, end: int) -> list[Completion]:
    return [Completion(label, detail, kind, start, end) for label, detail, kind in found]


def _table_at(text: str, offset: int) -> str:
    """The table whose keys stand here, by the last header above."""
    table = "top"
    for header in _HEADER.finditer(text, 0, offset):
        parts = [part.strip(" \t\"'") for part in header[1].split(".")]
        table = _OF_NAMES[parts[0]] if len(parts) == 2 and parts[0] in _OF_NAMES else parts[-1]
    return table


def _in_expression(left: str, offset: int, kind: str) -> Iterator[Completion]:
    if kind in _WITH_OWN_OPTIONS and (option := _OPTIONS.search(left)) is not None:
        start = offset - len(option[1])
        yield from (Completion(f"{name}:", "", PROPERTY, start, offset) for name in sorted(OPTION_NAMES))
        return
    word = re.search(r"[^ \t]*$", left)
    typed = word[0] if word else ""
    before = left[: len(left) - len(typed)].split()
    start = offset - len(typed)
    if kind == "systemd":
        if not before:
            yield from (Completion(name, NICKNAMES[name], KEYWORD, start, offset) for name in NICKNAMES)
        return
    if before and before[0].startswith("TZ="):
        before = before[1:]
    if not before:
        yield from _first_words(kind, start, offset)
    if len(before) < len(_FIELDS) and not typed.startswith("@") and not (before and before[0].startswith("@")):
        yield from (Completion(text, detail, VALUE, start, offset) for text, detail in _FIELDS[len(before)])


def _first_words(kind: str, start: int, end: int) -> Iterator[Completion]:
    if kind == "github":
        return  # GitHub knows no nicknames
    for alias, meaning in ALIASES.items():
        yield Completion(alias, meaning, KEYWORD, start, end)
    if kind in _WITH_OWN_OPTIONS:
        yield Completion("@every 30m", "elapsed time between runs", KEYWORD, start, end)
        yield Completion("R/P1M", "calendar time between runs, from when it is applied", KEYWORD, start, end)
        yield Completion("@once +20m", "one run", KEYWORD, start, end)
        yield Completion("@start", "once each time the machine has started", KEYWORD, start, end)
        yield Completion("TZ=", "the zone of this expression", KEYWORD, start, end)
    elif kind in ("crontab", "cron.d"):
        yield Completion("@reboot", "when cron starts", KEYWORD, start, end)
