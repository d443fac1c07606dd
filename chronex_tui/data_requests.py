"""Questions to the reader, and what is done with its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chronex.timing.zones import utc_zone
from chronex_tui.data import (
    BusiestMinuteFound,
    ClockChangesFound,
    Done,
    HeatmapCounted,
    JobRead,
    LanesCounted,
    LogRead,
    OutputRead,
    RunRead,
    WhyRead,
)
from chronex_tui.model.attempt_output import read_tail
from chronex_tui.model.busiest_minute import find_busiest_minute
from chronex_tui.model.clock_changes import POLICIES, clock_days
from chronex_tui.model.heatmap import (
    coming_run_time,
    coming_starts,
    first_midnight,
    past_run_time,
    past_starts,
    usual_times,
)
from chronex_tui.model.lanes import lanes
from chronex_tui.model.snapshot import Firing, History, RunKey, Snapshot, detail_of, firing_of
from chronex_tui.model.time_text import local_time
from chronex_tui.screens.log_screen import shown_log

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


_DEBOUNCE_S = 0.06
# Density and clock changes follow the definitions of jobs, not their runs.
_CLOCK_PANELS, _LANE_PANELS = ("jobs", "clock"), ("jobs", "timeline")


class DataRequests:
    """The half of the program that looks."""

    def __init__(self, app: ChronexApp) -> None:
        self.app, self.state, self.live = app, app.state, app.live
        self._definitions: object = None
        self._is_pending = False
        self._log_is_wanted = app.options.log
        self._wanted_job = app.options.job

    # -- asking -------------------------------------------------------------------------------------------

    def selection(self) -> None:
        """A moment after the cursor has come to rest: holding a key down asks for nothing."""
        if not self._is_pending:
            self._is_pending = True
            self.app.set_timer(_DEBOUNCE_S, self._request_selection)

    def _request_selection(self) -> None:
        self._is_pending = False
        state = self.state
        if state.screen == "runs" and state.run is not None:
            run = state.run
            self.live.request("run", lambda reading: (firing_of(reading, run),), lambda found: RunRead(found[0]))
        elif state.job is not None:
            name, now = state.job, state.now_ms
            self.live.request("job", lambda reading: (detail_of(reading, name, now),), lambda f: JobRead(name, f[0]))

    def screen(self) -> None:
        """What the open screen needs beyond the snapshot."""
        screen = self.state.screen
        if screen in ("runs", "timeline") or (screen == "density" and self._needs_history):
            self.live.request_history(whole=True)
        else:
            self.live.request_history(whole=False)
        self.selection()
        self.figures()

    @property
    def _needs_history(self) -> bool:
        """Density counts what was, or takes from it how long runs take."""
        return self.state.heatmap_is_past or self.state.heatmap_is_time

    def figures(self) -> None:
        screen = self.state.screen
        if screen in _LANE_PANELS:
            self.lanes()
        if screen in _CLOCK_PANELS:
            self.clock()
        if screen in ("jobs", "density"):
            self.heatmap()

    def lanes(self) -> None:
        state = self.state
        rows, live, ended, window, now = (
            state.rows,
            state.snapshot.live,
            state.history.items,
            state.window,
            state.now_ms,
        )
        names = {row.job.id for row in rows} if state.filter.text else None

        def work() -> LanesCounted:
            items = [item for item in (*live, *ended) if names is None or item.key.job in names]
            return LanesCounted(lanes(rows, items, window, now))

        self.live.compute("lanes", work)

    def clock(self) -> None:
        state = self.state
        jobs = [row.job for row in state.snapshot.rows]
        zone, policy = state.clock_zone, POLICIES[state.policy]
        since = state.clock_since_ms if state.clock_since_ms is not None else state.now_ms

        def work() -> ClockChangesFound:
            days, unchanging = clock_days(jobs, since, zone, policy)
            return ClockChangesFound(tuple(days), tuple(unchanging))

        self.live.compute("clock", work)

    def heatmap(self) -> None:
        state = self.state
        zone, now = state.display.board_zone, state.now_ms
        jobs = [row.job for row in state.rows if row.is_active]
        is_own, is_past, is_time = state.screen == "density", state.heatmap_is_past, state.heatmap_is_time
        items = (*state.snapshot.live, *state.history.items) if is_own else ()

        def work() -> HeatmapCounted:
            if is_own and is_past:
                count = past_run_time if is_time else past_starts
                return HeatmapCounted(count(items, now, zone))
            if is_own and is_time:
                return HeatmapCounted(coming_run_time(jobs, usual_times(items), now, zone))
            return HeatmapCounted(coming_starts(jobs, now, zone))

        self.live.compute("density", work)

    def busiest_minute(self) -> None:
        """The busiest minute of the coming week; the answer opens a dialog."""
        state = self.state
        jobs, zone, now = [row.job for row in state.rows if row.is_active], state.display.board_zone, state.now_ms
        self.live.compute("crowd", lambda: BusiestMinuteFound(find_busiest_minute(jobs, now, zone)))

    # -- answers ------------------------------------------------------------------------------------------

    def receive(self, value: object) -> None:
        """Put what arrived into the state, and draw what it touches."""
        match value:
            case Snapshot():
                self._receive_snapshot(value)
            case History():
                self.state.history = value
                self.app.board.update_all()
                if self.state.screen in _LANE_PANELS:
                    self.lanes()
                elif self.state.screen == "density" and self._needs_history:
                    self.heatmap()
            case JobRead(name, detail):
                if name == self.state.job:
                    self.state.detail = detail
                    self._selection_read(detail.firing if detail else None)
            case RunRead(firing):
                self.state.firing = firing
                self._selection_read(firing)
            case LogRead(title, lines):
                self.state.log_of, self.state.log = title, lines
                self.app.board.view.log_changed()
            case _:
                self._receive_counts(value)

    def _selection_read(self, firing: Firing | None) -> None:
        self.log(firing)
        self.app.board.view.selection_changed()
        if self._log_is_wanted and firing is not None:
            self._log_is_wanted = False
            self.app.do("log")

    def _receive_counts(self, value: object) -> None:
        state = self.state
        match value:
            case LanesCounted(found):
                state.lanes = found
            case ClockChangesFound(days, unchanging):
                state.clock_days, state.unchanging_zones = days, unchanging
                state.clock_index = min(state.clock_index, max(len(days) - 1, 0))
            case HeatmapCounted(heatmap):
                if state.heatmap is None:
                    state.cursor = (
                        0 if not heatmap.is_past else 6,
                        local_time(state.now_ms, state.display.board_zone).hour,
                    )
                state.heatmap = heatmap
            case OutputRead(output):
                screen = shown_log(self.app)
                if screen is not None:
                    screen.receive(output)
                return
            case WhyRead():
                from chronex_tui.screens.explanations import show_why

                show_why(self.app, value)
                return
            case BusiestMinuteFound(busiest_minute):
                from chronex_tui.screens.explanations import show_busiest_minute

                show_busiest_minute(self.app, busiest_minute)
                return
            case Done(text, is_refused, jobs):
                for name in jobs:
                    state.pending.pop(name, None)
                self.app.notify(text, severity="warning" if is_refused else "information", markup=False)
        self.app.board.update_all()

    def _receive_snapshot(self, snapshot: Snapshot) -> None:
        state = self.state
        state.snapshot = snapshot
        state.pending.clear()
        if self._wanted_job and snapshot.rows:
            if state.row(self._wanted_job) is None:
                self.app.notify(f"there is no job {self._wanted_job}", severity="warning", markup=False)
            self._wanted_job = ""
        self.app.board.update_all()
        self.selection()
        definitions = tuple((row.job.id, row.job.version) for row in snapshot.rows)
        if definitions != self._definitions or self._day_turned():
            self._definitions = definitions
            self.figures()
        elif state.screen in _LANE_PANELS:
            self.lanes()

    def _day_turned(self) -> bool:
        heatmap = self.state.heatmap
        if heatmap is None or heatmap.is_past:
            return False
        return first_midnight(self.state.now_ms, self.state.display.board_zone) != heatmap.first_day_ms

    def log(self, firing: Firing | None) -> None:
        """The newest lines of what the selection printed; the log view reads more."""
        attempt = firing.newest_log if firing is not None else None
        if attempt is None or firing is None:
            self.state.log, self.state.log_of = (), ""
            return
        place = self.live.source.path
        title = f"{attempt.job} {attempt.task}, try {attempt.number}"
        self.live.read_files("tail", lambda: LogRead(title, read_tail(place, attempt)))


def run_name(key: RunKey) -> str:
    """An occurrence as commands take it: JOB@TIME."""
    moment = local_time(key.nominal_ms, utc_zone())
    millis = f".{key.nominal_ms % 1000:03}" if key.nominal_ms % 1000 else ""
    return f"{key.job}@{moment:%Y-%m-%dT%H:%M:%S}{millis}Z"
