"""Simulation of the coming days: the real planner and the real admission under a virtual clock, and its tally.

Nothing is stored and nothing starts. What the engine asks of the store (which runs are active, which wait) is asked
here of a few lists, so a year of a hundred jobs takes seconds. What cannot be known beforehand (failures, retries, a
machine that sleeps) is left out: every run takes the time it is given and ends well.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

from msgspec.structs import replace

from chronex.engine.admit import Verdict, admit, barred_now, gives_way, is_held
from chronex.engine.plan import Chance, Planned, blackouts_of, plan_job
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Cadence, OverlapPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, words_of
from chronex.model.states import OccurrenceState
from chronex.timing.job_schedule import Schedule, is_interval, options_of, schedule_of
from chronex.timing.zones import Zone
from chronex.views.simulated_chains import Played, SimulatedChains, with_followers

_CHUNK_MS = 6 * 3_600_000
DurationOf = Callable[[str], int]


class _JobPart(NamedTuple):
    """What the simulation needs of one job."""

    schedule: Schedule
    window_ms: int | None
    follows_its_end: bool  # an interval that counts from the end of the last run
    may_be_barred: bool  # by a pause or a blackout; most jobs are not, and a year has many runs


class _Running(NamedTuple):
    ends_ms: int
    number: int  # keeps the order of equals; occurrences themselves do not compare
    occurrence: Occurrence
    started_ms: int


def simulate_runs(
    jobs: Iterable[Job], from_ms: int, to_ms: int, duration_of: DurationOf, slots: int, chance: Chance
) -> Iterator[Played]:
    """Every occurrence with a nominal time in (from, to], in the order in which they end."""
    return _Simulation(jobs, from_ms, to_ms, duration_of, slots, chance).play(from_ms)


class _Simulation:
    def __init__(
        self, jobs: Iterable[Job], from_ms: int, to_ms: int, duration_of: DurationOf, slots: int, chance: Chance
    ) -> None:
        self.to_ms, self.duration_of, self.slots, self.chance = to_ms, duration_of, slots, chance
        begun = [
            job.progressed(cursor_ms=from_ms, anchor_ms=job.progress.anchor_ms or from_ms)
            for job in jobs
            if job.enabled
        ]
        self.jobs = {job.id: job for job in begun}
        self.parts = {job.id: _job_part(job) for job in begun}
        self.due: list[tuple[int, int, Occurrence]] = []
        self.ends: list[_Running] = []
        self.running: dict[str, list[Occurrence]] = {job.id: [] for job in begun}
        self.queued: dict[str, deque[Occurrence]] = {}  # only jobs that have a queue, the longest waiting first
        self.canceled: set[int] = set()
        self.chains = SimulatedChains(self.jobs, from_ms)
        self.count = 0

    def play(self, from_ms: int) -> Iterator[Played]:
        found = self._play(from_ms)
        return with_followers(found, self.chains, self._push) if self.chains else found

    def _play(self, from_ms: int) -> Iterator[Played]:
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
            fired = job.progress.counters.fired
            starts = sum(_will_start(job, part, planned) for planned in plan.planned)
            counters = replace(job.progress.counters, fired=fired + starts)
            self.jobs[job_id] = job.progressed(cursor_ms=plan.cursor_ms, counters=counters)
            limit = options_of(job).max
            for planned in plan.planned:
                if limit is not None and fired >= limit:
                    return
                fired += _will_start(job, part, planned)
                if planned.outcome.runs:
                    self._push(planned.occurrence)
                else:
                    yield Played(planned.occurrence, OccurrenceState.SKIPPED, planned.outcome.reason)
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
        """Ends and due times in order; a slot that becomes free can be taken by what is due at the same time."""
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
            if len(self.ends) - len(self.canceled) >= self.slots:
                return
            first = waiting[0]
            # Admitted again only when the answer can differ: finding the blocker's name costs more than all the rest.
            if not self.running[first.job] or self.jobs[first.job].overlap is OverlapPolicy.ALLOW:
                yield from self._admit(first, at, from_queue=True)

    def _admit(self, occurrence: Occurrence, at: int, *, from_queue: bool = False) -> Iterator[Played]:
        job, queue = self.jobs[occurrence.job], self.queued.get(occurrence.job, ())
        running = self.running[occurrence.job]
        free = self.slots - (len(self.ends) - len(self.canceled))
        if self.parts[job.id].may_be_barred and (barred := _barred(job, occurrence, at)) is not None:
            if from_queue:
                self._unqueue(occurrence.job)
            yield Played(occurrence, OccurrenceState.SKIPPED, barred)
            return
        if self.chains and not from_queue and (held := self.chains.verdict(occurrence, at)) is not None:
            if held.code is not ReasonCode.WAITS_FOR:
                yield Played(occurrence, OccurrenceState.SKIPPED, held)
            return
        replaced = [] if from_queue else [other for other in queue if gives_way(job, other, occurrence)]
        waiting = 0 if from_queue else len(queue) - len(replaced)
        answer = admit(job, occurrence, running, waiting, free, at, self.parts[job.id].window_ms)
        if replaced and answer.verdict is not Verdict.SKIP:
            yield from self._give_way(replaced, occurrence)
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

    def _give_way(self, replaced: list[Occurrence], newer: Occurrence) -> Iterator[Played]:
        kept = deque(other for other in self.queued.pop(newer.job) if other not in replaced)
        if kept:
            self.queued[newer.job] = kept
        for other in replaced:
            yield Played(other, OccurrenceState.SKIPPED, Reason(ReasonCode.GAVE_WAY, newer.id))

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


def _will_start(job: Job, part: _JobPart, planned: Planned) -> bool:
    """What a pause holds does not count against `max`."""
    held = part.may_be_barred and is_held(job, planned.occurrence, planned.occurrence.due_ms)
    return planned.outcome.runs and not held


def _barred(job: Job, occurrence: Occurrence, at: int) -> Reason | None:
    """As the engine asks: first for a pause, then for a blackout."""
    if is_held(job, occurrence, at):
        return Reason(ReasonCode.PAUSED, by=job.progress.paused_by)
    return barred_now(job, occurrence, at)


def _job_part(job: Job) -> _JobPart:
    follows = job.cadence is Cadence.FIXED_DELAY and is_interval(job)
    may_be_barred = bool(blackouts_of(job)) or job.progress.paused or job.progress.paused_from_ms is not None
    return _JobPart(schedule_of(job), options_of(job).window, follows, may_be_barred)


_HOURS_OF_WEEK = 168
_THURSDAY = 3  # 1 January 1970; weeks here begin on Monday
MOST_COLLISIONS = 10


@dataclass(slots=True)
class JobTally:
    """`queued` counts the runs that waited for a slot or an earlier run; `longest_wait_ms` is from due to start."""

    completed: int = 0
    skipped: int = 0
    canceled: int = 0
    queued: int = 0
    busy_ms: int = 0
    longest_wait_ms: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class SimulationTally:
    """`hours` are the starts by hour of the week, from Monday; `minutes` the starts by minute since the epoch."""

    jobs: dict[str, JobTally]
    hours: list[int]
    minutes: Counter[int]
    most_at_once: int = 0

    def collisions(self) -> list[tuple[int, int]]:
        """The minutes (since the epoch) with the most starts, more than one each: (minute, starts)."""
        most = sorted(self.minutes.items(), key=lambda item: (-item[1], item[0]))[:MOST_COLLISIONS]
        return [item for item in most if item[1] > 1]


def tally(played: Iterable[Played], names: Iterable[str], zone: Zone) -> SimulationTally:
    found = SimulationTally({name: JobTally() for name in names}, [0] * _HOURS_OF_WEEK, Counter())
    edges: Counter[int] = Counter()
    for each in played:
        _count_run(found, each)
        if each.started_ms is not None and each.ended_ms is not None:
            second = each.started_ms // 1000
            wall = second + zone.offset_at(second)
            found.hours[(wall // 3600 + _THURSDAY * 24) % _HOURS_OF_WEEK] += 1
            found.minutes[each.started_ms // 60_000] += 1
            edges[each.started_ms] += 1
            edges[each.ended_ms] -= 1
    now = 0
    for at in sorted(edges):
        now += edges[at]
        found.most_at_once = max(found.most_at_once, now)
    return found


def _count_run(found: SimulationTally, each: Played) -> None:
    job = found.jobs[each.occurrence.job]
    match each.state:
        case OccurrenceState.COMPLETED:
            job.completed += 1
        case OccurrenceState.CANCELED:
            job.canceled += 1
        case _:
            job.skipped += 1
            job.reasons[words_of(each.reason)] += 1
    if each.started_ms is not None and each.ended_ms is not None:
        wait = each.started_ms - each.occurrence.due_ms
        job.queued += wait > 0
        job.longest_wait_ms = max(job.longest_wait_ms, wait)
        job.busy_ms += each.ended_ms - each.started_ms


def as_data(found: SimulationTally) -> dict[str, Any]:
    """The documented shape of `simulate --format json`, without its frame."""
    return {
        "most_at_once": found.most_at_once,
        "jobs": {
            name: {
                "completed": job.completed,
                "skipped": job.skipped,
                "canceled": job.canceled,
                "queued": job.queued,
                "busy_ms": job.busy_ms,
                "longest_wait_ms": job.longest_wait_ms,
                "reasons": dict(job.reasons),
            }
            for name, job in found.jobs.items()
        },
        "density": [found.hours[day * 24 : day * 24 + 24] for day in range(7)],
        "collisions": [{"at_ms": minute * 60_000, "starts": starts} for minute, starts in found.collisions()],
    }
