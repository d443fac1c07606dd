"""A graph drawn with boxes and lines in a given width: lines of styled spans, for a terminal and for the dashboard.

Steps stand in rows, each below everything that it needs. A line that passes a row goes straight through it. Every
step has one line, which branches; lines of two steps never join, each enters a box at a place of its own. Where they
cross, the one that goes down is drawn and the other one has a gap: `─│─` is a crossing, and every corner or branch is
of one line. Where a graph is too wide to be drawn, it is told as a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chronex.text.durations import brief_duration
from chronex.views.job_graph import UNKNOWN_STATE, GraphStep

Span = tuple[str, str]
DrawnLine = tuple[Span, ...]
_GAP = 2
_LONGEST_LABEL = 26
_BOX_ROWS = 3
# From where one line enters a box to the next.
_ENTRY_GAP = 2

# How a state is marked, for terminals with and without such characters.
_MARKS = {
    "": ("○", "."),
    "scheduled": ("○", "."),
    "claimed": ("▶", ">"),
    "running": ("▶", ">"),
    "retry": ("↻", "~"),
    "success": ("●", "o"),
    "failed": ("✖", "x"),
    "dlq": ("✖", "x"),
    "canceled": ("◼", "c"),
    "skipped": ("·", "-"),
    UNKNOWN_STATE: ("?", "?"),
}
# Where a line leaves a cell: up, down, left, right.
_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LIGHT = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
_ASCII = " |||-++|-++|-+++"


@dataclass
class _Spot:
    """A box in its row, or the place where a line passes it."""

    step: GraphStep | None
    label: str
    width: int
    before: list[_Spot] = field(default_factory=list)
    left: int = 0

    @property
    def middle(self) -> int:
        return self.left + self.width // 2


def draw(steps: Sequence[GraphStep], width: int = 80, *, is_unicode: bool = True) -> list[DrawnLine]:
    """The graph in at most `width` columns."""
    rows = _rows(steps, width, is_unicode=is_unicode)
    if any(_row_width(row) > width for row in rows):
        return list(_listed(steps, is_unicode=is_unicode))
    _place(rows)
    canvas = _Canvas(max((_row_width(row) for row in rows), default=0), is_unicode=is_unicode)
    for number, row in enumerate(rows):
        if number:
            canvas.connect(row)
        canvas.boxes(row)
    return canvas.lines()


# -- which row, and where in it ----------------------------------------------------------------------------


def _rows(steps: Sequence[GraphStep], width: int, *, is_unicode: bool) -> list[list[_Spot]]:
    """Each step in the first row below its needs that has space for it; where lines pass a row there is a spot."""
    known = {step.name for step in steps}
    rows: list[list[_Spot]] = []
    at: dict[str, tuple[int, _Spot]] = {}
    for step in _in_order(steps):
        needs = [need for need in step.needs if need in known]
        label = _label(step, is_unicode=is_unicode)
        spot = _Spot(step, label, max(len(label) + 4, _ENTRY_GAP * len(needs) + 3))
        number = max((at[need][0] + 1 for need in needs), default=0)
        while number < len(rows) and _row_width([*rows[number], spot]) > width:
            number += 1
        while len(rows) <= number:
            rows.append([])
        rows[number].append(spot)
        at[step.name] = (number, spot)
        for need in needs:
            spot.before.append(_passed(rows, at[need], number))
    for row in rows[1:]:
        row.sort(key=lambda spot: _mean(spot, rows))
    return rows


def _in_order(steps: Sequence[GraphStep]) -> Iterable[GraphStep]:
    done: set[str] = set()
    left, known = list(steps), {step.name for step in steps}
    while left:
        ready = [step for step in left if all(need in done or need not in known for need in step.needs)] or left[:1]
        yield from ready
        done |= {step.name for step in ready}
        left = [step for step in left if step.name not in done]


def _passed(rows: list[list[_Spot]], source: tuple[int, _Spot], target: int) -> _Spot:
    """The spot right above the target from which the line of the source comes: itself, or where it passes a row."""
    number, spot = source
    for row in rows[number + 1 : target]:
        passing = next((one for one in row if one.step is None and one.before == [spot]), None)
        if passing is None:
            passing = _Spot(None, "", 1, [spot])
            row.append(passing)
        spot = passing
    return spot


def _mean(spot: _Spot, rows: list[list[_Spot]]) -> float:
    places = {id(one): index for row in rows for index, one in enumerate(row)}
    found = [places[id(one)] for one in spot.before]
    return sum(found) / len(found) if found else 0.0


def _row_width(row: Sequence[_Spot]) -> int:
    return sum(spot.width for spot in row) + _GAP * max(len(row) - 1, 0)


def _place(rows: list[list[_Spot]]) -> None:
    """Each row in the middle of the widest."""
    widest = max((_row_width(row) for row in rows), default=0)
    for row in rows:
        left = (widest - _row_width(row)) // 2
        for spot in row:
            spot.left = left
            left += spot.width + _GAP


def _label(step: GraphStep, *, is_unicode: bool) -> str:
    mark = _MARKS.get(step.state, _MARKS[""])[0 if is_unicode else 1]
    name = step.name
    if len(name) > _LONGEST_LABEL:
        name = name[: _LONGEST_LABEL - 1] + ("…" if is_unicode else "~")
    when = "" if step.when.value == "success" else f" ({step.when.value})"
    took = "" if step.duration_ms is None else f" {brief_duration(step.duration_ms)}"
    return f"{mark} {name}{_combinations(step)}{when}{took}"


def _combinations(step: GraphStep) -> str:
    if step.combinations == 1:
        return ""
    return f" {step.over}/{step.combinations}" if step.state else f" x{step.combinations}"


# -- drawing -----------------------------------------------------------------------------------------------


class _Canvas:
    """Rows of cells; lines are kept as the sides on which they leave a cell, so that branches join by themselves."""

    def __init__(self, width: int, *, is_unicode: bool) -> None:
        self.width = width
        self._glyphs = _LIGHT if is_unicode else _ASCII
        self._frames = ("┏━┓┃┗┛", "┌─┐│└┘") if is_unicode else ("#=##==", "+-+|++")
        self._text: list[list[Span]] = []

    def boxes(self, row: Sequence[_Spot]) -> None:
        lines: list[list[Span]] = [[(" ", "")] * self.width for _ in range(_BOX_ROWS)]
        for spot in row:
            if spot.step is None:
                for line in lines:
                    line[spot.left] = (self._glyphs[_UP | _DOWN], "line")
                continue
            heavy, light = self._frames
            frame = heavy if spot.step.is_critical else light
            inside = spot.width - 2
            style = spot.step.state or "scheduled"
            edge = "critical" if spot.step.is_critical else "line"
            texts = (
                frame[0] + frame[1] * inside + frame[2],
                f"{frame[3]} {spot.label:^{spot.width - 4}} {frame[3]}",
                frame[4] + frame[1] * inside + frame[5],
            )
            for line, text in zip(lines, texts, strict=True):
                for index, char in enumerate(text):
                    is_label = line is lines[1] and 0 < index < spot.width - 1
                    line[spot.left + index] = (char, style if is_label else edge)
        self._text += lines

    def connect(self, row: Sequence[_Spot]) -> None:
        """The lines from the row above into this one: down, along a track of their own, and down again."""
        targets = _targets(row)
        tracks = _tracks(targets)
        height = max(len(tracks), 1)
        cells = [[0] * self.width for _ in range(height)]
        for number, column in enumerate(tracks):
            for target in targets[column]:
                _along(cells[number], column, target)
                cells[number][target] |= _DOWN
            cells[number][column] |= _UP
        for column, found in targets.items():
            own = tracks.index(column) if column in tracks else height
            _down(cells, column, 0, own)
            for target in found if own < height else ():
                _down(cells, target, own + 1, height)
        self._text += [[(self._glyphs[cell], "line" if cell else "") for cell in line] for line in cells]

    def lines(self) -> list[DrawnLine]:
        return [_joined(line) for line in self._text]


def _targets(row: Sequence[_Spot]) -> dict[int, list[int]]:
    """Where the line of each column above the row must arrive."""
    sources = {source.middle for spot in row for source in spot.before}
    targets: dict[int, list[int]] = {}
    for spot in row:
        for source, entry in zip(spot.before, _entries(spot, sources), strict=True):
            targets.setdefault(source.middle, []).append(entry)
    return targets


def _entries(spot: _Spot, sources: set[int]) -> list[int]:
    """Where the line of each need enters the box: straight from above where it can, else beside all that come down.

    One that arrived where another one comes down would look like its end.
    """
    if spot.step is None:
        return [spot.left]
    inside = range(spot.left + 1, spot.left + spot.width - 1)
    columns = [source.middle for source in spot.before]
    free = [column for column in inside if column not in sources]
    found: dict[int, int] = {}
    for number, column in enumerate(sorted(columns)):
        wanted = spot.middle + _ENTRY_GAP * number - (len(columns) - 1)
        beside = min(free, key=lambda place: (abs(place - wanted), place), default=spot.middle)
        found[column] = column if column in inside else beside
        free = [place for place in free if place != found[column]]
    return [found[column] for column in columns]


def _tracks(targets: dict[int, list[int]]) -> list[int]:
    """The sources whose lines do not go straight down, from the top track to the lowest.

    Who goes down where another line arrives turns away above it: otherwise both would look like one line.
    """
    bent = [source for source, found in sorted(targets.items()) if found != [source]]
    ordered: list[int] = []
    left = list(bent)
    while left:
        free = [one for one in left if not any(other != one and other in targets[one] for other in left)]
        chosen = free[0] if free else left[0]
        ordered.append(chosen)
        left.remove(chosen)
    return ordered


def _down(cells: list[list[int]], column: int, first: int, last: int) -> None:
    """Through the tracks of others: their lines have a gap there."""
    for line in cells[first:last]:
        line[column] = _UP | _DOWN


def _along(line: list[int], source: int, target: int) -> None:
    low, high = sorted((source, target))
    for column in range(low, high + 1):
        line[column] |= (_LEFT if column > low else 0) | (_RIGHT if column < high else 0)


def _joined(cells: Sequence[Span]) -> DrawnLine:
    """Neighbours of one style as one span, without the space at the end."""
    end = max((index + 1 for index, (char, _) in enumerate(cells) if char != " "), default=0)
    found: list[Span] = []
    for char, style in cells[:end]:
        if found and found[-1][1] == style:
            found[-1] = (found[-1][0] + char, style)
        else:
            found.append((char, style))
    return tuple(found)


def _listed(steps: Sequence[GraphStep], *, is_unicode: bool) -> Iterable[DrawnLine]:
    """One line for each step, with what it comes after."""
    for step in _in_order(steps):
        after = f"  after {', '.join(step.needs)}" if step.needs else ""
        style = "critical" if step.is_critical else step.state or "scheduled"
        yield ((_label(step, is_unicode=is_unicode), style), (after, "line"))
