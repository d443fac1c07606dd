"""A schedule and its zone: the expression's own findings, at their place in the file."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from chronex.expr.diagnostics import Diagnostic, ValidationResult
from chronex.jobfile.entries import Entry, RefusedError
from chronex.jobfile.values import filled_text
from chronex.timing import parse, validate


class Schedule(NamedTuple):
    """The text as written, the zone that applies, what kind of schedule it is, and the tags that stand in it."""

    text: str
    timezone: str
    kind: str
    tags: tuple[str, ...] = ()


class _UnsoundError(Exception):
    def __init__(self, verdict: ValidationResult) -> None:
        self.verdict = verdict


def schedule(entry: Entry, dialect: str, zone: str) -> Schedule:
    """The expression; a zone written in it wins over the job's."""
    text = filled_text(entry)
    try:
        found, warnings = _sound(text, dialect, zone)
    except _UnsoundError as refused:
        for finding in refused.verdict.errors:
            span = entry.span_inside(finding.start, finding.end)
            entry.report(finding.labelled_problem, _hint(finding), finding.code, span)
        found, warnings = None, refused.verdict.warnings
    for finding in warnings:
        span = entry.span_inside(finding.start, finding.end)
        entry.warn(finding.labelled_problem, _hint(finding), finding.code, span)
    if found is None:
        raise RefusedError
    return found


@lru_cache(maxsize=4096)
def _sound(text: str, dialect: str, zone: str) -> tuple[Schedule, tuple[Diagnostic, ...]]:
    """A file of ten thousand jobs has far fewer schedules. A refusal is not kept: zone data may come later."""
    verdict = validate(text, dialect, zone)
    if verdict.errors:
        raise _UnsoundError(verdict)
    expression = parse(text, dialect, zone)
    found = Schedule(text, expression.timezone or zone, expression.kind, expression.options.tags)
    return found, tuple(verdict.warnings)


def _hint(finding: Diagnostic) -> str:
    if finding.hint:
        return finding.hint
    if finding.fix is not None:
        return f"write {finding.fix}" if finding.fix else "remove it"
    return "chronex explain tries an expression out"
