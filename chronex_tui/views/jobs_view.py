"""Jobs: the table, the job under the cursor, and as many panels around it as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Container

from chronex_tui.model.board_lines import no_jobs, no_match
from chronex_tui.model.clock_days import change_lines, no_change_line, title_line
from chronex_tui.model.heatmap import busiest_line, heatmap_lines, legend_line
from chronex_tui.model.job_detail import detail_lines
from chronex_tui.model.lanes import timeline_lines
from chronex_tui.model.layout import Line
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views.view import View
from chronex_tui.widgets.panel import Panel
from chronex_tui.widgets.table import Table


class JobsView(View):
    """The view that the dashboard opens with."""

    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "jobs")

    def compose(self) -> ComposeResult:
        with Container(id="jobs-upper"):
            with Container(id="jobs-left"):
                yield Table(self.palette, id="jobs", classes="framed", title="Jobs")
                yield Panel(self._empty, self.palette, id="empty", classes="framed", title="Jobs")
            with Container(id="jobs-side"):
                yield Panel(self._detail, self.palette, id="detail", classes="framed")
                yield Panel(self._heatmap, self.palette, id="side-heatmap", classes="framed", title="Coming week")
                yield Panel(self._clock, self.palette, id="side-clock", classes="framed", title="Next clock change")
        yield Panel(self._timeline, self.palette, id="side-timeline", classes="framed", title="Timeline")
        yield Panel(self._log, self.palette, id="side-log", classes="framed", title="Output")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#jobs", Table)
        return table if table.display else self.query_one("#empty", Panel)

    def restore_selection(self) -> None:
        if self.state.job is not None:
            self.query_one("#jobs", Table).cursor = self.state.job

    def update_list(self) -> None:
        table, empty = self.query_one("#jobs", Table), self.query_one("#empty", Panel)
        has_rows = bool(self.state.rows)
        if self.show_either(table, empty, has_rows=has_rows):
            self.set_class(not has_rows and not self.state.snapshot.rows, "-bare")
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
        return no_jobs(self.state.snapshot, self.state.display, width)

    def _detail(self, width: int, height: int) -> Sequence[Line]:
        detail = self.state.detail
        if detail is None or detail.row.job.id != self.state.job:
            return ()
        row = self.state.row(self.state.job) or detail.row
        newest = replace(detail, row=row, log=self.state.log)
        is_alive = self.state.snapshot.is_daemon_alive
        return detail_lines(newest, self.state.display, width, height, is_daemon_alive=is_alive)

    def _heatmap(self, width: int, height: int) -> Sequence[Line]:
        heatmap = self.state.heatmap
        if heatmap is None:
            return ((("counting", "dim"),),)
        display = self.state.display
        lines = [
            *heatmap_lines(heatmap, display, None, width),
            (),
            legend_line(heatmap, display),
            busiest_line(heatmap, display),
        ]
        return lines[:height]

    def _clock(self, width: int, height: int) -> Sequence[Line]:
        days = self.state.clock_days
        if not days:
            return tuple(no_change_line(zone) for zone in self.state.unchanging_zones[:height])
        display = self.state.display
        day = next((day for day in days if day.touched), days[0])
        return [title_line(day, display), *change_lines(day, display, width, max(height - 4, 1))][:height]

    def _timeline(self, width: int, height: int) -> Sequence[Line]:
        lanes = self.state.lanes[: max(height - 1, 0)]
        return timeline_lines(lanes, self.state.window, self.state.display, width)

    def _log(self, width: int, height: int) -> Sequence[Line]:
        return self.log_lines(height)
