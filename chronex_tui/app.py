"""The dashboard as a Textual program: it connects the data to the board and keys to actions."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING, Any, ClassVar, Protocol

from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Event
from textual.screen import Screen

from chronex.clock import Clock
from chronex.jobfile.keymap import ACTIONS, BY_ID, with_keys
from chronex.model.calendars import CalendarRules
from chronex.model.policies import StopMode
from chronex.text.durations import HOUR_MS
from chronex.timing.zones import Zone
from chronex_tui.data import CommandDone, DataArrived, Live, StoreSource
from chronex_tui.data_requests import DataRequests
from chronex_tui.key_order import EscapeParser, KeyOrder, is_typed
from chronex_tui.model.available_actions import (
    ActionContext,
    action_for,
    as_argument,
    check_keys,
    is_available,
    on_store,
    shell_command,
)
from chronex_tui.model.display import Glyphs
from chronex_tui.model.groups_table import GroupKey
from chronex_tui.model.lanes import Window
from chronex_tui.model.nodes_table import NodeKey
from chronex_tui.model.runs_table import run_name
from chronex_tui.model.snapshot import RunKey, Snapshot
from chronex_tui.screens.board import Board
from chronex_tui.state import State
from chronex_tui.theme import CSS, THEMES, Palette, textual_theme
from chronex_tui.view_actions import OPENING, Handler, ViewActions
from chronex_tui.widgets import Table

if TYPE_CHECKING:
    from chronex_tui.commands import StoreCommands


TICK_S = 1.0
Explain = Callable[[str, str, str, int, CalendarRules | None], list[str]]


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The first screen, selection and theme of the dashboard, as the command line says."""

    screen: str = "jobs"
    job: str = ""
    run: RunKey | None = None
    log: bool = False  # open the output of the selection
    zone: str = ""  # of the Clock screen
    since_ms: int | None = None  # the Clock screen begins here
    filter: str = ""
    is_read_only: bool = False
    theme: str = "dark"
    keys: Mapping[str, str] = field(default_factory=dict)  # of [tui.keys], by action id
    store_option: str = ""  # what names the store in a shell command, where it is not the default one
    hinted: Callable[[str], str] = str  # a message with the commands in it as any other shell needs them
    is_locked: bool = False  # read-only, and no key leaves that
    in_browser: bool = False  # drawn for a page: no editor, and the session ends with the server


class RunningEngine(Protocol):
    """The engine that `chronex run` has started before the dashboard, in a process of its own."""

    @property
    def is_alive(self) -> bool: ...

    def ask_to_stop(self, mode: StopMode | None) -> None:
        """The user quits; `mode` says what becomes of what runs, None that the settings say it."""


def _first_state(options: StartOptions, glyphs: Glyphs, home: Zone, now_ms: int) -> State:
    state = State(glyphs, home, now_ms, is_read_only=options.is_read_only, store_option=options.store_option)
    state.window = Window(now_ms, HOUR_MS)
    state.set_filter(options.filter)
    state.job = options.job or None
    state.run = options.run
    state.clock_zone = options.zone
    state.clock_since_ms = options.since_ms
    return state


class ChronexApp(App[int]):
    """Shows one store, live."""

    CSS = CSS
    TITLE = "chronex"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press({key!r})", show=False) for key in dict.fromkeys(action.key for action in ACTIONS)),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("ctrl+p", "palette", show=False),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(
        self,
        source: StoreSource,
        clock: Clock,
        home: Zone,
        glyphs: Glyphs,
        options: StartOptions,
        explain: Explain | None = None,
        engine: RunningEngine | None = None,
    ) -> None:
        self.actions = with_keys(options.keys)
        check_keys(self.actions)
        self.has_no_color = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if options.theme in ("mono", "ansi") else None)
        for key in options.keys.values():
            self.bind(key, f"press({key!r})", show=False)
        self.clock, self.options, self.explain, self.engine = clock, options, explain, engine
        self.palette = Palette(options.theme, glyphs.ellipsis)
        self.state = _first_state(options, glyphs, home, clock.wall_ms())
        self.live = Live(source, clock, self._post)
        self.requests = DataRequests(self)
        self.view_actions = ViewActions(self)
        self.key_order = KeyOrder(self, super().on_event, OPENING)
        self._store_commands: StoreCommands | None = None
        self.failure: Exception | None = None  # what ended the dashboard, if not the user
        self._started_by = os.getppid()
        self.arrivals = 0
        self.last_command = ""  # the shell command of the last key, as things were when it was pressed
        self.is_zoomed = False
        self.held_snapshot: Snapshot | None = None
        for name in THEMES:
            self.register_theme(textual_theme(name))
        self.theme = self._styled_theme = f"chronex-{options.theme}"
        self.stylesheet.set_variables(self.get_css_variables())

    def get_default_screen(self) -> Screen[None]:
        return Board(self.state, self.palette)

    @property
    def board(self) -> Board:
        found = self.screen_stack[0]
        assert isinstance(found, Board)
        return found

    @property
    def is_idle_now(self) -> bool:
        """Nothing is being read, about to be read, or read and not shown yet."""
        return self.live.is_idle and not self.requests.is_selection_due and not self.message_queue_size

    async def begin(self) -> None:
        """Called by the board when it is mounted."""
        if self.has_no_color:
            os.environ["NO_COLOR"] = "1"  # Textual removes it; pagers and editors that are started here need it
        if not self.is_headless:
            self._quit_on_signals()
        await self.board.open_view(self.options.screen)
        self.live.start()
        self.board.set_interval(TICK_S, self._tick)
        self.requests.request_screen()

    def refresh_css(self, animate: bool = True) -> None:
        """Textual parses and matches all rules once more when it begins, a tenth of the time to the first frame."""
        if self.theme != self._styled_theme:
            self._styled_theme = self.theme
            super().refresh_css(animate)

    def get_driver_class(self) -> type[Driver]:
        kind = super().get_driver_class()
        # A driver makes its parser itself, by the name that its module has for it.
        names = vars(sys.modules[kind.__module__])
        if "XTermParser" in names:
            names["XTermParser"] = EscapeParser
        return exit_with_terminal(kind)

    def _handle_exception(self, error: Exception) -> None:
        """Textual would print the traceback with all local variables; whoever runs the app says it in a sentence."""
        self.failure = self.failure or error
        super()._handle_exception(error)
        if not os.environ.get("CHRONEX_DEBUG"):
            self._exit_renderables.clear()

    def on_unmount(self) -> None:
        if self._store_commands is not None:
            self._store_commands.close()
        self.live.close()

    def _post(self, value: object) -> None:
        with suppress(RuntimeError):  # the loop of a dashboard that has failed is closed before its threads end
            self.post_message(DataArrived(value))

    def _quit_on_signals(self) -> None:
        """TERM, and HUP from a terminal that closes, quit in good order: screen restored, engine stopped."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(NotImplementedError, ValueError, RuntimeError):  # not the main thread
                loop.add_signal_handler(number, self.exit, 0)

    def _tick(self) -> None:
        is_left = self.options.in_browser and os.getppid() != self._started_by
        if is_left or (self.engine is not None and not self.engine.is_alive):
            self.exit(1)
            return
        if self.state.frozen_ms is not None:
            self.board.refresh_bars()
            return
        self.state.now_ms = self.clock.wall_ms()
        if self.state.follows_now:
            self.state.window = Window(self.state.now_ms, self.state.window.half_ms)
        self.requests.tick()
        self.board.tick()

    # -- what arrives -------------------------------------------------------------------------------------------

    def on_data_arrived(self, message: DataArrived) -> None:
        if not self.is_running or not self.screen_stack or not self.board.is_attached:
            return  # it arrived while the app was shutting down: some panels of a view are gone, others are not
        self.arrivals += 1
        value = self._hinted(message.value)
        if self.state.frozen_ms is not None and isinstance(value, Snapshot):
            self.held_snapshot = value
            return
        self.state.now_ms = self.clock.wall_ms()
        self.requests.receive(value)

    def _hinted(self, value: object) -> object:
        """Messages of the store name commands without a store; copied as they are they would mean another one."""
        if isinstance(value, Snapshot) and value.problem:
            return replace(value, problem=self.options.hinted(value.problem))
        if isinstance(value, CommandDone):
            return value._replace(text=self.options.hinted(value.text))
        return value

    def on_table_cursor_moved(self, message: Table.CursorMoved) -> None:
        identity = message.identity
        if isinstance(identity, RunKey):
            self.state.run = identity
            self.state.job = identity.job
            self.state.run_index = message.table.index
        elif isinstance(identity, NodeKey):
            self.state.node = identity
        elif isinstance(identity, GroupKey):
            self.state.group = identity
        elif isinstance(identity, str):
            self.state.job = identity
        self.last_command = ""
        self.requests.request_selection()
        self.board.refresh_keys()

    def on_table_row_opened(self, message: Table.RowOpened) -> None:
        self.do("open")

    # -- keys -----------------------------------------------------------------------------------------------------

    def context(self) -> ActionContext:
        """What is selected; it decides which actions can be done."""
        state = self.state
        row = state.row(state.job)
        on_runs = state.screen == "runs"
        is_shown = state.is_selection_shown()
        node = state.node_row() if state.screen == "nodes" else None
        live = next(
            (one for one in state.snapshot.live if (one.key == state.run if on_runs else one.key.job == state.job)),
            None,
        )
        return ActionContext(
            screen=state.screen,
            job=(state.run.job if on_runs and state.run else state.job or "") if is_shown else "",
            run=run_name(state.run) if on_runs and state.run and is_shown else "",
            live_run=run_name(live.key) if live and is_shown else "",
            node=node.node.id if node else "",
            is_draining=node is not None and node.node.draining,
            zone=row.job.timezone if row else "UTC",
            schedule=row.job.schedule if row and row.job.dialect != "custom" else "",
            dialect=row.job.dialect if row else "chronex",
            store=self.options.store_option,
            is_read_only=state.is_read_only,
            is_live=live is not None and is_shown,
            is_paused=bool(row and row.is_paused),
            filter=state.filter.text,
            has_store=self.live.store is not None and not self.options.is_locked,
            is_locked=self.options.is_locked,
            in_browser=self.options.in_browser,
            actions=self.actions,
        )

    async def on_event(self, event: Event) -> None:
        if is_typed(event):
            await self.key_order.take(event)
        else:
            await super().on_event(event)

    def action_press(self, key: str) -> None:
        if self.screen is not self.board:
            return  # the keys of the table act on what the board shows
        action = action_for(key, self.context())
        if action is not None:
            self.do(action.id)

    def do(self, action_id: str) -> None:
        """Carry out an action, if it can be done here."""
        action = BY_ID[action_id]
        if not is_available(action, self.context()):
            self.bell()
            return
        self.last_command = shell_command(action, self.context()) or self.last_command
        self.handler_of(action_id)()
        self.board.refresh_bars()

    def handler_of(self, action_id: str) -> Handler:
        """The function that carries an action out: a view action, or one that changes the store."""
        handlers = self.store_commands.handlers if BY_ID[action_id].writes else self.view_actions.handlers
        return handlers[action_id]

    @property
    def store_commands(self) -> StoreCommands:
        """Loaded with the first action that writes, because most sessions write nothing."""
        if self._store_commands is None:
            from chronex_tui.commands import StoreCommands

            self._store_commands = StoreCommands(self)
        return self._store_commands

    def current_command(self) -> str:
        """The shell command for what was done last, or for what enter would do."""
        context = self.context()
        if self.last_command:
            return self.last_command
        if context.job and self.state.screen == "jobs":
            return on_store(f"chronex show {as_argument(context.job)}", context.store)
        if context.screen == "nodes":
            return on_store("chronex nodes --all", context.store)
        if context.screen == "groups":
            return on_store("chronex groups", context.store)
        if context.screen == "graph" and context.job:
            return on_store(f"chronex show --graph {as_argument(context.job)}", context.store)
        if context.screen in ("clock", "density"):
            return on_store(f"chronex tui --screen {context.screen}", context.store)
        return on_store(f"chronex history {as_argument(context.job)}", context.store) if context.job else ""

    async def action_quit(self) -> None:
        self.do("quit")

    def action_suspend_process(self) -> None:
        """Back to the shell until `fg`. Beside its daemon there is none: the shell waits for `chronex run`."""
        if self.options.in_browser:
            return
        if self.engine is not None:
            self.notify("the daemon runs here, so there is no shell to go back to; q quits", severity="warning")
            return
        super().action_suspend_process()

    def action_palette(self) -> None:
        if self.screen is self.board:
            self.do("palette")


# -- a terminal that closes -----------------------------------------------------------------------------------
#
# A window is closed or a connection is lost at any moment. Textual writes from a thread of its own, which ends with
# the first write that fails. Later writes fill its queue, and then the program waits for ever, invisible, with the
# engine running and the store open. So output that cannot be written is dropped, and the program quits in good order.


class TerminalStream:
    """Writes to a stream until that fails; then it calls `on_close` once and drops all further output."""

    def __init__(self, stream: IO[str], on_close: Callable[[], object]) -> None:
        self._stream = stream
        self._on_close = on_close
        self.is_closed = False

    def write(self, text: str) -> int:
        return self._try(self._stream.write, text) or len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, write: Callable[..., int | None], *arguments: str) -> int | None:
        if self.is_closed:
            return None
        try:
            return write(*arguments)
        except (OSError, ValueError):  # ValueError: the stream object is closed
            self.is_closed = True
            self._on_close()
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _visible(stream: IO[str]) -> IO[str]:
    """Standard output where standard error is redirected: `chronex run 2>errors.log` still shows the dashboard.

    A character that the encoding of standard output does not have is escaped, as on standard error.
    """
    output = sys.__stdout__
    if stream is not sys.__stderr__ or stream.isatty() or not isinstance(output, TextIOWrapper):
        return stream
    output.reconfigure(errors="backslashreplace")
    return output


def exit_with_terminal(kind: type[Driver]) -> type[Driver]:
    """The driver of this platform on such a stream; one that writes elsewhere (a browser, a test) is unchanged."""

    class ExitingDriver(kind):  # type: ignore[valid-type,misc]
        def __init__(self, app: App[Any], **options: Any) -> None:
            super().__init__(app, **options)
            stream: IO[str] | None = getattr(self, "_file", None)
            if stream is not None:
                self._file = TerminalStream(_visible(stream), lambda: app.call_later(app.exit, 0))

    return ExitingDriver
