"""The state of a trace: the schedulers, jobs, occurrences and runs of its events, shared by all monitors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from chronex.verify.due_instants import DueInstants
from chronex.verify.results import TITLES, JournalLine, LatencyHistogram, PropertyCheck, PropertyFinding

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

    __slots__ = ("interrupted", "retry_ms", "runs", "start")

    def __init__(self, start: JournalLine | None, retry_ms: int | None = None) -> None:
        self.start = start  # None: it began before the trace
        self.retry_ms = retry_ms  # the retry delay of the version that it began with, where that is known
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
        "paused",
        "queued",
        "removed",
        "retry_ms",
    )

    def __init__(self) -> None:
        self.is_known = False  # the trace has the event that registered it
        self.removed: JournalLine | None = None
        self.paused: JournalLine | None = None
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

    def occurrence(self, line: JournalLine) -> OccurrenceTrace | None:
        job = self.jobs.get(line[1].job)
        return job.open.get(line[1].nominal_ms or 0) if job is not None else None

    def run(self, line: JournalLine) -> RunTrace | None:
        event = line[1]
        occurrence = self.occurrence(line)
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


class NodeState:
    """One scheduler. Each field is the event that began this state, or None while it is not in it."""

    __slots__ = ("active", "ended", "initializing", "stopping")

    def __init__(self) -> None:
        self.initializing: JournalLine | None = None
        self.active: JournalLine | None = None
        self.stopping: JournalLine | None = None
        self.ended: JournalLine | None = None

    @property
    def has_crashed(self) -> bool:
        return self.ended is not None and self.ended[1].name == "SchedulerCrashed"


class NodeMonitor:
    """The states of all schedulers of a store, by the name of the node."""

    def __init__(self, checks: Mapping[str, PropertyCheck]) -> None:
        self._checks = checks
        self.states: dict[str, NodeState] = {}
        self.active_since_ms: int | None = None

    def forget(self) -> None:
        self.states.clear()

    def _state_of(self, line: JournalLine) -> NodeState:
        return self.states.setdefault(str(line[1].data.get("node", "")), NodeState())

    # -- events ------------------------------------------------------------------------------------------

    def initialization_started(self, line: JournalLine) -> None:
        state = self._state_of(line)
        self._check_none_open(state, line)
        self._checks["S8"].checked += 1
        state.initializing = line

    def initialization_completed(self, line: JournalLine) -> None:
        """IE: active from here on."""
        state = self._state_of(line)
        state.initializing = state.stopping = state.ended = None
        state.active = line
        self.active_since_ms = line[1].at_ms

    def initialization_failed(self, line: JournalLine) -> None:
        """The initialization has ended, and the scheduler is inactive as before its first one."""
        state = self._state_of(line)
        state.initializing = state.active = None

    def started(self, line: JournalLine) -> None:
        """A daemon's start is IS and IE at once, unless it is a part of a longer initialization."""
        state = self._state_of(line)
        if state.initializing is None:
            self.initialization_started(line)
            self.initialization_completed(line)

    def stop_requested(self, line: JournalLine) -> None:
        state = self._state_of(line)
        self._checks["S7"].checked += 1
        self._checks["L1"].checked += 1
        state.active = None
        state.stopping = state.stopping or line

    def stopped(self, line: JournalLine) -> None:
        state = self._state_of(line)
        self._checks["S4a"].checked += 1
        self._checks["S4b"].checked += 1
        if state.initializing is not None:
            message = "a stop ended while an initialization had not"
            self._checks["S8"].violate(message, state.initializing, line)
        state.active = state.stopping = state.initializing = None
        state.ended = line

    def crashed(self, line: JournalLine) -> None:
        state = self._state_of(line)
        state.active = state.initializing = state.stopping = None
        state.ended = line

    def _check_none_open(self, state: NodeState, line: JournalLine) -> None:
        """S7, S8, L1: what has begun again before its end can never end any more."""
        if state.initializing is not None:
            self._checks["S8"].violate("an initialization began inside another", state.initializing, line)
        if state.stopping is not None:
            message = "an initialization began before the stop had ended"
            for name in ("S7", "L1"):
                self._checks[name].violate(message, state.stopping, line)
            state.stopping = None

    # -- queries -----------------------------------------------------------------------------------------

    def last_departure(self) -> JournalLine | None:
        """The last stop or crash, when every scheduler that was seen has ended; None while one may be active."""
        last: JournalLine | None = None
        for state in self.states.values():
            if state.ended is None:
                return None
            last = state.ended if last is None or state.ended[0] > last[0] else last
        return last

    def still_open(self) -> Iterator[tuple[str, PropertyFinding]]:
        for name, state in self.states.items():
            label = name or "the scheduler"
            if state.initializing is not None:
                yield "S8", PropertyFinding(f"{label} has not finished its initialization", (state.initializing,))
            if state.stopping is not None:
                for property_name in ("S7", "L1"):
                    yield property_name, PropertyFinding(f"{label} has not finished stopping", (state.stopping,))
