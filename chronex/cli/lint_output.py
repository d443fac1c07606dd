"""Findings and fixes as lint prints them.

In text a finding in a file is one line, a finding in an expression has carets under it, and a terminal gets both.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from chronex.cli.arguments import UsageError
from chronex.cli.output import CaretMark, caret_lines, out, paint, print_json
from chronex.expr.diagnostics import ERROR
from chronex.lint.findings import LintFinding
from chronex.lint.formats import WRITERS, Item, LintOutput
from chronex.lint.source_files import BYTE_ORDER_MARK, Document
from chronex.text.files import replace_file
from chronex.text.terminal import terminal_safe

_EXPRESSIONS = ("expressions", "posix")  # the kinds of documents that hold bare expressions


def print_findings(form: str, output: LintOutput, show: Callable[[str], None]) -> None:
    """JSON and SARIF go to programs as they are; forms that a person may read have no control characters."""
    if form == "text":
        for line in _text(output.items):
            show(line)
        return
    is_for_programs = form in ("json", "sarif") and not sys.stdout.isatty()
    for text in WRITERS[form](output):
        for line in [text] if is_for_programs else text.split("\n"):
            show(line if is_for_programs else terminal_safe(line))


def print_fixed(document: Document) -> None:
    """A whole file as it is, byte by byte; expressions one a line. A terminal gets no control characters."""
    if document.kind in _EXPRESSIONS:
        for line in document.text.split("\n"):
            if line.strip():
                out(terminal_safe(line.rstrip("\r")))
    elif sys.stdout.isatty():
        for line in document.text.split("\n"):
            out(terminal_safe(line))
    else:
        sys.stdout.flush()
        mark = BYTE_ORDER_MARK if document.has_mark else ""
        sys.stdout.buffer.write((mark + document.text).encode("utf-8"))
        sys.stdout.buffer.flush()


def write_fixed(document: Document) -> None:
    """Write the whole new file or none: a crontab cut short by a full disk would be worse than any finding."""

    mark = BYTE_ORDER_MARK if document.has_mark else ""
    try:
        replace_file(Path(document.path).resolve(), (mark + document.text).encode("utf-8"))
    except OSError as error:
        raise UsageError(f"{terminal_safe(document.path)} cannot be written: {error.strerror}") from None


def print_diff(before: Document, after: Document) -> None:
    old, new = before.text.splitlines(keepends=True), after.text.splitlines(keepends=True)
    for line in difflib.unified_diff(old, new, before.path, before.path):
        out(terminal_safe(line.rstrip("\r\n")))
        if not line.endswith("\n"):
            out("\\ No newline at end of file")


def _text(items: Sequence[Item]) -> Iterator[str]:
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
    message = terminal_safe(f"{finding.message}{fix}")
    return f"{terminal_safe(document.path)}:{line}:{column}: {paint(finding.code, colour, 'bold')} {message}"


def _carets(document: Document, line: int, findings: list[LintFinding]) -> Iterator[str]:
    text, start = document.line(line), document.lines.start_of_line(line)
    shows_message = document.kind in _EXPRESSIONS  # elsewhere the line above has it
    marks = (
        CaretMark(
            f.code, f.severity, f.start - start, f.end - start, terminal_safe(f.message) if shows_message else ""
        )
        for f in findings
    )
    yield from caret_lines(text, marks)


def print_rules(form: str) -> None:
    from chronex.lint.rules import rules

    if form == "json":
        rows = [{"code": r.code, "severity": r.severity, "title": r.title} for r in rules().values()]
        print_json(rows, ensure_ascii=False)
        return
    for rule in rules().values():
        out(f"{rule.code}  {rule.severity:<7}  {rule.title}")
