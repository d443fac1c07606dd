"""From the store to values: short reads, and only of what has changed since the last one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from chronex.timing.clock_changes import effect_of

from chronex.errors import ChronexError
from chronex.model.reasons import of_task
from chronex.model.records import Occurrence
from chronex.model.states import OccurrenceState, is_final
from chronex.storage import journal, keys
from chronex.storage.records import Reading, key_of
from chronex.timing.job_schedule import timing_of
from chronex.views.jobs import IsAlive, NextRun, Row, outcome_of, rows_of, summary_of, upcoming_runs
from chronex_tui.model.snapshot import Detail, Firing, History, RunItem, RunKey, Snapshot

PAGE = 500
JOBS_PAGE = 1000  # a transaction that stays below 50 ms
MOST_LIVE = 2000
MOST_RUNS = 100_000
_MOST_EVENTS = 2000
_OUTCOMES = 40
_UPCOMING = 5


@dataclass
class BoardReader:
    """Keeps the rows of all jobs and reads again those that the journal names."""

    is_alive: IsAlive
    place: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    seen: int = -1
    active: set[str] = field(default_factory=set)
    _fresh: dict[str, Row] = field(default_factory=dict)

    def is_lost(self, reading: Reading) -> bool:
        """Does the journal no longer tell what has changed? Then everything is read again, page by page."""
        head = journal.head(reading.tx)
        return not 0 <= self.seen <= head <= self.seen + _MOST_EVENTS

    def begin(self, reading: Reading) -> None:
        """What changes from here on is told by the journal."""
        self.seen, self._fresh = journal.head(reading.tx), {}

    def read_page(self, reading: Reading, after: str | None, now_ms: int) -> str | None:
        """The rows of the next jobs by name; the last name, or None when there are no more."""
        jobs = reading.jobs(after, JOBS_PAGE)
        self._fresh |= {row.job.id: row for row in rows_of(reading, now_ms, jobs)}
        if len(jobs) == JOBS_PAGE:
            return jobs[-1].id
        self.rows = self._fresh
        return None

    def read(self, reading: Reading, now_ms: int) -> Snapshot:
        """The snapshot of this moment, from the rows that stand and the jobs that have changed since."""
        head = journal.head(reading.tx)
        names = {event.job for _, event in journal.tail(reading.tx, self.seen, _MOST_EVENTS) if event.job}
        live = live_items(reading)
        active = {item.key.job for item in live}
        self._refresh(reading, names | active | self.active, now_ms)
        self.seen, self.active = head, active
        rows = tuple(self.rows.values())
        summary = summary_of(reading, rows, self.is_alive)
        return Snapshot(now_ms, rows, summary, tuple(live), place=self.place, journal=head)

    def forget(self) -> None:
        """Read everything again the next time."""
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


def live_items(reading: Reading) -> list[RunItem]:
    """Everything that is not over: running, waiting for a retry, queued."""
    busy = {(run.job, run.nominal_ms) for run in reading.active_runs(limit=MOST_LIVE)}
    running = [
        item_of(occurrence, "" if (occurrence.job, occurrence.nominal_ms) in busy else "retrying")
        for occurrence in reading.active(limit=MOST_LIVE)
    ]
    running.sort(key=lambda item: -(item.started_ms or 0))
    return running + [item_of(occurrence) for occurrence in reading.queued(limit=MOST_LIVE)]


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
    )


@dataclass
class HistoryReader:
    """What ended, newest first; new ends go on top, older pages are read below, one at a time."""

    items: list[RunItem] = field(default_factory=list)
    is_whole: bool = False
    dead: tuple[RunItem, ...] = ()

    def read_new(self, reading: Reading) -> History:
        """The ends since the last look. After a long absence the list begins again."""
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
        """One more page below; True in `is_whole` when there is no more."""
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
    stands_for = Occurrence(job=item.key.job, nominal_ms=item.key.nominal_ms, due_ms=0)
    return keys.timed(keys.FINISHED, item.finished_ms or 0, key_of(stands_for))


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


def detail_of(reading: Reading, name: str, now_ms: int) -> Detail | None:
    """Everything about one job that its panel shows."""
    job = reading.job(name)
    if job is None:
        return None
    (row,) = rows_of(reading, now_ms, [job])
    recent = reading.occurrences(name, limit=_OUTCOMES + 10)
    ended = tuple(outcome_of(occurrence) for occurrence in recent if is_final(occurrence.state))[:_OUTCOMES]
    timing = timing_of(job)
    change = None if timing is None else timing.zone.next_change(now_ms // 1000)
    return Detail(
        row=row,
        outcomes=ended,
        upcoming=_upcoming(reading, row, now_ms),
        firing=_current(reading, recent),
        change=change,
        effect=None if change is None or timing is None else effect_of(timing, change),
    )


def _upcoming(reading: Reading, row: Row, now_ms: int) -> tuple[NextRun, ...]:
    try:
        return tuple(upcoming_runs(reading, row.job, now_ms, _UPCOMING))
    except ChronexError:  # a schedule of a program's own, which is not this one
        return () if row.next is None else (row.next,)


def _current(reading: Reading, recent: list[Occurrence]) -> Firing | None:
    """The occurrence that runs, else the newest that ever started."""
    chosen = next((o for o in recent if o.state is OccurrenceState.RUNNING), None)
    chosen = chosen or next((o for o in recent if o.started_ms is not None), None)
    return None if chosen is None else firing_of(reading, RunKey(chosen.job, chosen.nominal_ms))
