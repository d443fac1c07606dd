"""Jobs and their occurrences, one event after the other: S1, S3, S6 and L2 for what is due."""

from __future__ import annotations

from typing import Any

from chronex.model.policies import OverlapPolicy, RecoveryStrategy
from chronex.model.records import Event
from chronex.verify.due import Answer, due_instants
from chronex.verify.runs import JobTrace, OccurrenceTrace
from chronex.verify.verdicts import Line, stamp
from chronex.verify.world import World

_NO_BURSTS = {RecoveryStrategy.EXECUTE_LAST, RecoveryStrategy.COMPRESSED, RecoveryStrategy.MARK_MISSED}


class OccurrenceMonitor:
    """Registered_x and Due_x, and the occurrence that answers an instant."""

    def __init__(self, world: World) -> None:
        self.world = world

    def job_changed(self, line: Line) -> None:
        _, event = line
        job = self.world.job(event.job)
        job.is_known, job.removed, job.last_start = True, None, None
        job.forget_unstarted()
        self._define(event.job, job, event.data, event.data.get("cursor_ms"), event.at_ms)

    def know_job(self, name: str, told: dict[str, Any]) -> None:
        """A job whose event the journal no longer has, as the store has it."""
        job = self.world.job(name)
        job.is_known = True
        self._define(name, job, told, None, 0)

    def _define(self, name: str, job: JobTrace, told: dict[str, Any], cursor_ms: int | None, since_ms: int) -> None:
        job.told = told
        job.no_bursts = told.get("overlap") == OverlapPolicy.SKIP and told.get("recovery") in _NO_BURSTS
        job.retry_ms = told.get("retry_ms")
        job.due = due_instants(name, told, cursor_ms, since_ms)

    def job_removed(self, line: Line) -> None:
        job = self.world.job(line[1].job)
        job.removed, job.due = line, None
        job.queued.clear()

    def job_interrupted(self, line: Line) -> None:
        """Paused or resumed: which instants are told meanwhile is a matter of policy."""
        _, event = line
        job = self.world.job(event.job)
        job.last_start = None
        job.due = due_instants(event.job, job.told, None, event.at_ms)

    # -- occurrences -------------------------------------------------------------------------------------

    def occurrence_started(self, line: Line) -> None:
        _, event = line
        job = self.world.job(event.job)
        nominal = event.nominal_ms or 0
        self._check_eligible(job, line)
        self._check_alone(job, nominal, line)
        self._check_single(job, nominal, line)
        queued = job.queued.get(nominal)
        job.answer(nominal, line)
        job.open[nominal] = OccurrenceTrace(line)
        if not event.data.get("manual"):
            self._measure_start(line, was_queued=queued is not None)
            job.last_start = line

    def _check_eligible(self, job: JobTrace, line: Line) -> None:
        event = line[1]
        s3 = self.world.dockets["S3"]
        s3.checked += 1
        if job.removed is not None:
            s3.violate("started although its job was removed", job.removed, line)
        elif self.world.is_complete and not job.is_known:
            s3.violate("started although no such job was ever registered", line)
        if event.data.get("manual"):
            return
        if event.at_ms < event.data.get("due_ms", event.at_ms) and not _had_been_due(job, event):
            s3.violate("started before it was due", line)
        self._tell_due(job, line)

    def _tell_due(self, job: JobTrace, line: Line) -> None:
        """The obligation of this instant is answered; one that was passed over never will be."""
        if job.due is None:
            return
        event, before = line[1], job.due.last_told
        self.world.dockets["L2"].checked += 1
        answer, instant = job.due.told(event.nominal_ms or 0, line)
        if answer is Answer.NOT_DUE and event.name == "OccurrenceStarted":
            self.world.dockets["S3"].violate("started for an instant at which its schedule is not due", line)
        elif answer is Answer.PASSED_OVER:
            self.world.dockets["L2"].violate(
                f"{stamp(instant)} was due and has no fate; a later instant has", before, line
            )

    def _check_alone(self, job: JobTrace, nominal: int, line: Line) -> None:
        """S1 for a job: one occurrence at a time, unless it allows more or a crash took the other."""
        self.world.dockets["S1"].checked += 1
        if line[1].data.get("overlap") == OverlapPolicy.ALLOW:
            return
        for other, occurrence in job.open.items():
            if other != nominal and occurrence.interrupted is None:
                message = "an occurrence started while an earlier one of its job was in flight"
                self.world.dockets["S1"].violate(message, occurrence.start, line)
                return

    def _check_single(self, job: JobTrace, nominal: int, line: Line) -> None:
        """S6: an instant is answered once, and instants that have passed are not made up for in a burst."""
        s6, event = self.world.dockets["S6"], line[1]
        s6.checked += 1
        before = job.answered(nominal)
        if before is not None:
            s6.violate("one due instant was answered twice", before, line)
        elif job.no_bursts and job.last_start is not None and _was_due_before(event, job.last_start[1]):
            s6.violate("two starts with no due instant between them", job.last_start, line)

    def _measure_start(self, line: Line, *, was_queued: bool) -> None:
        event = line[1]
        if not self.world.is_reported(line):
            return
        if was_queued:
            self.world.start_lag.left_out += 1
            return
        due = event.data.get("due_ms", event.at_ms)
        if event.data.get("recovery") and self.world.nodes.active_since_ms is not None:
            due = max(due, self.world.nodes.active_since_ms)
        self.world.start_lag.add(event.at_ms - due, line)

    def occurrence_queued(self, line: Line) -> None:
        job = self.world.job(line[1].job)
        self._tell_due(job, line)
        job.queued[line[1].nominal_ms or 0] = line

    def occurrence_claimed(self, line: Line) -> None:
        """The instant has an occurrence already: it is answered."""
        self._tell_due(self.world.job(line[1].job), line)

    def occurrence_ended(self, line: Line) -> None:
        event = line[1]
        job = self.world.job(event.job)
        nominal = event.nominal_ms or 0
        if job.last_start is not None and event.at_ms < job.last_start[1].at_ms:
            job.last_start = None  # the clock was set back; with a fixed delay the next instant counts from here
        occurrence = job.open.pop(nominal, None)
        if occurrence is None:
            self._end_unstarted(job, nominal, line)
            return
        self.world.dockets["S2"].checked += 1
        if event.name in ("OccurrenceCompleted", "OccurrenceFailed"):
            for run in occurrence.open_runs():
                self.world.dockets["S2"].violate("the occurrence ended while a run was in flight", run.start, line)
        if event.name == "OccurrenceCompleted":
            for run in occurrence.runs.values():
                if run.interrupted is not None:
                    message = "completed although a run that a crash interrupted was never started again"
                    self.world.dockets["L3"].violate(message, run.start, run.interrupted, line)
        job.answer(nominal, line)

    def _end_unstarted(self, job: JobTrace, nominal: int, line: Line) -> None:
        event, before = line[1], job.answered(nominal)
        is_fate = event.name in ("OccurrenceSkipped", "OccurrenceMissed", "OccurrenceCanceled")
        if is_fate and before is None:
            if nominal not in job.queued:
                self._tell_due(job, line)
        elif before is not None:
            self.world.dockets["S6"].violate("one due instant was given two fates", before, line)
        elif self.world.is_complete:
            self.world.dockets["S2"].violate("an occurrence ended that had not started", line)
        job.answer(nominal, line)

    def occurrences_missed(self, line: Line) -> None:
        event = line[1]
        job = self.world.job(event.job)
        if job.due is not None:
            job.due.told_span(event.data.get("from_ms", 0), event.data.get("to_ms", 0), line)


def _was_due_before(event: Event, earlier: Event) -> bool:
    """It was due when the earlier start happened, which should have answered for it.

    Not where the clock was set back since, and told by that clock the earlier start is yet to come.
    """
    if event.data.get("manual") or event.at_ms < earlier.at_ms:
        return False
    return bool(event.data.get("due_ms", event.at_ms) < earlier.at_ms)


def _had_been_due(job: JobTrace, event: Event) -> bool:
    """It waited in a queue when the clock was set back. Where it came there is cut off, the start itself says so."""
    queued = job.queued.get(event.nominal_ms or 0)
    if queued is None:
        return bool(event.data.get("queued"))
    return queued[1].at_ms >= int(event.data.get("due_ms", 0))
