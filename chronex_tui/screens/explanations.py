"""Dialogs that explain: the keys, a schedule, why a run happened, the busiest minute, a schedule that is tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Input

from chronex.errors import ChronexError, StoreError
from chronex.storage.records import Reading
from chronex.text.terminal import cell_safe
from chronex.timing.zones import load_zone
from chronex_tui.data import BusiestMinuteFound, ScheduleExplained, WhyRead
from chronex_tui.model.available_actions import ActionContext, help_lines, help_page, quoted_for_shell
from chronex_tui.model.clock_days import signs_of_clock
from chronex_tui.model.density import busiest_minute_lines
from chronex_tui.model.display import job_zone
from chronex_tui.model.job_detail import why_lines
from chronex_tui.model.lanes import signs_of_lanes
from chronex_tui.model.layout import Line, ansi_to_lines, wrap, wrap_lines
from chronex_tui.model.try_schedule import try_schedule_lines
from chronex_tui.screens.dialogs import Dialog
from chronex_tui.widgets import Panel

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


class HelpScreen(Dialog):
    """What every key of the screen does, made from the table of actions."""

    def __init__(self, app: ChronexApp) -> None:
        context = app.context()
        super().__init__(
            app,
            f"Keys on the {context.screen.capitalize()} screen",
            lambda width: _help(app, context, width),
            {"?": ""},
            is_wide=True,
        )


def _help(app: ChronexApp, context: ActionContext, width: int) -> list[Line]:
    """Sentences and commands where they fit on the page, else the keys with a word or two each."""
    signs = _signs(app, context.screen, width)
    full = [*help_lines(context, width), *signs]
    return full if len(full) <= app.size.height * 92 // 100 - 2 else [*help_page(context, width), *signs]


def _signs(app: ChronexApp, screen: str, width: int) -> list[Line]:
    """What the signs of the timeline and of the clock mean."""
    if screen not in ("timeline", "clock"):
        return []
    signs = signs_of_lanes(app.state.glyphs) if screen == "timeline" else signs_of_clock(app.state.glyphs)
    # A blank that does not break keeps each sign with its words.
    legend = "  ".join(f"{shown} {words}".replace(" ", "\u00a0") for shown, words in signs.items())
    pieces = wrap(legend, max(width, 20))
    return [(("Signs", "bold"),), *(((piece.replace("\u00a0", " "), ""),) for piece in pieces)]


class AnswerDialog(Dialog):
    """Opens at once and shows the answer when it arrives, so that the keys behind its own key are meant for it.

    `draw` returns None for the answer to a question that was asked before.
    """

    def __init__(
        self, app: ChronexApp, title: str, key: str, draw: Callable[[object, int], list[Line] | None]
    ) -> None:
        super().__init__(app, title, self._draw, {key: ""}, is_wide=True)
        self._answer: object = None
        self._draw_answer = draw

    def _draw(self, width: int) -> list[Line]:
        lines = None if self._answer is None else self._draw_answer(self._answer, width)
        return [((f"reading {self.dashboard.palette.ellipsis}", "dim"),)] if lines is None else lines

    def show_answer(self, answer: object) -> None:
        if self._draw_answer(answer, self.app.size.width) is not None:
            self._answer = answer
            self.fit()


def answer_dialog(app: ChronexApp) -> AnswerDialog | None:
    """The dialog that waits for an answer; None when it was closed before the answer came."""
    return next((screen for screen in app.screen_stack if isinstance(screen, AnswerDialog)), None)


def request_why(app: ChronexApp) -> None:
    """On the Runs screen of the run under the cursor; elsewhere of the job's last occurrence and its next."""
    state = app.state
    name = state.job or ""
    run = state.run if state.screen == "runs" else None
    now = app.clock.wall_ms()

    def read(reading: Reading) -> WhyRead:
        from chronex.run import boot_id, is_alive
        from chronex.views.nodes import watch_of
        from chronex.views.why import latest_and_next, why

        watch = watch_of(reading, now, is_alive, boot_id())
        try:
            if run is None:
                return WhyRead(name, tuple(latest_and_next(reading, name, now, watch)))
            answer = why(reading, run.job, run.nominal_ms, now, watch)
        except StoreError:
            raise  # whoever follows the store says so
        except ChronexError as error:
            return WhyRead(name, (), str(error))
        return WhyRead(name, () if answer is None else (answer,))

    def draw(found: object, width: int) -> list[Line] | None:
        if not isinstance(found, WhyRead) or found.job != name:
            return None
        if found.answers:
            return why_lines(found.answers, width)
        legend = (found.problem, "failed") if found.problem else (f"nothing has happened to {name} yet", "")
        return [((piece, legend[1]),) for piece in wrap(cell_safe(legend[0]), max(width, 10))]

    app.push_screen(AnswerDialog(app, f"Why: {cell_safe(name)}", "w", draw))
    app.live.request("why", read, lambda found: found)


def explain_job(app: ChronexApp) -> None:
    """The text of `chronex explain` for the job under the cursor.

    Computed beside the screen: of a job that runs every few seconds 600,000 instants are compared.
    """
    row, explain = app.state.row(app.state.job), app.explain
    if row is None or explain is None:
        return
    job, now = row.job, app.state.now_ms

    def work() -> ScheduleExplained:
        zone = load_zone(job.timezone).name
        texts = [line for text in job.schedules for line in explain(text, job.dialect, zone, now, job.calendars)]
        return ScheduleExplained(job.id, tuple(texts))

    def draw(found: object, width: int) -> list[Line] | None:
        if not isinstance(found, ScheduleExplained) or found.job != job.id:
            return None
        head: Line = ((cell_safe(job.id), "bold"), (f"  {job_zone(job).name}", "dim"))
        lines = [head, (), *ansi_to_lines(found.texts)]
        return wrap_lines(lines, width)

    app.push_screen(AnswerDialog(app, f"Explain {cell_safe(job.id)}", "x", draw))
    app.live.compute("explain", work)


def request_busiest_minute(app: ChronexApp) -> None:
    def draw(found: object, width: int) -> list[Line] | None:
        if not isinstance(found, BusiestMinuteFound):
            return None
        return busiest_minute_lines(found.busiest_minute, app.state.display, width)

    app.push_screen(AnswerDialog(app, "Busiest minute", "H", draw))
    app.requests.find_busiest_minute()


class TryScheduleScreen(Dialog):
    """Meaning, next runs and mistakes of a schedule while it is typed. Nothing is saved."""

    def __init__(self, app: ChronexApp) -> None:
        self._text = ""
        super().__init__(
            app,
            f"Try a schedule in {app.state.home.name}",
            self._answer,
            hint="enter copies the shell command, esc closes",
            is_wide=True,
        )

    def compose_above(self) -> ComposeResult:
        example = "30 2 * * *    or    @every 90s    or    TZ=Asia/Seoul 0 9 * * MON-FRI"
        yield Input(placeholder=example, id="schedule")

    def focus_first(self) -> None:
        self.query_one("#schedule", Input).focus()

    def _answer(self, width: int) -> list[Line]:
        state = self.dashboard.state
        return try_schedule_lines(self._text, state.home, state.now_ms, width)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._text = event.value
        self.query_one("#dialog-lines", Panel).redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        zone = self.dashboard.state.home.name
        self.app.copy_to_clipboard(f"chronex explain '{quoted_for_shell(event.value)}' --tz {zone}")
        self.app.notify("copied the shell command", timeout=1.5)
