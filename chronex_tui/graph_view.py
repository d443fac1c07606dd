"""The view of graphs: the jobs, and the tasks of the selected one drawn as a graph with the states of a run."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container
from textual.markup import escape

from chronex.text.terminal import cell_safe
from chronex_tui.model.board_lines import no_jobs, no_match
from chronex_tui.model.graph_lines import graph_lines
from chronex_tui.model.layout import Line
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views import View
from chronex_tui.widgets import Panel, Table


class GraphView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "graph")

    def compose(self) -> ComposeResult:
        with Container(id="graph-left"):
            yield Table(self.palette, id="graph-jobs", classes="framed", title="Jobs")
            yield Panel(self._empty, self.palette, id="no-graph-jobs", classes="framed", title="Jobs")
        yield Panel(self._graph, self.palette, id="graph", classes="framed", title="Graph")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#graph-jobs", Table)
        return table if table.display else self.query_one("#no-graph-jobs", Panel)

    def restore_selection(self) -> None:
        if self.state.job is not None:
            self.query_one("#graph-jobs", Table).cursor = self.state.job

    def update_list(self) -> None:
        table, empty = self.query_one("#graph-jobs", Table), self.query_one("#no-graph-jobs", Panel)
        self.show_either(table, empty, has_rows=bool(self.state.rows))
        if empty.display:
            empty.redraw()
        if table.cursor is None:
            table.cursor = self.state.job
        table.border_subtitle = self.state.order_words
        table.show(self.state.jobs_table())

    def update_all(self) -> None:
        self.update_list()
        self.selection_changed()
        super().update_all()

    def tick(self) -> None:
        table = self.query_one("#graph-jobs", Table)
        table.model = self.state.jobs_table()
        table.refresh()

    def selection_changed(self) -> None:
        panel = self.query_one("#graph", Panel)
        panel.border_title = f"Graph of {escape(cell_safe(self.state.job))}" if self.state.job else "Graph"
        panel.redraw()

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        if self.state.snapshot.rows:
            return no_match(self.state.filter.text, len(self.state.snapshot.rows))
        return no_jobs(self.state.snapshot, self.state.store_option, width)

    def _graph(self, width: int, height: int) -> Sequence[Line]:
        graph = self.state.graph
        if graph is None or graph.job != self.state.job:
            return ()
        return graph_lines(graph, self.state.display, width)
