"""What the dashboard knows and how it is looked at. No widget, no thread: every screen is drawn from this."""

from __future__ import annotations

from dataclasses import dataclass, field

from chronex.engine.overview import Row
from chronex.model.records import Job
from chronex.timing.zones import Zone
from chronex_tui.model.clockday import ClockDay
from chronex_tui.model.density import Density
from chronex_tui.model.filtering import Filter, parse_filter
from chronex_tui.model.glyphs import Glyphs
from chronex_tui.model.jobs import JobsTable, order
from chronex_tui.model.look import TIMES, Look
from chronex_tui.model.runs import RunsTable, merged
from chronex_tui.model.snapshot import EMPTY, NO_HISTORY, Detail, Firing, History, RunItem, RunKey, Snapshot
from chronex_tui.model.timeline import Lane, Window
from chronex_tui.model.wording import HOUR

SORT_ORDER = ("state", "name", "next", "last")


@dataclass
class State:
    """Mutable, and owned by the one thread that paints."""

    glyphs: Glyphs
    home: Zone
    now_ms: int
    snapshot: Snapshot = EMPTY
    history: History = NO_HISTORY
    detail: Detail | None = None
    firing: Firing | None = None
    log: tuple[str, ...] = ()
    log_of: str = ""
    lanes: tuple[Lane, ...] = ()
    clock_days: tuple[ClockDay, ...] = ()
    calm_zones: tuple[str, ...] = ()
    density: Density | None = None
    screen: str = "jobs"
    times: str = "local"
    filter: Filter = field(default_factory=lambda: parse_filter(""))
    sort: str = "state"
    reverse: bool = False
    job: str | None = None
    run: RunKey | None = None
    marked: frozenset[str] = frozenset()
    asked: dict[str, str] = field(default_factory=dict)
    only_dead: bool = False
    run_job: str = ""  # the Runs screen shows this job alone
    window: Window = field(default_factory=lambda: Window(0, HOUR))
    follows_now: bool = True
    clock_index: int = 0
    policy: int = 0
    clock_zone: str = ""
    clock_since_ms: int | None = None
    cursor: tuple[int, int] = (0, 0)
    density_is_past: bool = False
    frozen_ms: int | None = None
    is_read_only: bool = False
    _rows: tuple[Row, ...] = ()
    _rows_of: object = None
    _runs: list[RunItem] = field(default_factory=list)
    _runs_of: object = None
    _jobs: dict[str, Job] = field(default_factory=dict)
    _jobs_of: object = None

    @property
    def look(self) -> Look:
        return Look(self.now_ms, self.glyphs, self.home, self.times)

    # -- jobs -------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[Row, ...]:
        """The jobs that pass the filter, in order."""
        key = (id(self.snapshot), self.filter.text, self.sort, self.reverse)
        if self._rows_of != key:
            now = self.now_ms
            kept = [row for row in self.snapshot.rows if self.filter.takes_row(row, now)]
            self._rows = tuple(order(kept, self.sort, reverse=self.reverse))
            self._rows_of = key
        return self._rows

    def jobs_table(self) -> JobsTable:
        return JobsTable(
            self.rows, self.look, self.snapshot.daemon_lives, self.marked, _SORTED[self.sort], dict(self.asked)
        )

    def row(self, name: str | None) -> Row | None:
        return next((row for row in self.snapshot.rows if row.job.id == name), None)

    @property
    def jobs(self) -> dict[str, Job]:
        if self._jobs_of is not self.snapshot:
            self._jobs = {row.job.id: row.job for row in self.snapshot.rows}
            self._jobs_of = self.snapshot
        return self._jobs

    # -- runs -------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> list[RunItem]:
        key = (id(self.snapshot), id(self.history), self.filter.text, self.only_dead, self.run_job)
        if self._runs_of != key:
            self._runs = self._filtered_runs()
            self._runs_of = key
        return self._runs

    def _filtered_runs(self) -> list[RunItem]:
        if self.only_dead:
            found = list(self.history.dead)
        else:
            found = merged(self.snapshot.live, self.history.items, self.history.dead)
        if self.run_job:
            found = [item for item in found if item.key.job == self.run_job]
        return self.filter.runs(found, self.snapshot.rows, self.now_ms)

    def runs_table(self) -> RunsTable:
        return RunsTable(self.runs, self.look, self.jobs)

    # -- looking ----------------------------------------------------------------------------------------------

    def next_times(self) -> None:
        self.times = TIMES[(TIMES.index(self.times) + 1) % len(TIMES)]

    def next_sort(self) -> None:
        self.sort = SORT_ORDER[(SORT_ORDER.index(self.sort) + 1) % len(SORT_ORDER)]

    def set_filter(self, text: str) -> None:
        self.filter = parse_filter(text)


_SORTED = {"state": "", "name": "job", "next": "next", "last": "last"}
