"""Lint one file: find its expressions, judge each as its host reads it, leave out what is ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import NamedTuple

from chronex.expr.diagnostics import ERROR, WARNING, Diagnostic
from chronex.lint.assumptions import Assumptions, FileProblem
from chronex.lint.document import Document
from chronex.lint.findings import UNREADABLE, Edit, Finding, Fix, Found, Place, in_order
from chronex.lint.ignores import without_ignored
from chronex.lint.schedules import judge

MAX_CHARACTERS = 2 << 20
_SAFE_WARNINGS = {"W107", "W108"}
# Finders are loaded when a file of their kind comes: YAML alone takes as long as the rest.
_FINDERS: dict[str, tuple[str, str, dict[str, bool]]] = {
    "chronex": ("job_files", "find_jobs", {}),
    "crontab": ("crontab", "find_crontab", {"has_user": False}),
    "cron.d": ("crontab", "find_crontab", {"has_user": True}),
    "github": ("workflows", "find_workflow", {}),
    "k8s": ("cronjobs", "find_cronjobs", {}),
    "systemd": ("timers", "find_timer", {}),
    "trigger": ("triggers", "find_triggers", {}),
    "python": ("python_calls", "find_calls", {}),
    "expressions": ("expression_lines", "find_expressions", {"is_posix": False}),
    "posix": ("expression_lines", "find_expressions", {"is_posix": True}),
}


class Analysis(NamedTuple):
    """A file with its expressions and findings, both in the order of the text."""

    document: Document
    places: list[Place]
    findings: list[Finding]


def lint_document(document: Document, assume: Assumptions) -> Analysis:
    """Never raises, whatever the text; a file of no known kind has neither places nor findings."""
    if document.kind is None:
        return Analysis(document, [], [])
    if len(document.text) > MAX_CHARACTERS:
        message = f"the file has {len(document.text)} characters; at most {MAX_CHARACTERS} are read"
        return Analysis(document, [], [Finding(UNREADABLE, ERROR, message, 0, 1)])
    found = _finder(document.kind)(document, assume)
    findings = [*found.findings, *_all_of(document, found.places, assume)]
    findings = [f._replace(end=len(document.text)) if f.end > len(document.text) else f for f in findings]
    return Analysis(document, found.places, in_order(without_ignored(document, in_order(findings))))


def _finder(kind: str) -> Callable[[Document, Assumptions], Found]:
    module, name, options = _FINDERS[kind]
    finder: Callable[..., Found] = getattr(import_module(f"chronex.lint.finders.{module}"), name)
    return partial(finder, **options)


def _all_of(document: Document, places: list[Place], assume: Assumptions) -> Iterator[Finding]:
    from chronex.lint.host_rules import job_file_rules, place_rules

    for place in places:
        diagnostics = judge(place, assume.reference_ms)
        yield from (_at(place, d) for d in diagnostics)
        if not any(d.is_error for d in diagnostics):
            yield from place_rules(place, assume.reference_ms)
    if document.kind == "chronex":
        yield from job_file_rules(document, places, assume.reference_ms)
        if assume.job_file is not None:
            yield from _told(document, assume.job_file(document.text, document.path, assume.zone.name))
    elif document.kind == "trigger" and assume.triggers is not None and places:
        yield from _told(document, assume.triggers(document.text, document.path, assume.zone.name))


def _at(place: Place, d: Diagnostic) -> Finding:
    start, end = place.span(d.start, d.end)
    fix = None
    if d.fix is not None and (edit := place.edit(d.start, d.end, d.fix)) is not None:
        title = f"write {d.fix}" if d.fix.strip() else "remove it"
        fix = Fix(title, (edit,), is_safe=d.is_error or d.code in _SAFE_WARNINGS)
    return Finding(d.code, d.severity, str(d), start, max(end, start), fix, place)


def _told(document: Document, problems: Iterable[FileProblem]) -> Iterator[Finding]:
    """What the reader of job files found, but for the expressions, which are judged here with the date."""
    for problem in problems:
        if not problem.code.startswith("J"):
            continue
        start = document.lines.start_of_line(problem.line) + problem.column - 1
        start = min(start, len(document.text))
        end = min(start + problem.end_column - problem.column, document.lines.end_of_line(problem.line))
        fix = None
        if problem.fix is not None:
            fix = Fix(f"write {problem.fix}", (Edit(start, end, problem.fix),))
        yield Finding(
            problem.code, ERROR if problem.is_error else WARNING, problem.message, start, max(start, end), fix
        )
