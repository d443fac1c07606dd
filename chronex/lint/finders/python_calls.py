"""Python: the text given to `chronex.parse`, under whatever name it was imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from chronex.jobfile.positions import LineIndex
from chronex.lint.document import Document
from chronex.lint.findings import Assumptions, FinderResult, ScheduleSite, ZoneNote
from chronex.lint.hosts import CHRONEX, POSIX

_UTC = ZoneNote("UTC", "chronex.parse without tz reads in UTC")


def find_calls(document: Document, assume: Assumptions) -> FinderResult:
    tree = _parsed(document.text)
    if tree is None:
        return FinderResult([], [])
    names = _Names(tree)
    source = _Source(document.text)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and names.is_parse(node.func))
    sites = [site for call in calls if (site := _site(call, source)) is not None]
    return FinderResult(sorted(sites, key=lambda site: site.start), [])


def _parsed(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in someone's string is not this linter's subject
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


class _Names:
    """What the file calls the module `chronex` and its function `parse`."""

    def __init__(self, tree: ast.Module) -> None:
        self.modules: set[str] = set()
        self.functions: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.modules.update(a.asname or a.name for a in node.names if a.name == "chronex")
            elif isinstance(node, ast.ImportFrom) and node.module == "chronex" and not node.level:
                self.functions.update(a.asname or a.name for a in node.names if a.name == "parse")

    def is_parse(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return function.id in self.functions
        if not isinstance(function, ast.Attribute) or function.attr != "parse":
            return False
        return isinstance(function.value, ast.Name) and function.value.id in self.modules


class _Source:
    """Offsets of nodes, whose columns Python counts in bytes of UTF-8."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = LineIndex(text.replace("\x0c", " "))

    def offset(self, line: int, byte_column: int) -> int:
        start = self.lines.start_of_line(line)
        whole = self.text[start : self.lines.end_of_line(line)]
        return start + len(whole.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))


def _site(call: ast.Call, source: _Source) -> ScheduleSite | None:
    given = dict(zip(("text", "dialect", "tz"), call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
    node = given.get("text")
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    dialect, zone = given.get("dialect"), given.get("tz")
    host = POSIX if isinstance(dialect, ast.Constant) and dialect.value == "posix" else CHRONEX
    note = _UTC
    if isinstance(zone, ast.Constant) and isinstance(zone.value, str):
        note = ZoneNote(zone.value, "from tz= of the call")
    start = source.offset(node.lineno, node.col_offset)
    end = source.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return ScheduleSite(
        node.value, start, end, _content(node.value, source.text[start:end], start), host, note, "parse"
    )


def _content(value: str, raw: str, start: int) -> int | None:
    """Where the value begins, when it stands in the source as it is: no escapes, no pieces put together."""
    for at in _quote_ends(raw):
        quotes = at - len(raw[:at].rstrip("\"'"))
        if raw[at : len(raw) - quotes] == value:
            return start + at
    return None


def _quote_ends(raw: str) -> Iterator[int]:
    prefix = len(raw) - len(raw.lstrip("rRuU"))
    yield from (prefix + quotes for quotes in (3, 1) if raw[prefix : prefix + quotes] in ('"""', "'''", '"', "'"))
