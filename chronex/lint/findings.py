"""What was found in a file: where it stands, what will happen, and the edits that put it right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chronex.expr.diagnostics import ERROR, WARNING
from chronex.lint.hosts import Host
from chronex.timing.dst import DstPolicy

INFO = "info"
SEVERITIES = (ERROR, WARNING, INFO)  # the worst first
UNREADABLE = "W140"


class Edit(NamedTuple):
    """Replace what stands between two offsets of the file."""

    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """A safe fix changes no schedule that worked: its host refused the text, or reads both texts alike."""

    title: str
    edits: tuple[Edit, ...]
    is_safe: bool = True


class ZoneNote(NamedTuple):
    """The zone in which a host reads a schedule, and how that is known."""

    name: str
    why: str


class Place(NamedTuple):
    """An expression and where it stands. `start` and `end` enclose its quotes too; `content` is where its first
    character stands, None when escapes or folded lines keep offsets from being told."""

    text: str
    start: int
    end: int
    content: int | None
    host: Host
    zone: ZoneNote
    name: str = ""
    policy: DstPolicy | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A part of the expression in the file; the whole of it where parts cannot be told."""
        if self.content is None:
            return self.start, self.end
        return self.content + start, self.content + end

    def edit(self, start: int, end: int, text: str) -> Edit | None:
        return None if self.content is None else Edit(self.content + start, self.content + end, text)


class Finding(NamedTuple):
    """One finding. Offsets count from the start of the file; a message says what will happen."""

    code: str
    severity: str
    message: str
    start: int
    end: int
    fix: Fix | None = None
    place: Place | None = None


class Found(NamedTuple):
    """What a finder saw in a file: the expressions, and what is wrong around them."""

    places: list[Place]
    findings: list[Finding]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """In the order of the file, none twice."""
    return sorted(dict.fromkeys(findings), key=lambda f: (f.start, f.end, f.code, f.message))


def is_at_least(severity: str, threshold: str) -> bool:
    return SEVERITIES.index(severity) <= SEVERITIES.index(threshold)
