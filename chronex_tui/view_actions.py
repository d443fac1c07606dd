"""The actions that change only what is shown: each has one method, found by its id in one table.

None of them changes the store; those that do are in `commands.py`, which is loaded with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from chronex.model.policies import StopMode
from chronex_tui.model.clock_days import POLICIES
from chronex_tui.model.lanes import Window
from chronex_tui.theme import COLOURED_THEMES

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp
    from chronex_tui.screens.dialogs import ChoiceDialog

Handler = Callable[[], None]
# The group of the workers that open a view of the board; the keys behind such a key wait for them.
OPENING = "screens"
_STAY = "stay"


class ViewActions:
    """What the user sees, and how: screens, filters, dialogs, the timeline, the clock and the heat map."""

    def __init__(self, app: ChronexApp) -> None:
        self.app, self.state = app, app.state
        self._quit_dialog: ChoiceDialog | None = None
        self.handlers: dict[str, Handler] = {
            "screen-jobs": partial(self.show_screen, "jobs"),
            "screen-runs": partial(self.show_screen, "runs"),
            "screen-timeline": partial(self.show_screen, "timeline"),
            "screen-clock": partial(self.show_screen, "clock"),
            "screen-density": partial(self.show_screen, "density"),
            "screen-nodes": partial(self.show_screen, "nodes"),
            "screen-groups": partial(self.show_screen, "groups"),
            "screen-graph": partial(self.show_screen, "graph"),
            "open": self.open_selection,
            "filter": self.open_filter,
            "states": self.choose_state,
            "sort": self.next_sort,
            "reverse": self.reverse_order,
            "columns": self.choose_columns,
            "mark": self.toggle_mark,
            "dead": self.toggle_dead_letters,
            "times": self.next_times,
            "freeze": self.toggle_freeze,
            "log": self.show_log,
            "explain": self.explain_schedule,
            "why": self.explain_run,
            "edit": self.edit_job,
            "try": self.try_schedule,
            "menu": self.open_action_menu,
            "copy": self.open_copy_menu,
            "help": self.show_help,
            "palette": self.open_command_palette,
            "zoom-in": partial(self.zoom_timeline, -1),
            "zoom-out": partial(self.zoom_timeline, 1),
            "earlier": partial(self.pan_timeline, -1),
            "later": partial(self.pan_timeline, 1),
            "now": self.return_to_now,
            "change-before": partial(self.select_clock_change, -1),
            "change-after": partial(self.select_clock_change, 1),
            "policy": self.next_policy,
            "zone": self.choose_zone,
            "past": self.toggle_past_week,
            "run-time": self.toggle_run_time,
            "busiest-minute": self.show_busiest_minute,
            "theme": self.next_theme,
            "zoom": self.zoom_panel,
            "write": self.allow_changes,
            "quit": self.quit,
        }

    # -- screens ----------------------------------------------------------------------------------------------

    def show_screen(self, name: str) -> None:
        async def show() -> None:
            await self.app.board.open_view(name)
            self.app.requests.request_screen()

        self.app.run_worker(show(), exclusive=True, group=OPENING)

    def open_selection(self) -> None:
        """A job opens its runs, a run its output."""
        if self.state.screen == "runs":
            self.show_log()
            return
        self.state.run_job = self.state.job or ""
        self.state.run = None
        self.show_screen("runs")

    # -- lists ------------------------------------------------------------------------------------------------

    def open_filter(self) -> None:
        self.app.board.open_filter()

    def choose_state(self) -> None:
        from chronex_tui.screens.dialogs import state_menu

        state_menu(self.app)

    def next_sort(self) -> None:
        self.state.next_sort()
        self.app.notify(f"sorted by {self.state.sort}", timeout=1.5)
        self.app.board.update_all()

    def reverse_order(self) -> None:
        self.state.reverse = not self.state.reverse
        self.app.board.update_all()

    def choose_columns(self) -> None:
        from chronex_tui.screens.dialogs import ColumnsScreen

        self.app.push_screen(ColumnsScreen(self.app))

    def toggle_mark(self) -> None:
        """Mark the job under the cursor, or remove its mark."""
        if self.state.job is not None:
            self.state.marked ^= {self.state.job}
            self.app.board.update_all()

    def toggle_dead_letters(self) -> None:
        self.state.only_dead = not self.state.only_dead
        self.app.board.update_all()

    def next_times(self) -> None:
        self.state.next_times()
        self.app.board.update_all()
        self.app.requests.count_heatmap()

    def toggle_freeze(self) -> None:
        """Hold the frame; the newest snapshot that arrives meanwhile is shown when it goes on."""
        if self.state.frozen_ms is None:
            self.state.frozen_ms = self.state.now_ms
            return
        self.state.frozen_ms = None
        held, self.app.held_snapshot = self.app.held_snapshot, None
        if held is not None:
            self.app.requests.receive(held)

    # -- over the board ---------------------------------------------------------------------------------------

    def show_log(self) -> None:
        from chronex_tui.screens.log_screen import open_log

        open_log(self.app)

    def explain_schedule(self) -> None:
        from chronex_tui.screens.explanations import explain_job

        explain_job(self.app)

    def explain_run(self) -> None:
        from chronex_tui.screens.explanations import request_why

        request_why(self.app)

    def edit_job(self) -> None:
        from chronex_tui.editing import edit_definition

        row = self.state.row(self.app.context().job)
        if row is None:
            self.app.notify("this job is no longer there, so there is nothing to edit", severity="warning")
            return
        edit_definition(self.app, row.job.id, row.job.source)

    def try_schedule(self) -> None:
        from chronex_tui.screens.explanations import TryScheduleScreen

        self.app.push_screen(TryScheduleScreen(self.app))

    def open_action_menu(self) -> None:
        from chronex_tui.screens.dialogs import action_menu

        action_menu(self.app)

    def open_copy_menu(self) -> None:
        from chronex_tui.screens.dialogs import copy_menu

        copy_menu(self.app)

    def show_help(self) -> None:
        from chronex_tui.screens.explanations import HelpScreen

        self.app.push_screen(HelpScreen(self.app))

    def open_command_palette(self) -> None:
        from chronex_tui.screens.dialogs import open_palette

        open_palette(self.app)

    # -- timeline ---------------------------------------------------------------------------------------------

    def _show_window(self, window: Window, *, follows: bool) -> None:
        self.state.window = window
        self.state.follows_now = follows
        self.app.board.update_all()
        self.app.requests.compute_lanes()

    def zoom_timeline(self, step: int) -> None:
        self._show_window(self.state.window.zoomed(step), follows=self.state.follows_now)

    def pan_timeline(self, steps: int) -> None:
        self._show_window(self.state.window.panned(steps), follows=False)

    def return_to_now(self) -> None:
        self._show_window(Window(self.state.now_ms, self.state.window.half_ms), follows=True)

    # -- clock and heat map -----------------------------------------------------------------------------------

    def select_clock_change(self, step: int) -> None:
        last = max(len(self.state.clock_days) - 1, 0)
        self.state.clock_index = max(0, min(self.state.clock_index + step, last))
        self.app.board.view.scroll_to_selected()

    def next_policy(self) -> None:
        self.state.policy = (self.state.policy + 1) % len(POLICIES)
        self.app.board.update_all()
        self.app.requests.compute_clock_changes()

    def choose_zone(self) -> None:
        from chronex_tui.screens.dialogs import zone_menu

        zone_menu(self.app)

    def toggle_past_week(self) -> None:
        self.state.heatmap_is_past = not self.state.heatmap_is_past
        self.state.heatmap = None
        self.app.requests.request_screen()
        self.app.board.update_all()

    def toggle_run_time(self) -> None:
        self.state.heatmap_is_time = not self.state.heatmap_is_time
        self.app.requests.request_screen()
        self.app.board.update_all()

    def show_busiest_minute(self) -> None:
        from chronex_tui.screens.explanations import request_busiest_minute

        request_busiest_minute(self.app)

    # -- appearance and the session ---------------------------------------------------------------------------

    def next_theme(self) -> None:
        """The next of the coloured themes; a terminal without colours keeps its theme."""
        palette = self.app.palette
        if palette.name not in COLOURED_THEMES:
            self.app.notify("this terminal shows no other colours")
            return
        name = COLOURED_THEMES[(COLOURED_THEMES.index(palette.name) + 1) % len(COLOURED_THEMES)]
        palette.switch_to(name)
        self.app.theme = f"chronex-{name}"
        self.app.board.update_all()

    def zoom_panel(self) -> None:
        """The focused panel alone, or everything again."""
        if self.app.is_zoomed:
            self.app.board.minimize()
            self.app.is_zoomed = False
            return
        focused = self.app.board.focused
        if focused is not None:
            self.app.board.maximize(focused)
            self.app.is_zoomed = True

    def allow_changes(self) -> None:
        self.state.is_read_only = False
        self.app.notify("changes are allowed again")
        self.app.board.refresh_bars()

    def quit(self) -> None:
        """Of the engine beside it the dashboard asks first: quitting stops the schedules of the whole store."""
        if self.app.engine is None:
            self.app.exit(0)
        elif self._quit_dialog in self.app.screen_stack:
            self._quit_with("")  # ctrl+c again, as people do who want to be out at once
        else:
            self._ask_to_quit()

    def _ask_to_quit(self) -> None:
        from chronex_tui.screens.dialogs import Choice, ChoiceDialog

        running = [item for item in self.state.snapshot.live if item.state == "running"]
        names = ", ".join(item.key.job for item in running[:5])
        rest = "; what runs is treated as on_stop says" if running else ""
        choices = [
            Choice("n", _STAY, "no, stay"),
            Choice("y", "", "yes, quit", f"no job starts until chronex run is started again{rest}"),
        ]
        if running:
            choices += [
                Choice(
                    "l", StopMode.LEAVE, f"quit, and leave running: {names}", "the next chronex run takes them up"
                ),
                Choice("w", StopMode.DRAIN, "quit when they have ended", "Ctrl-C leaves what still runs"),
                Choice("c", StopMode.CANCEL, "quit, and cancel them", "each has its grace period", "retry"),
            ]

        def on_answer(value: str | None) -> None:
            if value is not None and value != _STAY:
                self._quit_with(value)

        self._quit_dialog = ChoiceDialog(self.app, "Quitting stops the daemon too. Quit?", choices)
        self.app.push_screen(self._quit_dialog, on_answer)

    def _quit_with(self, mode: str) -> None:
        assert self.app.engine is not None
        self.app.engine.ask_to_stop(StopMode(mode) if mode else None)
        self.app.exit(0)
