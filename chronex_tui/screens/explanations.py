"""Dialogs that explain: the keys, a schedule, why a run happened, the busiest minute, a schedule that is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Input

from chronex.engine.ledger import Reading
from chronex.timing.zones import load_zone
from chronex_tui.data import WhyRead
from chronex_tui.model.available_actions import help_lines
from chronex_tui.model.busiest_minute import BusiestMinute, busiest_minute_lines
from chronex_tui.model.display import job_zone
from chronex_tui.model.job_detail import chain_lines
from chronex_tui.model.layout import Line, painted, terminal_safe
from chronex_tui.model.try_schedule import try_schedule_lines
from chronex_tui.screens.dialog import Dialog
from chronex_tui.widgets.panel import Panel

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


class HelpScreen(Dialog):
    def __init__(self, app: ChronexApp) -> None:
        context = app.context()
        row = app.state.row(app.state.job)
        schedule = row.job.schedule if row else ""
        super().__init__(
            app.palette,
            f"Keys on the {context.screen.capitalize()} screen",
            lambda width: list(help_lines(context, width, schedule)),
            {"?": ""},
            is_wide=True,
            is_ascii=app.state.glyphs.border == "ascii",
        )


def explain_job(app: ChronexApp) -> None:
    row = app.state.row(app.state.job)
    if row is None or app.explain is None:
        return
    job = row.job
    lines: list[Line] = [((terminal_safe(job.id), "bold"), (f"  {job_zone(job).name}", "dim")), ()]
    zone = load_zone(job.timezone).name
    lines += [painted(line) for line in app.explain(job.schedule, job.dialect, zone, app.state.now_ms)]
    dialog = Dialog(
        app.palette,
        f"Explain {job.id}",
        lambda width: lines,
        {"x": ""},
        is_wide=True,
        is_ascii=app.state.glyphs.border == "ascii",
    )
    app.push_screen(dialog)


def ask_why(app: ChronexApp) -> None:
    """On the Runs screen of the run under the cursor; elsewhere of the job's last occurrence and its next."""
    state = app.state
    name, run, now = state.job or "", state.run if state.screen == "runs" else None, app.clock.wall_ms()

    def read(reading: Reading) -> WhyRead:
        from chronex.engine.why import latest_and_next, why

        if run is None:
            return WhyRead(name, tuple(latest_and_next(reading, name, now)))
        answer = why(reading, run.job, run.nominal_ms, now)
        return WhyRead(run.job, () if answer is None else (answer,))

    app.live.request("why", read, lambda found: found)


def show_why(app: ChronexApp, found: WhyRead) -> None:
    if not found.answers:
        app.notify(f"nothing has happened to {found.job} yet", markup=False)
        return
    dialog = Dialog(
        app.palette,
        f"Why: {found.job}",
        lambda width: chain_lines(found.answers, app.state.display, width),
        {"w": ""},
        is_wide=True,
        is_ascii=app.state.glyphs.border == "ascii",
    )
    app.push_screen(dialog)


def show_busiest_minute(app: ChronexApp, busiest_minute: BusiestMinute | None) -> None:
    lines = busiest_minute_lines(busiest_minute, app.state.display)
    is_ascii = app.state.glyphs.border == "ascii"
    app.push_screen(
        Dialog(app.palette, "Busiest minute", lambda _: lines, {"H": ""}, is_wide=True, is_ascii=is_ascii)
    )


class TryScheduleScreen(Dialog):
    """An input above, the answer below."""

    def __init__(self, app: ChronexApp) -> None:
        self._dashboard = app
        self._text = ""
        super().__init__(
            app.palette,
            f"Try a schedule in {app.state.home.name}",
            self._answer,
            hint="enter copies the shell command, esc closes",
            is_wide=True,
            is_ascii=app.state.glyphs.border == "ascii",
        )

    def above(self) -> ComposeResult:
        yield Input(placeholder="30 2 * * *    or    @every 90s    or    TZ=Asia/Seoul 0 9 * * MON-FRI", id="trial")

    def focus_first(self) -> None:
        self.query_one("#trial", Input).focus()

    def _answer(self, width: int) -> list[tuple[tuple[str, str], ...]]:
        state = self._dashboard.state
        return try_schedule_lines(self._text, state.home, state.now_ms, state.glyphs, width)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._text = event.value
        self.query_one("#dialog-lines", Panel).redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        quoted = event.value.replace("'", "'\\''")
        self.app.copy_to_clipboard(f"chronex explain '{quoted}' --tz {self._dashboard.state.home.name}")
        self.app.notify("copied the shell command", timeout=1.5)
