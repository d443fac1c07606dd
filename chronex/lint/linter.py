"""Lint one file: find its expressions, judge each as its host reads it, leave out what is ignored, apply fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from chronex.lint.finders import FINDERS
from chronex.lint.findings import UNPARSED, Assumptions, Edit, Fix, LintFinding, ScheduleSite, finding_at, in_order
from chronex.lint.host_schedules import judge
from chronex.lint.ignores import without_ignored
from chronex.lint.rules.file_rules import file_too_long
from chronex.lint.rules.host_rules import host_findings
from chronex.lint.source_files import Document

if TYPE_CHECKING:  # the records need a library that a linter of crontabs does without
    from collections.abc import Mapping

    from chronex.model.job import Job

MAX_CHARACTERS = 2 << 20
_MOST_ROUNDS = 8
_MOST_ALONE = 20
_NO_FILE = UNPARSED | {"J018"}  # a key that is given twice


class Analysis(NamedTuple):
    """A file with its expressions and findings, both in the order of the text; of a job file, its jobs too."""

    document: Document
    sites: list[ScheduleSite]
    findings: list[LintFinding]
    jobs: Mapping[str, Job] = MappingProxyType({})


def lint_document(document: Document, assume: Assumptions) -> Analysis:
    """Never raises, whatever the text; a file of no known kind has neither sites nor findings."""
    if document.kind is None:
        return Analysis(document, [], [])
    if len(document.text) > MAX_CHARACTERS:
        return Analysis(document, [], [file_too_long(len(document.text), MAX_CHARACTERS)])
    found = FINDERS[document.kind](document, assume)
    findings = list(found.findings)
    for site in found.sites:
        findings.extend(_findings_on(site, assume.reference_ms))
    findings = [f._replace(end=len(document.text)) if f.end > len(document.text) else f for f in findings]
    kept = in_order(without_ignored(document, in_order(findings)))
    return Analysis(document, found.sites, kept, {job.id: job for job in found.jobs})


def _findings_on(site: ScheduleSite, reference_ms: int) -> Iterator[LintFinding]:
    diagnostics = judge(site, reference_ms)
    yield from (finding_at(site, d) for d in diagnostics)
    if not any(d.is_error for d in diagnostics):
        yield from host_findings(site, reference_ms)


# -- fixes as edits of the text: every other byte stays as it is ----------------------------------------------


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The edits must not overlap."""
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def fixed(
    document: Document,
    assume: Assumptions,
    is_wanted: Callable[[LintFinding], bool] = lambda finding: True,
    *,
    with_suggestions: bool = False,
) -> Document:
    """With every safe fix applied, and every other one if asked for, again and again until nothing changes.

    What would bring new errors is not taken: a fix may never make a file worse.
    """
    findings = lint_document(document, assume).findings
    for _ in range(_MOST_ROUNDS):
        fixes = [f.fix for f in findings if f.fix and is_wanted(f) and (f.fix.is_safe or with_suggestions)]
        alone = [[fix] for fix in fixes[:_MOST_ALONE]] if len(fixes) > 1 else []  # where all together do harm
        for chosen in [fixes, *alone]:
            better = document.with_text(apply_edits(document.text, _together(chosen)))
            if better.text == document.text:
                continue
            after = lint_document(better, assume).findings
            if not _is_worse(after, findings):
                document, findings = better, after
                break
        else:
            break
    return document


def _is_worse(after: list[LintFinding], before: list[LintFinding]) -> bool:
    """Has it more errors, or one because of which the file as a whole cannot be read?"""
    return _errors(after) > _errors(before) or _errors(after, _NO_FILE) > _errors(before, _NO_FILE)


def _errors(findings: Iterable[LintFinding], codes: frozenset[str] | None = None) -> int:
    return sum(1 for f in findings if f.severity == "error" and (codes is None or f.code in codes))


def _together(fixes: Iterable[Fix]) -> list[Edit]:
    """The edits of all fixes that leave each other alone; the others are tried in the next round."""
    chosen: list[Edit] = []
    for fix in fixes:
        if not _touches(fix, chosen):
            chosen.extend(fix.edits)
    return chosen


def _touches(fix: Fix, chosen: list[Edit]) -> bool:
    return any(a.start <= b.end and b.start <= a.end for a in fix.edits for b in chosen)
