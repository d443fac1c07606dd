"""What all views share: the state they are drawn from, and how they are told that it changed."""

from __future__ import annotations

from textual.containers import Container

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
        """Another snapshot, or another way to look at it."""
        for panel in self.query(Panel):
            if panel.display:
                panel.redraw()

    def tick(self) -> None:
        """A second has passed: what counts down is drawn again, and only what is in sight."""
        self.update_all()

    @property
    def main(self) -> Table | Panel:
        """What has the focus when the screen opens."""
        raise NotImplementedError

    def show_selection(self) -> None:
        """The view is opened: what was selected on another one is selected here, where it is listed."""

    def update_list(self) -> None:
        """Other rows, as while a filter is typed; what is beside them may wait."""
        self.update_all()

    def see_selected(self) -> None:
        """Bring what is selected into sight, where a view does not do so by itself."""

    def log_changed(self) -> None:
        """The newest lines of the selection's output have arrived."""
        self.selection_changed()

    def selection_changed(self) -> None:
        """The selected job or run is another one, or its detail has arrived."""
        self.update_all()
