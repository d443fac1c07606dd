"""Random bursts of keys over every screen and dialog, while sizes and data change: nothing breaks, and nothing is done
that was not asked for."""

from __future__ import annotations

import asyncio
import random
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.events import Event, Key, Paste
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from chronex.engine.commands import Actor, cancel, pause, resume, trigger
from chronex.engine.update import apply_jobs
from chronex.errors import ChronexError
from chronex.jobfile.keymap import ACTIONS, BY_ID
from chronex.model.policies import StopMode
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore
from chronex_tui.app import ChronexApp, StartOptions
from chronex_tui.commands import StoreCommand, StoreCommands
from chronex_tui.launch import wait_until_idle
from chronex_tui.screens.dialogs import ChoiceDialog, PaletteScreen
from tests.kit.waits import DEADLINE_S
from tests.tui.driving import Driver, SharedStore, app_on
from tests.tui.examples import JOBS, NOW, job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Styles, layout and painting cost more than handling does, so only after some of the bursts there is a frame.
FEW_FRAMES, MANY_FRAMES = 50, 10
SIZES = ((40, 12), (80, 24), (60, 16), (120, 40), (20, 6), (300, 80))
SIZE_WEIGHTS = (8, 4, 4, 2, 1, 1)
NAMES = {"/": "slash", ":": "colon", "?": "question_mark", "!": "exclamation_mark", "+": "plus", "-": "minus",
         "[": "left_square_bracket", "]": "right_square_bracket", " ": "space"}  # fmt: skip
CHARACTERS = {name: character for character, name in NAMES.items()} | {"enter": "\r", "tab": "\t"}
MOVES = ("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab", "shift+tab", "enter", "escape",
         "backspace", "delete", "ctrl+d", "ctrl+u", "ctrl+p", "ctrl+c", "space", "y", "p", "j", "k", "g", "G", "f5")  # fmt: skip
KEYS = tuple(NAMES.get(action.key, action.key) for action in ACTIONS)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDFGHNPRSTWXYZ0123456789:<>-*. "
PASTED = ("pty\nX\n", "30 2 * * *", "state:failed", "🙂 ünï", "", "\x1b[A", "y" * 300)


def keys_of(source: random.Random) -> Iterator[Event]:
    """One burst: mostly keys that do something, sometimes text, sometimes a paste."""
    if source.random() < 0.2:  # else most keys would end up in a dialog that is open
        yield Key("escape", None)
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        kind = source.random()
        if kind < 0.03:
            yield Paste(source.choice(PASTED))
            continue
        key = source.choice(KEYS if kind < 0.33 else MOVES if kind < 0.8 else LETTERS)
        key = NAMES.get(key, key)
        yield Key(key, CHARACTERS.get(key, key if len(key) == 1 else None))


class Engine:
    """Beside the dashboard, so that quitting asks; it counts how often it was told to stop."""

    is_alive = True

    def __init__(self) -> None:
        self.stops: list[StopMode | None] = []

    def ask_to_stop(self, mode: StopMode | None) -> None:
        self.stops.append(mode)


class Witness:
    """Knows of every key where it went, and holds every command against it."""

    def __init__(self, app: ChronexApp, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app, self.engine = app, Engine()
        self.place, self.key, self.selected = "", "", ""
        self.commands = 0
        self.keys = 0
        app.engine = self.engine
        handle = app.key_order._handle

        async def handled(event: Event) -> None:
            self.keys += 1
            self.place, self.key = self._place(), event.key if isinstance(event, Key) else ""
            self.selected = app.context().job
            await handle(event)

        monkeypatch.setattr(app.key_order, "_handle", handled)
        run = StoreCommands._run

        def checked(commands: StoreCommands, command: StoreCommand) -> None:
            self._hold(command)
            run(commands, command)

        monkeypatch.setattr(StoreCommands, "_run", checked)
        monkeypatch.setattr(app, "exit", self._exit)

    def _place(self) -> str:
        screen = self.app.screen
        if isinstance(screen, ChoiceDialog):
            chosen = screen.choices[screen.index].value if screen.choices else ""
            return f"choice {screen.query_one('#dialog').border_title} {chosen}"
        if isinstance(screen, PaletteScreen):
            return "palette"
        if screen is not self.app.board:
            return "other"
        return "filter" if isinstance(self.app.focused, Input) else "board"

    def _hold(self, command: StoreCommand) -> None:
        self.commands += 1
        told = f"{command.action} of {command.jobs} by {self.key!r} on {self.place!r}"
        if BY_ID[command.action].asks:
            assert self.place.startswith(f"choice {command.title}"), told
            assert self.key == "y" or (self.key == "enter" and self.place.endswith(" yes")), told
            return
        if self.place == "board":
            assert self.key in ("p", "u"), told
        else:
            assert self.place == "palette" or self.place.startswith("choice "), told
            assert self.key in ("enter", "p", "u"), told
        if self.key == "p" and not self.app.state.marked:
            assert command.jobs == (self.selected,), told

    def _exit(self, *_: object) -> None:
        """Quitting is asked for by an answer to its question, or by a second ctrl+c."""
        asked = self.place.startswith("choice Quitting stops")
        assert asked, f"{self.key!r} on {self.place!r}"
        assert self.key in ("y", "l", "w", "c", "ctrl+c") or not self.place.endswith("stay"), self.key


def disturb(store: LmdbStore, source: random.Random) -> None:
    """What other people and the engine do meanwhile."""
    names = [one.id for one in JOBS]
    actor = Actor("maria", "cli", "elsewhere")
    name = source.choice(names)
    try:
        match source.randrange(5):
            case 0:
                store.update(lambda tx: pause(Records(tx, NOW), name, actor))
            case 1:
                store.update(lambda tx: resume(Records(tx, NOW), name, actor))
            case 2:
                store.update(lambda tx: trigger(Records(tx, NOW), name, actor))
            case 3:
                gone = source.sample(JOBS, source.randrange(3))
                apply_jobs(store, [one for one in (*JOBS, job("added", "0 5 * * *")) if one not in gone], NOW)
            case 4:
                open_one = store.view(lambda tx: Reading(tx).occurrences(name))[:1]
                if open_one:
                    store.update(lambda tx: cancel(Records(tx, NOW), open_one[0], actor))
    except ChronexError:
        pass  # what is not possible is refused


async def burst(app: ChronexApp, events: Iterable[Event]) -> None:
    """All of them at once, and until all that they did has been done."""
    for event in events:
        app.post_message(event)
    arrived = asyncio.Event()
    app.call_later(arrived.set)
    async with asyncio.timeout(DEADLINE_S):  # a dashboard that has failed answers no more
        await arrived.wait()
        await app.key_order.until_idle()


@contextmanager
def unpainted(app: ChronexApp) -> Iterator[None]:
    """Keys are handled, but what only the eye needs waits for the end: style sheet, layout, frames.

    Textual's batch alone still lays out and paints every dialog that opens, and matches all rules again with every
    widget that gains or loses the focus.
    """
    with pytest.MonkeyPatch.context() as patch, app.batch_update():
        patch.setattr(Screen, "_compositor_refresh", lambda screen: screen._dirty_widgets.clear())
        patch.setattr(Screen, "_refresh_layout", lambda *_, **__: None)
        patch.setattr(Widget, "watch_has_focus", lambda *_: None)
        patch.setattr(Widget, "refresh", lambda widget, *_, **__: widget)
        patch.setattr(app, "refresh_css", lambda **_: None)
        yield
    for screen in app.screen_stack:
        for widget in (screen, *screen.query(Widget)):
            widget.refresh(layout=True)
        screen._refresh_layout(app.size)


async def fuzz(path: Path, seed: int, bursts: int, painted_every: int, monkeypatch: pytest.MonkeyPatch) -> Witness:
    source = random.Random(seed)
    with LmdbStore.open(path, create=False) as store:
        app = app_on(SharedStore(store, path), StartOptions(screen=source.choice(("jobs", "runs", "timeline"))))
        witness = Witness(app, monkeypatch)
        if painted_every == FEW_FRAMES:
            monkeypatch.setattr(app, "notify", lambda *_, **__: None)
        async with app.run_test(size=SIZES[0]) as pilot:
            await wait_until_idle(app)
            driver = Driver(app, pilot)
            for number in range(0, bursts, painted_every):
                if number % (2 * painted_every):
                    await pilot.resize_terminal(*source.choices(SIZES, SIZE_WEIGHTS)[0])
                await burst(app, keys_of(source))
                assert driver.frame()
                app.clear_notifications()
                disturb(store, source)
                with unpainted(app):
                    for _ in range(painted_every - 1):
                        await burst(app, keys_of(source))
                        assert app.screen_stack[0] is app.board
    return witness


@pytest.mark.parametrize("seed", range(2))
async def test_bursts_of_keys(example_store: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = await fuzz(example_store, seed, 1_000, FEW_FRAMES, monkeypatch)
    assert witness.commands > 2, "the bursts get as far as to commands"


@pytest.mark.usefixtures("painted")
@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 150))
async def test_many_bursts_of_keys(example_store: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    await fuzz(example_store, seed, 2_000, MANY_FRAMES, monkeypatch)
