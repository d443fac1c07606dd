"""Findings for people: the expression once, and under it a caret line for each finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chronex.cli.terminal import inert, paint, width
from chronex.expr.diagnostics import ERROR, Diagnostic

_LONGEST_LINE = 160


class CaretMark(NamedTuple):
    """A part of a line with what is said under it."""

    code: str
    severity: str
    start: int
    end: int
    message: str

    def __str__(self) -> str:
        return self.message


def caret_lines(text: str, diagnostics: Iterable[Diagnostic | CaretMark], *, indent: str = "  ") -> Iterator[str]:
    """The source line, then for each finding carets under its exact span, the code and the message."""
    shown = inert(text)
    yield indent + (shown if len(shown) <= _LONGEST_LINE else shown[: _LONGEST_LINE - 1] + "…")
    for d in diagnostics:
        start = min(d.start, _LONGEST_LINE - 1)
        marks = max(width(text[d.start : min(d.end, _LONGEST_LINE)]), 1)
        colour = "red" if d.severity == ERROR else "yellow"
        pointer = " " * width(text[:start]) + paint("^" * marks, colour)
        yield f"{indent}{pointer} {paint(d.code, colour, 'bold')} {d}"
