"""Timeline: a lane for each job that has a run in the shown time."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from chronex_tui.model.lanes import LanesTable, legend, zoom_text
from chronex_tui.model.layout import Line
from chronex_tui.model.time_text import stamp
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views.view import View
from chronex_tui.widgets.panel import Panel
from chronex_tui.widgets.table import Table


class TimelineView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "timeline")

    def compose(self) -> ComposeResult:
        yield Table(self.palette, id="lanes", classes="framed", title="Timeline")
        yield Panel(self._empty, self.palette, id="no-lanes", classes="framed", title="Timeline")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#lanes", Table)
        return table if table.display else self.query_one("#no-lanes", Panel)

    def restore_selection(self) -> None:
        if any(lane.job == self.state.job for lane in self.state.lanes):
            self.query_one("#lanes", Table).cursor = self.state.job

    def update_all(self) -> None:
        table, empty = self.query_one("#lanes", Table), self.query_one("#no-lanes", Panel)
        state = self.state
        has_lanes = bool(state.lanes)
        self.show_either(table, empty, has_rows=has_lanes)
        span = zoom_text(state.window)
        table.border_title = empty.border_title = f"Timeline  {span} before and after {self._middle()}"
        table.border_subtitle = legend(state.display)
        if has_lanes:
            table.show(LanesTable(state.lanes, state.window, state.display))
        else:
            empty.redraw()

    def tick(self) -> None:
        self.update_all()

    def _middle(self) -> str:
        if self.state.follows_now:
            return "now"
        return stamp(self.state.window.middle_ms, self.state.now_ms, self.state.display.board_zone)

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        return [
            (),
            (("Nothing ran and nothing is planned in this stretch of time.", ""),),
            (),
            (("-", "key"), (" shows more time   ", "dim"), ("0", "key"), (" returns to now", "dim")),
        ]
