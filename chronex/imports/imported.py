"""The result of an import: jobs as tables of the job file, when the source fires them, and what was lost.

The job file is written from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tomli_w

from chronex.timing.zones import Zone

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST_ID = 60
_WHY_DEFAULTS = {
    "crontab": "As cron does: runs may overlap, and what was missed is not made up. Chronex's own defaults\n"
    '# (overlap = "skip", recovery = "execute_last") are often the better choice.',
    "systemd": "As systemd does: a unit that is active is not started again.",
    "kubernetes": "As Kubernetes does; each job says its own concurrency below.",
}
Instants = Callable[[int, int], Iterator[int]]


class Imported(NamedTuple):
    """One job. `source_instants` gives the UTC seconds in [start, end) at which the source fires, None where they
    cannot be computed; `notes` say what differs besides time."""

    id: str
    origin: str
    table: dict[str, Any]
    zone: Zone
    source_instants: Instants | None = None
    notes: tuple[str, ...] = ()


class Lost(NamedTuple):
    """Something of the source that has no equivalent."""

    origin: str
    text: str
    why: str


class Import(NamedTuple):
    source: str
    timezone: str
    defaults: dict[str, Any]
    jobs: list[Imported]
    lost: list[Lost]

    def add(self, entry: Imported | Lost) -> None:
        if isinstance(entry, Imported):
            self.jobs.append(entry)
        else:
            self.lost.append(entry)


class JobNames:
    """Ids for jobs, made from what they run; each is given once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def give(self, text: str) -> str:
        stem = _NOT_IN_AN_ID.sub("-", text).strip("-")[:_LONGEST_ID] or "job"
        name, number = stem, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name.lower())
        return name


# -- the job file that an import writes ----------------------------------------------------------------------------


def job_file_text(found: Import) -> str:
    return "\n".join(_parts(found))


def _parts(found: Import) -> Iterator[str]:
    yield f"# Imported from {found.source} by chronex import."
    for lost in found.lost:
        yield f"# NOT CARRIED OVER, {lost.origin}: {_one_line(lost.text)}"
        yield f"#   {_one_line(lost.why)}"
    yield ""
    yield tomli_w.dumps({"scheduler": {"timezone": found.timezone}})
    if found.defaults:
        yield f"# {_WHY_DEFAULTS[found.source]}"
        yield tomli_w.dumps({"defaults": found.defaults})
    for job in found.jobs:
        yield f"# {job.origin}"
        yield from (f"# {_one_line(note)}" for note in job.notes)
        yield tomli_w.dumps({"jobs": {job.id: job.table}}).removeprefix("[jobs]\n")


def _one_line(text: str) -> str:
    """The text for a comment, which ends with its line and may hold no control characters in TOML."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
