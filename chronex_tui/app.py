"""The dashboard as a program: it wires the reader to the board and keys to actions, and holds no logic of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen

from chronex.clock import Clock
from chronex.timing.zones import Zone
from chronex_tui.actions import (
    ACTIONS,
    BY_ID,
    Context,
    action_for,
    check_keys,
    is_available,
    shell_command,
    with_keys,
)
from chronex_tui.asking import Questions, run_name
from chronex_tui.driver import leaving_with_its_terminal
from chronex_tui.live import Live, Source
from chronex_tui.looking import Looking
from chronex_tui.messages import Arrived
from chronex_tui.model.glyphs import Glyphs
from chronex_tui.model.snapshot import RunKey, Snapshot
from chronex_tui.model.timeline import Window
from chronex_tui.model.wording import HOUR
from chronex_tui.screens.board import Board
from chronex_tui.state import State
from chronex_tui.style import CSS
from chronex_tui.themes import NAMES, Book, textual_theme
from chronex_tui.widgets.table import Table

if TYPE_CHECKING:
    from textual.command import Provider

    from chronex_tui.acting import Acting

TICK_S = 1.0
Explain = Callable[[str, str, str, int], list[str]]


@dataclass(frozen=True, slots=True)
class Wishes:
    """Where to begin and how to look, as the command line says."""

    screen: str = "jobs"
    job: str = ""
    run: RunKey | None = None
    log: bool = False
    zone: str = ""
    since_ms: int | None = None
    filter: str = ""
    is_read_only: bool = False
    theme: str = "dark"
    keys: Mapping[str, str] = field(default_factory=dict)


def _palette() -> type[Provider]:
    """Loaded when it is opened."""
    from chronex_tui.palette import ActionProvider

    return ActionProvider


class Engine(Protocol):
    """The engine of the same process, where there is one."""

    @property
    def is_alive(self) -> bool: ...


class ChronexApp(App[int]):
    """One store, followed live."""

    CSS = CSS
    TITLE = "chronex"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {_palette}  # noqa: RUF012  Textual's own name and shape for it
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press({key!r})", show=False) for key in dict.fromkeys(action.key for action in ACTIONS)),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(
        self,
        source: Source,
        clock: Clock,
        home: Zone,
        glyphs: Glyphs,
        wishes: Wishes,
        explain: Explain | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.actions = with_keys(wishes.keys)
        check_keys(self.actions)
        self.has_no_color = bool(os.environ.get("NO_COLOR"))
        plain = wishes.theme in ("mono", "ansi")
        super().__init__(ansi_color=True if plain else None)
        for key in wishes.keys.values():
            self.bind(key, f"press({key!r})", show=False)
        self.clock, self.wishes, self.explain, self.engine = clock, wishes, explain, engine
        self.book = Book(wishes.theme, glyphs.ellipsis)
        now = clock.wall_ms()
        self.state = State(glyphs, home, now, is_read_only=wishes.is_read_only)
        self.state.window = Window(now, HOUR)
        self.state.set_filter(wishes.filter)
        self.state.job, self.state.run = wishes.job or None, wishes.run
        self.state.clock_zone, self.state.clock_since_ms = wishes.zone, wishes.since_ms
        self.live = Live(source, clock, self._post)
        self.ask = Questions(self)
        self.looking = Looking(self)
        self._acting: Acting | None = None
        self.arrivals = 0
        self.last_action = ""
        self.is_zoomed = False
        self.held: Snapshot | None = None
        for name in NAMES:
            self.register_theme(textual_theme(name))
        self.theme = f"chronex-{wishes.theme}"

    def get_default_screen(self) -> Screen[None]:
        return Board(self.state, self.book)

    @property
    def board(self) -> Board:
        found = self.screen_stack[0]
        assert isinstance(found, Board)
        return found

    async def begin(self) -> None:
        """Called by the board when it stands."""
        if self.has_no_color:
            os.environ["NO_COLOR"] = "1"  # Textual takes it away; pagers and editors started from here want it
        if not self.is_headless:
            self._leave_on_signals()
        await self.board.open_view(self.wishes.screen)
        self.live.start()
        self.board.set_interval(TICK_S, self._tick)
        self.ask.screen()

    def get_driver_class(self) -> type[Driver]:
        return leaving_with_its_terminal(super().get_driver_class())

    def on_unmount(self) -> None:
        self.live.close()

    def _post(self, value: object) -> None:
        self.post_message(Arrived(value))

    def _leave_on_signals(self) -> None:
        """TERM, and the terminal's own end, are asked for politely: the screen is restored, the engine is stopped."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(NotImplementedError, ValueError, RuntimeError):  # not the main thread
                loop.add_signal_handler(number, self.exit, 0)

    def _tick(self) -> None:
        if self.engine is not None and not self.engine.is_alive:
            self.exit(1)
            return
        if self.state.frozen_ms is not None:
            self.board.refresh_bars()
            return
        self.state.now_ms = self.clock.wall_ms()
        if self.state.follows_now:
            self.state.window = Window(self.state.now_ms, self.state.window.half_ms)
        self.board.tick()

    # -- what arrives -------------------------------------------------------------------------------------------

    def on_arrived(self, message: Arrived) -> None:
        if not self.screen_stack or not self.board.is_attached:
            return  # it came in while everything was taken down
        self.arrivals += 1
        if self.state.frozen_ms is not None and isinstance(message.value, Snapshot):
            self.held = message.value
            return
        self.state.now_ms = self.clock.wall_ms()
        self.ask.take(message.value)

    def on_table_moved(self, message: Table.Moved) -> None:
        identity = message.identity
        if isinstance(identity, RunKey):
            self.state.run, self.state.job, self.state.run_index = identity, identity.job, message.table.index
        elif isinstance(identity, str):
            self.state.job = identity
        self.last_action = ""
        self.ask.selection()
        self.board.refresh_keys()

    def on_table_opened(self, message: Table.Opened) -> None:
        self.do("open")

    # -- keys -----------------------------------------------------------------------------------------------------

    def context(self) -> Context:
        """What is selected, for the registry to judge."""
        state = self.state
        row = state.row(state.job)
        on_runs = state.screen == "runs"
        item = state.run_item() if on_runs else None
        going = state.snapshot.live
        living = next((one for one in going if (one.key == state.run if on_runs else one.key.job == state.job)), None)
        return Context(
            screen=state.screen,
            job=(state.run.job if on_runs and state.run else state.job or "") if row or item else "",
            run=run_name(state.run) if on_runs and state.run else "",
            live_run=run_name(living.key) if living else "",
            zone=row.job.timezone if row else "UTC",
            is_read_only=state.is_read_only,
            is_live=living is not None,
            is_dead=bool(item and item.is_dead),
            is_paused=bool(row and row.is_paused),
            filter=state.filter.text,
            has_store=self.live.store is not None,
            actions=self.actions,
        )

    def action_press(self, key: str) -> None:
        action = action_for(key, self.context())
        if action is not None:
            self.do(action.id)

    def do(self, action_id: str) -> None:
        """Carry out an action of the registry, if it can be done here."""
        action = BY_ID[action_id]
        if not is_available(action, self.context()):
            self.bell()
            return
        self.last_action = action_id if action.shell else self.last_action
        name = action_id.replace("-", "_")
        getattr(self.looking if hasattr(self.looking, name) else self.acting, name)()
        self.board.refresh_bars()

    @property
    def acting(self) -> Acting:
        """Loaded with the first act: most sessions only look."""
        if self._acting is None:
            from chronex_tui.acting import Acting

            self._acting = Acting(self)
        return self._acting

    def current_command(self) -> str:
        """The shell's way to do what was done last, or what enter would do."""
        context = self.context()
        row = self.state.row(self.state.job)
        if self.last_action:
            return shell_command(BY_ID[self.last_action], context, row.job.schedule if row else "")
        if context.job and self.state.screen == "jobs":
            return f"chronex show {context.job}"
        if context.screen in ("clock", "density"):
            return f"chronex tui --screen {context.screen}"
        return f"chronex history {context.job}" if context.job else ""

    async def action_quit(self) -> None:
        self.do("quit")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """None of Textual's own: the palette lists what the registry has."""
        return ()
