"""A question before something that cannot be taken back. Enter and esc say no; only y says yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from chronex_tui.model.cells import Line, shown, wrap
from chronex_tui.screens.modal import Modal

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


def confirm(
    app: ChronexApp, title: str, facts: Sequence[tuple[str, str]], command: str, then: Callable[[], None]
) -> None:
    """`facts` are sentences with styles; `command` is the same from a shell."""

    def draw(width: int) -> Sequence[Line]:
        lines: list[Line] = [()]
        for text, style in facts:
            lines += [((piece, style),) for piece in wrap(shown(text), max(width, 10))]
        if command:
            lines += [(), (("$ ", "dim"), (shown(command), "dim"))]
        return [
            *lines,
            (),
            (("y", "key"), (" yes    ", ""), ("n", "key"), (" no, which enter and esc say too", "dim")),
        ]

    def answered(answer: str | None) -> None:
        if answer == "yes":
            then()

    keys = {"y": "yes", "n": "no", "enter": "no"}
    modal = Modal(app.book, title, draw, keys, "", is_ascii=app.state.glyphs.border == "ascii")
    app.push_screen(modal, answered)
