"""Lint one expression at a place in a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chronex.expr.diagnostics import Diagnostic, ValidationResult
from chronex.timing import validate
from chronex.timing.zones import Zone

_MOST_ROUNDS = 8


class Source(NamedTuple):
    """An expression and where it stands: `path` is a file's name, or what stands for it; `line` is 1-based."""

    text: str
    path: str
    line: int


class Linted(NamedTuple):
    source: Source
    result: ValidationResult

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.result.diagnostics


class Settings(NamedTuple):
    dialect: str
    zone: Zone
    reference_ms: int


def lint(sources: Iterable[Source], settings: Settings) -> Iterator[Linted]:
    for source in sources:
        result = validate(source.text, settings.dialect, settings.zone.tzinfo, settings.reference_ms)
        yield Linted(source, result)


def fixed(text: str, settings: Settings) -> str:
    """The text with every fix applied, again and again until nothing changes."""
    for _ in range(_MOST_ROUNDS):
        result = validate(text, settings.dialect, settings.zone.tzinfo, settings.reference_ms)
        better = _apply(text, result.diagnostics)
        if better == text:
            break
        text = better
    return text


def _apply(text: str, diagnostics: Iterable[Diagnostic]) -> str:
    """All fixes that do not overlap, from the end of the text to its start."""
    limit = len(text) + 1
    for diagnostic in sorted(diagnostics, key=lambda d: -d.start):
        if diagnostic.fix is not None and diagnostic.end <= limit:
            text = text[: diagnostic.start] + diagnostic.fix + text[diagnostic.end :]
            limit = diagnostic.start
    return text
