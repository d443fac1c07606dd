"""The view of the nodes: all schedulers of the store, and the selected one in full."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container

from chronex_tui.model.available_actions import daemon_command
from chronex_tui.model.display import count
from chronex_tui.model.layout import Line
from chronex_tui.model.nodes_table import NodeKey, no_nodes, node_lines
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views import View
from chronex_tui.widgets import Panel, Table


class NodesView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "nodes")

    def compose(self) -> ComposeResult:
        with Container(id="nodes-left"):
            yield Table(self.palette, id="nodes", classes="framed", title="Nodes")
            yield Panel(self._empty, self.palette, id="no-nodes", classes="framed", title="Nodes")
        yield Panel(self._node, self.palette, id="node", classes="framed", title="Node")

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
