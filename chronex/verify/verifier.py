"""From the journal of a store to a report: in pages, incrementally, and with a note of what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chronex.engine.update import definition_data
from chronex.jobfile import Property
from chronex.model.event import Event
from chronex.model.job import Job
from chronex.storage import journal
from chronex.storage.ports import ReadTransaction, Store
from chronex.storage.records import Reading
from chronex.text.instants import rfc3339
from chronex.verify.monitors import ModelMonitor, RuleMonitor
from chronex.verify.record_check import RecordCheck
from chronex.verify.results import JournalLine, LatencySummary, PropertyResult, PropertyVerdict

# A page is decoded and held against its records inside a read transaction, which should not last: about 20 ms.
PAGE = 2_000


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which part of the journal was read. `gaps` counts places where events are missing or unreadable."""

    events: int
    first: JournalLine | None
    last: JournalLine | None
    is_complete: bool
    gaps: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "events": self.events,
            "first": None if self.first is None else self.first[0],
            "last": None if self.last is None else self.last[0],
            "from": None if self.first is None else rfc3339(self.first[1].at_ms),
            "from_ms": None if self.first is None else self.first[1].at_ms,
            "to": None if self.last is None else rfc3339(self.last[1].at_ms),
            "to_ms": None if self.last is None else self.last[1].at_ms,
            "complete": self.is_complete,
            "gaps": self.gaps,
        }


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The result of one verification."""

    coverage: Coverage
    properties: tuple[PropertyResult, ...]
    latencies: tuple[LatencySummary, ...]

    @property
    def verdict(self) -> PropertyVerdict:
        found = {result.verdict for result in self.properties}
        worst_first = (PropertyVerdict.VIOLATED, PropertyVerdict.OPEN)
        return next((verdict for verdict in worst_first if verdict in found), PropertyVerdict.HOLDS)

    def violated(self) -> list[PropertyResult]:
        return [result for result in self.properties if result.verdict is PropertyVerdict.VIOLATED]

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value,
            "journal": self.coverage.to_dict(),
            "properties": [result.to_dict() for result in self.properties],
            "lags": [latency.to_dict() for latency in self.latencies],
        }


class Verifier:
    """Fed the lines of one journal in order, as they come. `job` leaves out the events of all other jobs."""

    def __init__(
        self, *, job: str | None = None, since_ms: int | None = None, properties: Iterable[Property] = ()
    ) -> None:
        self._job = job
        self._since_ms = since_ms
        self._rules = [RuleMonitor(one, since_ms) for one in properties]
        self._records = RecordCheck(job=job, since_ms=since_ms)
        self._monitor: ModelMonitor | None = None
        self._known_jobs: dict[str, dict[str, Any]] = {}
        self._first: JournalLine | None = None
        self._last: JournalLine | None = None
        self._events = 0
        self._gaps = 0

    @property
    def position(self) -> int:
        """The number of the last event seen, 0 before the first."""
        return 0 if self._last is None else self._last[0]

    def add_known_jobs(self, jobs: Iterable[Job]) -> None:
        """The jobs as the store has them; used where a trimmed journal no longer has the event of a job."""
        self._known_jobs = {job.id: definition_data(job) for job in jobs}

    def feed(self, lines: Sequence[JournalLine]) -> None:
        for line in lines:
            monitor = self._monitor or self._begin(line)
            if line[0] != self.position + 1 and self._last is not None:
                self._note_gap(monitor)
            self._last = line
            self._events += 1
            event = line[1]
            if event.name == "Unreadable":
                self._note_gap(monitor)
            elif self._job is None or not event.job or event.job == self._job:
                monitor.feed(line)
                for rule in self._rules:
                    rule.feed(line)

    def compare(self, reading: Reading, lines: list[JournalLine]) -> None:
        """Hold the records against these lines of the journal, which the same snapshot has."""
        self._records.feed(reading, lines)

    def _begin(self, line: JournalLine) -> ModelMonitor:
        self._first = line
        self._monitor = ModelMonitor(is_complete=line[0] == 1, since_ms=self._since_ms)
        if line[0] != 1:
            for name, definition in self._known_jobs.items():
                self._monitor.occurrences.add_known_job(name, definition)
        return self._monitor

    def _note_gap(self, monitor: ModelMonitor) -> None:
        self._gaps += 1
        monitor.state.forget()
        for rule in self._rules:
            rule.forget()

    def report(self) -> VerificationReport:
        monitor = self._monitor or ModelMonitor(is_complete=True)
        is_complete = self._first is None or (self._first[0] == 1 and not self._gaps)
        coverage = Coverage(self._events, self._first, self._last, is_complete, self._gaps)
        own = (rule.result() for rule in self._rules)
        results = (*monitor.results(), self._records.result(), *own)
        return VerificationReport(coverage, results, monitor.latencies())


def follow(store: Store, verifier: Verifier) -> int:
    """Feed the events beyond the verifier's position; returns how many there were."""
    if verifier.position == 0:
        verifier.add_known_jobs(store.view(_unchanged_jobs))
    count = 0

    def page(tx: ReadTransaction) -> list[JournalLine]:
        lines = journal.tail(tx, verifier.position, PAGE)
        verifier.compare(Reading(tx), lines)
        return lines

    while lines := store.view(page):
        verifier.feed(lines)
        count += len(lines)
    return count


def verify_store(
    store: Store, *, job: str | None = None, since_ms: int | None = None, properties: Iterable[Property] = ()
) -> VerificationReport:
    """The report on a store's whole journal."""
    verifier = Verifier(job=job, since_ms=since_ms, properties=properties)
    follow(store, verifier)
    return verifier.report()


def verify_events(events: Iterable[Event], first: int = 1, properties: Iterable[Property] = ()) -> VerificationReport:
    """The report on a trace that is given as events."""
    verifier = Verifier(properties=properties)
    verifier.feed(list(enumerate(events, first)))
    return verifier.report()


def _unchanged_jobs(tx: ReadTransaction) -> list[Job]:
    """Jobs of version 1 are as they were registered; others may have been different when the trace began."""
    return [job for job in Reading(tx).jobs(limit=1_000_000) if job.version == 1]
