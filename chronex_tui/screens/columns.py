"""The columns of the Jobs table: a letter shows one or leaves it out, for this session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.events import Key

from chronex_tui.model.cells import Line
from chronex_tui.model.jobs import COLUMN_LETTERS
from chronex_tui.screens.modal import Modal

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

_ALL = "a"


class ColumnsScreen(Modal):
    """Stays open while columns are chosen: the table behind it follows."""

    def __init__(self, app: ChronexApp) -> None:
        self.desk = app
        is_ascii = app.state.glyphs.border == "ascii"
        super().__init__(app.book, "Columns", self._draw, None, "a letter chooses, enter closes", is_ascii=is_ascii)

    def _draw(self, width: int) -> list[Line]:
        state = self.desk.state
        lines: list[Line] = []
        for letter, column in COLUMN_LETTERS.items():
            is_shown = column.name not in state.hidden
            box = "[x]" if is_shown else "[ ]"
            lines.append(
                ((f"{letter:>5}  ", "key"), (f"{box} {column.title.strip().lower()}", "" if is_shown else "dim"))
            )
        lines.append(((f"{_ALL:>5}  ", "key"), ("    all of them", "")))
        return [*lines, (), (("       a narrow window leaves out what has no room", "dim"),)]

    def on_key(self, event: Key) -> None:
        if event.key in ("enter", "c"):
            event.stop()
            self.dismiss(None)
        elif event.key == _ALL or event.key in COLUMN_LETTERS:
            event.stop()
            self._choose(event.key)

    def _choose(self, letter: str) -> None:
        state = self.desk.state
        if letter == _ALL:
            state.hidden = frozenset()
        else:
            state.hidden ^= {COLUMN_LETTERS[letter].name}
        self.redraw()
        self.desk.board.update_all()
