"""Actions that change something: asked for here, carried out by the store, shown when the next snapshot tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


class Acting:
    def __init__(self, app: ChronexApp) -> None:
        self.app, self.state = app, app.state

    def mark(self) -> None:
        """Add the job to the marked ones, or take it out, and go on to the next."""
        name = self.state.job
        if name is not None:
            self.state.marked ^= {name}
            self.app.board.update_all()
