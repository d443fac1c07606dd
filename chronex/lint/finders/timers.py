"""systemd timers: every `OnCalendar=` of the `[Timer]` section."""

from __future__ import annotations

import re
from pathlib import PurePath

from chronex.lint.assumptions import Assumptions
from chronex.lint.document import Document, is_template
from chronex.lint.findings import Found, Place
from chronex.lint.hosts import SYSTEMD

_LINE = re.compile(r"(?:[^\n]*\\\r?\n)*[^\n]*(?:\n|$)")
_SECTION = re.compile(r"[ \t]*\[([^\]\n]*)\][ \t\r\n]*")
_ON_CALENDAR = re.compile(r"[ \t]*OnCalendar[ \t]*=[ \t]*")


def find_timer(document: Document, assume: Assumptions) -> Found:
    found, section = Found([], []), ""
    unit = PurePath(document.path).name
    for line in _LINE.finditer(document.text):
        text = line[0]
        if text.lstrip(" \t").startswith(("#", ";")):
            continue  # a comment does not continue on the next line, whatever it ends with
        if (header := _SECTION.fullmatch(text)) is not None:
            section = header[1]
        elif section == "Timer" and (key := _ON_CALENDAR.match(text)):
            _event(text[key.end() :], line.start() + key.end(), unit, assume, found)
    return found


def _event(raw: str, start: int, unit: str, assume: Assumptions, found: Found) -> None:
    value = raw.rstrip(" \t\r\n")
    if not value or is_template(value):
        return  # nothing resets the list; what a template fills in is not there yet
    is_joined = "\\\n" in value or "\\\r\n" in value
    text = re.sub(r"\\\r?\n", " ", value)
    content = None if is_joined else start
    found.places.append(Place(text, start, start + len(value), content, SYSTEMD, assume.zone, unit))
