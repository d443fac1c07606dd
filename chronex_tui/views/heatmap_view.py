"""Density: a heat map of weekdays and hours, and what is in the hour under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from chronex_tui.model.heatmap import WEEK, busiest_line, heatmap_lines, hour_lines, legend_line
from chronex_tui.model.layout import Line
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views.view import View
from chronex_tui.widgets.panel import Panel
from chronex_tui.widgets.table import Table


class HeatPanel(Panel):
    """The heat map, with a cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(0, -1)", show=False),
        Binding("right,l", "step(0, 1)", show=False),
        Binding("up,k", "step(-1, 0)", show=False),
        Binding("down,j", "step(1, 0)", show=False),
    ]

    def action_step(self, days: int, hours: int) -> None:
        view = self.screen.query_one(HeatmapView)
        view.step(days, hours)


class HeatmapView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "density")

    def compose(self) -> ComposeResult:
        yield HeatPanel(self._map, self.palette, id="heat", classes="framed", title="Density")
        yield Panel(self._cell, self.palette, id="heat-cell", classes="framed", title="In this hour")

    @property
    def main(self) -> Table | Panel:
        return self.query_one("#heat", Panel)

    def step(self, days: int, hours: int) -> None:
        day, hour = self.state.cursor
        self.state.cursor = (max(0, min(day + days, WEEK - 1)), max(0, min(hour + hours, 23)))
        self.update_all()

    def update_all(self) -> None:
        week = "the past seven days" if self.state.heatmap_is_past else "the coming seven days"
        zone = self.state.display.board_zone.name
        what = "minutes of run time" if self.state.heatmap_is_time else "starts"
        self.query_one("#heat", Panel).border_title = f"Density  {what} in each hour of {week}, {zone}"
        super().update_all()

    def tick(self) -> None:
        """Nothing here counts down."""

    def selection_changed(self) -> None:
        """Nothing here follows the selected job."""

    def _map(self, width: int, height: int) -> Sequence[Line]:
        heatmap = self.state.heatmap
        if heatmap is None:
            return ((("counting", "dim"),),)
        display = self.state.display
        return [
            *heatmap_lines(heatmap, display, self.state.cursor, width),
            (),
            legend_line(heatmap, display),
            ((("  ", "")), *busiest_line(heatmap, display)),
        ]

    def _cell(self, width: int, height: int) -> Sequence[Line]:
        if self.state.heatmap is None:
            return ()
        return hour_lines(self.state.heatmap, self.state.cursor, self.state.display)
