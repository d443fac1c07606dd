"""Timeline: a lane for each job that has something in sight."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from chronex_tui.model.cells import Line
from chronex_tui.model.timeline import LanesTable, legend, words_of
from chronex_tui.state import State
from chronex_tui.themes import Book
from chronex_tui.views.base import View
from chronex_tui.widgets.panel import Panel
from chronex_tui.widgets.table import Table


class TimelineView(View):
    def __init__(self, state: State, book: Book) -> None:
        super().__init__(state, book, "timeline")

    def compose(self) -> ComposeResult:
        yield Table(self.book, id="lanes", classes="framed", title="Timeline")
        yield Panel(self._empty, self.book, id="no-lanes", classes="framed", title="Timeline")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#lanes", Table)
        return table if table.display else self.query_one("#no-lanes", Panel)

    def take_selection(self) -> None:
        if any(lane.job == self.state.job for lane in self.state.lanes):
            self.query_one("#lanes", Table).cursor = self.state.job

    def update_all(self) -> None:
        table, empty = self.query_one("#lanes", Table), self.query_one("#no-lanes", Panel)
        state = self.state
        has_lanes = bool(state.lanes)
        if table.display != has_lanes or empty.display == has_lanes:
            had_focus = table.has_focus or empty.has_focus
            table.display, empty.display = has_lanes, not has_lanes
            if had_focus:
                self.main.focus()
        span = words_of(state.window)
        table.border_title = empty.border_title = f"Timeline  {span} before and after {self._middle()}"
        table.border_subtitle = legend(state.look)
        if has_lanes:
            table.show(LanesTable(state.lanes, state.window, state.look))
        else:
            empty.redraw()

    def tick(self) -> None:
        self.update_all()

    def _middle(self) -> str:
        from chronex_tui.model.wording import stamp

        if self.state.follows_now:
            return "now"
        return stamp(self.state.window.middle_ms, self.state.now_ms, self.state.look.board_zone)

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        return [
            (),
            (("Nothing ran and nothing is planned in this stretch of time.", ""),),
            (),
            (("-", "key"), (" shows more time   ", "dim"), ("0", "key"), (" returns to now", "dim")),
        ]
