"""The busiest minute in a dialog: which of its jobs could start when instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chronex_tui.model.crowd import Crowd, crowd_lines
from chronex_tui.screens.modal import Modal

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


def show_crowd(app: ChronexApp, crowd: Crowd | None) -> None:
    lines = crowd_lines(crowd, app.state.look)
    is_ascii = app.state.glyphs.border == "ascii"
    app.push_screen(Modal(app.book, "Busiest minute", lambda _: lines, {"H": ""}, is_wide=True, is_ascii=is_ascii))
