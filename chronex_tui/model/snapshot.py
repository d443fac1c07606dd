"""What the reader hands to the screens: values that never change, each from one moment of the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from chronex.timing.clock_changes import ClockEffect

from chronex.model.reasons import Reason
from chronex.model.records import Attempt, Occurrence, Run
from chronex.timing.zones import ClockChange
from chronex.views.jobs import NextRun, Outcome, Row, Summary


class RunKey(NamedTuple):
    """An occurrence by its identity: selections hold this, never the number of a line."""

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

    @property
    def at_ms(self) -> int:
        """When it last did something: what lists are ordered by."""
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
class Detail:
    """One job in full."""

    row: Row
    outcomes: tuple[Outcome, ...]  # newest first
    upcoming: tuple[NextRun, ...]
    firing: Firing | None
    change: ClockChange | None
    effect: ClockEffect | None
    log: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The store at one moment. `trouble` says why there is nothing newer to show."""

    at_ms: int = 0
    rows: tuple[Row, ...] = ()
    summary: Summary | None = None
    live: tuple[RunItem, ...] = ()  # queued, running, retrying
    trouble: str = ""
    place: str = ""
    is_there: bool = True
    journal: int = 0

    @property
    def daemon_lives(self) -> bool:
        return self.summary is not None and self.summary.daemon is not None


@dataclass(frozen=True, slots=True)
class History:
    """What ended, newest first. `is_whole` is False while older pages are still being read."""

    items: tuple[RunItem, ...] = ()
    is_whole: bool = False
    dead: tuple[RunItem, ...] = ()


EMPTY = Snapshot()
NO_HISTORY = History()
