"""Why: asked of the reader, shown when it has answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chronex.storage.records import Reading
from chronex_tui.messages import WhyRead
from chronex_tui.model.chain import chain_lines
from chronex_tui.screens.modal import Modal

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


def ask_why(app: ChronexApp) -> None:
    """On the Runs screen of the run under the cursor; elsewhere of the job's last occurrence and its next."""
    state = app.state
    name, run, now = state.job or "", state.run if state.screen == "runs" else None, app.clock.wall_ms()

    def read(reading: Reading) -> WhyRead:
        from chronex.views.why import latest_and_next, why

        if run is None:
            return WhyRead(name, tuple(latest_and_next(reading, name, now)))
        answer = why(reading, run.job, run.nominal_ms, now)
        return WhyRead(run.job, () if answer is None else (answer,))

    app.live.ask("why", read, lambda found: found)


def show_why(app: ChronexApp, found: WhyRead) -> None:
    if not found.answers:
        app.notify(f"nothing has happened to {found.job} yet", markup=False)
        return
    modal = Modal(
        app.book,
        f"Why: {found.job}",
        lambda width: chain_lines(found.answers, app.state.look, width),
        {"w": ""},
        is_wide=True,
        is_ascii=app.state.glyphs.border == "ascii",
    )
    app.push_screen(modal)
