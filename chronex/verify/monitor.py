"""The monitors of the formal model: fed one event after the other, they keep what they need and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chronex.verify.lags import LagSummary
from chronex.verify.occurrence_monitor import OccurrenceMonitor
from chronex.verify.run_monitor import RunMonitor
from chronex.verify.verdicts import Finding, Line, PropertyResult, stamp
from chronex.verify.world import World

Handler = Callable[[Line], None]


class Monitor:
    """S1 to S8 and L1 to L3 over one trace."""

    def __init__(self, *, is_complete: bool, since_ms: int | None = None) -> None:
        self.world = World(is_complete=is_complete, since_ms=since_ms)
        self.occurrences, self.runs = OccurrenceMonitor(self.world), RunMonitor(self.world)
        self.last: Line | None = None
        self._handlers = self._table()

    def _table(self) -> dict[str, Handler]:
        nodes, occurrences, runs = self.world.nodes, self.occurrences, self.runs
        return {
            "SchedulerStarted": nodes.started,
            "SchedulerInitializationStarted": nodes.initialization_started,
            "SchedulerReinitializationStarted": nodes.initialization_started,
            "SchedulerInitializationCompleted": nodes.initialization_completed,
            "SchedulerInitializationFailed": nodes.initialization_failed,
            "SchedulerStopRequested": nodes.stop_requested,
            "SchedulerStopped": self._stopped,
            "SchedulerCrashed": self._crashed,
            "JobNew": occurrences.job_changed,
            "JobOverridden": occurrences.job_changed,
            "JobOrphaned": occurrences.job_removed,
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
            "TaskRetryPreempted": runs.retry_preempted,
            "TaskDeadLettered": runs.given_up,
            "TaskRunSkipped": runs.given_up,
        }

    def feed(self, line: Line) -> None:
        handler = self._handlers.get(line[1].name)
        if handler is not None:
            handler(line)
        self.last = line

    def _stopped(self, line: Line) -> None:
        node = str(line[1].data.get("node", ""))
        for _, run in self.world.open_runs(node):
            self.world.dockets["S4b"].violate("the stop ended while a run was in flight", run.start, line)
        self.world.nodes.stopped(line)

    def _crashed(self, line: Line) -> None:
        node = str(line[1].data.get("node", ""))
        self.world.dockets["S5a"].checked += 1
        self.world.dockets["S5b"].checked += 1
        for occurrence, run in self.world.open_runs(node):
            self.world.dockets["L3"].checked += 1
            run.interrupted = occurrence.interrupted = line
        self.world.nodes.crashed(line)

    # -- the result --------------------------------------------------------------------------------------

    def results(self) -> list[PropertyResult]:
        waiting: dict[str, list[Finding]] = {name: [] for name in self.world.dockets}
        for name, finding in (*self.world.nodes.still_open(), *self._unanswered(), *self._not_restarted()):
            waiting[name].append(finding)
        return [docket.result(waiting[name]) for name, docket in self.world.dockets.items()]

    def _unanswered(self) -> Iterator[tuple[str, Finding]]:
        if self.last is None:
            return
        now = self.last[1].at_ms
        for name, job in self.world.jobs.items():
            since = job.due.waiting_since(now) if job.due is not None else None
            if since is not None and self.world.nodes.nobody_left() is None:
                told = job.due.last_told if job.due is not None else None
                yield "L2", Finding(f"{name} is due since {stamp(since)} and not answered yet", (told or self.last,))

    def _not_restarted(self) -> Iterator[tuple[str, Finding]]:
        for job in self.world.jobs.values():
            for occurrence in job.open.values():
                for run in occurrence.runs.values():
                    if run.interrupted is not None:
                        message = "interrupted by a crash and not started again yet"
                        evidence = tuple(line for line in (run.start, run.interrupted) if line is not None)
                        yield "L3", Finding(message, evidence)

    def lags(self) -> tuple[LagSummary, ...]:
        return self.world.start_lag.summary(), self.world.restart_lag.summary()
