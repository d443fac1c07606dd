"""Menus: what can be done, copied or shown, as short lists and in the command palette."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.events import Key

from chronex.jobfile.keymap import DashboardAction
from chronex.views.jobs import Situation
from chronex_tui.model.available_actions import available, key_text, shell_command
from chronex_tui.model.display import STYLES, sign, word
from chronex_tui.model.jobs_table import COLUMN_LETTERS
from chronex_tui.model.layout import Line, fit
from chronex_tui.model.runs_table import state_of
from chronex_tui.screens.dialog import LETTERS, Choice, Dialog, choose

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

_ALL = "a"


def action_menu(app: ChronexApp) -> None:
    """Everything that can be done to what is selected, each with its sentence and its shell command."""
    context = app.context()
    row = app.state.row(context.job)
    schedule = row.job.schedule if row else ""
    choices = []
    for action in available(context):
        if action.needs and action.id not in ("menu", "mark"):
            command = shell_command(action, context, schedule)
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
    if state.log:
        found["l"] = ("the output below", "\n".join(state.log))
    choices = [
        Choice(key, text, what, text.splitlines()[0][:66]) for key, (what, text) in found.items() if text.strip()
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
            choices.append(Choice(letter, name, f"{fit(name, 24)} {len(zones.get(name, ()))} jobs"))

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
        return [*lines, (), (("       a narrow window leaves out what has no room", "dim"),)]

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


class ActionProvider(Provider):
    """The command palette: every action that can be done now, found by its title or its help text."""

    @property
    def dashboard(self) -> ChronexApp:
        return cast("ChronexApp", self.app)

    def _actions(self) -> list[DashboardAction]:
        return [action for action in available(self.dashboard.context()) if action.id != "palette"]

    async def discover(self) -> Hits:
        for action in self._actions():
            name = _palette_name(action)
            yield DiscoveryHit(name, partial(self.dashboard.do, action.id), text=name, help=action.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._actions():
            name = _palette_name(action)
            score = max(matcher.match(name), matcher.match(action.help) * 0.6)
            if score > 0:
                highlighted = matcher.highlight(name)
                yield Hit(score, highlighted, partial(self.dashboard.do, action.id), text=name, help=action.help)


def _palette_name(action: DashboardAction) -> str:
    return f"{action.title}  ({key_text(action)})"
