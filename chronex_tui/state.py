"""What the dashboard knows and how it is looked at. No widget, no thread: every screen is drawn from this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chronex.model.records import Job
from chronex.timing.zones import Zone
from chronex.views.jobs import Row
from chronex_tui.model.clockday import ClockDay
from chronex_tui.model.density import Density
from chronex_tui.model.filtering import Filter, parse_filter
from chronex_tui.model.glyphs import Glyphs
from chronex_tui.model.jobs import COLUMNS, JobsTable, order
from chronex_tui.model.look import TIMES, Look
from chronex_tui.model.runs import RunsTable, merged
from chronex_tui.model.snapshot import EMPTY, NO_HISTORY, Detail, Firing, History, RunItem, RunKey, Snapshot
from chronex_tui.model.timeline import Lane, Window
from chronex_tui.model.wording import HOUR

_MOST_KEPT = 12
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
    hidden: frozenset[str] = frozenset()  # columns of the Jobs table that are left out
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
    density_is_time: bool = False
    frozen_ms: int | None = None
    is_read_only: bool = False
    _rows: tuple[Row, ...] = ()
    _rows_of: tuple[object, Filter] | None = None
    _runs: dict[str, list[RunItem]] = field(default_factory=dict)
    _runs_of: object = None
    _ordered: list[Row] = field(default_factory=list)
    _ordered_of: object = None
    _named: dict[str, Row] = field(default_factory=dict)
    _named_of: object = None
    _merged: list[RunItem] = field(default_factory=list)
    _merged_names: list[str] = field(default_factory=list)
    _merged_of: object = None
    run_index: int = 0

    @property
    def look(self) -> Look:
        return Look(self.now_ms, self.glyphs, self.home, self.times)

    # -- jobs -------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[Row, ...]:
        """The jobs that pass the filter, in order. A letter typed asks every job, but sorts none again."""
        order_key = (id(self.snapshot), self.sort, self.reverse)
        if self._ordered_of != order_key:
            self._ordered, self._ordered_of = order(self.snapshot.rows, self.sort, reverse=self.reverse), order_key
        if self._rows_of is None or self._rows_of[0] != order_key or self._rows_of[1].text != self.filter.text:
            known = self._rows_of is not None and self._rows_of[0] == order_key
            base = self._rows if known and self._rows_of and self.filter.narrows(self._rows_of[1]) else self._ordered
            now = self.now_ms
            self._rows = tuple(row for row in base if self.filter.takes_row(row, now))
            self._rows_of = (order_key, self.filter)
        return self._rows

    def jobs_table(self) -> JobsTable:
        lives, sorted_by = self.snapshot.daemon_lives, _SORTED[self.sort]
        columns = tuple(column for column in COLUMNS if column.name not in self.hidden)
        return JobsTable(self.rows, self.look, lives, self.marked, sorted_by, dict(self.asked), columns)

    def row(self, name: str | None) -> Row | None:
        return self._by_name.get(name or "")

    @property
    def _by_name(self) -> dict[str, Row]:
        if self._named_of is not self.snapshot:
            self._named, self._named_of = {row.job.id: row for row in self.snapshot.rows}, self.snapshot
        return self._named

    def job_of(self, name: str) -> Job | None:
        row = self._by_name.get(name)
        return None if row is None else row.job

    # -- runs -------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> list[RunItem]:
        """The runs that pass the filter. What the last few texts found is kept: letters are taken back too."""
        key = (id(self.snapshot), id(self.history), self.only_dead, self.run_job)
        if self._runs_of != key:
            self._runs, self._runs_of = {}, key
        text = self.filter.text
        if text not in self._runs:
            if len(self._runs) >= _MOST_KEPT:
                self._runs.clear()
            self._runs[text] = self._filtered_runs()
        return self._runs[text]

    def _filtered_runs(self) -> list[RunItem]:
        if self.only_dead or self.run_job:
            found: Sequence[RunItem] = self.history.dead if self.only_dead else self._all_runs()
            found = [item for item in found if not self.run_job or item.key.job == self.run_job]
            return self.filter.runs(found, self.snapshot.rows, self.now_ms)
        found = self._all_runs()
        if not self.filter.text:
            return list(found)
        if self.filter.has_states:
            return self.filter.runs(found, self.snapshot.rows, self.now_ms)
        taken = {row.job.id for row in self.rows}
        if len(taken) == len(self.snapshot.rows):
            return list(found)
        return [item for item, name in zip(found, self._merged_names, strict=True) if name in taken]

    def _all_runs(self) -> list[RunItem]:
        """Live ones and the past, put together once for each of either; the names of their jobs beside them."""
        key = (id(self.snapshot.live), id(self.history))
        if self._merged_of != key:
            self._merged = merged(self.snapshot.live, self.history.items, self.history.dead)
            self._merged_names = [item.key.job for item in self._merged]
            self._merged_of = key
        return self._merged

    def run_item(self) -> RunItem | None:
        """The selected run in the list; `run_index` is where it was last."""
        runs = self.runs
        if self.run is None or not runs:
            return None
        if self.run_index < len(runs) and runs[self.run_index].key == self.run:
            return runs[self.run_index]
        return next((item for item in runs if item.key == self.run), None)

    def runs_table(self) -> RunsTable:
        return RunsTable(self.runs, self.look, self.job_of)

    # -- looking ----------------------------------------------------------------------------------------------

    def next_times(self) -> None:
        self.times = TIMES[(TIMES.index(self.times) + 1) % len(TIMES)]

    def next_sort(self) -> None:
        self.sort = SORT_ORDER[(SORT_ORDER.index(self.sort) + 1) % len(SORT_ORDER)]

    def set_filter(self, text: str) -> None:
        self.filter = parse_filter(text)


_SORTED = {"state": "", "name": "job", "next": "next", "last": "last"}
