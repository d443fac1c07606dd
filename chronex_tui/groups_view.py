"""The view of groups: who holds places, who waits for them, and what for."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container
from textual.markup import escape

from chronex_tui.model.display import count
from chronex_tui.model.groups_table import GroupKey, group_lines, no_groups
from chronex_tui.model.layout import Line
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views import View
from chronex_tui.widgets import Panel, Table


class GroupsView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "groups")

    def compose(self) -> ComposeResult:
        with Container(id="groups-left"):
            yield Table(self.palette, id="groups", classes="framed", title="Groups")
            yield Panel(self._empty, self.palette, id="no-groups", classes="framed", title="Groups")
        yield Panel(self._group, self.palette, id="group", classes="framed", title="Group")

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
