"""Edits of a job file as text: a job more or a job less, and every other byte as it was.

A job is taken out by its tables: from the comment directly above `[jobs.NAME]` to the next header or its comment.
What a person wrote in another way, such as `jobs.NAME = { … }` in one line, is not touched: the caller says so.
Whoever edits reads the result again and compares the jobs, so that an edit which went wrong is never written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tomli_w

from chronex.jobfile.positions import Header, scan_toml


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
    parts = [span for header, span in _sections(text) if header.keys[:2] == ("jobs", name)]
    if not parts:
        return None
    kept, at = [], 0
    for start, end in parts:
        kept.append(text[at:start])
        at = end
    kept.append(text[at:])
    return Removal("".join(kept), "".join(text[start:end] for start, end in parts))


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
