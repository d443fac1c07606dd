"""Shared by the tests of the linter: the assumptions, and findings written short."""

from __future__ import annotations

from chronex.lint.findings import Assumptions, LintFinding, assumptions
from chronex.lint.linter import lint_document
from chronex.lint.source_files import Document, open_document
from tests.lint.golden import NOW_MS, ZONE


def assume(zone: str = ZONE) -> Assumptions:
    return assumptions(zone, "as the test says", NOW_MS)


def short(document: Document, finding: LintFinding) -> str:
    (line, column), (end_line, end_column) = document.position(finding.start), document.position(finding.end)
    return f"{line}:{column}-{end_line}:{end_column} {finding.code}"


def found(path: str, text: str, zone: str = ZONE, kind: str | None = None) -> list[str]:
    document = open_document(path, text, kind)
    return [short(document, finding) for finding in lint_document(document, assume(zone)).findings]


def codes(path: str, text: str, zone: str = ZONE) -> list[str]:
    return [entry.split()[1] for entry in found(path, text, zone)]
