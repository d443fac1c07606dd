"""Fixes as edits of the text: every other byte stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chronex.lint.document import Document
from chronex.lint.findings import Assumptions, Edit, Fix, LintFinding
from chronex.lint.linter import lint_document

_MOST_ROUNDS = 8


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The edits must not overlap."""
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def fixed(
    document: Document, assume: Assumptions, is_wanted: Callable[[LintFinding], bool] = lambda finding: True
) -> Document:
    """With every safe fix applied, again and again until nothing changes.

    A round that would bring new errors is not taken: a fix may never make a file worse.
    """
    findings = lint_document(document, assume).findings
    for _ in range(_MOST_ROUNDS):
        chosen = _together(finding for finding in findings if is_wanted(finding))
        better = document.with_text(apply_edits(document.text, chosen))
        if better.text == document.text:
            break
        after = lint_document(better, assume).findings
        if _errors(after) > _errors(findings):
            break
        document, findings = better, after
    return document


def _errors(findings: Iterable[LintFinding]) -> int:
    return sum(1 for finding in findings if finding.severity == "error")


def _together(findings: Iterable[LintFinding]) -> list[Edit]:
    """The edits of all safe fixes that leave each other alone; the others are tried in the next round."""
    chosen: list[Edit] = []
    for finding in findings:
        if finding.fix is not None and finding.fix.is_safe and not _touches(finding.fix, chosen):
            chosen.extend(finding.fix.edits)
    return chosen


def _touches(fix: Fix, chosen: list[Edit]) -> bool:
    return any(a.start <= b.end and b.start <= a.end for a in fix.edits for b in chosen)
