"""What the screens show, as values that never change, and how they are read from the store.

Reads are short, and only jobs that changed since the last read are read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from chronex.engine.usual import Usual, usual_of
from chronex.errors import ChronexError
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.reasons import Reason, of_task
from chronex.model.records import HOOKS
from chronex.model.states import OccurrenceState, is_final
from chronex.storage import journal, keys
from chronex.storage.records import Reading, key_of
from chronex.timing.clock_changes import ClockEffect, effect_of
from chronex.timing.job_schedule import timing_of
from chronex.timing.zones import ClockChange
from chronex.views.coming_runs import next_instant
from chronex.views.jobs import (
    IsAlive,
    NextRun,
    Outcome,
    Row,
    Summary,
    outcome_of,
    row_of,
    rows_of,
    summary_of,
    upcoming_runs,
)
from chronex.views.troubles import Trouble, store_troubles, worst_first


class RunKey(NamedTuple):
    """The identity of an occurrence. A selection holds this, never the number of a line."""

    job: str
    nominal_ms: int


class RunItem(NamedTuple):
    """One occurrence in one line, light enough to hold a hundred thousand."""

    key: RunKey
    state: str
    reason: Reason
    due_ms: int
    started_ms: int | None
    finished_ms: int | None
    recovery: bool
    manual: bool
    is_dead: bool = False
    errors: int = 0

    @property
    def at_ms(self) -> int:
        """When it last changed; lists are ordered by this."""
        return self.finished_ms or self.started_ms or self.due_ms


@dataclass(frozen=True, slots=True)
class Firing:
    """An occurrence with its runs and their attempts."""

    occurrence: Occurrence
    runs: tuple[Run, ...]
    attempts: tuple[Attempt, ...]

    @property
    def key(self) -> RunKey:
        return RunKey(self.occurrence.job, self.occurrence.nominal_ms)

    def attempts_of(self, task: str) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.task == task]

    @property
    def newest_log(self) -> Attempt | None:
        """The attempt whose output is worth showing: the one that started last."""
        started = [a for a in self.attempts if a.log_path or a.started_ms is not None]
        return max(started, key=lambda a: (a.started_ms or a.created_ms, a.number), default=None)


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job in full."""

    row: Row
    outcomes: tuple[Outcome, ...]  # newest first
    upcoming: tuple[NextRun, ...]
    firing: Firing | None
    change: ClockChange | None
    effect: ClockEffect | None
    log: tuple[str, ...] = ()
    would_run_ms: int | None = None  # of a paused job: the next instant of its schedule
    usual: Usual | None = None  # what its runs take


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The store at one moment. `problem` says why nothing newer can be shown; `is_refused` that there is a store, and
    that it cannot be opened."""

    at_ms: int = 0
    rows: tuple[Row, ...] = ()
    summary: Summary | None = None
    live: tuple[RunItem, ...] = ()  # queued, running, retrying
    problem: str = ""
    store_path: str = ""
    is_there: bool = True
    is_refused: bool = False
    journal: int = 0
    troubles: tuple[Trouble, ...] = ()  # of the store and its schedulers, the worst first
    notices: int = 0  # that wait to be sent, or for another try

    @property
    def is_known(self) -> bool:
        """The store was read, or could not be; False only for the first moment of a session."""
        return bool(self.at_ms or self.problem)

    @property
    def is_daemon_alive(self) -> bool:
        return self.summary is not None and self.summary.daemon is not None


@dataclass(frozen=True, slots=True)
class History:
    """What ended, newest first. `is_whole` is False while older pages are still being read."""

    items: tuple[RunItem, ...] = ()
    is_whole: bool = False
    dead: tuple[RunItem, ...] = ()


EMPTY = Snapshot()
NO_HISTORY = History()


PAGE = 500
JOBS_PAGE = 1000  # a transaction that stays below 50 ms
MOST_LIVE = 2000
MOST_NOTICES = 1000
MOST_RUNS = 100_000
_MOST_EVENTS = 2000
_OUTCOMES = 40
_UPCOMING = 5


@dataclass
class BoardReader:
    """Keeps the rows of all jobs and reads again those that the journal names."""

    is_alive: IsAlive
    store_path: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    seen: int = -1
    active: set[str] = field(default_factory=set)
    _fresh: dict[str, Row] = field(default_factory=dict)

    def needs_full_read(self, reading: Reading) -> bool:
        """Does the journal no longer name all jobs that have changed? Then all jobs are read again, page by page."""
        head = journal.head(reading.tx)
        return not 0 <= self.seen <= head <= self.seen + _MOST_EVENTS

    def begin_full_read(self, reading: Reading) -> None:
        """Remember where the journal ends: it names what changes while the pages are read."""
        self.seen = journal.head(reading.tx)
        self._fresh = {}

    def read_page(self, reading: Reading, after: str | None, now_ms: int) -> str | None:
        """The rows of the next jobs by name; the last name, or None when there are no more."""
        jobs = reading.jobs(after, JOBS_PAGE)
        self._fresh |= {row.job.id: row for row in rows_of(reading, now_ms, jobs)}
        if len(jobs) == JOBS_PAGE:
            return jobs[-1].id
        self.rows = self._fresh
        return None

    def read(self, reading: Reading, now_ms: int) -> Snapshot:
        """The snapshot of this moment: rows are kept, and read again where a job has changed or is active."""
        head = journal.head(reading.tx)
        names = {event.job for _, event in journal.tail(reading.tx, self.seen, _MOST_EVENTS) if event.job}
        live = live_items(reading)
        active = {item.key.job for item in live}
        self._refresh(reading, names | active | self.active, now_ms)
        self.seen, self.active = head, active
        rows = tuple(self.rows.values())
        summary = summary_of(reading, rows, self.is_alive, now_ms)
        found = worst_first(store_troubles(reading, now_ms, self.is_alive, has_jobs=bool(rows)))
        return Snapshot(
            now_ms,
            rows,
            summary,
            tuple(live),
            store_path=self.store_path,
            journal=head,
            notices=notices(reading),
            troubles=tuple(found),
        )

    def invalidate(self) -> None:
        """Read all jobs again the next time."""
        self.seen = -1

    def _refresh(self, reading: Reading, names: Iterable[str], now_ms: int) -> None:
        found = {name: reading.job(name) for name in names}
        fresh = rows_of(reading, now_ms, [job for job in found.values() if job is not None])
        is_new = any(row.job.id not in self.rows for row in fresh)
        self.rows |= {row.job.id: row for row in fresh}
        for name, job in found.items():
            if job is None:
                self.rows.pop(name, None)
        if is_new:
            self.rows = dict(sorted(self.rows.items()))


def notices(reading: Reading) -> int:
    """How many notices wait; the calls of hooks are not counted."""
    found = islice(reading.tx.scan(keys.NOTICE), MOST_NOTICES)
    return sum(keys.notice_kind(key) not in HOOKS for key, _ in found)


def live_items(reading: Reading) -> list[RunItem]:
    """Everything that is not over: running, waiting for a retry, queued."""
    busy = {(run.job, run.nominal_ms) for run in reading.active_runs(limit=MOST_LIVE)}
    running = [
        item_of(occurrence, "" if (occurrence.job, occurrence.nominal_ms) in busy else "retrying")
        for occurrence in reading.active(limit=MOST_LIVE)
    ]
    running.sort(key=lambda item: -(item.started_ms or 0))
    return running + [item_of(occurrence) for occurrence in reading.waiting(limit=MOST_LIVE)]


def item_of(occurrence: Occurrence, state: str = "") -> RunItem:
    return RunItem(
        key=RunKey(occurrence.job, occurrence.nominal_ms),
        state=state or occurrence.state.value,
        reason=occurrence.reason,
        due_ms=occurrence.due_ms,
        started_ms=occurrence.started_ms,
        finished_ms=occurrence.finished_ms,
        recovery=occurrence.recovery,
        manual=occurrence.manual,
        errors=occurrence.errors,
    )


@dataclass
class HistoryReader:
    """What ended, newest first. New ends are put on top; older pages are read below, one at a time."""

    items: list[RunItem] = field(default_factory=list)
    is_whole: bool = False
    dead: tuple[RunItem, ...] = ()

    def read_new(self, reading: Reading) -> History:
        """The ends since the last read. After a long pause the list begins again."""
        newest = self.items[0] if self.items else None
        for limit in (64, PAGE, 10 * PAGE):
            found = [item_of(occurrence) for occurrence in reading.finished(limit=limit)]
            known = next((number for number, item in enumerate(found) if newest and item == newest), None)
            if known is not None:
                self.items[:0] = found[:known]
                break
            if newest is None or len(found) < limit:
                self.items, self.is_whole = found, len(found) < limit
                break
        else:
            self.items, self.is_whole = found, False
        del self.items[MOST_RUNS:]
        self.dead = tuple(_dead(reading))
        return self.history()

    def read_older(self, reading: Reading, pages: int = 4) -> History:
        """One more page below; `is_whole` is true when there are no more."""
        if self.is_whole or not self.items:
            return self.history()
        found = reading.finished(limit=PAGE * pages, after=_index_key(self.items[-1]))
        self.items += [item_of(occurrence) for occurrence in found]
        self.is_whole = len(found) < PAGE * pages or len(self.items) >= MOST_RUNS
        del self.items[MOST_RUNS:]
        return self.history()

    def history(self) -> History:
        return History(tuple(self.items), self.is_whole, self.dead)


def _index_key(item: RunItem) -> bytes:
    occurrence = Occurrence(job=item.key.job, nominal_ms=item.key.nominal_ms, due_ms=0)
    return keys.timed(keys.FINISHED, item.finished_ms or 0, key_of(occurrence))


def _dead(reading: Reading) -> list[RunItem]:
    found: dict[RunKey, RunItem] = {}
    for run in reading.dead_letters():
        key = RunKey(run.job, run.nominal_ms)
        if key not in found:
            found[key] = RunItem(key, "failed", of_task(run.task, run.reason), run.nominal_ms, run.started_ms,
                                 run.finished_ms, recovery=False, manual=False, is_dead=True)  # fmt: skip
    return sorted(found.values(), key=lambda item: -item.at_ms)


def firing_of(reading: Reading, key: RunKey) -> Firing | None:
    occurrence = reading.occurrence(*key)
    if occurrence is None:
        return None
    return Firing(occurrence, tuple(reading.runs(*key)), tuple(reading.attempts(*key)))


def detail_of(reading: Reading, name: str, now_ms: int) -> JobDetail | None:
    """Everything about one job that its panel shows."""
    job = reading.job(name)
    if job is None:
        return None
    row = row_of(reading, job, now_ms)
    recent = reading.occurrences(name, limit=_OUTCOMES + 10)
    ended = tuple(outcome_of(occurrence) for occurrence in recent if is_final(occurrence.state))[:_OUTCOMES]
    timing = timing_of(job)
    change = None if timing is None else timing.zone.next_change(now_ms // 1000)
    return JobDetail(
        row=row,
        outcomes=ended,
        upcoming=_upcoming(reading, row, now_ms),
        firing=_current(reading, recent),
        change=change,
        effect=None if change is None or timing is None else effect_of(timing, change),
        would_run_ms=next_instant(job, now_ms) if row.is_paused else None,
        usual=usual_of(reading, name),
    )


def _upcoming(reading: Reading, row: Row, now_ms: int) -> tuple[NextRun, ...]:
    try:
        return tuple(upcoming_runs(reading, row.job, now_ms, _UPCOMING))
    except ChronexError:  # a schedule that is defined in another program
        return () if row.next is None else (row.next,)


def _current(reading: Reading, recent: list[Occurrence]) -> Firing | None:
    """The occurrence that runs, else the newest that ever started."""
    chosen = next((o for o in recent if o.state is OccurrenceState.RUNNING), None)
    chosen = chosen or next((o for o in recent if o.started_ms is not None), None)
    return None if chosen is None else firing_of(reading, RunKey(chosen.job, chosen.nominal_ms))
