"""Short lists to choose from by a letter: actions, what to copy, states, zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chronex_tui.actions import available, key_text, shell_command
from chronex_tui.model.cells import Line, fit, shown, wrap
from chronex_tui.model.glyphs import STYLES, sign, word
from chronex_tui.model.runs import state_of
from chronex_tui.screens.modal import Modal

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

LETTERS = "abcdefghilmnoprstuvwxyz"


@dataclass(frozen=True, slots=True)
class Choice:
    key: str
    value: str
    text: str
    more: str = ""
    style: str = ""


def choose(app: ChronexApp, title: str, choices: Sequence[Choice], then: Callable[[str], None]) -> None:
    """Show the choices; a letter takes one."""

    def draw(width: int) -> list[Line]:
        lines: list[Line] = []
        for choice in choices:
            for number, piece in enumerate(wrap(shown(choice.text), max(width - 7, 10))):
                lines.append(((f"{choice.key if number == 0 else '':>5}  ", "key"), (piece, choice.style)))
            if choice.more:
                lines.append((("       ", ""), (shown(choice.more), "dim")))
        return lines

    def taken(value: str | None) -> None:
        if value is not None:
            then(value)

    modal = Modal(
        app.book,
        title,
        draw,
        {choice.key: choice.value for choice in choices},
        "a letter chooses, esc closes",
        is_ascii=app.state.glyphs.border == "ascii",
    )
    app.push_screen(modal, taken)


def action_menu(app: ChronexApp) -> None:
    """Everything that can be done to what is selected, each with its sentence and its shell command."""
    context = app.context()
    row = app.state.row(context.job)
    schedule = row.job.schedule if row else ""
    shown_ones = [a for a in available(context) if a.needs and a.id not in ("menu", "mark")]
    choices = []
    for action in shown_ones:
        command = shell_command(action, context, schedule)
        choices.append(Choice(key_text(action), action.id, action.sentence, f"$ {command}" if command else ""))
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
    """The states there are, with how many are in each."""
    state = app.state
    if state.screen == "runs":
        counts = Counter(state_of(item) for item in state.runs)
    else:
        counts = Counter(str(row.situation) for row in state.snapshot.rows)
    choices = [Choice("a", "", "all")]
    letters = iter(letter for letter in LETTERS if letter != "a")
    for name, number in counts.most_common():
        text = f"{fit(word(name), 12)} {number:,}"
        sign_ = sign(name, state.glyphs) if state.screen == "runs" else _situation_sign(app, name)
        choices.append(Choice(next(letters), f"state:{name}", f"{sign_} {text}", style=STYLES[name]))

    def narrow(text: str) -> None:
        kept = [one for one in state.filter.text.split() if not one.startswith("state:")]
        state.set_filter(" ".join([*kept, text]).strip())
        app.board.update_all()

    choose(app, "Show only", choices, narrow)


def _situation_sign(app: ChronexApp, name: str) -> str:
    from chronex.views.jobs import Situation

    return app.state.glyphs.situation[Situation(name)]


def zone_menu(app: ChronexApp) -> None:
    """The zones in use; any other one is a matter of --tz."""
    from chronex_tui.model.clockday import zones_of

    zones = zones_of(row.job for row in app.state.snapshot.rows)
    choices = [Choice("a", "", "every zone in use")]
    letters = iter(LETTERS[1:])
    for name in sorted({*zones, app.state.home.name}):
        letter = next(letters, None)
        if letter is not None:
            choices.append(Choice(letter, name, f"{fit(name, 24)} {len(zones.get(name, ()))} jobs"))

    def show(name: str) -> None:
        app.state.clock_zone, app.state.clock_index = name, 0
        app.ask.clock()

    choose(app, "Zone", choices, show)
