"""`# chronex: ignore[W111]`: what a file's author does not want to hear, and ignores that ignore nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chronex.expr.diagnostics import WARNING
from chronex.lint.comments import comment_test
from chronex.lint.document import Document
from chronex.lint.findings import INFO, Edit, Finding, Fix
from chronex.text.terminal import quoted

_IGNORE = re.compile(r"[#;][ \t]*chronex:[ \t]*ignore(-file)?(?:\[([^\]\n]*)\])?")
_FILE_LINES = 10
_COMMENT_MARKS = {"systemd": ("#", ";")}


class Ignore(NamedTuple):
    """`line` is the line that it speaks for; None for the whole file."""

    codes: tuple[str, ...]
    line: int | None
    start: int
    end: int
    removal: Edit

    def covers(self, finding: Finding, line: int) -> bool:
        if self.line is not None and self.line != line:
            return False
        return not self.codes or any(finding.code.startswith(code) for code in self.codes)


def without_ignored(document: Document, findings: Iterable[Finding]) -> list[Finding]:
    """The findings that nobody asked to ignore, and what is wrong with the asking."""
    if "chronex:" not in document.text or "ignore" not in document.text:
        return list(findings)
    ignores = list(_ignores(document))
    kept: list[Finding] = []
    used: set[Ignore] = set()
    for finding in findings:
        line, _ = document.position(finding.start)
        covering = [ignore for ignore in ignores if ignore.covers(finding, line)]
        used.update(covering)
        if not covering:
            kept.append(finding)
    kept.extend(_about(ignores, used))
    return kept


def _about(ignores: list[Ignore], used: set[Ignore]) -> Iterator[Finding]:
    for ignore in ignores:
        if ignore not in used:
            what = f"[{quoted(', '.join(ignore.codes))[1:-1]}]" if ignore.codes else ""
            message = f"nothing is found here that ignore{what} could silence: remove it"
            fix = Fix("remove the comment", (ignore.removal,))
            yield Finding("W142", WARNING, message, ignore.start, ignore.end, fix)
        elif not ignore.codes:
            message = "an ignore without a code silences whatever comes later too; name it: ignore[W111]"
            yield Finding("W141", INFO, message, ignore.start, ignore.end)


def _ignores(document: Document) -> Iterator[Ignore]:
    is_comment = comment_test(document)
    for match in _IGNORE.finditer(document.text):
        if not is_comment(match.start()):
            continue
        line, _ = document.position(match.start())
        start_of_line = document.lines.start_of_line(line)
        before = document.text[start_of_line : match.start()]
        is_alone = not before.strip()
        codes = tuple(code.strip().upper() for code in (match[2] or "").split(",") if code.strip())
        target: int | None = line if not is_alone else _next_line(document, line)
        if match[1]:
            if line > _FILE_LINES:
                continue
            target = None
        yield Ignore(codes, target, match.start(), match.end(), _removal(document, line, match, before))


def _next_line(document: Document, line: int) -> int:
    """The first line below that says something."""
    for number in range(line + 1, document.lines.count + 1):
        text = document.line(number).strip()
        if text and not text.startswith(_COMMENT_MARKS.get(document.kind or "", ("#",))):
            return number
    return line


def _removal(document: Document, line: int, match: re.Match[str], before: str) -> Edit:
    """The comment alone; with its line when nothing else stands there, else with the blanks before it."""
    start_of_line, end_of_line = document.lines.start_of_line(line), document.lines.end_of_line(line)
    rest = document.text[match.end() : end_of_line]
    if rest.strip():  # a longer comment that goes on
        return Edit(match.start(), match.end() + len(rest) - len(rest.lstrip()), "# ")
    if before.strip():
        return Edit(start_of_line + len(before.rstrip()), end_of_line - len(rest) + len(rest.rstrip("\r")), "")
    return Edit(start_of_line, min(end_of_line + 1, len(document.text)), "")
