"""The state of a trace: the jobs, occurrences and runs that its events speak of, and what all monitors share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from chronex.verify.due_instants import DueInstants
from chronex.verify.node_monitor import NodeMonitor
from chronex.verify.results import TITLES, JournalLine, LatencyHistogram, PropertyCheck

# How many instants of a job are remembered with their answer, to see when one is answered twice.
MAX_ANSWERED = 2_000
UNSTARTED = frozenset({"OccurrenceSkipped", "OccurrenceMissed", "OccurrenceCanceled"})


class RunTrace:
    """One task of one occurrence. `interrupted` is the crash after which it has not been started again."""

    __slots__ = ("attempt", "end", "interrupted", "is_open", "node", "retry", "start")

    def __init__(self, start: JournalLine | None) -> None:
        self.start = start
        self.attempt = 0
        self.is_open = False
        self.end: JournalLine | None = None
        self.retry: JournalLine | None = None
        self.interrupted: JournalLine | None = None
        self.node = ""


class OccurrenceTrace:
    """A running occurrence. `interrupted` is the crash of the scheduler that ran it."""

    __slots__ = ("interrupted", "runs", "start")

    def __init__(self, start: JournalLine | None) -> None:
        self.start = start  # None: it began before the trace
        self.runs: dict[str, RunTrace] = {}
        self.interrupted: JournalLine | None = None

    def open_runs(self) -> list[RunTrace]:
        return [run for run in self.runs.values() if run.is_open]


class JobTrace:
    """A job: whether it is registered, its policies, what runs, and which event answered each due instant."""

    __slots__ = (
        "_answers",
        "definition",
        "due",
        "forbids_bursts",
        "is_known",
        "last_start",
        "open",
        "queued",
        "removed",
        "retry_ms",
    )

    def __init__(self) -> None:
        self.is_known = False  # the trace has the event that registered it
        self.removed: JournalLine | None = None
        self.definition: dict[str, Any] = {}  # the data of the event that registered or changed it
        self.forbids_bursts = False
        self.retry_ms: int | None = None
        self.due: DueInstants | None = None
        self.open: dict[int, OccurrenceTrace] = {}
        self.queued: dict[int, JournalLine] = {}
        self.last_start: JournalLine | None = None
        self._answers: OrderedDict[int, JournalLine] = OrderedDict()

    def add_answer(self, nominal_ms: int, line: JournalLine) -> None:
        self._answers[nominal_ms] = line
        self.queued.pop(nominal_ms, None)
        if len(self._answers) > MAX_ANSWERED:
            self._answers.popitem(last=False)

    def answer_to(self, nominal_ms: int) -> JournalLine | None:
        return self._answers.get(nominal_ms)

    def forget_unstarted(self) -> None:
        """An update may schedule again an instant that an earlier one canceled."""
        started = {nominal: line for nominal, line in self._answers.items() if line[1].name not in UNSTARTED}
        self._answers = OrderedDict(started)


class TraceState:
    """What the monitors of one trace share: active schedulers, jobs, the check of each property, latencies.

    `is_complete` says that the trace begins where the journal began: then what was not seen did not happen; else
    it may have happened before. What happened before `since_ms` is followed and not reported.
    """

    def __init__(self, *, is_complete: bool, since_ms: int | None = None) -> None:
        self.is_complete = is_complete
        self.since_ms = since_ms
        self.checks = {name: PropertyCheck(name, title, since_ms=since_ms) for name, title in TITLES.items()}
        self.nodes = NodeMonitor(self.checks)
        self.jobs: dict[str, JobTrace] = {}
        self.start_latency = LatencyHistogram("P1", "from due to start")
        self.restart_latency = LatencyHistogram("P2", "from initialization to restart after a crash")

    def forget(self) -> None:
        """Forget all that was in flight: events are missing, and any of them may have ended it."""
        self.is_complete = False
        self.jobs.clear()
        self.nodes.forget()

    def job(self, name: str) -> JobTrace:
        found = self.jobs.get(name)
        if found is None:
            found = self.jobs[name] = JobTrace()
        return found

    def run(self, line: JournalLine) -> RunTrace | None:
        event = line[1]
        job = self.jobs.get(event.job)
        occurrence = job.open.get(event.nominal_ms or 0) if job is not None else None
        return occurrence.runs.get(event.task) if occurrence is not None else None

    def open_runs(self, node: str) -> Iterator[tuple[OccurrenceTrace, RunTrace]]:
        """The runs that this scheduler has in flight."""
        for job in self.jobs.values():
            for occurrence in job.open.values():
                for run in occurrence.runs.values():
                    if run.is_open and run.node == node:
                        yield occurrence, run

    def is_reported(self, line: JournalLine) -> bool:
        return self.since_ms is None or line[1].at_ms >= self.since_ms
