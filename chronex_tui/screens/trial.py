"""Try a schedule: its meaning, next runs and mistakes while it is typed. Nothing is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Input

from chronex_tui.model.trial import trial_lines
from chronex_tui.screens.modal import Modal
from chronex_tui.widgets.panel import Panel

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


class TrialScreen(Modal):
    """An input above, the answer below."""

    def __init__(self, app: ChronexApp) -> None:
        self._desk = app
        self._text = ""
        super().__init__(
            app.book,
            f"Try a schedule in {app.state.home.name}",
            self._answer,
            hint="enter copies the shell command, esc closes",
            is_wide=True,
            is_ascii=app.state.glyphs.border == "ascii",
        )

    def above(self) -> ComposeResult:
        yield Input(placeholder="30 2 * * *    or    @every 90s    or    TZ=Asia/Seoul 0 9 * * MON-FRI", id="trial")

    def focus_first(self) -> None:
        self.query_one("#trial", Input).focus()

    def _answer(self, width: int) -> list[tuple[tuple[str, str], ...]]:
        state = self._desk.state
        return trial_lines(self._text, state.home, state.now_ms, state.glyphs, width)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._text = event.value
        self.query_one("#dialog-lines", Panel).redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        quoted = event.value.replace("'", "'\\''")
        self.app.copy_to_clipboard(f"chronex explain '{quoted}' --tz {self._desk.state.home.name}")
        self.app.notify("copied the shell command", timeout=1.5)
