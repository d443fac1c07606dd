"""Edits of a job file as text: a job more or a job less, and every other byte as it was.

A job is taken out by its tables: from the comment directly above `[jobs.NAME]` to the next header or its comment. A
comment that a blank line parts from the job, such as a heading for what follows, is not its own.
What a person wrote in another way, such as `jobs.NAME = { … }` in one line, is not touched: the caller says so.
Whoever edits reads the result again and compares the jobs, so that an edit which went wrong is never written.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import tomli_w

from chronex.jobfile.positions import Header, scan_toml

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BLANK_LINE = re.compile(r"(\r?\n)\r?\n\Z")


class Removal(NamedTuple):
    """The text without the job, and what was taken out."""

    text: str
    removed: str


def with_job(text: str, name: str, table: dict[str, Any]) -> str:
    """The text with the job at its end, one blank line apart."""
    written = tomli_w.dumps({"jobs": {name: table}}).removeprefix("[jobs]\n").lstrip("\n")
    if not text.strip():
        return text + written
    end = "" if text.endswith("\n") else "\n"
    return f"{text}{end}\n{written}"


def without_job(text: str, name: str) -> Removal | None:
    """None where the job does not stand in tables of its own."""
    parts = list[tuple[int, int]]()
    for header, (start, end) in _sections(text):
        if header.keys[:2] == ("jobs", name):
            begun = parts.pop()[0] if parts and parts[-1][1] == start else start
            parts.append((begun, end))
    if not parts:
        return None
    parts = [(start, _own_end(text, start, end)) for start, end in parts]
    kept, at = [], 0
    for start, end in parts:
        kept.append(text[at:start])
        at = end
    if at == len(text):  # the blank line that parted the last job from the others
        kept[-1] = _BLANK_LINE.sub(r"\1", kept[-1])
    kept.append(text[at:])
    return Removal("".join(kept), "".join(text[start:end] for start, end in parts))


def _own_end(text: str, start: int, end: int) -> int:
    """Where the job's own text ends: with the blank lines below it, before a comment that stands apart."""
    apart, at, is_blank = end, end, False
    for line in reversed(_LINE.findall(text[start:end])):
        at -= len(line)
        bare = line.strip()
        if bare and not bare.startswith("#"):
            break
        apart = at + len(line) if not bare and not is_blank else apart
        is_blank = not bare
    is_text = any(mark in text[apart:end] for mark in ("'''", '"""'))  # whose last line looks like a comment
    return end if is_text else apart


def line_of_job(text: str, name: str) -> int:
    """The line on which the job's first table begins, from 1; 1 where it has none."""
    start = next((header.start for header in scan_toml(text).headers if header.keys[:2] == ("jobs", name)), 0)
    return text.count("\n", 0, start) + 1


def _sections(text: str) -> list[tuple[Header, tuple[int, int]]]:
    """Each table of the text, with its comment above and what stands below it, up to the next."""
    headers = scan_toml(text.replace("\r\n", " \n")).headers  # as long as the text itself
    starts = [*(_with_comment(text, header.start) for header in headers), len(text)]
    return [(header, (starts[number], starts[number + 1])) for number, header in enumerate(headers)]


def _with_comment(text: str, start: int) -> int:
    """Where the comment begins that stands on the lines directly above."""
    while start > 0:
        line = text.rfind("\n", 0, start - 1) + 1
        if not text[line:start].lstrip().startswith("#"):
            break
        start = line
    return start
