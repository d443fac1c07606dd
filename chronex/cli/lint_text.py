"""Findings for people: one line each for a file, carets under an expression, carets under both on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from chronex.cli.carets import CaretMark, caret_lines
from chronex.cli.terminal import inert, out, paint
from chronex.expr.diagnostics import ERROR
from chronex.lint.document import Document
from chronex.lint.findings import LintFinding
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


def _line(document: Document, finding: LintFinding) -> str:
    line, column = document.position(finding.start)
    fix = f" [{finding.fix.title}]" if finding.fix is not None else ""
    colour = "red" if finding.severity == ERROR else "yellow"
    message = inert(f"{finding.message}{fix}")
    return f"{inert(document.path)}:{line}:{column}: {paint(finding.code, colour, 'bold')} {message}"


def _carets(document: Document, line: int, findings: list[LintFinding]) -> Iterator[str]:
    text, start = document.line(line), document.lines.start_of_line(line)
    shows_message = document.kind in _EXPRESSIONS  # elsewhere the line above has it
    marks = (
        CaretMark(f.code, f.severity, f.start - start, f.end - start, inert(f.message) if shows_message else "")
        for f in findings
    )
    yield from caret_lines(text, marks)


def list_rules(form: str) -> int:
    from chronex.lint.rules import rules

    if form == "json":
        import json

        rows = [{"code": r.code, "severity": r.severity, "title": r.title} for r in rules().values()]
        out(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    for rule in rules().values():
        out(f"{rule.code}  {rule.severity:<7}  {rule.title}")
    return 0
