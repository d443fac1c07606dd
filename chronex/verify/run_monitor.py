"""Runs and their attempts, one event after the other: S1, S2, S3, S4 and S5 for what a scheduler starts."""

from __future__ import annotations

from chronex.verify.runs import JobTrace, OccurrenceTrace, RunTrace
from chronex.verify.verdicts import Line
from chronex.verify.world import World

# How an interrupted run may end without having been seen to: it died, or was to be canceled anyway.
_KNOWN_WITHOUT_IT = ("crashed", "canceled")


class RunMonitor:
    """RS_x, REs_x and REf_x, and what lies between them."""

    def __init__(self, world: World) -> None:
        self.world = world

    def run_started(self, line: Line) -> None:
        _, event = line
        job = self.world.job(event.job)
        self.world.dockets["S3"].checked += 1
        self._check_active(line)
        occurrence = self._occurrence_of(job, line)
        run = occurrence.runs.get(event.task)
        if run is None:
            run = occurrence.runs[event.task] = RunTrace(line)
        else:
            self._check_restart(run, line)
        run.start, run.attempt, run.is_open = line, event.attempt or 1, True
        run.node = str(event.data.get("node", ""))
        run.end = run.retry = run.interrupted = occurrence.interrupted = None

    def _occurrence_of(self, job: JobTrace, line: Line) -> OccurrenceTrace:
        nominal = line[1].nominal_ms or 0
        found = job.open.get(nominal)
        if found is not None:
            return found
        ended = job.answered(nominal)
        if ended is not None or self.world.is_complete:
            self.world.dockets["S3"].violate("a run started whose occurrence is not in flight", ended, line)
        found = job.open[nominal] = OccurrenceTrace(None)
        return found

    def _check_active(self, line: Line) -> None:
        event = line[1]
        name = str(event.data.get("node", ""))
        life = self.world.nodes.lives.get(name)
        if life is None:
            if self.world.is_complete and name:
                self.world.dockets["S3"].violate("started by a scheduler that was never initialized", line)
        elif life.gone is not None:
            rule = "S5a" if life.has_crashed else "S4a"
            what = "had crashed" if life.has_crashed else "had stopped"
            self.world.dockets[rule].violate(f"started by a scheduler that {what}", life.gone, line)
        elif life.active is None:
            why = "was stopping" if life.stopping else "was still being initialized" if life.initializing else ""
            message = f"started by a scheduler that {why or 'had failed to initialize'}"
            self.world.dockets["S3"].violate(message, life.stopping or life.initializing, line)

    def _check_restart(self, run: RunTrace, line: Line) -> None:
        event = line[1]
        self.world.dockets["S1"].checked += 1
        if run.is_open and run.interrupted is None:
            self.world.dockets["S1"].violate("a run started while it was in flight", run.start, line)
        elif (event.attempt or 1) <= run.attempt:
            self.world.dockets["S1"].violate("an attempt was started twice", run.start, line)
        if run.retry is not None and event.at_ms < run.retry[1].data.get("at_ms", event.at_ms):
            self.world.dockets["S3"].violate("tried again before its retry delay had passed", run.retry, line)
        if run.interrupted is not None:
            self._measure_restart(run.interrupted, line)

    def _measure_restart(self, crash: Line, line: Line) -> None:
        since = max(crash[1].at_ms, self.world.nodes.active_since_ms or crash[1].at_ms)
        if self.world.is_reported(line):
            self.world.restart_lag.add(line[1].at_ms - since, line)

    def run_ended(self, line: Line) -> None:
        event = line[1]
        self.world.dockets["S2"].checked += 1
        run = self.world.run(line)
        self._check_somebody_is_there(line)
        if run is None or not run.is_open or event.attempt != run.attempt:
            self._end_without_start(run, line)
            return
        if run.interrupted is not None and event.data.get("state") not in _KNOWN_WITHOUT_IT:
            message = "an end was told for a run that a crash had interrupted"
            self.world.dockets["S5b"].violate(message, run.start, run.interrupted, line)
        run.is_open, run.end = False, line

    def _end_without_start(self, run: RunTrace | None, line: Line) -> None:
        """Before a trace that is cut off there may have been a start, but only one for each end."""
        event = line[1]
        if run is not None:
            self.world.dockets["S2"].violate("a run ended that was not in flight", run.start, run.end, line)
            return
        job = self.world.job(event.job)
        ended = job.answered(event.nominal_ms or 0)
        is_in_flight = (event.nominal_ms or 0) in job.open and job.open[event.nominal_ms or 0].start is not None
        if self.world.is_complete or is_in_flight or ended is not None:
            self.world.dockets["S2"].violate("a run ended that was never started", ended, line)
            return
        occurrence = job.open.setdefault(event.nominal_ms or 0, OccurrenceTrace(None))
        run = occurrence.runs[event.task] = RunTrace(None)
        run.attempt, run.end = event.attempt or 1, line

    def _check_somebody_is_there(self, line: Line) -> None:
        """S4b, S5b: without a scheduler nothing ends, but for what a user's command ends. Before a trace that is cut
        off others may have started."""
        left = self.world.nodes.nobody_left() if self.world.is_complete else None
        if left is None or line[1].actor:
            return
        rule, what = ("S5b", "crashed") if left[1].name == "SchedulerCrashed" else ("S4b", "stopped")
        self.world.dockets[rule].violate(f"a run ended after the scheduler had {what}", left, line)

    def run_adopted(self, line: Line) -> None:
        """The child outlived its scheduler: nothing was interrupted."""
        event = line[1]
        run = self.world.run(line)
        if run is not None:
            run.interrupted, run.node = None, str(event.data.get("node", ""))
            self.world.job(event.job).open[event.nominal_ms or 0].interrupted = None

    def retry_scheduled(self, line: Line) -> None:
        event = line[1]
        run = self.world.run(line)
        if run is None:
            return
        run.retry = line
        delay = self.world.job(event.job).retry_ms
        if delay is None or run.end is None or run.end[1].data.get("state") == "crashed":
            return
        if event.data.get("at_ms", event.at_ms) < run.end[1].at_ms + delay:
            self.world.dockets["S3"].violate("its retry was set earlier than its retry delay", run.end, line)

    def retry_preempted(self, line: Line) -> None:
        run = self.world.run(line)
        if run is not None:
            run.retry = None

    def given_up(self, line: Line) -> None:
        """For a reason that was told: no start is owed any more."""
        run = self.world.run(line)
        if run is not None:
            run.interrupted = run.retry = None
