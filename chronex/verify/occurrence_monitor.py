"""The monitors of jobs, their occurrences (S1, S3, S6, and L2 for due instants) and their runs (S1 to S5)."""

from __future__ import annotations

from typing import Any

from chronex.model.event import Event
from chronex.model.policies import OverlapPolicy, RecoveryStrategy
from chronex.text.instants import rfc3339
from chronex.verify.due_instants import InstantKind, due_instants
from chronex.verify.results import JournalLine
from chronex.verify.trace_state import UNSTARTED, JobTrace, OccurrenceTrace, RunTrace, TraceState

_FORBID_BURSTS = {RecoveryStrategy.EXECUTE_LAST, RecoveryStrategy.COMPRESSED, RecoveryStrategy.MARK_MISSED}


class OccurrenceMonitor:
    """Registered_x and Due_x, and the occurrence that answers an instant."""

    def __init__(self, state: TraceState) -> None:
        self.state = state

    def job_changed(self, line: JournalLine) -> None:
        _, event = line
        job = self.state.job(event.job)
        job.is_known = True
        job.removed = None
        job.last_start = None
        if event.name == "JobNew":
            job.paused = None
        job.forget_unstarted()
        self._define(event.job, job, event.data, event.data.get("cursor_ms"), event.at_ms)

    def add_known_job(self, name: str, definition: dict[str, Any]) -> None:
        """A job as the store has it, because the journal no longer has its event."""
        job = self.state.job(name)
        job.is_known = True
        self._define(name, job, definition, None, 0)

    def _define(
        self, name: str, job: JobTrace, definition: dict[str, Any], cursor_ms: int | None, since_ms: int
    ) -> None:
        job.definition = definition
        skips_overlap = definition.get("overlap") == OverlapPolicy.SKIP
        job.forbids_bursts = skips_overlap and definition.get("recovery") in _FORBID_BURSTS
        job.retry_ms = definition.get("retry_ms")
        job.due = due_instants(name, definition, cursor_ms, since_ms)

    def job_removed(self, line: JournalLine) -> None:
        job = self.state.job(line[1].job)
        job.removed = line
        job.due = None
        job.queued.clear()

    def job_anchored(self, line: JournalLine) -> None:
        """The clock was set, and the interval counts from another time."""
        event = line[1]
        job = self.state.job(event.job)
        job.last_start = None
        job.definition = {**job.definition, "anchor_ms": event.data.get("anchor_ms")}
        job.due = due_instants(event.job, job.definition, event.data.get("cursor_ms"), event.at_ms)

    def job_interrupted(self, line: JournalLine) -> None:
        """Paused or resumed: which instants are answered meanwhile depends on the policy."""
        _, event = line
        job = self.state.job(event.job)
        job.last_start = None
        job.paused = line if event.name == "JobPaused" else None
        job.due = due_instants(event.job, job.definition, None, event.at_ms)

    # -- occurrences -------------------------------------------------------------------------------------

    def occurrence_started(self, line: JournalLine) -> None:
        _, event = line
        job = self.state.job(event.job)
        nominal = event.nominal_ms or 0
        self._check_eligible(job, line)
        self._check_overlap(job, nominal, line)
        self._check_single_answer(job, nominal, line)
        was_queued = nominal in job.queued
        job.add_answer(nominal, line)
        is_manual = bool(event.data.get("manual"))  # a replay may be of an earlier version, with another delay
        job.open[nominal] = OccurrenceTrace(line, None if is_manual else job.retry_ms)
        if not is_manual:
            self._measure_start(line, was_queued=was_queued)
            job.last_start = line

    def _check_eligible(self, job: JobTrace, line: JournalLine) -> None:
        event = line[1]
        s3 = self.state.checks["S3"]
        s3.checked += 1
        if job.removed is not None:
            s3.violate("started although its job was removed", job.removed, line)
        elif self.state.is_complete and not job.is_known:
            s3.violate("started although no such job was ever registered", line)
        if event.data.get("manual"):
            return
        if event.at_ms < event.data.get("due_ms", event.at_ms) and not _was_due_when_queued(job, event):
            s3.violate("started before it was due", line)
        if job.paused is not None and _is_paused(job.paused[1], event.at_ms):
            s3.violate("started although its job was paused", job.paused, line)
        self._check_parents(line)
        self._answer_due(job, line)

    def _check_parents(self, line: JournalLine) -> None:
        """What follows other jobs starts when those have completed; of ends before the trace nothing is known."""
        for parent, nominal in line[1].data.get("parents", {}).items():
            last = self.state.job(parent).answer_to(nominal)
            if last is not None and last[1].name != "OccurrenceCompleted":
                message = f"started although {parent}, which it follows, had not completed"
                self.state.checks["S3"].violate(message, last, line)

    def _answer_due(self, job: JobTrace, line: JournalLine) -> None:
        """L2: the event answers the obligation of its instant; one that was passed over never will be answered."""
        if job.due is None:
            return
        event = line[1]
        before = job.due.last_answer
        self.state.checks["L2"].checked += 1
        kind, instant = job.due.answer(event.nominal_ms or 0, line)
        if kind is InstantKind.NOT_DUE and event.name == "OccurrenceStarted":
            self.state.checks["S3"].violate("started for an instant at which its schedule is not due", line)
        elif kind is InstantKind.PASSED_OVER:
            self.state.checks["L2"].violate(
                f"{rfc3339(instant)} was due and has no fate; a later instant has", before, line
            )

    def _check_overlap(self, job: JobTrace, nominal: int, line: JournalLine) -> None:
        """S1 for a job: one occurrence at a time, unless it allows more or a crash took the other."""
        self.state.checks["S1"].checked += 1
        if line[1].data.get("overlap") == OverlapPolicy.ALLOW:
            return
        for other, occurrence in job.open.items():
            if other != nominal and occurrence.interrupted is None:
                message = "an occurrence started while an earlier one of its job was in flight"
                self.state.checks["S1"].violate(message, occurrence.start, line)
                return

    def _check_single_answer(self, job: JobTrace, nominal: int, line: JournalLine) -> None:
        """S6: an instant is answered once, and instants that have passed are not made up for in a burst."""
        s6 = self.state.checks["S6"]
        event = line[1]
        s6.checked += 1
        before = job.answer_to(nominal)
        if before is not None:
            s6.violate("one due instant was answered twice", before, line)
        elif event.data.get("behind"):
            return  # it waited for what its job made up for, and is no part of that
        elif job.last_start is not None and self._waited_for_parents(event, job.last_start[1].at_ms):
            return  # it could not have started before, and makes up for nothing
        elif job.forbids_bursts and job.last_start is not None and _was_due_before(event, job.last_start[1]):
            s6.violate("two starts with no due instant between them", job.last_start, line)

    def _waited_for_parents(self, event: Event, last_start_ms: int) -> bool:
        """Whether one that it follows completed only after its own time, or after the last start where it was missed.

        A missed one and the one behind it may both wait for the same parent, and start one after the other.
        """
        own_ms = last_start_ms if event.data.get("recovery") else event.data.get("due_ms", last_start_ms)
        since_ms = min(own_ms, last_start_ms)
        ends = (self.state.job(name).answer_to(nominal) for name, nominal in event.data.get("parents", {}).items())
        return any(end is not None and end[1].at_ms > since_ms for end in ends)

    def _measure_start(self, line: JournalLine, *, was_queued: bool) -> None:
        event = line[1]
        if not self.state.is_reported(line):
            return
        if was_queued:
            self.state.start_latency.left_out += 1
            return
        due = event.data.get("due_ms", event.at_ms)
        if event.data.get("recovery") and self.state.nodes.active_since_ms is not None:
            due = max(due, self.state.nodes.active_since_ms)
        self.state.start_latency.add(event.at_ms - due, line)

    def occurrence_queued(self, line: JournalLine) -> None:
        job = self.state.job(line[1].job)
        self._answer_due(job, line)
        job.queued[line[1].nominal_ms or 0] = line

    def occurrence_claimed(self, line: JournalLine) -> None:
        """The instant is answered: it has an occurrence already."""
        self._answer_due(self.state.job(line[1].job), line)

    def occurrence_ended(self, line: JournalLine) -> None:
        event = line[1]
        job = self.state.job(event.job)
        nominal = event.nominal_ms or 0
        if job.last_start is not None and event.at_ms < job.last_start[1].at_ms:
            job.last_start = None  # the clock was set back; with a fixed delay the next instant counts from here
        occurrence = job.open.pop(nominal, None)
        if occurrence is None:
            self._end_unstarted(job, nominal, line)
            return
        self.state.checks["S2"].checked += 1
        if event.name in ("OccurrenceCompleted", "OccurrenceFailed"):
            for run in occurrence.open_runs():
                self.state.checks["S2"].violate("the occurrence ended while a run was in flight", run.start, line)
        if event.name == "OccurrenceCompleted":
            for run in occurrence.runs.values():
                if run.interrupted is not None:
                    message = "completed although a run that a crash interrupted was never started again"
                    self.state.checks["L3"].violate(message, run.start, run.interrupted, line)
        job.add_answer(nominal, line)

    def _end_unstarted(self, job: JobTrace, nominal: int, line: JournalLine) -> None:
        event = line[1]
        before = job.answer_to(nominal)
        if event.name in UNSTARTED and before is None:
            if nominal not in job.queued:
                self._answer_due(job, line)
        elif before is not None:
            self.state.checks["S6"].violate("one due instant was given two fates", before, line)
        elif self.state.is_complete:
            self.state.checks["S2"].violate("an occurrence ended that had not started", line)
        job.add_answer(nominal, line)

    def occurrences_missed(self, line: JournalLine) -> None:
        event = line[1]
        job = self.state.job(event.job)
        if job.due is not None:
            job.due.answer_span(event.data.get("from_ms", 0), event.data.get("to_ms", 0), line)


def _is_paused(pause: Event, at_ms: int) -> bool:
    """A pause with an end is over by itself; its JobResumed comes with the next instant that is planned."""
    until_ms = pause.data.get("until_ms")
    return until_ms is None or at_ms < int(until_ms)


def _was_due_before(event: Event, earlier: Event) -> bool:
    """Whether the instant was due at the earlier start, which should have answered it too.

    False where the clock was set back since: by that clock the earlier start is yet to come.
    """
    if event.data.get("manual") or event.at_ms < earlier.at_ms:
        return False
    return bool(event.data.get("due_ms", event.at_ms) < earlier.at_ms)


def _was_due_when_queued(job: JobTrace, event: Event) -> bool:
    """Whether it was due when it was queued, before the clock was set back.

    Where the trace begins after that, the event of the start says that it was queued.
    """
    queued = job.queued.get(event.nominal_ms or 0)
    if queued is None:
        return bool(event.data.get("queued"))
    return queued[1].at_ms >= int(event.data.get("due_ms", 0))


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
        self._check_needs(occurrence, line)
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

    def _check_needs(self, occurrence: OccurrenceTrace, line: JournalLine) -> None:
        for need in line[1].data.get("needs", ()):
            run = occurrence.runs.get(need)
            if run is not None and run.is_open and run.interrupted is None:
                message = f"started although {need}, which it needs, was in flight"
                self.state.checks["S3"].violate(message, run.start, line)

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
        run, occurrence = self.state.run(line), self.state.occurrence(line)
        if run is None or occurrence is None:
            return
        run.retry = line
        delay = occurrence.retry_ms  # an edit of the job does not change what runs already
        if delay is None or run.end is None or run.end[1].data.get("state") == "crashed":
            return
        if event.data.get("at_ms", event.at_ms) < run.end[1].at_ms + delay:
            self.state.checks["S3"].violate("its retry was set earlier than its retry delay", run.end, line)

    def retry_moved(self, line: JournalLine) -> None:
        """The clock was set: the pause is as long as it was, and ends at another time."""
        run = self.state.run(line)
        if run is not None:
            run.retry = line

    def retry_preempted(self, line: JournalLine) -> None:
        run = self.state.run(line)
        if run is not None:
            run.retry = None

    def run_given_up(self, line: JournalLine) -> None:
        """The run ends for a reason on record, so it need not be started again."""
        run = self.state.run(line)
        if run is not None:
            run.interrupted = run.retry = None
