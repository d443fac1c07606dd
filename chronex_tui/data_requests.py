"""Which data the open screen needs, and what is done with it when it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chronex_tui.data import (
    BusiestMinuteFound,
    ClockChangesComputed,
    CommandDone,
    GraphRead,
    GroupsRead,
    HeatmapCounted,
    JobRead,
    LanesComputed,
    LogRead,
    NodesRead,
    OutputRead,
    RunRead,
    ScheduleExplained,
    WhyRead,
)
from chronex_tui.model.attempt_output import read_tail
from chronex_tui.model.clock_days import POLICIES, clock_days
from chronex_tui.model.density import (
    coming_run_time,
    coming_starts,
    find_busiest_minute,
    first_midnight,
    past_run_time,
    past_starts,
    usual_run_times,
)
from chronex_tui.model.display import local_time
from chronex_tui.model.lanes import lanes_in
from chronex_tui.model.snapshot import Firing, History, Snapshot, detail_of, firing_of
from chronex_tui.screens.log_screen import open_log_screen

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from chronex_tui.app import ChronexApp

_DEBOUNCE_S = 0.06
# A node that falls silent writes nothing, so the open list of nodes is read again now and then.
_NODES_EVERY_MS = 3000
# What came of a command is shown this long, with the key that takes it back.
UNDO_S = 10.0
# The heat map and the clock changes depend on the definitions of jobs, the lanes on their runs as well.
_CLOCK_SCREENS = ("jobs", "clock")
_LANE_SCREENS = ("jobs", "timeline")
_HEATMAP_SCREENS = ("jobs", "density")


class DataRequests:
    """Requests data for what is on the screen, and puts what arrives into the state."""

    def __init__(self, app: ChronexApp) -> None:
        self.app, self.state, self.live = app, app.state, app.live
        self._definitions: object = None
        self.is_selection_due = False
        self._opens_log = app.options.log
        self._first_job = app.options.job
        self._nodes_read_ms = 0

    # -- requests to the reader ---------------------------------------------------------------------------

    def request_selection(self) -> None:
        """A moment after the cursor has come to rest, so that a key that is held down requests nothing."""
        if not self.is_selection_due:
            self.is_selection_due = True
            self.app.set_timer(_DEBOUNCE_S, self._read_selection)

    def _read_selection(self) -> None:
        self.is_selection_due = False
        state = self.state
        if state.screen == "runs" and state.run is not None:
            run = state.run
            self.live.request("run", lambda reading: (firing_of(reading, run),), lambda found: RunRead(run, found[0]))
        elif state.job is not None:
            self._read_graph(state.job)
            name, now = state.job, state.now_ms
            self.live.request(
                "job", lambda reading: (detail_of(reading, name, now),), lambda found: JobRead(name, found[0])
            )

    def _read_list_of(self, screen: str) -> None:
        """The nodes or the groups, where their screen is open."""
        if screen == "nodes":
            self.live.request_nodes()
        elif screen == "groups":
            from chronex.views.group_rows import groups_of

            now = self.app.clock.wall_ms()
            self.live.request(
                "groups", lambda reading: (tuple(groups_of(reading, now)),), lambda found: GroupsRead(*found)
            )

    def _read_graph(self, name: str) -> None:
        if self.state.screen == "graph":
            from chronex_tui.model.graph_lines import read_graph

            self.live.request("graph", lambda reading: (read_graph(reading, name),), lambda found: GraphRead(*found))

    def request_screen(self) -> None:
        """What the open screen needs beyond the snapshot."""
        screen = self.state.screen
        whole = screen in ("runs", "timeline") or (screen == "density" and self._heatmap_needs_history)
        self.live.request_history(whole=whole)
        self._read_list_of(screen)
        self.request_selection()
        self._compute_panels()

    def tick(self) -> None:
        """A second has passed: read again what changes without a trace in the store."""
        if self.state.screen == "nodes" and self.state.now_ms - self._nodes_read_ms >= _NODES_EVERY_MS:
            self._nodes_read_ms = self.state.now_ms
            self.live.request_nodes()

    def _read_log(self, firing: Firing | None) -> None:
        """The newest lines of the selection's output; the log screen reads more."""
        attempt = firing.newest_log if firing is not None else None
        if attempt is None or firing is None:
            self.state.log, self.state.log_of = (), ""
            return
        store_path = self.live.source.path
        title = f"{attempt.job} {attempt.task}, try {attempt.number}"
        self.live.read_files("tail", lambda: LogRead(title, read_tail(store_path, attempt)))

    # -- what is computed ---------------------------------------------------------------------------------

    def _compute_panels(self) -> None:
        screen = self.state.screen
        if screen in _LANE_SCREENS:
            self.compute_lanes()
        if screen in _CLOCK_SCREENS:
            self.compute_clock_changes()
        if screen in _HEATMAP_SCREENS:
            self.count_heatmap()

    def compute_lanes(self) -> None:
        state = self.state
        rows, window, now = state.rows, state.window, state.now_ms
        live, ended = state.snapshot.live, state.history.items
        names = {row.job.id for row in rows} if state.filter.text else None

        def work() -> LanesComputed:
            items = [item for item in (*live, *ended) if names is None or item.key.job in names]
            return LanesComputed(lanes_in(window, rows, items, now))

        self.live.compute("lanes", work)

    def compute_clock_changes(self) -> None:
        state = self.state
        jobs = [row.job for row in state.snapshot.rows]
        zone, policy = state.clock_zone, POLICIES[state.policy]
        since = state.clock_since_ms if state.clock_since_ms is not None else state.now_ms

        def work() -> ClockChangesComputed:
            days, unchanging = clock_days(jobs, since, zone, policy)
            return ClockChangesComputed(tuple(days), tuple(unchanging))

        self.live.compute("clock", work)

    @property
    def _heatmap_needs_history(self) -> bool:
        """It counts past runs, or takes from them how long runs usually take."""
        return self.state.heatmap_is_past or self.state.heatmap_is_time

    def count_heatmap(self) -> None:
        """On its own screen as the user has chosen; beside the jobs always the starts of the coming week."""
        state = self.state
        zone, now = state.display.board_zone, state.now_ms
        jobs = [row.job for row in state.rows if row.is_active]
        is_own_screen = state.screen == "density"
        is_past = is_own_screen and state.heatmap_is_past
        is_time = is_own_screen and state.heatmap_is_time
        items = (*state.snapshot.live, *state.history.items) if is_own_screen else ()

        def work() -> HeatmapCounted:
            if is_past:
                counted = past_run_time if is_time else past_starts
                return HeatmapCounted(counted(items, now, zone))
            if is_time:
                return HeatmapCounted(coming_run_time(jobs, usual_run_times(items), now, zone))
            return HeatmapCounted(coming_starts(jobs, now, zone))

        self.live.compute("heatmap", work)

    def find_busiest_minute(self) -> None:
        """The busiest minute of the coming week; an open dialog shows it when it is found."""
        state = self.state
        jobs = [row.job for row in state.rows if row.is_active]
        zone, now = state.display.board_zone, state.now_ms
        self.live.compute("busiest-minute", lambda: BusiestMinuteFound(find_busiest_minute(jobs, now, zone)))

    # -- what arrives -------------------------------------------------------------------------------------

    def receive(self, value: object) -> None:
        """Put what arrived into the state, and draw what shows it."""
        match value:
            case Snapshot():
                self._receive_snapshot(value)
            case History():
                self._receive_history(value)
            case JobRead(name, detail):
                if name == self.state.job:
                    self.state.detail = detail
                    self._selection_arrived(name, detail.firing if detail else None)
            case RunRead(key, firing):
                if key == self.state.run:
                    self.state.firing = firing
                    self._selection_arrived(key.job, firing)
            case LogRead(title, lines):
                self.state.log_of, self.state.log = title, lines
                self.app.board.view.log_changed()
            case OutputRead(output):
                screen = open_log_screen(self.app)
                if screen is not None:
                    screen.show_output(output)
            case WhyRead() | BusiestMinuteFound() | ScheduleExplained():
                self._show_answer(value)
            case _:
                self._receive_computed(value)
                self.app.board.update_all()

    def _receive_snapshot(self, snapshot: Snapshot) -> None:
        state = self.state
        state.snapshot = snapshot
        state.pending.clear()
        if self._first_job and snapshot.rows:
            if state.row(self._first_job) is None:
                self.app.notify(f"there is no job {self._first_job}", severity="warning", markup=False)
            self._first_job = ""
        self.app.board.update_all()
        self.request_selection()
        self._read_list_of(state.screen)
        definitions = tuple((row.job.id, row.job.version) for row in snapshot.rows)
        if definitions != self._definitions or self._is_heatmap_of_yesterday():
            self._definitions = definitions
            self._compute_panels()
        elif state.screen in _LANE_SCREENS:
            self.compute_lanes()

    def _is_heatmap_of_yesterday(self) -> bool:
        heatmap = self.state.heatmap
        if heatmap is None or heatmap.is_past:
            return False
        return first_midnight(self.state.now_ms, self.state.display.board_zone) != heatmap.first_day_ms

    def _receive_history(self, history: History) -> None:
        self.state.history = history
        self.app.board.update_all()
        if self.state.screen in _LANE_SCREENS:
            self.compute_lanes()
        elif self.state.screen == "density" and self._heatmap_needs_history:
            self.count_heatmap()

    def _selection_arrived(self, job: str, firing: Firing | None) -> None:
        self._read_log(firing)
        if (log := open_log_screen(self.app)) is not None:
            log.show_firing(job, firing)
        self.app.board.view.selection_changed()
        if self._opens_log and firing is not None:
            self._opens_log = False
            self.app.do("log")

    def _show_answer(self, value: WhyRead | BusiestMinuteFound | ScheduleExplained) -> None:
        from chronex_tui.screens.explanations import answer_dialog

        dialog = answer_dialog(self.app)
        if dialog is not None:
            dialog.show_answer(value)

    def _receive_computed(self, value: object) -> None:
        state = self.state
        match value:
            case LanesComputed(found):
                state.lanes, state.lanes_left_out = found
            case NodesRead(nodes):
                state.nodes = nodes
            case GroupsRead(groups):
                state.groups = groups
            case GraphRead(graph):
                state.graph = graph
            case ClockChangesComputed(days, unchanging):
                state.clock_days, state.unchanging_zones = days, unchanging
                state.clock_index = min(state.clock_index, max(len(days) - 1, 0))
            case HeatmapCounted(heatmap):
                if state.heatmap is None:
                    today = 6 if heatmap.is_past else 0
                    state.cursor = (today, local_time(state.now_ms, state.display.board_zone).hour)
                state.heatmap = heatmap
            case CommandDone(text, is_refused, jobs):
                for name in jobs:
                    state.pending.pop(name, None)
                severity: SeverityLevel = "warning" if is_refused else "information"
                self.app.notify(text, severity=severity, timeout=UNDO_S, markup=False)
