"""Text in terminal cells: made safe, measured, fitted into lines and columns.

A line is spans of text, each with the name of a style.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

Span = tuple[str, str]
Line = tuple[Span, ...]

_REPLACED = "\N{REPLACEMENT CHARACTER}"
# Selectors and joiners change how wide their neighbours are drawn, and terminals do not agree how.
_DROPPED = range(0xFE00, 0xFE10)
# Drawn with one width or another, depending on the terminal and its edition of Unicode: flags, skin tones, newer
# symbols, and the inner parts of Korean syllables that are written apart.
_CONTESTED = (
    range(0x1F1E6, 0x1F200), range(0x1F3FB, 0x1F400), range(0x2630, 0x2638), range(0x268A, 0x2690),
    range(0x4DC0, 0x4E00), range(0x1D300, 0x1D377), range(0x3164, 0x3165),
    range(0x1160, 0x1200), range(0xD7B0, 0xD800), range(0xFFA0, 0xFFA1),
)  # fmt: skip
_WIDTHLESS = ("Mn", "Me", "Mc")


def terminal_safe(text: str) -> str:
    """The text with every control, direction and joining character made visible or left out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char.isascii():
        return char if char.isprintable() else " " if char == "\t" else _REPLACED
    code = ord(char)
    if code in _DROPPED:
        return ""
    if not char.isprintable() or any(code in contested for contested in _CONTESTED):
        return _REPLACED
    return char


def width(text: str) -> int:
    """Cells of a text that `shown` has passed."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in _WIDTHLESS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def crop(text: str, cells: int, mark: str = "…") -> str:
    """At most so many cells; what was cut is told by the mark."""
    if width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    kept, used, free_cells = [], 0, cells - width(mark)
    for char in text:
        used += _width(char)
        if used > free_cells:
            break
        kept.append(char)
    return "".join(kept) + mark if free_cells >= 0 else mark[:cells]


def fit(text: str, cells: int, mark: str = "…", *, right: bool = False) -> str:
    """Exactly so many cells."""
    cropped = crop(text, cells, mark)
    padding = " " * (cells - width(cropped))
    return padding + cropped if right else cropped + padding


def line_width(line: Line) -> int:
    return sum(width(text) for text, _ in line)


def fit_line(line: Line, cells: int, mark: str = "…") -> Line:
    """A whole line at exactly so many cells; spans keep their styles."""
    left, spans = cells, []
    total = line_width(line)
    for text, style in line:
        if total > cells and width(text) >= left:
            spans.append((crop(text + mark if width(text) == left else text, left, mark), style))
            left -= width(spans[-1][0])
            break
        spans.append((text, style))
        left -= width(text)
    if left > 0:
        spans.append((" " * left, ""))
    return tuple(spans)


def spread(left: Line, right: Line, cells: int, mark: str = "…") -> Line:
    """One part at the left edge and one at the right; the left one gives way."""
    free_cells = cells - line_width(right)
    if free_cells < 1:
        return fit_line(left, cells, mark)
    return (*fit_line(left, free_cells, mark), *right)


def plain(lines: Iterable[Line]) -> str:
    """The text alone."""
    return "\n".join("".join(text for text, _ in line) for line in lines)


def wrap(text: str, cells: int) -> list[str]:
    """Words over lines; a word that is longer than a line is broken."""
    lines, current = [], ""
    for word in text.split(" "):
        rest = word
        while width(rest) > cells > 0:
            if current:
                lines.append(current)
                current = ""
            head = crop(rest, cells, "")
            lines.append(head)
            rest = rest[len(head) :]
        joined = f"{current} {rest}" if current else rest
        if width(joined) <= cells:
            current = joined
        else:
            lines.append(current)
            current = rest
    return [*lines, current]


GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """`least` cells or it is left out; `share` of what is over goes to it; low `rank` stays longest."""

    name: str
    title: str
    least: int
    share: int = 0
    rank: int = 0
    most: int = 999
    right: bool = False


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    column: Column
    cells: int


@lru_cache(maxsize=64)
def fit_columns(columns: tuple[Column, ...], cells: int) -> tuple[PlacedColumn, ...]:
    """The columns that fit, in their order, with what is over shared out."""
    kept = sorted(columns, key=lambda column: column.rank)
    while len(kept) > 1 and _needed(kept) > cells:
        kept.pop()
    names = {column.name for column in kept}
    chosen = [column for column in columns if column.name in names]
    widths = {column.name: column.least for column in chosen}
    over = cells - _needed(chosen)
    while over > 0:
        open_ones = [c for c in chosen if c.share and widths[c.name] < c.most]
        total = sum(column.share for column in open_ones)
        if not open_ones:
            break
        given = 0
        for column in open_ones:
            more = min(max(over * column.share // total, 1), column.most - widths[column.name], over - given)
            widths[column.name] += more
            given += more
        over -= given
    return tuple(PlacedColumn(column, widths[column.name]) for column in chosen)


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.least for column in columns) + GAP * (len(columns) - 1)


def heading(placed: Sequence[PlacedColumn], sorted_by: str = "", mark: str = "") -> Line:
    """The titles; the sorted column carries a mark."""
    spans: list[Span] = []
    for one in placed:
        title = one.column.title + (f" {mark}" if mark and one.column.name == sorted_by else "")
        spans.append((fit(title, one.cells, "", right=one.column.right) + " " * GAP, "head"))
    return (*spans[:-1], (spans[-1][0][:-GAP], "head"))


def row_line(placed: Sequence[PlacedColumn], cells: Sequence[Line], mark: str) -> Line:
    """Cells in their columns, each cropped and padded to its width."""
    spans: list[Span] = []
    for one, cell in zip(placed, cells, strict=True):
        left = one.cells
        if one.column.right and len(cell) == 1:
            spans.append((fit(cell[0][0], left, mark, right=True), cell[0][1]))
            left = 0
        for text, style in () if one.column.right and len(cell) == 1 else cell:
            piece = crop(text, left, mark)
            spans.append((piece, style))
            left -= width(piece)
            if left <= 0:
                break
        spans.append((" " * (left + GAP), ""))
    return (*spans[:-1], (spans[-1][0][:-GAP], ""))


class ColumnTable:
    """Draws a table of columns; what is in them is the subclass's business."""

    __slots__ = ()
    columns: tuple[Column, ...]
    sorted_by: str

    def cells(self, index: int) -> dict[str, Line]:
        raise NotImplementedError

    def head(self, cells: int, mark: str = "") -> Line:
        return heading(fit_columns(self.columns, cells), self.sorted_by, mark)

    def line(self, index: int, cells: int, ellipsis: str) -> Line:
        found, placed = self.cells(index), fit_columns(self.columns, cells)
        return row_line(placed, [found[one.column.name] for one in placed], ellipsis)


_CODE = re.compile(r"\x1b\[([0-9;]*)m")
_STYLES = {"1": "bold", "2": "dim", "31": "failed", "32": "ok", "33": "retry", "34": "key", "36": "running"}


def painted(text: str) -> Line:
    """Only colours are understood; whatever else is in the text is made inert."""
    spans: list[Span] = []
    style, place = "", 0
    for found in _CODE.finditer(text):
        if found.start() > place:
            spans.append((terminal_safe(text[place : found.start()]), style))
        codes = found.group(1).split(";")
        style = next((_STYLES[code] for code in codes if code in _STYLES), "")
        place = found.end()
    if place < len(text):
        spans.append((terminal_safe(text[place:]), style))
    return tuple(spans)
