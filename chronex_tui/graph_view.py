"""The view of graphs: the jobs, and the tasks of the selected one drawn as a graph with the states of a run."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container
from textual.markup import escape

from chronex.text.terminal import cell_safe
from chronex_tui.model.graph_lines import graph_lines
from chronex_tui.model.layout import Line
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views import JobListView
from chronex_tui.widgets import Panel


class GraphView(JobListView):
    LIST, EMPTY = "graph-jobs", "no-graph-jobs"

    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "graph")

    def compose(self) -> ComposeResult:
        with Container(id="graph-left"):
            yield from self.compose_list()
        yield Panel(self._graph, self.palette, id="graph", classes="framed", title="Graph")

    def update_all(self) -> None:
        self.update_list()
        self.selection_changed()
        super().update_all()

    def selection_changed(self) -> None:
        panel = self.query_one("#graph", Panel)
        panel.border_title = f"Graph of {escape(cell_safe(self.state.job))}" if self.state.job else "Graph"
        panel.redraw()

    def _graph(self, width: int, height: int) -> Sequence[Line]:
        graph = self.state.graph
        if graph is None or graph.job != self.state.job:
            return ()
        return graph_lines(graph, self.state.display, width)
