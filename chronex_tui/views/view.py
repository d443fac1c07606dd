"""What all views share: the state they are drawn from, and the calls that say what has changed."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Container

from chronex.text.terminal import cell_safe
from chronex_tui.model.layout import Line
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.widgets.panel import Panel
from chronex_tui.widgets.table import Table


class View(Container):
    """One screen of the board."""

    def __init__(self, state: State, palette: Palette, name: str) -> None:
        super().__init__(id=f"view-{name}", classes="view")
        self.state, self.palette = state, palette

    def update_all(self) -> None:
        """There is another snapshot, or it is shown in another way."""
        for panel in self.query(Panel):
            if panel.display:
                panel.redraw()

    def tick(self) -> None:
        """A second has passed: draw again what counts down, as far as it is visible."""
        self.update_all()

    @property
    def main(self) -> Table | Panel:
        """The widget that has the focus when the view opens."""
        raise NotImplementedError

    def restore_selection(self) -> None:
        """The view opens: select what was selected on another view, where it is listed."""

    def update_list(self) -> None:
        """Other rows match, as while a filter is typed; panels beside the list may wait."""
        self.update_all()

    def scroll_to_selected(self) -> None:
        """Make the selection visible, where a view does not do so by itself."""

    def log_changed(self) -> None:
        """The newest lines of the selection's output have arrived."""
        self.selection_changed()

    def selection_changed(self) -> None:
        """Another job or run is selected, or its detail has arrived."""
        self.update_all()

    def show_either(self, table: Table, empty: Panel, *, has_rows: bool) -> bool:
        """Show the table, or the panel in its place while there are no rows. True if that changed."""
        if table.display == has_rows and empty.display != has_rows:
            return False
        had_focus = table.has_focus or empty.has_focus
        table.display = has_rows
        empty.display = not has_rows
        if had_focus:
            self.main.focus()
        return True

    def log_lines(self, height: int) -> Sequence[Line]:
        """The newest lines of the selection's output."""
        if not self.state.log:
            return ((("no output", "dim"),),)
        return [((cell_safe(line), ""),) for line in self.state.log[-height:]]
