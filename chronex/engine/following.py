"""Carries out what `chains` decides: children of an occurrence that has ended, and what waits for parents."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec.structs import replace

from chronex.engine.admit import MOST_QUEUED, window_over_ms
from chronex.engine.chains import WaitVerdict, parent_statuses, successor, wait_verdict
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.records import Records
from chronex.timing.job_schedule import options_of


class EndUnstarted(Protocol):
    def __call__(self, occurrence: Occurrence, state: OccurrenceState, reason: Reason, **changes: Any) -> None: ...


class Emit(Protocol):
    def __call__(self, name: str, occurrence: Occurrence, reason: Reason, /) -> None: ...


class Followers:
    """Inside one transaction; `end_unstarted` and `emit` are those of the lifecycle that it is a part of."""

    def __init__(self, records: Records, end_unstarted: EndUnstarted, emit: Emit) -> None:
        self.records, self._end_unstarted, self._emit = records, end_unstarted, emit

    def decide(self, ended: Occurrence) -> None:
        """Jobs that are after this one get their occurrence; what waited for it is decided anew."""
        followers = self.records.followers(ended.job)
        if not followers:
            return
        names = {one.id if isinstance(one, Job) else one.job for one in followers}
        self.records.tx.expect(sorted(names))
        for follower in followers:
            if isinstance(follower, Occurrence):
                self.decide_waiting(follower)
            else:
                self._follow(follower.id, ended)

    def _follow(self, child: str, ended: Occurrence) -> None:
        job = self.records.job(child)
        found = None if job is None else successor(self.records, job, ended, self.records.now_ms)
        if found is None or not self.records.create(found.occurrence):
            return
        if found.reason:
            self._end_unstarted(found.occurrence, OccurrenceState.SKIPPED, found.reason)

    def decide_waiting(self, waiting: Occurrence) -> None:
        """One that waits for parents is let go when the last of them has completed, and skipped where one did not."""
        job = self.records.job(waiting.job)
        if job is None or self.records.occurrence(waiting.job, waiting.nominal_ms) != waiting:
            return
        verdict = wait_verdict(parent_statuses(self.records, job, waiting.nominal_ms))
        parents = dict(verdict.parents)
        if verdict.refusal:
            self._end_unstarted(waiting, OccurrenceState.SKIPPED, verdict.refusal, parents=parents, waits_for=())
        elif verdict.waits_for:
            self.records.put(replace(waiting, waits_for=verdict.waits_for, reason=_waits(verdict)))
        else:
            let_go = {"waits_for": (), "wait_until_ms": None, "released_ms": self.records.now_ms}
            self.records.put(replace(waiting, parents=parents, **let_go))

    def decide_all_waiting(self, parent: str) -> None:
        """They may have waited for an instant of this job that has no record of its own, or is none any more."""
        for waiting in self.records.waiting_on(parent):
            self.decide_waiting(waiting)

    def lets_start(self, job: Job, occurrence: Occurrence) -> bool:
        """Whether its parents let it start now; otherwise it is skipped because of them, or waits from here on.

        At an instant of its own schedule it asks once; whoever asks for a run by hand has decided that.
        """
        if occurrence.waits_for:  # its window is over
            late = Reason(ReasonCode.PARENT_TOO_LATE, by=", ".join(occurrence.waits_for))
            self._end_unstarted(occurrence, OccurrenceState.SKIPPED, late, waits_for=())
            return False
        is_new = occurrence.state is OccurrenceState.PENDING and not occurrence.manual
        if not is_new or not job.after or not job.schedule:
            return True
        verdict = wait_verdict(parent_statuses(self.records, job, occurrence.nominal_ms))
        parents = dict(verdict.parents)
        if verdict.refusal:
            self._end_unstarted(occurrence, OccurrenceState.SKIPPED, verdict.refusal, parents=parents)
            return False
        if verdict.waits_for:
            self._park(job, occurrence, verdict)
            return False
        self.records.put(replace(occurrence, parents=parents))
        return True

    def _park(self, job: Job, occurrence: Occurrence, verdict: WaitVerdict) -> None:
        """It waits outside of the queue of its job, for as long as its window lasts."""
        if self.records.count_parked(job.id, MOST_QUEUED) >= MOST_QUEUED:
            self._end_unstarted(occurrence, OccurrenceState.SKIPPED, Reason(ReasonCode.QUEUE_FULL))
            return
        window, reason = options_of(job).window, _waits(verdict)
        until_ms = window_over_ms(occurrence, window)
        queued = self.records.advance(
            occurrence,
            OccurrenceState.QUEUED,
            reason=reason,
            waits_for=verdict.waits_for,
            wait_until_ms=until_ms,
        )
        self._emit("OccurrenceQueued", queued, reason)


def _waits(verdict: WaitVerdict) -> Reason:
    return Reason(ReasonCode.WAITS_FOR, ", ".join(verdict.waits_for))
