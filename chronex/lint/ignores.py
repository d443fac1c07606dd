"""`# chronex: ignore[W111]`: findings that a file's author accepts, and ignores that ignore nothing."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from chronex.jobfile.positions import LineIndex, TextNode, scan_toml
from chronex.lint.findings import UNPARSED, Edit, LintFinding
from chronex.lint.rules import is_named
from chronex.lint.rules.file_rules import ignore_without_code, unused_ignore
from chronex.lint.source_files import Document

_IGNORE = re.compile(r"[#;][ \t]*chronex:[ \t]*ignore(-file)?(?:\[([^\]\n]*)\])?")
_FILE_LINES = 10
_COMMENT_MARKS = {"systemd": ("#", ";")}


class Ignore(NamedTuple):
    """`line` is the line that it covers; None for the whole file."""

    codes: tuple[str, ...]
    line: int | None
    start: int
    end: int
    removal: Edit

    def covers(self, finding: LintFinding, line: int) -> bool:
        if self.line is not None and self.line != line:
            return False
        return not self.codes or is_named(finding.code, self.codes)


def without_ignored(document: Document, findings: Iterable[LintFinding]) -> list[LintFinding]:
    """The findings that no comment ignores, and what is wrong with the comments."""
    if "chronex:" not in document.text or "ignore" not in document.text:
        return list(findings)
    ignores = list(_ignores(document))
    kept: list[LintFinding] = []
    used: set[Ignore] = set()
    for finding in findings:
        line, _ = document.position(finding.start)
        covering = [ignore for ignore in ignores if ignore.covers(finding, line)]
        used.update(covering)
        if not covering:
            kept.append(finding)
    if not any(finding.code in UNPARSED for finding in kept):  # else nobody knows what is a comment and what a text
        kept.extend(_about(ignores, used))
    return kept


def _about(ignores: list[Ignore], used: set[Ignore]) -> Iterator[LintFinding]:
    for ignore in ignores:
        if ignore not in used:
            yield unused_ignore(ignore.codes, ignore.start, ignore.end, ignore.removal)
        elif not ignore.codes:
            yield ignore_without_code(ignore.start, ignore.end)


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
    start_of_line = document.lines.start_of_line(line)
    end_of_line = document.lines.end_of_line(line)
    rest = document.text[match.end() : end_of_line]
    if rest.strip():  # a longer comment that goes on
        return Edit(match.start(), match.end() + len(rest) - len(rest.lstrip()), "# ")
    if before.strip():
        return Edit(start_of_line + len(before.rstrip()), end_of_line - len(rest) + len(rest.rstrip("\r")), "")
    return Edit(start_of_line, min(end_of_line + 1, len(document.text)), "")


# -- comments ---------------------------------------------------------------------------------------------

Spans = list[tuple[int, int]]


def comment_test(document: Document) -> Callable[[int], bool]:
    """Does a comment begin at this offset? In a crontab and a unit file only at the start of a line."""
    match document.kind:
        case "trigger" | "posix" | None:
            return lambda offset: False
        case "crontab" | "cron.d" | "systemd" | "expressions":
            return lambda offset: not document.text[document.text.rfind("\n", 0, offset) + 1 : offset].strip()
        case "python":
            return set(_python_comments(document.text)).__contains__
        case "chronex":
            return _outside(list(_toml_strings(document.text)))
        case _:
            return _outside(list(_yaml_scalars(document.text)))


def _outside(spans: Spans) -> Callable[[int], bool]:
    spans.sort()
    starts = [start for start, _ in spans]

    def test(offset: int) -> bool:
        at = bisect_right(starts, offset) - 1
        return at < 0 or offset >= spans[at][1]

    return test


def _python_comments(text: str) -> Iterator[int]:
    lines = LineIndex(text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if token.type == tokenize.COMMENT:
                yield lines.start_of_line(token.start[0]) + token.start[1]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return  # half typed: the comments up to here


def _toml_strings(text: str) -> Iterator[tuple[int, int]]:
    waiting: list[TextNode] = [scan_toml(text.replace("\r\n", " \n")).root]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children.values())
        if text[node.value.start : node.value.start + 1] in ("'", '"'):
            yield node.value


def _yaml_scalars(text: str) -> Iterator[tuple[int, int]]:
    from chronex.lint.yaml_nodes import YamlMapping, YamlScalar, YamlSequence, read_yaml

    waiting, _ = read_yaml(text)
    while waiting:
        node = waiting.pop()
        if isinstance(node, YamlScalar):
            yield node.start, node.end
        elif isinstance(node, YamlMapping):
            waiting.extend(part for pair in node.pairs for part in pair)
        elif isinstance(node, YamlSequence):
            waiting.extend(node.written)
