"""Groups and their lines: who holds places, who waits for them, and what for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chronex.model.reasons import ReasonCode, shown_text
from chronex.text.durations import countdown, elapsed
from chronex.text.terminal import cell_safe
from chronex.views.group_rows import GroupRow, limits_text
from chronex_tui.model.display import DisplaySettings, exact_clock_time
from chronex_tui.model.layout import Column, ColumnTable, Line, wrap

COLUMNS = (
    Column("group", "GROUP", 14, share=3, most=40),
    Column("held", "HELD", 9, right=True),
    Column("waiting", "WAIT", 6, rank=1, right=True),
    Column("limits", "LIMITS", 18, share=2, rank=2, most=40),
    Column("next", "NEXT START", 14, rank=3, most=20),
)


class GroupKey(NamedTuple):
    """The identity of a group in a selection."""

    name: str


@dataclass(frozen=True, slots=True)
class GroupsTable(ColumnTable):
    rows: Sequence[GroupRow]
    display: DisplaySettings
    columns: tuple[Column, ...] = COLUMNS
    sorted_by: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def identity(self, index: int) -> GroupKey:
        return GroupKey(self.rows[index].group.name)

    def index_of(self, identity: object) -> int | None:
        return next((index for index in range(len(self.rows)) if self.identity(index) == identity), None)

    def cells(self, index: int) -> dict[str, Line]:
        row = self.rows[index]
        limit = row.group.limit
        held = f"{row.held} of {limit}" if limit is not None else str(row.held)
        style = "retry" if row.is_full and row.waiting else "running" if row.held else "dim"
        return {
            "group": ((cell_safe(row.group.name), ""),),
            "held": ((held, style),),
            "waiting": ((str(row.waiting), "retry" if row.waiting else "dim"),),
            "limits": ((cell_safe(limits_text(row.group)) or "-", "dim"),),
            "next": (_next(row, self.display),),
        }


def _next(row: GroupRow, display: DisplaySettings) -> tuple[str, str]:
    """When the group lets the next one start, by its rate."""
    if row.is_full:
        return ("when one ends", "dim")
    if row.next_ms is not None and row.next_ms > display.now_ms:
        return (f"in {countdown(row.next_ms - display.now_ms)}", "retry")
    return ("now", "dim")


def group_lines(row: GroupRow, display: DisplaySettings, cells: int) -> list[Line]:
    """Who holds places, the longest first; then the line, with what each waits for now."""
    lines: list[Line] = [((limits_text(row.group) or "no limit", "bold"),), ()]
    lines += [*_holders(row, display), (), *_waiters(row, display, cells)]
    return lines


def _holders(row: GroupRow, display: DisplaySettings) -> Iterator[Line]:
    if not row.holders:
        yield (("holds  ", "label"), ("nobody", "dim"))
    for number, one in enumerate(row.holders):
        places = f", {one.places} places" if one.places != 1 else ""
        yield (
            ("holds  " if number == 0 else "       ", "label"),
            (cell_safe(one.job), "running"),
            (f"  {display.spent_since(one.since_ms)}{places}", ""),
            (f"  since {exact_clock_time(one.since_ms, display.board_zone)} on {cell_safe(one.node)}", "dim"),
        )


def _waiters(row: GroupRow, display: DisplaySettings, cells: int) -> Iterator[Line]:
    if not row.first:
        yield (("waits  ", "label"), ("nobody", "dim"))
    for number, one in enumerate(row.first):
        yield (
            ("waits  " if number == 0 else "       ", "label"),
            (cell_safe(one.job), "retry"),
            (f"  {elapsed(display.now_ms - one.since_ms)}", ""),
        )
        # Who holds a full group stands above, with times on the viewer's clock.
        is_of_holders = one.reason.code is ReasonCode.GROUP_FULL
        words = f"group {row.group.name} is full" if is_of_holders else shown_text(one.reason)
        for piece in wrap(cell_safe(words), max(cells - 9, 10)):
            yield ((f"         {piece}", "dim"),)
    if row.waiting > len(row.first):
        yield ((f"       and {row.waiting - len(row.first):,} more", "dim"),)


def no_groups() -> list[Line]:
    return [
        (),
        (("No groups.", "bold"),),
        (),
        (("A group limits how many of its jobs run or start at once.", ""),),
        (("[groups.NAME] in the job file makes one.", "dim"),),
    ]
