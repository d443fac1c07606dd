"""Explain: the same words as `chronex explain`, for the job under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chronex.timing.zones import load_zone
from chronex_tui.model.cells import Line, shown
from chronex_tui.model.look import job_zone
from chronex_tui.model.painted import painted
from chronex_tui.screens.modal import Modal

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


def explain_job(app: ChronexApp) -> None:
    row = app.state.row(app.state.job)
    if row is None or app.explain is None:
        return
    job = row.job
    lines: list[Line] = [((shown(job.id), "bold"), (f"  {job_zone(job).name}", "dim")), ()]
    zone = load_zone(job.timezone).name
    lines += [painted(line) for line in app.explain(job.schedule, job.dialect, zone, app.state.now_ms)]
    modal = Modal(
        app.book,
        f"Explain {job.id}",
        lambda width: lines,
        {"x": ""},
        is_wide=True,
        is_ascii=app.state.glyphs.border == "ascii",
    )
    app.push_screen(modal)
