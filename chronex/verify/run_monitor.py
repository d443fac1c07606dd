"""The monitor of runs and their attempts: S1 to S5 for what a scheduler starts."""

from __future__ import annotations

from chronex.verify.results import JournalLine
from chronex.verify.trace_state import JobTrace, OccurrenceTrace, RunTrace, TraceState

# How an interrupted run may end although its end was not observed: it died, or was to be canceled anyway.
_ENDS_OF_INTERRUPTED = ("crashed", "canceled")


class RunMonitor:
    """RS_x, REs_x and REf_x, and the retries between them."""

    def __init__(self, state: TraceState) -> None:
        self.state = state

    def run_started(self, line: JournalLine) -> None:
        _, event = line
        job = self.state.job(event.job)
        self.state.checks["S3"].checked += 1
        self._check_active(line)
        occurrence = self._occurrence_of(job, line)
        run = occurrence.runs.get(event.task)
        if run is None:
            run = occurrence.runs[event.task] = RunTrace(line)
        else:
            self._check_restart(run, line)
        run.start = line
        run.attempt = event.attempt or 1
        run.is_open = True
        run.node = str(event.data.get("node", ""))
        run.end = run.retry = run.interrupted = occurrence.interrupted = None

    def _occurrence_of(self, job: JobTrace, line: JournalLine) -> OccurrenceTrace:
        nominal = line[1].nominal_ms or 0
        found = job.open.get(nominal)
        if found is not None:
            return found
        ended = job.answer_to(nominal)
        if ended is not None or self.state.is_complete:
            self.state.checks["S3"].violate("a run started whose occurrence is not in flight", ended, line)
        found = job.open[nominal] = OccurrenceTrace(None)
        return found

    def _check_active(self, line: JournalLine) -> None:
        event = line[1]
        name = str(event.data.get("node", ""))
        node = self.state.nodes.states.get(name)
        if node is None:
            if self.state.is_complete and name:
                self.state.checks["S3"].violate("started by a scheduler that was never initialized", line)
        elif node.ended is not None:
            name, what = ("S5a", "had crashed") if node.has_crashed else ("S4a", "had stopped")
            self.state.checks[name].violate(f"started by a scheduler that {what}", node.ended, line)
        elif node.active is None:
            why = "was stopping" if node.stopping else "was still being initialized" if node.initializing else ""
            message = f"started by a scheduler that {why or 'had failed to initialize'}"
            self.state.checks["S3"].violate(message, node.stopping or node.initializing, line)

    def _check_restart(self, run: RunTrace, line: JournalLine) -> None:
        event = line[1]
        self.state.checks["S1"].checked += 1
        if run.is_open and run.interrupted is None:
            self.state.checks["S1"].violate("a run started while it was in flight", run.start, line)
        elif (event.attempt or 1) <= run.attempt:
            self.state.checks["S1"].violate("an attempt was started twice", run.start, line)
        if run.retry is not None and event.at_ms < run.retry[1].data.get("at_ms", event.at_ms):
            self.state.checks["S3"].violate("tried again before its retry delay had passed", run.retry, line)
        if run.interrupted is not None:
            self._measure_restart(run.interrupted, line)

    def _measure_restart(self, crash: JournalLine, line: JournalLine) -> None:
        since = max(crash[1].at_ms, self.state.nodes.active_since_ms or crash[1].at_ms)
        if self.state.is_reported(line):
            self.state.restart_latency.add(line[1].at_ms - since, line)

    def run_ended(self, line: JournalLine) -> None:
        event = line[1]
        self.state.checks["S2"].checked += 1
        run = self.state.run(line)
        self._check_scheduler_present(line)
        if run is None or not run.is_open or event.attempt != run.attempt:
            self._end_without_start(run, line)
            return
        if run.interrupted is not None and event.data.get("state") not in _ENDS_OF_INTERRUPTED:
            message = "an end was told for a run that a crash had interrupted"
            self.state.checks["S5b"].violate(message, run.start, run.interrupted, line)
        run.is_open = False
        run.end = line

    def _end_without_start(self, run: RunTrace | None, line: JournalLine) -> None:
        """S2: a start may lie before the beginning of a trimmed trace, but only one for each end."""
        event = line[1]
        if run is not None:
            self.state.checks["S2"].violate("a run ended that was not in flight", run.start, run.end, line)
            return
        job = self.state.job(event.job)
        ended = job.answer_to(event.nominal_ms or 0)
        is_in_flight = (event.nominal_ms or 0) in job.open and job.open[event.nominal_ms or 0].start is not None
        if self.state.is_complete or is_in_flight or ended is not None:
            self.state.checks["S2"].violate("a run ended that was never started", ended, line)
            return
        occurrence = job.open.setdefault(event.nominal_ms or 0, OccurrenceTrace(None))
        run = occurrence.runs[event.task] = RunTrace(None)
        run.attempt = event.attempt or 1
        run.end = line

    def _check_scheduler_present(self, line: JournalLine) -> None:
        """S4b, S5b: without a scheduler nothing ends, except by a command of a user. In a trimmed trace other
        schedulers may have started before its beginning."""
        departure = self.state.nodes.last_departure() if self.state.is_complete else None
        if departure is None or line[1].actor:
            return
        name, what = ("S5b", "crashed") if departure[1].name == "SchedulerCrashed" else ("S4b", "stopped")
        self.state.checks[name].violate(f"a run ended after the scheduler had {what}", departure, line)

    def run_adopted(self, line: JournalLine) -> None:
        """The child process outlived its scheduler, so the run was not interrupted."""
        event = line[1]
        run = self.state.run(line)
        if run is not None:
            run.interrupted = None
            run.node = str(event.data.get("node", ""))
            self.state.job(event.job).open[event.nominal_ms or 0].interrupted = None

    def retry_scheduled(self, line: JournalLine) -> None:
        event = line[1]
        run = self.state.run(line)
        if run is None:
            return
        run.retry = line
        delay = self.state.job(event.job).retry_ms
        if delay is None or run.end is None or run.end[1].data.get("state") == "crashed":
            return
        if event.data.get("at_ms", event.at_ms) < run.end[1].at_ms + delay:
            self.state.checks["S3"].violate("its retry was set earlier than its retry delay", run.end, line)

    def retry_preempted(self, line: JournalLine) -> None:
        run = self.state.run(line)
        if run is not None:
            run.retry = None

    def run_given_up(self, line: JournalLine) -> None:
        """The run ends for a reason on record, so it need not be started again."""
        run = self.state.run(line)
        if run is not None:
            run.interrupted = run.retry = None
