"""The future played through: the real planner and the real admission under a virtual clock.

Nothing is stored and nothing starts. What the engine asks of the store (who runs, who waits) is asked here of a few
lists, so a year of a hundred jobs takes seconds. What cannot be known beforehand (failures, retries, a machine that
sleeps) is left out: every run takes the time it is given and ends well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.admit import Verdict, admit
from chronex.engine.plan import Chance, plan_job
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Cadence, OverlapPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.timing.job_schedule import Schedule, is_interval, options_of, schedule_of

_CHUNK_MS = 6 * 3_600_000
DurationOf = Callable[[str], int]


class Played(NamedTuple):
    """What became of one occurrence; `started_ms` is None where it did not run."""

    occurrence: Occurrence
    state: OccurrenceState
    reason: Reason
    started_ms: int | None = None
    ended_ms: int | None = None


class _Part(NamedTuple):
    """A job on this stage."""

    schedule: Schedule
    window_ms: int | None
    follows_its_end: bool  # an interval that counts from the end of the last run


class _Running(NamedTuple):
    ends_ms: int
    number: int  # keeps the order of equals; occurrences themselves do not compare
    occurrence: Occurrence
    started_ms: int


def rehearse(
    jobs: Iterable[Job], from_ms: int, to_ms: int, duration_of: DurationOf, places: int, chance: Chance
) -> Iterator[Played]:
    """Every occurrence with a nominal time in (from, to], in the order of their fates."""
    return _Stage(jobs, from_ms, to_ms, duration_of, places, chance).play(from_ms)


class _Stage:
    def __init__(
        self, jobs: Iterable[Job], from_ms: int, to_ms: int, duration_of: DurationOf, places: int, chance: Chance
    ) -> None:
        self.to_ms, self.duration_of, self.places, self.chance = to_ms, duration_of, places, chance
        begun = [
            job.progressed(cursor_ms=from_ms, anchor_ms=job.progress.anchor_ms or from_ms)
            for job in jobs
            if job.enabled
        ]
        self.jobs = {job.id: job for job in begun}
        self.parts = {job.id: _part(job) for job in begun}
        self.due: list[tuple[int, int, Occurrence]] = []
        self.ends: list[_Running] = []
        self.running: dict[str, list[Occurrence]] = {job.id: [] for job in begun}
        self.queued: dict[str, deque[Occurrence]] = {}  # only jobs that have a queue, the longest waiting first
        self.canceled: set[int] = set()
        self.count = 0

    def play(self, from_ms: int) -> Iterator[Played]:
        for begin in range(from_ms, self.to_ms, _CHUNK_MS):
            until = min(begin + _CHUNK_MS, self.to_ms)
            for job_id in self.jobs:
                yield from self._plan(job_id, begin, until)
            yield from self._advance(until)
        yield from self._advance(None)

    # -- planning ----------------------------------------------------------------------------------------

    def _plan(self, job_id: str, begin: int, until: int) -> Iterator[Played]:
        """All instants up to `until` at once; one that follows its own end has been planned there."""
        part = self.parts[job_id]
        if part.follows_its_end:
            if begin == self.jobs[job_id].progress.cursor_ms and not self.count:
                self._plan_next(job_id, begin)
            return
        while True:
            job = self.jobs[job_id]
            plan = plan_job(job, part.schedule, until, begin, self.chance)
            fired = job.progress.counters.fired + sum(1 for planned in plan.planned if planned.outcome.runs)
            counters = replace(job.progress.counters, fired=fired)
            self.jobs[job_id] = job.progressed(cursor_ms=plan.cursor_ms, counters=counters)
            limit = options_of(job).max
            for number, (occurrence, fate) in enumerate(plan.planned, job.progress.counters.fired):
                if limit is not None and number >= limit:
                    return
                if fate.runs:
                    self._push(occurrence)
                else:
                    yield Played(occurrence, OccurrenceState.SKIPPED, fate.reason)
            if not plan.planned or plan.next_ms is None or plan.next_ms > until:
                return

    def _plan_next(self, job_id: str, after_ms: int) -> None:
        nominal = schedule_of(self.jobs[job_id].progressed(anchor_ms=after_ms)).next(after_ms)
        if nominal is not None and nominal <= self.to_ms:
            self._push(Occurrence(job=job_id, nominal_ms=nominal, due_ms=nominal))

    def _push(self, occurrence: Occurrence) -> None:
        self.count += 1
        heappush(self.due, (occurrence.due_ms, self.count, occurrence))

    # -- time passes -------------------------------------------------------------------------------------

    def _advance(self, until: int | None) -> Iterator[Played]:
        """Ends and dues in the order of their times; a place that is freed is free for what is due then."""
        while True:
            next_end = self.ends[0].ends_ms if self.ends else None
            next_due = self.due[0][0] if self.due else None
            if next_due is not None and until is not None and next_due > until:
                next_due = None
            if next_end is not None and until is not None and next_end > until:
                next_end = None
            if next_end is not None and (next_due is None or next_end <= next_due):
                yield from self._end(heappop(self.ends))
            elif next_due is not None:
                at, _, occurrence = heappop(self.due)
                yield from self._admit(occurrence, at)
            else:
                return

    def _end(self, run: _Running) -> Iterator[Played]:
        occurrence = run.occurrence
        if run.number in self.canceled:
            self.canceled.discard(run.number)
            return
        self.running[occurrence.job].remove(occurrence)
        yield Played(occurrence, OccurrenceState.COMPLETED, NO_REASON, run.started_ms, run.ends_ms)
        if self.parts[occurrence.job].follows_its_end:
            self._plan_next(occurrence.job, run.ends_ms)
        yield from self._start_queued(run.ends_ms)

    def _start_queued(self, at: int) -> Iterator[Played]:
        for waiting in list(self.queued.values()):
            if len(self.ends) - len(self.canceled) >= self.places:
                return
            first = waiting[0]
            # Asked again only when the answer can be another one: the blocker's name costs more than all the rest.
            if not self.running[first.job] or self.jobs[first.job].overlap is OverlapPolicy.ALLOW:
                yield from self._admit(first, at, from_queue=True)

    def _admit(self, occurrence: Occurrence, at: int, *, from_queue: bool = False) -> Iterator[Played]:
        job, queue = self.jobs[occurrence.job], self.queued.get(occurrence.job, ())
        running = self.running[occurrence.job]
        free = self.places - (len(self.ends) - len(self.canceled))
        waiting = 0 if from_queue else len(queue)
        answer = admit(job, occurrence, running, waiting, free, at, self.parts[job.id].window_ms)
        if answer.verdict is Verdict.START or answer.verdict is Verdict.SKIP:
            if from_queue:
                self._unqueue(occurrence.job)
            if answer.verdict is Verdict.SKIP:
                yield Played(occurrence, OccurrenceState.SKIPPED, answer.reason)
            else:
                self._start(occurrence, at)
        elif not from_queue:
            self.queued.setdefault(occurrence.job, deque()).append(occurrence)
            if answer.verdict is Verdict.CANCEL_OTHERS:
                yield from self._cancel(list(running), at)

    def _unqueue(self, job_id: str) -> None:
        queue = self.queued.pop(job_id)
        queue.popleft()
        if queue:
            self.queued[job_id] = queue  # behind the queues of the others

    def _start(self, occurrence: Occurrence, at: int) -> None:
        self.count += 1
        self.running[occurrence.job].append(occurrence)
        heappush(self.ends, _Running(at + self.duration_of(occurrence.job), self.count, occurrence, at))

    def _cancel(self, others: list[Occurrence], at: int) -> Iterator[Played]:
        for other in others:
            self.running[other.job].remove(other)
            run = next(run for run in self.ends if run.occurrence is other)
            self.canceled.add(run.number)
            reason = Reason(ReasonCode.CANCELED_FOR_NEXT)
            yield Played(other, OccurrenceState.CANCELED, reason, run.started_ms, at)
        yield from self._start_queued(at)


def _part(job: Job) -> _Part:
    follows = job.cadence is Cadence.FIXED_DELAY and is_interval(job)
    return _Part(schedule_of(job), options_of(job).window, follows)
