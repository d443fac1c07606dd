"""Dialogs over the board: questions, lists to choose from, the menus, and the command palette."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input

from chronex.text.terminal import cell_safe, cell_width
from chronex.views.jobs import Situation
from chronex_tui.model.available_actions import actions_named, available, daemon_command, key_text, shell_command
from chronex_tui.model.display import STYLES, count, sign, word
from chronex_tui.model.jobs_table import COLUMN_LETTERS
from chronex_tui.model.layout import Line, crop, fit, wrap
from chronex_tui.model.runs_table import state_of
from chronex_tui.widgets import Panel

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

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        """Several keys of one burst may reach the dialog: the first one ends it, the others do nothing."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def action_scroll(self, by: int) -> None:
        self.query_one("#dialog-lines", Panel).scroll_relative(y=by, animate=False)

    def on_key(self, event: Key) -> None:
        pressed = event.character if event.character and event.character.isprintable() else event.key
        if pressed in self._answers:
            event.stop()
            self.dismiss(self._answers[pressed])


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a list: the key that chooses it, the value it stands for, and what is shown."""

    key: str
    value: str
    text: str
    more: str = ""
    style: str = ""


_CHOOSING = "a letter or enter chooses, esc closes"


class ChoiceDialog(Dialog):
    """A list of answers. One of them is highlighted, and enter gives that one; a letter gives its own at once."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j,tab,right", "move(1)", show=False),
        Binding("up,k,shift+tab,left", "move(-1)", show=False),
        Binding("enter", "take", show=False),
    ]

    def __init__(
        self,
        app: ChronexApp,
        title: str,
        choices: Sequence[Choice],
        *,
        above: Callable[[int], list[Line]] = lambda _: [],
        start: int = 0,
        hint: str = _CHOOSING,
    ) -> None:
        super().__init__(app, title, self._draw, {choice.key: choice.value for choice in choices}, hint)
        self.choices, self.index, self._above = choices, start, above
        self._first_lines: list[int] = []  # of each choice, as it was drawn last

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self._show_highlighted)

    def _draw(self, width: int) -> list[Line]:
        lines = self._above(width)
        self._first_lines = []
        key_cells = cells_of_keys(self.choices)
        for number, choice in enumerate(self.choices):
            self._first_lines.append(len(lines))
            lines += choice_lines(choice, width, key_cells, is_highlighted=number == self.index)
        return lines

    def action_move(self, by: int) -> None:
        self.index = (self.index + by) % max(len(self.choices), 1)
        self.query_one("#dialog-lines", Panel).redraw()
        self._show_highlighted()

    def _show_highlighted(self) -> None:
        panel = self.query_one("#dialog-lines", Panel)
        if self.index < len(self._first_lines):
            height, line = max(panel.size.height, 1), self._first_lines[self.index]
            top = min(max(panel.scroll_offset.y, line - height + 2), line)
            panel.scroll_to(y=top, animate=False, force=True)

    def action_take(self) -> None:
        if self.index < len(self.choices):
            self.dismiss(self.choices[self.index].value)

    def on_panel_line_clicked(self, event: Panel.LineClicked) -> None:
        """A click on an answer gives it, as its letter does; one on the question gives none."""
        clicked = sum(first <= event.number for first in self._first_lines) - 1
        if clicked >= 0:
            self.dismiss(self.choices[clicked].value)


_MARK = " > "
_KEY_GAP = "  "


def cells_of_keys(choices: Sequence[Choice]) -> int:
    """How wide the column of keys is: most are letters, but enter and space are words."""
    return max((cell_width(choice.key) for choice in choices), default=1)


def cells_beside_keys(width: int, key_cells: int) -> int:
    return max(width - len(_MARK) - key_cells - len(_KEY_GAP) - 1, 10)


def choice_lines(choice: Choice, width: int, key_cells: int, *, is_highlighted: bool) -> list[Line]:
    """The choice with its letter; the highlighted one has a mark too, for terminals without colours."""
    mark, over = (_MARK, "chosen") if is_highlighted else (" " * len(_MARK), "")
    cells = cells_beside_keys(width, key_cells)
    lines: list[Line] = []
    for number, piece in enumerate(wrap(cell_safe(choice.text), cells)):
        head = (mark, choice.key) if number == 0 else (" " * len(_MARK), "")
        text = fit(piece, cells) if is_highlighted else piece
        lines.append(((head[0], "key"), (f"{head[1]:>{key_cells}}{_KEY_GAP}", "key"), (text, over or choice.style)))
    if choice.more:
        indent = " " * (len(_MARK) + key_cells + len(_KEY_GAP))
        lines += [((indent, ""), (piece, "dim")) for piece in wrap(cell_safe(choice.more), cells)]
    return lines


def confirm(
    app: ChronexApp, title: str, facts: Sequence[tuple[str, str]], command: str, then: Callable[[], None]
) -> None:
    """Ask before something that cannot be undone. No is highlighted, so enter says no until yes is chosen.

    `facts` are sentences with styles; `command` is the same from a shell.
    """

    def above(width: int) -> list[Line]:
        lines: list[Line] = [()]
        for text, style in facts:
            lines += [((piece, style),) for piece in wrap(cell_safe(text), max(width, 10))]
        if command:
            lines += [(), *(((piece, "dim"),) for piece in wrap(cell_safe(f"$ {command}"), max(width, 10)))]
        return [*lines, ()]

    def on_answer(answer: str | None) -> None:
        if answer == "yes":
            then()
        else:
            app.notify("nothing was done", timeout=1.5)

    choices = [Choice("y", "yes", "yes"), Choice("n", "no", "no")]
    hint = "y or n, or enter for the highlighted one"
    app.push_screen(ChoiceDialog(app, title, choices, above=above, start=1, hint=hint), on_answer)


def choose(
    app: ChronexApp, title: str, choices: Sequence[Choice], then: Callable[[str], None], *, start: int = 0
) -> None:
    """Show the choices; a letter, or enter on the highlighted one, passes its value on."""

    def on_answer(value: str | None) -> None:
        if value is not None:
            then(value)

    app.push_screen(ChoiceDialog(app, title, choices, start=start), on_answer)


# -- menus ----------------------------------------------------------------------------------------------------

_ALL = "a"
_WHOLE = "yd"  # commands, of which the menu shows every word; of other text it shows the beginning


def action_menu(app: ChronexApp) -> None:
    """Everything that can be done to what is selected, each with its sentence and its shell command."""
    context = app.context()
    choices = []
    for action in available(context):
        if action.needs and action.id not in ("menu", "mark"):
            command = shell_command(action, context)
            choices.append(Choice(key_text(action), action.id, action.help, f"$ {command}" if command else ""))
    choose(app, context.job, choices, app.do)


def copy_menu(app: ChronexApp) -> None:
    """The command first, because it is what most people want."""
    state = app.state
    row = state.row(state.job)
    found = {"y": ("the shell command", app.current_command()), "n": ("the name", state.job or "")}
    if row is not None:
        found["s"] = ("the schedule", row.job.schedule)
    if state.firing is not None and state.screen == "runs":
        found["i"] = ("the run's id", state.firing.occurrence.id)
    if state.snapshot.rows and not state.snapshot.is_daemon_alive:
        found["d"] = ("what starts the daemon", daemon_command(state.snapshot.rows, state.store_option))
    if state.log:
        found["l"] = ("the output below", "\n".join(state.log))
    choices = [
        Choice(key, text, what, text if key in "yd" else text.splitlines()[0][:66])
        for key, (what, text) in found.items()
        if text.strip()
    ]

    def copy(text: str) -> None:
        app.copy_to_clipboard(text)
        app.notify("copied", timeout=1.5)

    if choices:
        choose(app, "Copy", choices, copy)


def state_menu(app: ChronexApp) -> None:
    """The states that occur, with how many jobs or runs are in each."""
    state = app.state
    if state.screen == "runs":
        counts = Counter(state_of(item) for item in state.runs)
        signs = {name: sign(name, state.glyphs) for name in counts}
    else:
        counts = Counter(str(row.situation) for row in state.snapshot.rows)
        signs = {name: state.glyphs.situation[Situation(name)] for name in counts}
    choices = [Choice(_ALL, "", "all")]
    letters = iter(letter for letter in LETTERS if letter != _ALL)
    for name, number in counts.most_common():
        text = f"{signs[name]} {fit(word(name), 12)} {number:,}"
        choices.append(Choice(next(letters), f"state:{name}", text, style=STYLES[name]))

    def show_only(state_word: str) -> None:
        state.set_filter(f"{state.filter.without_states()} {state_word}".strip())
        app.board.update_all()

    choose(app, "Show only", choices, show_only)


def zone_menu(app: ChronexApp) -> None:
    """The zones in use; --tz shows any other one."""
    from chronex_tui.model.clock_days import zones_of

    zones = zones_of(row.job for row in app.state.snapshot.rows)
    choices = [Choice(_ALL, "", "every zone in use")]
    letters = iter(LETTERS[1:])
    for name in sorted({*zones, app.state.home.name}):
        letter = next(letters, None)
        if letter is not None:
            choices.append(Choice(letter, name, f"{fit(name, 24)} {count(len(zones.get(name, ())), 'job')}"))

    def show(name: str) -> None:
        app.state.clock_zone = name
        app.state.clock_index = 0
        app.requests.compute_clock_changes()

    choose(app, "Zone", choices, show)


class ColumnsScreen(Dialog):
    """The columns of the Jobs table, for this session; the dialog stays open and the table behind it follows."""

    def __init__(self, app: ChronexApp) -> None:
        super().__init__(app, "Columns", self._draw, None, "a letter chooses, enter closes")

    def _draw(self, width: int) -> list[Line]:
        state = self.dashboard.state
        lines: list[Line] = []
        for letter, column in COLUMN_LETTERS.items():
            is_shown = column.name not in state.hidden
            box = "[x]" if is_shown else "[ ]"
            lines.append(
                ((f"{letter:>5}  ", "key"), (f"{box} {column.title.strip().lower()}", "" if is_shown else "dim"))
            )
        lines.append(((f"{_ALL:>5}  ", "key"), ("    all of them", "")))
        return [*lines, (), (("       a narrow window leaves out what does not fit", "dim"),)]

    def on_key(self, event: Key) -> None:
        if event.key in ("enter", "c"):
            event.stop()
            self.dismiss(None)
        elif event.key == _ALL or event.key in COLUMN_LETTERS:
            event.stop()
            self._choose(event.key)

    def _choose(self, letter: str) -> None:
        state = self.dashboard.state
        if letter == _ALL:
            state.hidden = frozenset()
        else:
            state.hidden ^= {COLUMN_LETTERS[letter].name}
        self.fit()
        self.dashboard.board.update_all()


# -- the command palette --------------------------------------------------------------------------------------


class PaletteScreen(Dialog):
    """Every action that can be done now, found by its title or its help text as it is typed; enter does the first.

    Textual's own searches in the background, so that an enter right behind the text does what was found before.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,tab", "move(1)", show=False),
        Binding("up,shift+tab", "move(-1)", show=False),
    ]

    def __init__(self, app: ChronexApp) -> None:
        super().__init__(app, "Actions", self._draw, hint="enter does the highlighted one, esc closes", is_wide=True)
        self._all = [action for action in available(app.context()) if action.id != "palette"]
        self._found = self._all
        self._index = 0

    def compose_above(self) -> ComposeResult:
        yield Input(placeholder="what do you want to do?", id="action-name")

    def focus_first(self) -> None:
        self.query_one("#action-name", Input).focus()

    def _draw(self, width: int) -> list[Line]:
        if not self._found:
            return [(("no action has these letters", "dim"),)]
        named = [Choice(key_text(action), action.id, f"{action.title}: {action.help}") for action in self._found]
        key_cells = cells_of_keys(named)
        cells = cells_beside_keys(width, key_cells)
        lines: list[Line] = []
        for number, choice in enumerate(named):
            cropped = replace(choice, text=crop(choice.text, cells, self.dashboard.palette.ellipsis))
            lines += choice_lines(cropped, width, key_cells, is_highlighted=number == self._index)
        return lines

    def on_input_changed(self, event: Input.Changed) -> None:
        self._found, self._index = actions_named(self._all, event.value), 0
        self.query_one("#dialog-lines", Panel).redraw()

    def action_move(self, by: int) -> None:
        self._index = (self._index + by) % max(len(self._found), 1)
        panel = self.query_one("#dialog-lines", Panel)
        panel.redraw()
        panel.scroll_to(y=max(self._index - panel.size.height + 2, 0), animate=False, force=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(self._found[self._index].id if self._found else None)


def open_palette(app: ChronexApp) -> None:
    def on_answer(action_id: str | None) -> None:
        if action_id is not None:
            app.do(action_id)

    app.push_screen(PaletteScreen(app), on_answer)
