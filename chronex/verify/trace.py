"""From the journal of a store to a verdict: in pages, incrementally, and honest about what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chronex.engine.update import told_of
from chronex.jobfile import Property
from chronex.model.records import Event, Job
from chronex.storage import journal
from chronex.storage.ports import ReadTransaction, Store
from chronex.storage.records import Reading
from chronex.verify.lags import LagSummary
from chronex.verify.monitor import Monitor
from chronex.verify.rule_monitor import RuleMonitor
from chronex.verify.verdicts import Line, PropertyResult, Verdict, stamp

# A page is decoded inside a read transaction, which should not last: this many take about 20 ms.
PAGE = 5_000


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which part of the journal was looked at. `gaps` counts places where events are missing or unreadable."""

    events: int
    first: Line | None
    last: Line | None
    is_complete: bool
    gaps: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "events": self.events,
            "first": None if self.first is None else self.first[0],
            "last": None if self.last is None else self.last[0],
            "from": None if self.first is None else stamp(self.first[1].at_ms),
            "from_ms": None if self.first is None else self.first[1].at_ms,
            "to": None if self.last is None else stamp(self.last[1].at_ms),
            "to_ms": None if self.last is None else self.last[1].at_ms,
            "complete": self.is_complete,
            "gaps": self.gaps,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one verification says."""

    coverage: Coverage
    properties: tuple[PropertyResult, ...]
    lags: tuple[LagSummary, ...]

    @property
    def verdict(self) -> Verdict:
        found = {result.verdict for result in self.properties}
        return next((v for v in (Verdict.VIOLATED, Verdict.OPEN) if v in found), Verdict.HOLDS)

    def violated(self) -> list[PropertyResult]:
        return [result for result in self.properties if result.verdict is Verdict.VIOLATED]

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value,
            "journal": self.coverage.to_dict(),
            "properties": [result.to_dict() for result in self.properties],
            "lags": [lag.to_dict() for lag in self.lags],
        }


class Verifier:
    """Fed the lines of one journal in order, as they come. `job` leaves out the events of all other jobs."""

    def __init__(
        self, *, job: str | None = None, since_ms: int | None = None, properties: Iterable[Property] = ()
    ) -> None:
        self._job, self._since_ms = job, since_ms
        self._own = [RuleMonitor(own, since_ms) for own in properties]
        self._monitor: Monitor | None = None
        self._known: dict[str, dict[str, Any]] = {}
        self._first: Line | None = None
        self._last: Line | None = None
        self._events = self._gaps = 0

    @property
    def position(self) -> int:
        """The number of the last event seen, 0 before the first."""
        return 0 if self._last is None else self._last[0]

    def know_jobs(self, jobs: Iterable[Job]) -> None:
        """What the store says of jobs; used for those whose own event lies before a journal that was trimmed."""
        self._known = {job.id: told_of(job) for job in jobs}

    def feed(self, lines: Sequence[Line]) -> None:
        for line in lines:
            monitor = self._monitor or self._begin(line)
            if line[0] != self.position + 1 and self._last is not None:
                self._miss(monitor)
            self._last = line
            self._events += 1
            event = line[1]
            if event.name == "Unreadable":
                self._miss(monitor)
            elif self._job is None or not event.job or event.job == self._job:
                monitor.feed(line)
                for own in self._own:
                    own.feed(line)

    def _begin(self, line: Line) -> Monitor:
        self._first = line
        self._monitor = Monitor(is_complete=line[0] == 1, since_ms=self._since_ms)
        if line[0] != 1:
            for name, told in self._known.items():
                self._monitor.occurrences.know_job(name, told)
        return self._monitor

    def _miss(self, monitor: Monitor) -> None:
        self._gaps += 1
        monitor.world.forget()
        for own in self._own:
            own.forget()

    def report(self) -> Report:
        monitor = self._monitor or Monitor(is_complete=True)
        is_complete = self._first is None or (self._first[0] == 1 and not self._gaps)
        coverage = Coverage(self._events, self._first, self._last, is_complete, self._gaps)
        results = (*monitor.results(), *(own.result() for own in self._own))
        return Report(coverage, results, monitor.lags())


def follow(store: Store, verifier: Verifier) -> int:
    """Feed what the journal has beyond the verifier's position; how many events that were."""
    if verifier.position == 0:
        verifier.know_jobs(store.view(_unchanged_jobs))
    count = 0
    while lines := store.view(lambda tx: journal.tail(tx, verifier.position, PAGE)):
        verifier.feed(lines)
        count += len(lines)
    return count


def verify_store(
    store: Store, *, job: str | None = None, since_ms: int | None = None, properties: Iterable[Property] = ()
) -> Report:
    """The verdict on a store's whole journal."""
    verifier = Verifier(job=job, since_ms=since_ms, properties=properties)
    follow(store, verifier)
    return verifier.report()


def verify_events(events: Iterable[Event], first: int = 1, properties: Iterable[Property] = ()) -> Report:
    """The verdict on a trace given as events."""
    verifier = Verifier(properties=properties)
    verifier.feed(list(enumerate(events, first)))
    return verifier.report()


def _unchanged_jobs(tx: ReadTransaction) -> list[Job]:
    """Jobs of version 1 are as they were when they came; others may have been different when the trace began."""
    return [job for job in Reading(tx).jobs(limit=1_000_000) if job.version == 1]
