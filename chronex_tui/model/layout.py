"""Text in terminal cells, fitted into lines and columns.

A line is spans of text, each with the name of a style. Text from data is passed through `cell_safe` before it becomes
a span, so that its width is the width that every terminal draws.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from chronex.text.terminal import cell_safe, cell_width

Span = tuple[str, str]
Line = tuple[Span, ...]

_MORE_SIGNS = "? more"


def legend(signs: Mapping[str, str], cells: int) -> str:
    """As many signs with their meaning as fit; where not all of them do, where the others are."""
    parts = [f"{shown} {words}" for shown, words in signs.items()]
    if len("  ".join(parts)) <= cells:
        return "  ".join(parts)
    while len(parts) > 1 and len("  ".join((*parts, _MORE_SIGNS))) > cells:
        parts.pop()
    return "  ".join((*parts, _MORE_SIGNS))


# -- text -----------------------------------------------------------------------------------------------------


def crop(text: str, cells: int, mark: str = "…") -> str:
    """The text in at most so many cells; the mark shows that something was cut."""
    if cell_width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    free_cells = cells - cell_width(mark)
    kept: list[str] = []
    used = 0
    for char in text:
        used += cell_width(char)
        if used > free_cells:
            break
        kept.append(char)
    return "".join(kept) + mark if free_cells >= 0 else mark[:cells]


def fit(text: str, cells: int, mark: str = "…", *, right: bool = False) -> str:
    """The text in exactly so many cells."""
    cropped = crop(text, cells, mark)
    padding = " " * (cells - cell_width(cropped))
    return padding + cropped if right else cropped + padding


def wrap(text: str, cells: int) -> list[str]:
    """Words over lines; a word that is longer than a line is broken."""
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        rest = word
        while cell_width(rest) > cells > 0:
            if current:
                lines.append(current)
                current = ""
            head = crop(rest, cells, "")
            lines.append(head)
            rest = rest[len(head) :]
        joined = f"{current} {rest}" if current else rest
        if cell_width(joined) <= cells:
            current = joined
        else:
            lines.append(current)
            current = rest
    return [*lines, current]


# -- lines ----------------------------------------------------------------------------------------------------


def line_width(line: Line) -> int:
    return sum(cell_width(text) for text, _ in line)


def span_at(line: Line, cell: int) -> int | None:
    """Which span of the line covers the cell; None behind its end."""
    end = 0
    for number, (text, _) in enumerate(line):
        end += cell_width(text)
        if cell < end:
            return number
    return None


def fit_line(line: Line, cells: int, mark: str = "…") -> Line:
    """A whole line at exactly so many cells; spans keep their styles."""
    left = cells
    spans: list[Span] = []
    total = line_width(line)
    for text, style in line:
        if total > cells and cell_width(text) >= left:
            spans.append((crop(text + mark if cell_width(text) == left else text, left, mark), style))
            left -= cell_width(spans[-1][0])
            break
        spans.append((text, style))
        left -= cell_width(text)
    if left > 0:
        spans.append((" " * left, ""))
    return tuple(spans)


def wrap_line(line: Line, cells: int) -> list[Line]:
    """A line over as many as it needs: it breaks at blanks, keeps its styles, and goes on below its own indent."""
    left = [(char, style) for text, style in line for char in text]
    indent = min(_hanging_indent("".join(char for char, _ in left), cells), cells // 2)
    found: list[Line] = []
    margin = 0
    while True:
        end = _break_of(left, cells - margin)
        found.append(_joined([(" ", left[0][1])] * margin + left[:end]) if left else ())
        left = left[end:]
        while left and left[0][0] == " ":
            left.pop(0)
        if not left:
            return found
        margin = indent


def wrap_lines(lines: Iterable[Line], cells: int) -> list[Line]:
    """Lines of words, each over as many as it needs."""
    return [piece for line in lines for piece in wrap_line(line, max(cells, 10))]


def _hanging_indent(text: str, cells: int) -> int:
    """Below its indent; below the text behind a label; else by two, so that it does not look like another line."""
    indent = len(text) - len(text.lstrip(" "))
    label = re.match(r"\S+ {2,}(?=\S)", text)
    return indent or (label.end() if label is not None else min(2, cells // 5))


def _break_of(chars: Sequence[Span], cells: int) -> int:
    """How many characters stand on a line: as many words as fit, or the beginning of one that is too long."""
    used, fitting, blank = 0, 0, 0
    for number, (char, _) in enumerate(chars):
        used += cell_width(char)
        if used > cells:
            # A blank right behind the last word that fits ends the line; the words before an indent are none.
            blank = number if char == " " else blank
            return blank if blank and any(one != " " for one, _ in chars[:blank]) else max(fitting, 1)
        fitting = number + 1
        if char == " ":
            blank = number
    return len(chars)


def _joined(chars: Iterable[Span]) -> Line:
    """Characters of one style as one span."""
    return tuple(("".join(char for char, _ in group), style) for style, group in groupby(chars, key=itemgetter(1)))


def spread(left: Line, right: Line, cells: int, mark: str = "…") -> Line:
    """One part at the left edge and one at the right; the left one is cropped where both do not fit."""
    free_cells = cells - line_width(right)
    if free_cells < 1:
        return fit_line(left, cells, mark)
    return (*fit_line(left, free_cells, mark), *right)


def plain(lines: Iterable[Line]) -> str:
    """The text without styles."""
    return "\n".join("".join(text for text, _ in line) for line in lines)


_ANSI_CODE = re.compile(r"\x1b\[([0-9;]*)m")
_ANSI_STYLES = {"1": "bold", "2": "dim", "31": "failed", "32": "ok", "33": "retry", "34": "key", "36": "running"}


def ansi_to_lines(texts: Iterable[str]) -> list[Line]:
    """Lines that the command line has coloured, each colour as the style that means the same."""
    return [_ansi_to_line(text) for text in texts]


def _ansi_to_line(text: str) -> Line:
    """Only colours are understood; any other control character is made safe."""
    spans: list[Span] = []
    style, position = "", 0
    for found in _ANSI_CODE.finditer(text):
        if found.start() > position:
            spans.append((cell_safe(text[position : found.start()]), style))
        codes = found.group(1).split(";")
        style = next((_ANSI_STYLES[code] for code in codes if code in _ANSI_STYLES), "")
        position = found.end()
    if position < len(text):
        spans.append((cell_safe(text[position:]), style))
    return tuple(spans)


# -- columns --------------------------------------------------------------------------------------------------

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    title: str
    least: int  # cells that it needs; with fewer it is left out
    share: int = 0  # of the cells that are over
    rank: int = 0  # the highest rank is left out first
    most: int = 999
    right: bool = False


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    column: Column
    cells: int


@lru_cache(maxsize=64)
def fit_columns(columns: tuple[Column, ...], cells: int) -> tuple[PlacedColumn, ...]:
    """The columns that fit, in their order; cells that are over are shared out."""
    kept = sorted(columns, key=lambda column: column.rank)
    while len(kept) > 1 and _needed(kept) > cells:
        kept.pop()
    names = {column.name for column in kept}
    chosen = [column for column in columns if column.name in names]
    widths = {column.name: column.least for column in chosen}
    over = cells - _needed(chosen)
    while over > 0:
        growing = [column for column in chosen if column.share and widths[column.name] < column.most]
        total = sum(column.share for column in growing)
        if not growing:
            break
        given = 0
        for column in growing:
            more = min(max(over * column.share // total, 1), column.most - widths[column.name], over - given)
            widths[column.name] += more
            given += more
        over -= given
    return tuple(PlacedColumn(column, widths[column.name]) for column in chosen)


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.least for column in columns) + GAP * (len(columns) - 1)


def _heading(placed: Sequence[PlacedColumn], sorted_by: str = "", mark: str = "") -> Line:
    """The titles; the sorted column carries a mark."""
    spans: list[Span] = []
    for one in placed:
        title = one.column.title + (f" {mark}" if mark and one.column.name == sorted_by else "")
        spans.append((fit(title, one.cells, "", right=one.column.right) + " " * GAP, "head"))
    return (*spans[:-1], (spans[-1][0][:-GAP], "head"))


def _row_line(placed: Sequence[PlacedColumn], cells: Sequence[Line], mark: str) -> Line:
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
            left -= cell_width(piece)
            if left <= 0:
                break
        spans.append((" " * (left + GAP), ""))
    return (*spans[:-1], (spans[-1][0][:-GAP], ""))


class ColumnTable:
    """Draws a table of columns; a subclass says what is in them."""

    __slots__ = ()
    columns: tuple[Column, ...]
    sorted_by: str

    def cells(self, index: int) -> dict[str, Line]:
        raise NotImplementedError

    def head(self, cells: int, mark: str = "") -> Line:
        return _heading(fit_columns(self.columns, cells), self.sorted_by, mark)

    def line(self, index: int, cells: int, ellipsis: str) -> Line:
        found = self.cells(index)
        placed = fit_columns(self.columns, cells)
        return _row_line(placed, [found[one.column.name] for one in placed], ellipsis)
