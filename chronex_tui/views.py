"""The views of the board: what all of them share, the jobs, and the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Container
from textual.markup import escape

from chronex.text.terminal import cell_safe
from chronex_tui.model.board_lines import no_jobs, no_match, no_runs
from chronex_tui.model.clock_days import change_lines, no_change_line, title_line
from chronex_tui.model.density import busiest_lines, heatmap_lines, legend_line
from chronex_tui.model.display import count
from chronex_tui.model.job_detail import detail_lines
from chronex_tui.model.lanes import timeline_lines
from chronex_tui.model.layout import Line, wrap_line
from chronex_tui.model.runs_table import firing_detail
from chronex_tui.model.snapshot import RunKey
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.widgets import Panel, Table, TextPanel


class View(Container):
    """One screen of the board."""

    def __init__(self, state: State, palette: Palette, name: str) -> None:
        super().__init__(id=f"view-{name}", classes="view")
        self.state, self.palette = state, palette

    def update_all(self) -> None:
        """There is another snapshot, or it is shown in another way."""
        for panel in self.query(Panel):
            if panel.display:
                panel.redraw()

    def tick(self) -> None:
        """A second has passed: draw again what counts down, as far as it is visible."""
        self.update_all()

    @property
    def main(self) -> Table | Panel:
        """The widget that has the focus when the view opens."""
        raise NotImplementedError

    def restore_selection(self) -> None:
        """The view opens: select what was selected on another view, where it is listed."""

    def update_list(self) -> None:
        """Other rows match, as while a filter is typed; panels beside the list may wait."""
        self.update_all()

    def scroll_to_selected(self) -> None:
        """Make the selection visible, where a view does not do so by itself."""

    def log_changed(self) -> None:
        """The newest lines of the selection's output have arrived."""
        self.selection_changed()

    def selection_changed(self) -> None:
        """Another job or run is selected, or its detail has arrived."""
        self.update_all()

    def show_either(self, table: Table, empty: Panel, *, has_rows: bool) -> bool:
        """Show the table, or the panel in its place while there are no rows. True if that changed."""
        if table.display == has_rows and empty.display != has_rows:
            return False
        had_focus = table.has_focus or empty.has_focus
        table.display = has_rows
        empty.display = not has_rows
        if had_focus:
            self.main.focus()
        return True

    def log_lines(self, height: int) -> Sequence[Line]:
        """The newest lines of the selection's output."""
        if not self.state.log:
            return ((("no output", "dim"),),)
        return [((cell_safe(line), ""),) for line in self.state.log[-height:]]


class JobListView(View):
    """A view with the list of jobs: its cursor is the selected job, and a panel stands in for an empty list."""

    LIST: ClassVar[str]
    EMPTY: ClassVar[str]

    def compose_list(self) -> ComposeResult:
        yield Table(self.palette, id=self.LIST, classes="framed", title="Jobs")
        yield TextPanel(self._empty, self.palette, id=self.EMPTY, classes="framed", title="Jobs")

    @property
    def _table(self) -> Table:
        return self.query_one(f"#{self.LIST}", Table)

    @property
    def main(self) -> Table | Panel:
        table = self._table
        return table if table.display else self.query_one(f"#{self.EMPTY}", Panel)

    def restore_selection(self) -> None:
        if self.state.job is not None:
            self._table.cursor = self.state.job

    def update_list(self) -> None:
        table, empty = self._table, self.query_one(f"#{self.EMPTY}", Panel)
        if self.show_either(table, empty, has_rows=bool(self.state.rows)):
            self.set_class(not self.state.rows and not self.state.snapshot.rows, "-bare")
        if empty.display:
            empty.redraw()
        if table.cursor is None:
            table.cursor = self.state.job
        table.border_subtitle, table.sort_mark = self.state.order_words, self.state.order_mark
        table.show(self.state.jobs_table())

    def tick(self) -> None:
        table = self._table
        table.model = self.state.jobs_table()
        table.refresh()

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        if self.state.snapshot.rows:
            return no_match(self.state.filter.text, len(self.state.snapshot.rows))
        return no_jobs(self.state.snapshot, self.state.store_option, width)


class JobsView(JobListView):
    """The view that the dashboard opens with."""

    LIST, EMPTY = "jobs", "empty"

    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "jobs")

    def compose(self) -> ComposeResult:
        with Container(id="jobs-upper"):
            with Container(id="jobs-left"):
                yield from self.compose_list()
                yield Panel(self._heatmap, self.palette, id="side-heatmap", classes="framed", title="Coming week")
            with Container(id="jobs-side"):
                yield Panel(self._detail, self.palette, id="detail", classes="framed")
                yield Panel(self._clock, self.palette, id="side-clock", classes="framed", title="Next clock change")
        yield Panel(self._timeline, self.palette, id="side-timeline", classes="framed", title="Timeline")
        yield Panel(self._log, self.palette, id="side-log", classes="framed", title="Output")

    def update_all(self) -> None:
        self.update_list()
        self._title()
        super().update_all()

    def tick(self) -> None:
        super().tick()
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
        self.query_one("#detail", Panel).entitle(escape(self._shown_name()) or "no job")
        log = self.query_one("#side-log", Panel)
        log.entitle(f"Output of {self.state.log_of}" if self.state.log_of else "Output")

    def _shown_name(self) -> str:
        """What people call the selected job; its id until its detail has been read."""
        detail, job = self.state.detail, self.state.job or ""
        return cell_safe(detail.row.job.shown_name) if detail is not None and detail.row.job.id == job else job

    # -- what the panels hold -------------------------------------------------------------------------------

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
            *wrap_line(legend_line(heatmap, display), width),
            *busiest_lines(heatmap, display, width),
        ]
        return lines[:height]

    def _clock(self, width: int, height: int) -> Sequence[Line]:
        days = self.state.clock_days
        if not days:
            return tuple(no_change_line(zone) for zone in self.state.unchanging_zones[:height])
        display = self.state.display
        day = next((day for day in days if day.touched), days[0])
        return [title_line(day, display, width), *change_lines(day, display, width, max(height - 4, 1))][:height]

    def _timeline(self, width: int, height: int) -> Sequence[Line]:
        lanes = self.state.lanes[: max(height - 1, 0)]
        return timeline_lines(lanes, self.state.window, self.state.display, width)

    def _log(self, width: int, height: int) -> Sequence[Line]:
        return self.log_lines(height)


class RunsView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "runs")

    def compose(self) -> ComposeResult:
        with Container(id="runs-left"):
            yield Table(self.palette, id="runs", classes="framed", title="Runs")
            yield TextPanel(self._empty, self.palette, id="no-runs", classes="framed", title="Runs")
        with Container(id="runs-side"):
            yield TextPanel(self._firing, self.palette, id="firing", classes="framed", title="Run")
            yield Panel(self._log, self.palette, id="runs-log", classes="framed", title="Output")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#runs", Table)
        return table if table.display else self.query_one("#no-runs", Panel)

    def update_list(self) -> None:
        table, empty = self.query_one("#runs", Table), self.query_one("#no-runs", Panel)
        self.show_either(table, empty, has_rows=bool(self.state.runs))
        if empty.display:
            empty.redraw()
        state = self.state
        kind = "Dead letters" if state.only_dead else "Runs"
        more = "" if state.history.is_whole else ", reading older ones"
        table.border_title = f"{kind} of {state.run_job}" if state.run_job else kind
        table.border_subtitle = f"{count(len(state.runs), 'run')}{more}"
        if state.run is None or table.cursor is None:
            table.cursor = state.run
        table.show(state.runs_table())
        state.run_index = table.index
        if isinstance(table.cursor, RunKey):
            state.run, state.job = table.cursor, table.cursor.job

    def update_all(self) -> None:
        self.update_list()
        super().update_all()

    def tick(self) -> None:
        table = self.query_one("#runs", Table)
        table.model = self.state.runs_table()
        table.refresh()
        if self.state.firing is not None and self.state.firing.occurrence.finished_ms is None:
            self.query_one("#firing", Panel).redraw()

    def selection_changed(self) -> None:
        log = self.query_one("#runs-log", Panel)
        log.entitle(f"Output of {self.state.log_of}" if self.state.log_of else "Output")
        for panel in (self.query_one("#firing", Panel), log):
            if panel.display:
                panel.redraw()

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        return no_runs(self.state.filter.text, only_dead=self.state.only_dead, cells=width)

    def _firing(self, width: int, height: int) -> Sequence[Line]:
        firing = self.state.firing
        if firing is None or firing.key != self.state.run:
            return ()
        return firing_detail(firing, self.state.display, self.state.job_of(firing.key.job), width)

    def _log(self, width: int, height: int) -> Sequence[Line]:
        return self.log_lines(height)
