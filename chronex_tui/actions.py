"""Actions that look: each method answers one id of the registry, and none changes anything in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chronex_tui.model.clock_changes import POLICIES
from chronex_tui.model.lanes import Window
from chronex_tui.screens.dialog import confirm
from chronex_tui.theme import NAMES

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


class ViewActions:
    def __init__(self, app: ChronexApp) -> None:
        self.app, self.state = app, app.state

    # -- screens ----------------------------------------------------------------------------------------------

    def go(self, name: str) -> None:
        async def open_it() -> None:
            await self.app.board.open_view(name)
            self.app.requests.screen()

        self.app.run_worker(open_it(), exclusive=True, group="screens")

    def screen_jobs(self) -> None:
        self.go("jobs")

    def screen_runs(self) -> None:
        self.go("runs")

    def screen_timeline(self) -> None:
        self.go("timeline")

    def screen_clock(self) -> None:
        self.go("clock")

    def screen_density(self) -> None:
        self.go("density")

    def open(self) -> None:
        """A job opens its runs, a run its output."""
        if self.state.screen == "runs":
            self.log()
            return
        self.state.run_job = self.state.job or ""
        self.state.run = None
        self.go("runs")

    # -- lists ------------------------------------------------------------------------------------------------

    def filter(self) -> None:
        self.app.board.open_filter()

    def states(self) -> None:
        from chronex_tui.screens.menus import state_menu

        state_menu(self.app)

    def sort(self) -> None:
        self.state.next_sort()
        self.app.notify(f"sorted by {self.state.sort}", timeout=1.5)
        self.app.board.update_all()

    def reverse(self) -> None:
        self.state.reverse = not self.state.reverse
        self.app.board.update_all()

    def columns(self) -> None:
        from chronex_tui.screens.menus import ColumnsScreen

        self.app.push_screen(ColumnsScreen(self.app))

    def dead(self) -> None:
        self.state.only_dead = not self.state.only_dead
        self.app.board.update_all()

    def times(self) -> None:
        self.state.next_times()
        self.app.board.update_all()
        self.app.requests.heatmap()

    def freeze(self) -> None:
        """Hold the picture; the newest snapshot of the meantime is taken up when it goes on."""
        if self.state.frozen_ms is None:
            self.state.frozen_ms = self.state.now_ms
            return
        self.state.frozen_ms = None
        held_snapshot, self.app.held_snapshot = self.app.held_snapshot, None
        if held_snapshot is not None:
            self.app.requests.receive(held_snapshot)

    # -- over the board ---------------------------------------------------------------------------------------

    def log(self) -> None:
        from chronex_tui.screens.log_screen import open_log

        open_log(self.app)

    def explain(self) -> None:
        from chronex_tui.screens.explanations import explain_job

        explain_job(self.app)

    def why(self) -> None:
        from chronex_tui.screens.explanations import ask_why

        ask_why(self.app)

    def edit(self) -> None:
        from chronex_tui.editing import edit_definition

        row = self.state.row(self.app.context().job)
        if row is None:
            self.app.notify("this job is no longer there, so there is nothing to edit", severity="warning")
            return
        edit_definition(self.app, row.job.id, row.job.source)

    def try_(self) -> None:
        from chronex_tui.screens.explanations import TryScheduleScreen

        self.app.push_screen(TryScheduleScreen(self.app))

    def menu(self) -> None:
        from chronex_tui.screens.menus import action_menu

        action_menu(self.app)

    def copy(self) -> None:
        from chronex_tui.screens.menus import copy_menu

        copy_menu(self.app)

    def help(self) -> None:
        from chronex_tui.screens.explanations import HelpScreen

        self.app.push_screen(HelpScreen(self.app))

    def palette(self) -> None:
        self.app.action_command_palette()

    # -- timeline ---------------------------------------------------------------------------------------------

    def _window(self, window: Window, *, follows: bool) -> None:
        self.state.window, self.state.follows_now = window, follows
        self.app.board.update_all()
        self.app.requests.lanes()

    def zoom_in(self) -> None:
        self._window(self.state.window.zoomed(-1), follows=self.state.follows_now)

    def zoom_out(self) -> None:
        self._window(self.state.window.zoomed(1), follows=self.state.follows_now)

    def earlier(self) -> None:
        self._window(self.state.window.panned(-1), follows=False)

    def later(self) -> None:
        self._window(self.state.window.panned(1), follows=False)

    def now(self) -> None:
        self._window(Window(self.state.now_ms, self.state.window.half_ms), follows=True)

    # -- clock and density ------------------------------------------------------------------------------------

    def _change(self, by: int) -> None:
        last = max(len(self.state.clock_days) - 1, 0)
        self.state.clock_index = max(0, min(self.state.clock_index + by, last))
        self.app.board.view.see_selected()

    def change_before(self) -> None:
        self._change(-1)

    def change_after(self) -> None:
        self._change(1)

    def policy(self) -> None:
        self.state.policy = (self.state.policy + 1) % len(POLICIES)
        self.app.board.update_all()
        self.app.requests.clock()

    def zone(self) -> None:
        from chronex_tui.screens.menus import zone_menu

        zone_menu(self.app)

    def past(self) -> None:
        self.state.heatmap_is_past = not self.state.heatmap_is_past
        self.state.heatmap = None
        self.app.requests.screen()
        self.app.board.update_all()

    def run_time(self) -> None:
        self.state.heatmap_is_time = not self.state.heatmap_is_time
        self.app.requests.screen()
        self.app.board.update_all()

    def busiest_minute(self) -> None:
        self.app.requests.busiest_minute()

    # -- the look of it ---------------------------------------------------------------------------------------

    def theme(self) -> None:
        """The next of the coloured themes; what has no colours stays so."""
        if self.app.palette.name in ("mono", "ansi"):
            self.app.notify("this terminal shows no other colours")
            return
        names = NAMES[:3]
        name = names[(names.index(self.app.palette.name) + 1) % len(names)]
        self.app.palette.become(name)
        self.app.theme = f"chronex-{name}"
        self.app.board.update_all()

    def zoom(self) -> None:
        """The focused panel alone, or everything again."""
        if self.app.is_zoomed:
            self.app.board.minimize()
            self.app.is_zoomed = False
            return
        focused = self.app.board.focused
        if focused is not None:
            self.app.board.maximize(focused)
            self.app.is_zoomed = True

    def write(self) -> None:
        self.state.is_read_only = False
        self.app.notify("changes are allowed again")
        self.app.board.refresh_bars()

    def quit(self) -> None:
        """With an engine in the same process, leaving stops it: asked first where something runs."""
        running = [item for item in self.state.snapshot.live if item.state == "running"]
        if self.app.engine is None or not running:
            self.app.exit(0)
            return
        names = ", ".join(item.key.job for item in running[:5])
        facts = [
            ("The engine runs in this window: leaving stops it.", "bold"),
            (f"Still running: {names}. They are asked to end, and have their grace period.", "retry"),
        ]
        confirm(self.app, "Quit", facts, "", lambda: self.app.exit(0))
