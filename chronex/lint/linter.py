"""Lint one file: find its expressions, judge each as its host reads it, leave out what is ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chronex.lint.document import Document
from chronex.lint.finders import FINDERS
from chronex.lint.findings import Assumptions, LintFinding, ScheduleSite, finding_at, in_order
from chronex.lint.host_schedules import judge
from chronex.lint.ignores import without_ignored
from chronex.lint.rules.file_rules import file_too_long
from chronex.lint.rules.host_rules import host_findings

MAX_CHARACTERS = 2 << 20


class Analysis(NamedTuple):
    """A file with its expressions and findings, both in the order of the text."""

    document: Document
    sites: list[ScheduleSite]
    findings: list[LintFinding]


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
    return Analysis(document, found.sites, in_order(without_ignored(document, in_order(findings))))


def _findings_on(site: ScheduleSite, reference_ms: int) -> Iterator[LintFinding]:
    diagnostics = judge(site, reference_ms)
    yield from (finding_at(site, d) for d in diagnostics)
    if not any(d.is_error for d in diagnostics):
        yield from host_findings(site, reference_ms)
