"""The state of the dashboard: data that has arrived, what is selected, and how it is shown.

Every screen is drawn from this. It knows no widget and no thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chronex.model.job import Job
from chronex.text.durations import HOUR_MS
from chronex.timing.zones import Zone
from chronex.views import filters
from chronex.views.jobs import Row
from chronex.views.nodes import NodeRow
from chronex_tui.model.clock_days import ClockDay
from chronex_tui.model.density import Heatmap
from chronex_tui.model.display import TIMES, DisplaySettings, Glyphs, word
from chronex_tui.model.groups_table import GroupKey, GroupsTable
from chronex_tui.model.jobs_table import COLUMNS, JobsTable, has_seconds, order
from chronex_tui.model.lanes import Lane, Window
from chronex_tui.model.nodes_table import NodeKey, NodesTable, node_key
from chronex_tui.model.runs_table import RunsTable, merged, state_of
from chronex_tui.model.snapshot import EMPTY, NO_HISTORY, Firing, History, JobDetail, RunItem, RunKey, Snapshot

if TYPE_CHECKING:
    from chronex.views.group_rows import GroupRow
    from chronex.views.job_graph import JobGraph


@dataclass(frozen=True, slots=True)
class DashboardFilter:
    """The filter of the engine as the screens use it: over jobs, and over a hundred thousand runs at a keystroke.

    A run has a state of its own, so the `state:` words are compared with the run and all others with its job.
    """

    text: str
    parsed: filters.Filter
    job_tests: tuple[filters.Test, ...]  # without those of `state:` words
    wanted_states: frozenset[str]
    unwanted_states: frozenset[str]

    @property
    def problem(self) -> str:
        return self.parsed.problems[0] if self.parsed.problems else ""

    def matches(self, row: Row, now_ms: int) -> bool:
        return self.parsed.matches(row, now_ms)

    def narrows(self, before: DashboardFilter) -> bool:
        """Were letters added to a plain word? Then a job that did not match before does not match now."""
        last = self.text.rpartition(" ")[2]
        is_plain = not any(sign in last for sign in ":<>") and not last.startswith("-")
        return is_plain and self.text.startswith(before.text) and " " not in self.text[len(before.text) :]

    def ranked(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """A job with exactly this name first, then those that begin so, those that have it, and all others."""
        words = [word.value.lower() for word in self.parsed.words if not word.key and not word.is_negated]
        words = [word for word in words if "<" not in word and ">" not in word]
        if not words or len(rows) < 2:
            return rows

        def rank(row: Row) -> int:
            return max(_rank(word, row.job.shown_name.lower()) for word in words)

        return tuple(sorted(rows, key=rank))

    @property
    def has_states(self) -> bool:
        return bool(self.wanted_states or self.unwanted_states)

    def without_states(self) -> str:
        """The text without its `state:` words."""
        return " ".join(word.text for word in self.parsed.words if word.key != "state" or word.is_negated)

    def runs(self, items: Sequence[RunItem], rows: Sequence[Row], now_ms: int) -> list[RunItem]:
        """The runs that match; each job is tested once, however many runs it has."""
        found = list(items)
        if self.job_tests:
            names = {row.job.id for row in rows if all(test(row, now_ms) for test in self.job_tests)}
            found = [item for item in found if item.key.job in names]
        if self.wanted_states:
            found = [item for item in found if not self.wanted_states.isdisjoint(_state_names(item))]
        if self.unwanted_states:
            found = [item for item in found if self.unwanted_states.isdisjoint(_state_names(item))]
        return found


def _rank(word: str, name: str) -> int:
    return next((rank for rank, holds in enumerate((name == word, name.startswith(word), word in name)) if holds), 3)


def _state_names(item: RunItem) -> tuple[str, ...]:
    """The words that people use for the state of a run; a run that gave up has failed as well."""
    state = state_of(item)
    return (state, word(state), item.state)


def parse_filter(text: str) -> DashboardFilter:
    parsed = filters.parse_filter(text)
    states = [found for found in parsed.words if found.key == "state" and found.value]
    return DashboardFilter(
        text.strip(),
        parsed,
        tuple(found.test for found in parsed.words if found.key != "state" and found.test is not None),
        frozenset(found.value for found in states if not found.is_negated),
        frozenset(found.value for found in states if found.is_negated),
    )


# How many filter texts keep their list of runs.
_MOST_KEPT = 12
SORT_ORDER = ("state", "name", "next", "last")
_SORTED_COLUMNS = {"state": "", "name": "job", "next": "next", "last": "last"}


@dataclass
class State:
    """Only the thread that draws the screen reads and changes it."""

    glyphs: Glyphs
    home: Zone
    now_ms: int

    # Data that has arrived.
    snapshot: Snapshot = EMPTY
    history: History = NO_HISTORY
    detail: JobDetail | None = None  # of the selected job
    firing: Firing | None = None  # the selected run with its attempts
    log: tuple[str, ...] = ()  # the newest lines of the selection's output
    log_of: str = ""
    lanes: tuple[Lane, ...] = ()
    lanes_left_out: int = 0  # jobs whose runs are further away than those that are drawn
    clock_days: tuple[ClockDay, ...] = ()
    unchanging_zones: tuple[str, ...] = ()  # zones in use that never change their clock
    heatmap: Heatmap | None = None
    nodes: tuple[NodeRow, ...] | None = None  # None until they have been read
    groups: tuple[GroupRow, ...] | None = None  # None until they have been read
    graph: JobGraph | None = None  # of the selected job
    pending: dict[str, str] = field(default_factory=dict)  # what was requested of a job and is not yet in a snapshot

    # What is selected.
    screen: str = "jobs"
    job: str | None = None
    run: RunKey | None = None
    run_index: int = 0  # where the selected run was last in the list
    marked: frozenset[str] = frozenset()
    node: NodeKey | None = None
    group: GroupKey | None = None
    clock_index: int = 0
    cursor: tuple[int, int] = (0, 0)  # day and hour in the heat map

    # What is shown, and how.
    filter: DashboardFilter = field(default_factory=lambda: parse_filter(""))
    times: str = "local"
    sort: str = "state"
    reverse: bool = False
    hidden: frozenset[str] = frozenset()  # columns of the Jobs table that are left out
    only_dead: bool = False
    run_job: str = ""  # the Runs screen shows this job alone
    window: Window = field(default_factory=lambda: Window(0, HOUR_MS))
    follows_now: bool = True  # the window moves with the time
    policy: int = 0  # index of the clock-change policy that is tried
    clock_zone: str = ""  # the Clock screen shows this zone alone
    clock_since_ms: int | None = None
    heatmap_is_past: bool = False
    heatmap_is_time: bool = False
    frozen_ms: int | None = None
    is_read_only: bool = False
    store_option: str = ""  # what names the store in a shell command

    # Lists that are kept until what they were made of changes; each `_of` is what that was.
    _ordered: list[Row] = field(default_factory=list)
    _ordered_of: object = None
    _rows: tuple[Row, ...] = ()
    _matched: Sequence[Row] = ()  # the same before the best matches are put first
    _rows_of: tuple[object, DashboardFilter] | None = None
    _named: dict[str, Row] = field(default_factory=dict)
    _named_of: object = None
    _runs: dict[str, list[RunItem]] = field(default_factory=dict)
    _runs_of: object = None
    _merged: list[RunItem] = field(default_factory=list)
    _merged_names: list[str] = field(default_factory=list)
    _merged_of: object = None

    @property
    def display(self) -> DisplaySettings:
        is_watched = self.snapshot.is_daemon_alive or not self.snapshot.is_known
        return DisplaySettings(self.now_ms, self.glyphs, self.home, self.times, is_watched)

    # -- jobs -------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[Row, ...]:
        """The jobs that match the filter, in order. Another filter does not sort the jobs again."""
        order_key = (id(self.snapshot), self.sort, self.reverse)
        if self._ordered_of != order_key:
            self._ordered = order(self.snapshot.rows, self.sort, reverse=self.reverse)
            self._ordered_of = order_key
        if self._rows_of is None or self._rows_of[0] != order_key or self._rows_of[1].text != self.filter.text:
            known = self._rows_of is not None and self._rows_of[0] == order_key
            base = (
                self._matched if known and self._rows_of and self.filter.narrows(self._rows_of[1]) else self._ordered
            )
            now = self.now_ms
            self._matched = tuple(row for row in base if self.filter.matches(row, now))
            self._rows = self.filter.ranked(self._matched)
            self._rows_of = (order_key, self.filter)
        return self._rows

    def jobs_table(self) -> JobsTable:
        return JobsTable(
            self.rows,
            self.display,
            self.snapshot.is_daemon_alive,
            self.marked,
            _SORTED_COLUMNS[self.sort],
            dict(self.pending),
            tuple(column for column in COLUMNS if column.name not in self.hidden),
            has_seconds(self.rows, self.now_ms),
        )

    def row(self, name: str | None) -> Row | None:
        return self._by_name.get(name or "")

    @property
    def _by_name(self) -> dict[str, Row]:
        if self._named_of is not self.snapshot:
            self._named = {row.job.id: row for row in self.snapshot.rows}
            self._named_of = self.snapshot
        return self._named

    def job_of(self, name: str) -> Job | None:
        row = self._by_name.get(name)
        return None if row is None else row.job

    # -- runs -------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> list[RunItem]:
        """The runs that match the filter. The lists of the last few texts are kept, for letters that are deleted."""
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
        """Live runs and history in one list, and a list of their jobs; kept until either of the two changes."""
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

    def is_selection_shown(self) -> bool:
        """Is what is selected in the list? Nothing may be done to a job or run that a filter hides."""
        if self.screen == "runs":
            return self.run is not None and (not self.filter.text or self.run_item() is not None)
        row = self.row(self.job)
        return row is not None and (not self.filter.text or self.filter.matches(row, self.now_ms))

    def runs_table(self) -> RunsTable:
        return RunsTable(self.runs, self.display, self.job_of)

    # -- nodes ------------------------------------------------------------------------------------------------

    def node_row(self) -> NodeRow | None:
        """The selected node, where it is still listed."""
        return next((row for row in self.nodes or () if node_key(row) == self.node), None)

    def nodes_table(self) -> NodesTable:
        return NodesTable(self.nodes or (), self.display)

    # -- groups -----------------------------------------------------------------------------------------------

    def group_row(self) -> GroupRow | None:
        """The selected group, where it is still listed."""
        return next((row for row in self.groups or () if GroupKey(row.group.name) == self.group), None)

    def groups_table(self) -> GroupsTable:
        return GroupsTable(self.groups or (), self.display)

    # -- how it is shown --------------------------------------------------------------------------------------

    def next_times(self) -> None:
        self.times = TIMES[(TIMES.index(self.times) + 1) % len(TIMES)]

    @property
    def order_words(self) -> str:
        """The order of the jobs, as the frame of the table says it."""
        return f"by {self.sort}{', reversed' if self.reverse else ''} (s)"

    @property
    def order_mark(self) -> str:
        """Behind the title of the column that the jobs are ordered by."""
        return "↑" if self.reverse else "↓"

    def next_sort(self) -> None:
        self.sort = SORT_ORDER[(SORT_ORDER.index(self.sort) + 1) % len(SORT_ORDER)]

    def set_filter(self, text: str) -> None:
        self.filter = parse_filter(text)
