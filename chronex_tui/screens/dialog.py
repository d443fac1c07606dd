"""A dialog over the board: a title, lines, and keys that end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Key
from textual.screen import ModalScreen

from chronex_tui.model.layout import Line, terminal_safe, wrap
from chronex_tui.theme import Palette
from chronex_tui.widgets.panel import Panel

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


class Dialog(ModalScreen[str | None]):
    """Shows lines and ends with the answer that belongs to a key; esc ends it with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,ctrl+d,space", "scroll(10)", show=False),
        Binding("pageup,ctrl+u", "scroll(-10)", show=False),
    ]

    def __init__(
        self,
        palette: Palette,
        title: str,
        draw: Callable[[int], Sequence[Line]],
        keys: dict[str, str] | None = None,
        hint: str = "esc closes",
        *,
        is_wide: bool = False,
        is_ascii: bool = False,
    ) -> None:
        super().__init__(classes="-ascii" if is_ascii else "")
        self.palette, self._title, self._lines, self._answers = palette, title, draw, keys or {}
        self._hint, self._is_wide = hint, is_wide

    def compose(self) -> ComposeResult:
        with Container(id="dialog", classes="-wide" if self._is_wide else "") as dialog:
            dialog.border_title = self._title
            dialog.border_subtitle = self._hint
            yield from self.above()
            yield Panel(lambda width, _: self._lines(width), self.palette, id="dialog-lines")

    def above(self) -> ComposeResult:
        """Widgets before the lines."""
        yield from ()

    def on_mount(self) -> None:
        self.focus_first()
        self.fit()

    def focus_first(self) -> None:
        self.query_one("#dialog-lines", Panel).focus()

    def on_resize(self) -> None:
        self.fit()

    def fit(self) -> None:
        """As high as its lines, where it need not fill the screen."""
        panel = self.query_one("#dialog-lines", Panel)
        panel.redraw()
        if not self._is_wide:
            width = min(72, max(self.app.size.width - 6, 10))
            panel.styles.height = max(len(self._lines(width)), 1)

    def redraw(self) -> None:
        self.fit()

    def action_scroll(self, by: int) -> None:
        self.query_one("#dialog-lines", Panel).scroll_relative(y=by, animate=False)

    def on_key(self, event: Key) -> None:
        pressed = event.character if event.character and event.character.isprintable() else event.key
        if pressed in self._answers:
            event.stop()
            self.dismiss(self._answers[pressed])


def confirm(
    app: ChronexApp, title: str, facts: Sequence[tuple[str, str]], command: str, then: Callable[[], None]
) -> None:
    """`facts` are sentences with styles; `command` is the same from a shell."""

    def draw(width: int) -> Sequence[Line]:
        lines: list[Line] = [()]
        for text, style in facts:
            lines += [((piece, style),) for piece in wrap(terminal_safe(text), max(width, 10))]
        if command:
            lines += [(), (("$ ", "dim"), (terminal_safe(command), "dim"))]
        return [
            *lines,
            (),
            (("y", "key"), (" yes    ", ""), ("n", "key"), (" no, which enter and esc say too", "dim")),
        ]

    def answered(answer: str | None) -> None:
        if answer == "yes":
            then()

    keys = {"y": "yes", "n": "no", "enter": "no"}
    dialog = Dialog(app.palette, title, draw, keys, "", is_ascii=app.state.glyphs.border == "ascii")
    app.push_screen(dialog, answered)
