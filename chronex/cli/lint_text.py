"""Findings for people: one line each for a file, carets under an expression, carets under both on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from chronex.cli.carets import caret_lines
from chronex.cli.terminal import inert, out, paint
from chronex.expr.diagnostics import ERROR, Diagnostic
from chronex.lint.document import Document
from chronex.lint.findings import Finding
from chronex.lint.formats import Item

_EXPRESSIONS = ("expressions", "posix")


def as_text(items: Sequence[Item]) -> Iterator[str]:
    for (document, line), group in groupby(items, key=lambda item: (item[0], item[0].position(item[1].start)[0])):
        findings = [finding for _, finding in group]
        if document.kind in _EXPRESSIONS:
            yield f"{document.path}:{line}"
            yield from _carets(document, line, findings)
        else:
            yield from (_line(document, finding) for finding in findings)
            if sys.stdout.isatty():
                yield from _carets(document, line, findings)


def _line(document: Document, finding: Finding) -> str:
    line, column = document.position(finding.start)
    fix = f" [{finding.fix.title}]" if finding.fix is not None else ""
    colour = "red" if finding.severity == ERROR else "yellow"
    message = inert(f"{finding.message}{fix}")
    return f"{inert(document.path)}:{line}:{column}: {paint(finding.code, colour, 'bold')} {message}"


def _carets(document: Document, line: int, findings: list[Finding]) -> Iterator[str]:
    text, start = document.line(line), document.lines.start_of_line(line)
    marks = (
        Diagnostic(
            f.code, "expression", inert(f.message), "", f.start - start, f.end - start, severity=f.severity
        )
        for f in findings
    )  # fmt: skip
    if document.kind in _EXPRESSIONS:
        yield from caret_lines(text, marks)
    else:
        yield from caret_lines(text, [mark._replace(message="") for mark in marks])


def list_rules(form: str) -> int:
    from chronex.lint.catalogue import rules

    if form == "json":
        import json

        rows = [{"code": r.code, "severity": r.severity, "title": r.title} for r in rules().values()]
        out(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    for rule in rules().values():
        out(f"{rule.code}  {rule.severity:<7}  {rule.title}")
    return 0
