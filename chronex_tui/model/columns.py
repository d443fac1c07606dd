"""Which columns fit, and how wide each is; tables of columns draw their head and lines with this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chronex_tui.model.cells import Line, Span, crop, fit, width

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
class Placed:
    column: Column
    cells: int


@lru_cache(maxsize=64)
def lay_out(columns: tuple[Column, ...], cells: int) -> tuple[Placed, ...]:
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
    return tuple(Placed(column, widths[column.name]) for column in chosen)


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.least for column in columns) + GAP * (len(columns) - 1)


def heading(placed: Sequence[Placed], sorted_by: str = "", mark: str = "") -> Line:
    """The titles; the sorted column carries a mark."""
    spans: list[Span] = []
    for one in placed:
        title = one.column.title + (f" {mark}" if mark and one.column.name == sorted_by else "")
        spans.append((fit(title, one.cells, "", right=one.column.right) + " " * GAP, "head"))
    return (*spans[:-1], (spans[-1][0][:-GAP], "head"))


def row_line(placed: Sequence[Placed], cells: Sequence[Line], mark: str) -> Line:
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


class Columned:
    """Draws a table of columns; what is in them is the subclass's business."""

    __slots__ = ()
    columns: tuple[Column, ...]
    sorted_by: str

    def cells(self, index: int) -> dict[str, Line]:
        raise NotImplementedError

    def head(self, cells: int, mark: str = "") -> Line:
        return heading(lay_out(self.columns, cells), self.sorted_by, mark)

    def line(self, index: int, cells: int, ellipsis: str) -> Line:
        found, placed = self.cells(index), lay_out(self.columns, cells)
        return row_line(placed, [found[one.column.name] for one in placed], ellipsis)
