"""The views of what jobs share and run on: graphs, groups and nodes. They are loaded when one is opened."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container
from textual.markup import escape

from chronex.text.terminal import cell_safe
from chronex_tui.model.available_actions import daemon_command
from chronex_tui.model.display import count
from chronex_tui.model.graph_lines import graph_lines
from chronex_tui.model.groups_table import GroupKey, group_lines, no_groups
from chronex_tui.model.layout import Line
from chronex_tui.model.nodes_table import NodeKey, no_nodes, node_lines
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views import JobListView, View
from chronex_tui.widgets import Panel, Table, TextPanel

# The view of graphs: the jobs, and the tasks of the selected one drawn as a graph with the states of a run.


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


# The view of groups: who holds places, who waits for them, and what for.


class GroupsView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "groups")

    def compose(self) -> ComposeResult:
        with Container(id="groups-left"):
            yield Table(self.palette, id="groups", classes="framed", title="Groups")
            yield TextPanel(self._empty, self.palette, id="no-groups", classes="framed", title="Groups")
        yield TextPanel(self._group, self.palette, id="group", classes="framed", title="Group")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#groups", Table)
        return table if table.display else self.query_one("#no-groups", Panel)

    def update_list(self) -> None:
        table, empty = self.query_one("#groups", Table), self.query_one("#no-groups", Panel)
        rows = self.state.groups or ()
        self.show_either(table, empty, has_rows=bool(rows))
        if empty.display:
            empty.redraw()
        table.border_subtitle = f"{count(sum(row.waiting for row in rows), 'run')} waiting"
        if table.cursor is None:
            table.cursor = self.state.group
        table.show(self.state.groups_table())
        if isinstance(table.cursor, GroupKey):
            self.state.group = table.cursor
        self._title()

    def update_all(self) -> None:
        self.update_list()
        super().update_all()

    def tick(self) -> None:
        table = self.query_one("#groups", Table)
        table.model = self.state.groups_table()
        table.refresh()
        self.query_one("#group", Panel).redraw()

    def selection_changed(self) -> None:
        self._title()
        self.query_one("#group", Panel).redraw()

    def _title(self) -> None:
        row = self.state.group_row()
        self.query_one("#group", Panel).border_title = "Group" if row is None else f"Group {escape(row.group.name)}"

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        return ((("reading the store", "dim"),),) if self.state.groups is None else no_groups()

    def _group(self, width: int, height: int) -> Sequence[Line]:
        row = self.state.group_row()
        return () if row is None else group_lines(row, self.state.display, width)


# The view of the nodes: all schedulers of the store, and the selected one in full.


class NodesView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "nodes")

    def compose(self) -> ComposeResult:
        with Container(id="nodes-left"):
            yield Table(self.palette, id="nodes", classes="framed", title="Nodes")
            yield TextPanel(self._empty, self.palette, id="no-nodes", classes="framed", title="Nodes")
        yield TextPanel(self._node, self.palette, id="node", classes="framed", title="Node")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#nodes", Table)
        return table if table.display else self.query_one("#no-nodes", Panel)

    def update_list(self) -> None:
        table, empty = self.query_one("#nodes", Table), self.query_one("#no-nodes", Panel)
        rows = self.state.nodes or ()
        self.show_either(table, empty, has_rows=bool(rows))
        if empty.display:
            empty.redraw()
        living = sum(row.is_alive for row in rows)
        table.border_subtitle = f"{count(living, 'node')} alive, {len(rows) - living} gone"
        if table.cursor is None:
            table.cursor = self.state.node
        table.show(self.state.nodes_table())
        if isinstance(table.cursor, NodeKey):
            self.state.node = table.cursor

    def update_all(self) -> None:
        self.update_list()
        super().update_all()

    def tick(self) -> None:
        table = self.query_one("#nodes", Table)
        table.model = self.state.nodes_table()
        table.refresh()
        self.query_one("#node", Panel).redraw()

    def selection_changed(self) -> None:
        self.query_one("#node", Panel).redraw()

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        if self.state.nodes is None:
            return ((("reading the store", "dim"),),)
        rows = self.state.snapshot.rows
        return no_nodes(is_daemon_expected=bool(rows), command=daemon_command(rows, self.state.store_option))

    def _node(self, width: int, height: int) -> Sequence[Line]:
        row = self.state.node_row()
        return () if row is None else node_lines(row, self.state.display, width)
