"""Where every key and value of a TOML or JSON text stands, since tomllib and json give no positions.

The scanner checks nothing that the real parsers check. It reads any text without raising, stops where it
understands no more (the real parser then says what is wrong), and gives the parts of a valid text exactly.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

# No job file needs more; a parser that recurses, or grows with the square of the depth, never sees more.
MAX_DEPTH = 32

_GAP = re.compile(r"[ \t]*")
_WIDE_GAP = re.compile(r"(?:[ \t\n\r]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""(?:"{0,2})'
    r"|'''(?:[^']|'(?!''))*'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
# A space may stand between the date and the time of day, and nowhere else inside a plain value.
_PLAIN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[^\s,\]}#]*|[^\s,\]}#\"'\[{=]+")


class TextSpan(NamedTuple):
    """Offsets in the text; `end` is one past the last character."""

    start: int
    end: int


@dataclass(slots=True)
class TextNode:
    """One value: where its key and itself stand. `content` is where a string that has no escapes begins."""

    value: TextSpan
    key: TextSpan | None = None
    content: int | None = None
    children: dict[str | int, TextNode] = field(default_factory=dict)
    is_table_array: bool = False


# Most values are plain, and half a million dictionaries take longer than the rest of the reading.
_NO_CHILDREN: dict[str | int, TextNode] = {}


class Header(NamedTuple):
    """`[a.b]` or `[[a.b]]` of a TOML text: its keys, and where its line of text begins."""

    keys: tuple[str, ...]
    start: int


class Scan(NamedTuple):
    """The tree of a text; the first key that is given twice; the place where it is nested too deeply; the headers of
    its tables, in order."""

    root: TextNode
    twice: tuple[str, TextSpan] | None
    too_deep: int | None
    headers: tuple[Header, ...] = ()


class LineIndex:
    """Offsets as lines and columns, both counted from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._length = len(text)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def start_of_line(self, line: int) -> int:
        """The offset of the line's first character; the end of the text for a line beyond it."""
        return self._starts[line - 1] if line <= len(self._starts) else self._length

    @property
    def count(self) -> int:
        return len(self._starts)

    def end_of_line(self, line: int) -> int:
        """The offset of the line's end, its newline not counted."""
        return self._starts[line] - 1 if line < len(self._starts) else self._length


def scan_toml(text: str) -> Scan:
    """The positions of a TOML text whose line ends are plain newlines."""
    scanner = _Scanner(text, "=", lambda raw: tomllib.loads(f"key={raw}")["key"])
    return scanner.run(scanner.document)


def scan_json(text: str) -> Scan:
    """The positions of a JSON text."""
    scanner = _Scanner(text, ":", json.loads)
    return scanner.run(scanner.single_value)


class _NotUnderstoodError(Exception):
    pass


class _TooDeepError(Exception):
    pass


class _Scanner:
    def __init__(self, text: str, assign: str, unescape: Callable[[str], str]) -> None:
        self.text = text
        self.assign = assign
        self.unescape = unescape
        self.at = 0
        self.root = TextNode(TextSpan(0, len(text)))
        self.twice: tuple[str, TextSpan] | None = None
        self.headers: list[Header] = []

    def run(self, read: Callable[[], None]) -> Scan:
        too_deep = None
        try:
            read()
        except _NotUnderstoodError:
            pass
        except _TooDeepError:
            too_deep = self.at
        return Scan(self.root, self.twice, too_deep, tuple(self.headers))

    # -- a whole text -------------------------------------------------------------------------------------

    def single_value(self) -> None:
        self._skip(_WIDE_GAP)
        self.root = self._value(1)

    def document(self) -> None:
        table = self.root
        self._skip(_WIDE_GAP)
        while self.at < len(self.text):
            if self._sees("["):
                table = self._header()
            else:
                self._assignment(table, 1)
            self._skip(_GAP)
            if self.at < len(self.text) and self.text[self.at] not in "#\n":
                self._stop()
            self._skip(_WIDE_GAP)

    def _header(self) -> TextNode:
        start = self.at
        brackets = "]]" if self.text.startswith("[[", self.at) else "]"
        self.at += len(brackets)
        self._skip(_GAP)
        keys = self._dotted_key()
        if not self.text.startswith(brackets, self.at):
            self._stop()
        self.at += len(brackets)
        header = TextSpan(start, self.at)
        self.headers.append(Header(tuple(name for name, _ in keys), self.text.rfind("\n", 0, start) + 1))
        *outer, (name, span) = keys
        table = self._descend(self.root, outer)
        if brackets == "]":
            known = table.children.get(name)
            table = self._descend(table, [(name, span)])
            if known is None:
                table.value = header
            return table
        tables = self._nested(table, name, TextNode(header, span, is_table_array=True))
        element = tables.children[len(tables.children)] = TextNode(header, span)
        return element

    def _descend(self, table: TextNode, keys: list[tuple[str, TextSpan]]) -> TextNode:
        """The table under these keys; in an array of tables, its last one."""
        for name, span in keys:
            table = self._nested(table, name, TextNode(span, span))
            if table.is_table_array and table.children:
                table = table.children[len(table.children) - 1]
        return table

    def _nested(self, table: TextNode, name: str, new: TextNode) -> TextNode:
        found = table.children.setdefault(name, new)
        if found.children is _NO_CHILDREN:
            self._stop()  # a table inside a number or a text
        return found

    # -- keys and values ----------------------------------------------------------------------------------

    def _assignment(self, table: TextNode, depth: int) -> None:
        *outer, (name, span) = self._dotted_key()
        if not self._sees(self.assign):
            self._stop()
        self.at += 1
        self._skip(_GAP if self.assign == "=" else _WIDE_GAP)
        node = self._value(depth + len(outer) + 1)
        node.key = span
        table = self._descend(table, outer)
        if name in table.children and self.twice is None:
            self.twice = (name, span)
        table.children[name] = node

    def _dotted_key(self) -> list[tuple[str, TextSpan]]:
        keys = [self._simple_key()]
        self._skip(_GAP if self.assign == "=" else _WIDE_GAP)
        while self.assign == "=" and self._sees("."):
            self.at += 1
            self._skip(_GAP)
            if len(keys) >= MAX_DEPTH:
                raise _TooDeepError
            keys.append(self._simple_key())
            self._skip(_GAP)
        return keys

    def _simple_key(self) -> tuple[str, TextSpan]:
        start = self.at
        if bare := _BARE_KEY.match(self.text, start):
            self.at = bare.end()
            return bare[0], TextSpan(start, self.at)
        quoted = _STRING.match(self.text, start)
        if quoted is None or quoted[0].startswith(('"""', "'''")):
            self._stop()
        self.at = quoted.end()
        return self._key_text(quoted[0]), TextSpan(start, self.at)

    def _key_text(self, raw: str) -> str:
        if raw[0] == "'" or "\\" not in raw:
            return raw[1:-1]
        try:
            return self.unescape(raw)
        except ValueError:
            self._stop()

    def _value(self, depth: int) -> TextNode:
        if depth > MAX_DEPTH:
            raise _TooDeepError
        if self._sees("["):
            return self._array(depth)
        if self._sees("{"):
            return self._inline_table(depth)
        if string := _STRING.match(self.text, self.at):
            return self._string(string[0])
        plain = _PLAIN.match(self.text, self.at)
        if plain is None:
            self._stop()
        self.at = plain.end()
        return TextNode(TextSpan(*plain.span()), children=_NO_CHILDREN)

    def _string(self, raw: str) -> TextNode:
        start, self.at = self.at, self.at + len(raw)
        quotes = 3 if raw.startswith(('"""', "'''")) else 1
        content = start + quotes
        if quotes == 3 and raw.startswith("\n", 3):
            content += 1  # a newline right after the opening quotes is not part of the value
        has_escapes = raw[0] == '"' and "\\" in raw
        return TextNode(TextSpan(start, self.at), content=None if has_escapes else content, children=_NO_CHILDREN)

    def _array(self, depth: int) -> TextNode:
        start, children = self.at, dict[str | int, TextNode]()
        self.at += 1
        self._skip(_WIDE_GAP)
        while not self._sees("]"):
            children[len(children)] = self._value(depth + 1)
            self._comma_or("]")
        self.at += 1
        return TextNode(TextSpan(start, self.at), children=children)

    def _inline_table(self, depth: int) -> TextNode:
        start, table = self.at, TextNode(TextSpan(0, 0))
        self.at += 1
        self._skip(_WIDE_GAP)
        while not self._sees("}"):
            self._assignment(table, depth)
            self._comma_or("}")
        self.at += 1
        table.value = TextSpan(start, self.at)
        return table

    def _comma_or(self, closing: str) -> None:
        self._skip(_WIDE_GAP)
        if self._sees(","):
            self.at += 1
            self._skip(_WIDE_GAP)
        elif not self._sees(closing):
            self._stop()

    # -- the text -----------------------------------------------------------------------------------------

    def _sees(self, char: str) -> bool:
        return self.text.startswith(char, self.at)

    def _skip(self, gap: re.Pattern[str]) -> None:
        if match := gap.match(self.text, self.at):
            self.at = match.end()

    def _stop(self) -> NoReturn:
        raise _NotUnderstoodError
