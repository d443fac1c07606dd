"""Jobs: the table, the job under the cursor, and as much around it as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Container

from chronex_tui.model.cells import Line, shown
from chronex_tui.model.clockday import no_change_line, picture, title_line
from chronex_tui.model.density import busiest_line, density_lines, legend_line
from chronex_tui.model.detail import detail_lines
from chronex_tui.model.empty import no_jobs, no_match
from chronex_tui.model.timeline import timeline_lines
from chronex_tui.state import State
from chronex_tui.themes import Book
from chronex_tui.views.base import View
from chronex_tui.widgets.panel import Panel
from chronex_tui.widgets.table import Table


class JobsView(View):
    """The home of the dashboard."""

    def __init__(self, state: State, book: Book) -> None:
        super().__init__(state, book, "jobs")

    def compose(self) -> ComposeResult:
        with Container(id="jobs-upper"):
            with Container(id="jobs-left"):
                yield Table(self.book, id="jobs", classes="framed", title="Jobs")
                yield Panel(self._empty, self.book, id="empty", classes="framed", title="Jobs")
            with Container(id="jobs-side"):
                yield Panel(self._detail, self.book, id="detail", classes="framed")
                yield Panel(self._density, self.book, id="side-density", classes="framed", title="Coming week")
                yield Panel(self._clock, self.book, id="side-clock", classes="framed", title="Next clock change")
        yield Panel(self._timeline, self.book, id="side-timeline", classes="framed", title="Timeline")
        yield Panel(self._log, self.book, id="side-log", classes="framed", title="Output")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#jobs", Table)
        return table if table.display else self.query_one("#empty", Panel)

    def take_selection(self) -> None:
        if self.state.job is not None:
            self.query_one("#jobs", Table).cursor = self.state.job

    def update_list(self) -> None:
        table, empty = self.query_one("#jobs", Table), self.query_one("#empty", Panel)
        has_rows = bool(self.state.rows)
        if table.display != has_rows or empty.display == has_rows:
            had_focus = table.has_focus or empty.has_focus
            table.display, empty.display = has_rows, not has_rows
            self.set_class(not has_rows and not self.state.snapshot.rows, "-bare")
            if had_focus:
                self.main.focus()
        if empty.display:
            empty.redraw()
        if table.cursor is None:
            table.cursor = self.state.job
        table.show(self.state.jobs_table())

    def update_all(self) -> None:
        self.update_list()
        self._title()
        super().update_all()

    def tick(self) -> None:
        table = self.query_one("#jobs", Table)
        table.model = self.state.jobs_table()
        table.refresh()
        for name in ("#detail", "#side-timeline"):
            panel = self.query_one(name, Panel)
            if panel.display:
                panel.redraw()

    def selection_changed(self) -> None:
        self._title()
        for name in ("#detail", "#side-log"):
            panel = self.query_one(name, Panel)
            if panel.display:
                panel.redraw()

    def log_changed(self) -> None:
        self._title()
        log = self.query_one("#side-log", Panel)
        (log if log.display else self.query_one("#detail", Panel)).redraw()

    def _title(self) -> None:
        self.query_one("#detail", Panel).border_title = self.state.job or "no job"
        log = self.query_one("#side-log", Panel)
        log.border_title = f"Output of {self.state.log_of}" if self.state.log_of else "Output"

    # -- what the panels hold -------------------------------------------------------------------------------

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        if self.state.snapshot.rows:
            return no_match(self.state.filter.text, len(self.state.snapshot.rows))
        return no_jobs(self.state.snapshot, self.state.look, width)

    def _detail(self, width: int, height: int) -> Sequence[Line]:
        detail = self.state.detail
        if detail is None or detail.row.job.id != self.state.job:
            return ()
        row = self.state.row(self.state.job) or detail.row
        lives = self.state.snapshot.daemon_lives
        told = replace(detail, row=row, log=self.state.log)
        return detail_lines(told, self.state.look, width, height, daemon_lives=lives)

    def _density(self, width: int, height: int) -> Sequence[Line]:
        density = self.state.density
        if density is None:
            return ((("counting", "dim"),),)
        look = self.state.look
        lines = [
            *density_lines(density, look, None, width),
            (),
            legend_line(density, look),
            busiest_line(density, look),
        ]
        return lines[:height]

    def _clock(self, width: int, height: int) -> Sequence[Line]:
        days = self.state.clock_days
        if not days:
            return tuple(no_change_line(zone) for zone in self.state.calm_zones[:height])
        look = self.state.look
        day = next((day for day in days if day.touched), days[0])
        return [title_line(day, look), *picture(day, look, width, max(height - 4, 1))][:height]

    def _timeline(self, width: int, height: int) -> Sequence[Line]:
        lanes = self.state.lanes[: max(height - 1, 0)]
        return timeline_lines(lanes, self.state.window, self.state.look, width)

    def _log(self, width: int, height: int) -> Sequence[Line]:
        if not self.state.log:
            return ((("no output", "dim"),),)
        return [((shown(line), ""),) for line in self.state.log[-height:]]
