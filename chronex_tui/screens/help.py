"""What every key does, made from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chronex_tui.actions import help_lines
from chronex_tui.screens.modal import Modal

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


class HelpScreen(Modal):
    def __init__(self, app: ChronexApp) -> None:
        context = app.context()
        row = app.state.row(app.state.job)
        schedule = row.job.schedule if row else ""
        super().__init__(
            app.book,
            f"Keys on the {context.screen.capitalize()} screen",
            lambda width: list(help_lines(context, width, schedule)),
            {"?": ""},
            is_wide=True,
            is_ascii=app.state.glyphs.border == "ascii",
        )
