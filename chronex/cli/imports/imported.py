"""What an import yields: jobs as tables of the job file, how the source itself would time them, and what is lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from chronex.timing.zones import Zone

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST_ID = 60
Instants = Callable[[int, int], Iterator[int]]


class Imported(NamedTuple):
    """One job. `theirs` gives the UTC seconds in [start, end) at which the source fires; `notes` say what differs
    besides time."""

    id: str
    origin: str
    table: dict[str, Any]
    zone: Zone
    theirs: Instants | None = None
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


class Names:
    """Ids for jobs: from what they run, and each given once."""

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
