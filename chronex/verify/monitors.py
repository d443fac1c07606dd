"""The monitors of a trace: one for the formal model, and one for each property of the user (`[[verify.property]]`).

They are fed one event after the other and keep only what they still need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chronex.jobfile import Property
from chronex.jobfile.properties import What
from chronex.model.event import Event
from chronex.text.instants import rfc3339
from chronex.verify.occurrence_monitor import OccurrenceMonitor, RunMonitor
from chronex.verify.results import (
    JournalLine,
    LatencySummary,
    PropertyCheck,
    PropertyFinding,
    PropertyResult,
)
from chronex.verify.trace_state import TraceState

Handler = Callable[[JournalLine], None]


class ModelMonitor:
    """S1 to S8 and L1 to L3 over one trace."""

    def __init__(self, *, is_complete: bool, since_ms: int | None = None) -> None:
        self.state = TraceState(is_complete=is_complete, since_ms=since_ms)
        self.occurrences = OccurrenceMonitor(self.state)
        self.runs = RunMonitor(self.state)
        self.last: JournalLine | None = None
        self._handlers = self._handler_table()

    def _handler_table(self) -> dict[str, Handler]:
        nodes = self.state.nodes
        occurrences = self.occurrences
        runs = self.runs
        return {
            "SchedulerStarted": nodes.started,
            "SchedulerInitializationStarted": nodes.initialization_started,
            "SchedulerReinitializationStarted": nodes.initialization_started,
            "SchedulerInitializationCompleted": nodes.initialization_completed,
            "SchedulerInitializationFailed": nodes.initialization_failed,
            "SchedulerStopRequested": nodes.stop_requested,
            "SchedulerStopped": self._scheduler_stopped,
            "SchedulerCrashed": self._scheduler_crashed,
            "JobNew": occurrences.job_changed,
            "JobOverridden": occurrences.job_changed,
            "JobOrphaned": occurrences.job_removed,
            "JobAnchored": occurrences.job_anchored,
            "JobPaused": occurrences.job_interrupted,
            "JobResumed": occurrences.job_interrupted,
            "OccurrenceStarted": occurrences.occurrence_started,
            "OccurrenceQueued": occurrences.occurrence_queued,
            "OccurrenceAlreadyClaimed": occurrences.occurrence_claimed,
            "OccurrenceCompleted": occurrences.occurrence_ended,
            "OccurrenceFailed": occurrences.occurrence_ended,
            "OccurrenceCanceled": occurrences.occurrence_ended,
            "OccurrenceFailedStale": occurrences.occurrence_ended,
            "OccurrenceSkipped": occurrences.occurrence_ended,
            "OccurrenceMissed": occurrences.occurrence_ended,
            "OccurrencesMissed": occurrences.occurrences_missed,
            "TaskRunStarted": runs.run_started,
            "TaskRetryStarted": runs.run_started,
            "TaskRunCompleted": runs.run_ended,
            "TaskRunFailed": runs.run_ended,
            "TaskRunAdopted": runs.run_adopted,
            "TaskRetryScheduled": runs.retry_scheduled,
            "TaskRetryMoved": runs.retry_moved,
            "TaskRetryPreempted": runs.retry_preempted,
            "TaskDeadLettered": runs.run_given_up,
            "TaskRunSkipped": runs.run_given_up,
        }

    def feed(self, line: JournalLine) -> None:
        handler = self._handlers.get(line[1].name)
        if handler is not None:
            handler(line)
        self.last = line

    def _scheduler_stopped(self, line: JournalLine) -> None:
        node = str(line[1].data.get("node", ""))
        # Commands that were left running, by their count: their keeper has them, and a successor adopts them.
        for _, run in list(self.state.open_runs(node))[int(line[1].data.get("left", 0)) :]:
            self.state.checks["S4b"].violate("the stop ended while a run was in flight", run.start, line)
        self.state.nodes.stopped(line)

    def _scheduler_crashed(self, line: JournalLine) -> None:
        node = str(line[1].data.get("node", ""))
        self.state.checks["S5a"].checked += 1
        self.state.checks["S5b"].checked += 1
        for occurrence, run in self.state.open_runs(node):
            self.state.checks["L3"].checked += 1
            run.interrupted = occurrence.interrupted = line
        self.state.nodes.crashed(line)

    # -- the result --------------------------------------------------------------------------------------

    def results(self) -> list[PropertyResult]:
        waiting: dict[str, list[PropertyFinding]] = {name: [] for name in self.state.checks}
        for name, finding in (*self.state.nodes.still_open(), *self._unanswered(), *self._not_restarted()):
            waiting[name].append(finding)
        return [check.result(waiting[name]) for name, check in self.state.checks.items()]

    def _unanswered(self) -> Iterator[tuple[str, PropertyFinding]]:
        if self.last is None:
            return
        now = self.last[1].at_ms
        for name, job in self.state.jobs.items():
            since = job.due.waiting_since(now) if job.due is not None else None
            if since is not None and self.state.nodes.last_departure() is None:
                last = job.due.last_answer if job.due is not None else None
                message = f"{name} is due since {rfc3339(since)} and not answered yet"
                yield "L2", PropertyFinding(message, (last or self.last,))

    def _not_restarted(self) -> Iterator[tuple[str, PropertyFinding]]:
        for job in self.state.jobs.values():
            for occurrence in job.open.values():
                for run in occurrence.runs.values():
                    if run.interrupted is not None:
                        message = "interrupted by a crash and not started again yet"
                        evidence = tuple(line for line in (run.start, run.interrupted) if line is not None)
                        yield "L3", PropertyFinding(message, evidence)

    def latencies(self) -> tuple[LatencySummary, ...]:
        return self.state.start_latency.summary(), self.state.restart_latency.summary()


class RuleMonitor:
    """One property of the user. For each job it keeps the last (`never`) or the first (`expect`) event after `after`.

    One is enough: what is forbidden after several of them is forbidden longest after the last, and what answers the
    first of them in time answers those after it.
    """

    def __init__(self, own: Property, since_ms: int | None = None) -> None:
        self._rule = own.rule
        self._check = PropertyCheck(own.name, own.text, since_ms=since_ms)
        self._begun: dict[str, JournalLine] = {}

    def feed(self, line: JournalLine) -> None:
        if self._rule.must_come:
            self._expect(line)
        elif self._rule.after:
            self._forbid_after(line)
        elif self._is(self._rule.what, line[1]):
            self._check.checked += 1
            self._check.violate("this must never happen", line)

    def forget(self) -> None:
        self._begun.clear()

    def result(self) -> PropertyResult:
        awaited = self._begun.values() if self._rule.must_come else ()
        return self._check.result([self._waiting(line) for line in awaited])

    # -- never … after … until … within … -------------------------------------------------------------------

    def _forbid_after(self, line: JournalLine) -> None:
        event = line[1]
        for key, begun in list(self._begun.items()):
            if self._is(self._rule.until, event, key) or self._is_too_late(begun, event):
                del self._begun[key]
            elif self._is(self._rule.what, event, key):
                self._check.violate("this must not happen after that", begun, line)
        if self._is(self._rule.after, event):
            self._check.checked += 1
            self._begun[self._key(event)] = line

    # -- expect … after … within … unless … -----------------------------------------------------------------

    def _expect(self, line: JournalLine) -> None:
        event = line[1]
        for key, begun in list(self._begun.items()):
            if self._is_too_late(begun, event):
                message = f"{self._deadline(begun)} has passed, and what must follow has not come"
                self._check.violate(message, begun, line)
                del self._begun[key]
            elif self._is(self._rule.what, event, key) or self._is(self._rule.until, event, key):
                del self._begun[key]
        if self._is(self._rule.after, event):
            self._check.checked += 1
            self._begun.setdefault(self._key(event), line)

    def _waiting(self, begun: JournalLine) -> PropertyFinding:
        return PropertyFinding(f"what must follow is awaited until {self._deadline(begun)}", (begun,))

    # -- both ------------------------------------------------------------------------------------------------

    def _deadline(self, begun: JournalLine) -> str:
        return rfc3339(begun[1].at_ms + (self._rule.within_ms or 0))

    def _is_too_late(self, begun: JournalLine, event: Event) -> bool:
        return self._rule.within_ms is not None and event.at_ms > begun[1].at_ms + self._rule.within_ms

    def _key(self, event: Event) -> str:
        return event.job if self._rule.is_per_job else ""

    @staticmethod
    def _is(patterns: What, event: Event, job: str = "") -> bool:
        return any(pattern.matches(event, job) for pattern in patterns)
