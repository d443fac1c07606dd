"""The board: two lines of status at the top, one of its views, and two lines of commands and keys below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Input

from chronex.jobfile.keymap import BY_ID, SCREENS
from chronex.text.terminal import cell_safe
from chronex_tui.model.available_actions import available, daemon_command, footer_keys, key_text, shell_command
from chronex_tui.model.board_lines import counts_line, frozen_for, key_line, stopped_line, top_line
from chronex_tui.model.layout import Line, span_at, spread
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views import JobsView, RunsView, View
from chronex_tui.widgets import Bar, Panel

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

_FILTER_KEYS = [
    ("enter", "keeps it"),
    ("esc", "drops it"),
    ("-word", "leaves out"),
    ("state:failed", "by state"),
]
_SIZES = ("-tiny", "-small", "-medium", "-large")


def size_class(width: int, height: int) -> str:
    """How much of the board fits; 80x24, 120x40 and 200x60 are small, medium and large."""
    if width < 60 or height < 16:
        return "-tiny"
    if width < 110 or height < 32:
        return "-small"
    return "-medium" if width < 170 or height < 50 else "-large"


def _view_class(name: str) -> Callable[[State, Palette], View]:
    """The views of time are loaded when one of them is first opened: most people open none of them."""
    if name == "jobs":
        return JobsView
    if name == "runs":
        return RunsView
    if name == "nodes":
        from chronex_tui.system_views import NodesView

        return NodesView
    if name == "groups":
        from chronex_tui.system_views import GroupsView

        return GroupsView
    if name == "graph":
        from chronex_tui.system_views import GraphView

        return GraphView
    from chronex_tui.time_views import ClockView, DensityView, TimelineView

    return {"timeline": TimelineView, "clock": ClockView, "density": DensityView}[name]


class Board(Screen[None]):
    """The screen below all others."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", show=False)]

    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__()
        self.state, self.palette = state, palette
        self.views: dict[str, View] = {}
        self._bars = {  # kept, because every key redraws them and a search goes through all widgets
            "top": Bar(self._top, palette, id="top"),
            "notice": Bar(self._notice, palette, id="notice"),
            "command": Bar(self._command, palette, id="command"),
            "keys": Bar(self._keys, palette, id="keys"),
        }

    @property
    def dashboard(self) -> ChronexApp:
        return cast("ChronexApp", self.app)

    def compose(self) -> ComposeResult:
        """With the first view in place, so that the first frame is styled, laid out and painted once."""
        self._measure(self.app.size.width, self.app.size.height)
        first = self.dashboard.options.screen
        self.views[first] = _view_class(first)(self.state, self.palette)
        self.views[first].display = True
        yield self._bars["top"]
        yield self._bars["notice"]
        yield Container(self.views[first], id="body")
        yield Input(id="filter", placeholder="name, tag:etl, state:failed, -word", select_on_focus=False)
        yield self._bars["command"]
        yield self._bars["keys"]

    async def on_mount(self) -> None:
        await self.dashboard.begin()

    def on_resize(self, event: Resize) -> None:
        self._measure(event.size.width, event.size.height)

    def _measure(self, width: int, height: int) -> None:
        """All classes at once: each change matches every rule with every widget again."""
        wanted = {size_class(width, height)} | ({"-ascii"} if self.state.glyphs.border == "ascii" else set())
        others = {name for name in self.classes if name not in _SIZES and name != "-ascii"}
        if self.classes != wanted | others:
            self.set_classes(wanted | others)

    # -- views ------------------------------------------------------------------------------------------------

    async def open_view(self, name: str) -> None:
        if name not in self.views:
            view = self.views[name] = _view_class(name)(self.state, self.palette)
            await self.query_one("#body", Container).mount(view)
        for other, view in self.views.items():
            view.display = other == name  # not by a class, which would match all rules with all of its widgets again
        self.state.screen = name
        self.view.restore_selection()
        self.view.update_all()
        self.view.main.focus()
        self.refresh_bars()

    @property
    def view(self) -> View:
        return self.views[self.state.screen]

    def update_all(self) -> None:
        if self.state.screen in self.views:
            self.view.update_all()
        self.refresh_bars()

    def tick(self) -> None:
        if self.state.screen in self.views:
            self.view.tick()
        self._bars["top"].redraw()

    def refresh_bars(self) -> None:
        stopped = bool(self.state.snapshot.rows) and not self.state.snapshot.is_daemon_alive
        notice = self._bars["notice"]
        is_shown = stopped and not self.state.snapshot.problem
        if notice.display != is_shown:
            notice.display = is_shown
        for bar in self._bars.values():
            bar.redraw()

    def refresh_keys(self) -> None:
        """The selection has changed, and with it what can be done."""
        for name in ("command", "keys"):
            self._bars[name].redraw()

    # -- bars -------------------------------------------------------------------------------------------------

    def _top(self, width: int, height: int) -> Sequence[Line]:
        state = self.state
        frozen = "" if state.frozen_ms is None else frozen_for(state.frozen_ms, self.dashboard.clock.wall_ms())
        top = top_line(
            state.snapshot,
            state.display,
            state.screen,
            width,
            is_read_only=state.is_read_only,
            is_alone=self.has_class("-tiny"),
        )
        counts = counts_line(
            state.snapshot, state.display, width, state.filter.text, len(state.rows), frozen, state.filter.problem
        )
        return (top, counts)

    def _notice(self, width: int, height: int) -> Sequence[Line]:
        command = daemon_command(self.state.snapshot.rows, self.state.store_option)
        return (stopped_line(cell_safe(command), self._key_of("copy"), width),)

    def _command(self, width: int, height: int) -> Sequence[Line]:
        if self._is_filtering:
            typed = shell_command(BY_ID["filter"], self.dashboard.context())
            return (((" $ ", "dim"), (cell_safe(typed), "")),)
        command = self.dashboard.current_command()
        if not command:
            return ((),)
        return (
            spread(((" $ ", "dim"), (cell_safe(command), "")), ((f" {self._key_of('copy')} copies ", "dim"),), width),
        )

    def _key_of(self, action_id: str) -> str:
        return next(key_text(action) for action in self.dashboard.actions if action.id == action_id)

    def _keys(self, width: int, height: int) -> Sequence[Line]:
        return (key_line(_FILTER_KEYS if self._is_filtering else footer_keys(self.dashboard.context()), width),)

    def on_panel_line_clicked(self, event: Panel.LineClicked) -> None:
        """A click on the name of a screen, or on a key of the last line, is that key."""
        number = span_at(event.line, event.cell)
        if number is None or self._is_filtering:
            return
        text, style = event.line[number]
        if event.panel is self._bars["top"] and style in ("tab", "tab-here"):
            self.dashboard.do(f"screen-{SCREENS[int(text.split()[0]) - 1]}")
        elif event.panel is self._bars["keys"] and number:
            key = text if style == "key" else event.line[number - 1][0]
            self._press(key)

    def _press(self, key: str) -> None:
        """`key` as the last line names it."""
        found = (action for action in available(self.dashboard.context()) if key_text(action) == key)
        if (action := next(found, None)) is not None:
            self.dashboard.do(action.id)

    # -- the filter -------------------------------------------------------------------------------------------

    @property
    def _is_filtering(self) -> bool:
        """Every key is a letter of the filter, so the keys of the board are not offered."""
        return self.is_mounted and self.query_one("#filter", Input).has_focus

    def on_descendant_focus(self) -> None:
        self.refresh_keys()

    def open_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.value = self.state.filter.text
        box.cursor_position = len(box.value)
        box.display = True
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.display:
            self.state.set_filter(event.value)
            self.view.update_list()
            self.refresh_bars()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).display = False
        self.view.main.focus()

    def action_back(self) -> None:
        """Esc closes what is open, clears a filter, or shows a longer list again. It never quits."""
        state = self.state
        if self.query_one("#filter", Input).display or state.filter.text:
            self._close_filter()
            state.set_filter("")
        elif self.dashboard.is_zoomed:
            self.dashboard.do("zoom")
        elif state.only_dead or state.run_job:
            state.only_dead, state.run_job = False, ""
        elif state.marked:
            state.marked = frozenset()
        elif state.screen != "jobs":
            self.dashboard.do("screen-jobs")
            return
        else:
            return
        self.update_all()
