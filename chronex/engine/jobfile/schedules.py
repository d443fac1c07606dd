"""A schedule and its zone: the expression's own findings, at their place in the file."""

from __future__ import annotations

from typing import NamedTuple

from chronex.engine.jobfile.entries import Entry, RefusedError
from chronex.engine.jobfile.values import filled_text
from chronex.expr.diagnostics import Diagnostic
from chronex.timing import parse, validate


class Schedule(NamedTuple):
    """The text as written, the zone that applies, what kind of schedule it is, and the tags that stand in it."""

    text: str
    timezone: str
    kind: str
    tags: tuple[str, ...] = ()


def schedule(entry: Entry, dialect: str, zone: str) -> Schedule:
    """The expression; a zone written in it wins over the job's."""
    text = filled_text(entry)
    verdict = validate(text, dialect, zone)
    for finding in verdict.warnings:
        entry.warn(*_told(finding), finding.code, entry.span_inside(finding.start, finding.end))
    for finding in verdict.errors:
        entry.report(*_told(finding), finding.code, entry.span_inside(finding.start, finding.end))
    if verdict.errors:
        raise RefusedError
    expression = parse(text, dialect, zone)
    return Schedule(text, expression.timezone or zone, expression.kind, expression.options.tags)


def _told(finding: Diagnostic) -> tuple[str, str]:
    sentence, _, hint = str(finding).partition("; ")
    if not hint and finding.fix is not None:
        hint = f"write {finding.fix}" if finding.fix else "remove it"
    return sentence, hint or "chronex explain tries an expression out"
