"""Dialogs over the board: a title, lines, and keys that end it; questions and short lists to choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Key
from textual.screen import ModalScreen

from chronex.text.terminal import cell_safe
from chronex_tui.model.layout import Line, wrap
from chronex_tui.widgets.panel import Panel

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

# Letters for choices, without those that move or leave.
LETTERS = "abcdefghilmnoprstuvwxyz"


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
        app: ChronexApp,
        title: str,
        draw: Callable[[int], Sequence[Line]],
        keys: dict[str, str] | None = None,
        hint: str = "esc closes",
        *,
        is_wide: bool = False,
    ) -> None:
        super().__init__(classes="-ascii" if app.state.glyphs.border == "ascii" else "")
        self.dashboard = app
        self._title = title
        self._draw_lines = draw
        self._answers = keys or {}
        self._hint = hint
        self._is_wide = is_wide

    def compose(self) -> ComposeResult:
        with Container(id="dialog", classes="-wide" if self._is_wide else "") as dialog:
            dialog.border_title = self._title
            dialog.border_subtitle = self._hint
            yield from self.compose_above()
            yield Panel(lambda width, _: self._draw_lines(width), self.dashboard.palette, id="dialog-lines")

    def compose_above(self) -> ComposeResult:
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
        """Draw the lines again, in a dialog that is as high as its lines; a wide one fills the screen."""
        panel = self.query_one("#dialog-lines", Panel)
        panel.redraw()
        if not self._is_wide:
            width = min(72, max(self.app.size.width - 6, 10))
            panel.styles.height = max(len(self._draw_lines(width)), 1)

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
    """Ask before something that cannot be taken back: enter and esc say no, only y says yes.

    `facts` are sentences with styles; `command` is the same from a shell.
    """

    def draw(width: int) -> Sequence[Line]:
        lines: list[Line] = [()]
        for text, style in facts:
            lines += [((piece, style),) for piece in wrap(cell_safe(text), max(width, 10))]
        if command:
            lines += [(), (("$ ", "dim"), (cell_safe(command), "dim"))]
        return [
            *lines,
            (),
            (("y", "key"), (" yes    ", ""), ("n", "key"), (" no, which enter and esc say too", "dim")),
        ]

    def on_answer(answer: str | None) -> None:
        if answer == "yes":
            then()

    app.push_screen(Dialog(app, title, draw, {"y": "yes", "n": "no", "enter": "no"}, ""), on_answer)


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a list: the key that chooses it, the value it stands for, and what is shown."""

    key: str
    value: str
    text: str
    more: str = ""
    style: str = ""


def choose(app: ChronexApp, title: str, choices: Sequence[Choice], then: Callable[[str], None]) -> None:
    """Show the choices; a letter chooses one and passes its value on."""

    def draw(width: int) -> list[Line]:
        lines: list[Line] = []
        for choice in choices:
            for number, piece in enumerate(wrap(cell_safe(choice.text), max(width - 7, 10))):
                lines.append(((f"{choice.key if number == 0 else '':>5}  ", "key"), (piece, choice.style)))
            if choice.more:
                lines.append((("       ", ""), (cell_safe(choice.more), "dim")))
        return lines

    def on_answer(value: str | None) -> None:
        if value is not None:
            then(value)

    keys = {choice.key: choice.value for choice in choices}
    app.push_screen(Dialog(app, title, draw, keys, "a letter chooses, esc closes"), on_answer)
