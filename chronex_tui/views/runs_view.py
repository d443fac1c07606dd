"""Runs: what is live, what ended and why, and each run's attempts."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container

from chronex_tui.model.board_lines import no_runs
from chronex_tui.model.layout import Line
from chronex_tui.model.runs_table import firing_detail
from chronex_tui.model.snapshot import RunKey
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views.view import View
from chronex_tui.widgets.panel import Panel
from chronex_tui.widgets.table import Table


class RunsView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "runs")

    def compose(self) -> ComposeResult:
        with Container(id="runs-left"):
            yield Table(self.palette, id="runs", classes="framed", title="Runs")
            yield Panel(self._empty, self.palette, id="no-runs", classes="framed", title="Runs")
        with Container(id="runs-side"):
            yield Panel(self._firing, self.palette, id="firing", classes="framed", title="Run")
            yield Panel(self._log, self.palette, id="runs-log", classes="framed", title="Output")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#runs", Table)
        return table if table.display else self.query_one("#no-runs", Panel)

    def update_list(self) -> None:
        table, empty = self.query_one("#runs", Table), self.query_one("#no-runs", Panel)
        self.show_either(table, empty, has_rows=bool(self.state.runs))
        if empty.display:
            empty.redraw()
        state = self.state
        kind = "Dead letters" if state.only_dead else "Runs"
        more = "" if state.history.is_whole else ", reading older ones"
        table.border_title = f"{kind} of {state.run_job}" if state.run_job else kind
        table.border_subtitle = f"{len(state.runs):,}{more}"
        if state.run is None or table.cursor is None:
            table.cursor = state.run
        table.show(state.runs_table())
        state.run_index = table.index
        if isinstance(table.cursor, RunKey):
            state.run, state.job = table.cursor, table.cursor.job

    def update_all(self) -> None:
        self.update_list()
        super().update_all()

    def tick(self) -> None:
        table = self.query_one("#runs", Table)
        table.model = self.state.runs_table()
        table.refresh()
        if self.state.firing is not None and self.state.firing.occurrence.finished_ms is None:
            self.query_one("#firing", Panel).redraw()

    def selection_changed(self) -> None:
        log = self.query_one("#runs-log", Panel)
        log.border_title = f"Output of {self.state.log_of}" if self.state.log_of else "Output"
        for panel in (self.query_one("#firing", Panel), log):
            if panel.display:
                panel.redraw()

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        return no_runs(self.state.filter.text, only_dead=self.state.only_dead, cells=width)

    def _firing(self, width: int, height: int) -> Sequence[Line]:
        firing = self.state.firing
        if firing is None or firing.key != self.state.run:
            return ()
        return firing_detail(firing, self.state.display, self.state.job_of(firing.key.job), width)

    def _log(self, width: int, height: int) -> Sequence[Line]:
        return self.log_lines(height)
