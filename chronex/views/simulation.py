"""Simulation of the coming days: the real planner and the real admission under a virtual clock, and its tally.

Nothing is stored and nothing starts. What the engine asks of the store (which runs are active, which wait) is asked
here of a few lists, so a year of a hundred jobs takes seconds. What cannot be known beforehand (failures, retries, a
machine that sleeps) is left out: every run takes the time it is given and ends well.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush, nsmallest
from typing import Any, NamedTuple

from msgspec.structs import replace

from chronex.engine.admit import (
    Admission,
    Verdict,
    admit,
    barred_now,
    gives_way,
    is_held,
    wait_in_line,
    window_over_ms,
)
from chronex.engine.group_limits import GroupUse, ready_at
from chronex.engine.lines import LineOrder, LineWait
from chronex.engine.plan import Chance, Plan, blackouts_of, next_plan_ms, plan_job
from chronex.model.groups import GroupSettings
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
    max: int | None  # how often it may start

    @property
    def is_planned_one_by_one(self) -> bool:
        """Its instants depend on what happened."""
        return self.follows_its_end or self.max is not None


class _Running(NamedTuple):
    ends_ms: int
    number: int  # keeps the order of equals; occurrences themselves do not compare
    occurrence: Occurrence
    started_ms: int


def simulate_runs(
    jobs: Iterable[Job], from_ms: int, to_ms: int, duration_of: DurationOf, slots: int, chance: Chance,
    groups: Iterable[GroupSettings] = (),
) -> Iterator[Played]:  # fmt: skip
    """Every occurrence with a nominal time in (from, to], in the order in which they end."""
    return RunSimulation(jobs, from_ms, to_ms, duration_of, slots, chance, groups).play(from_ms)


class SimulatedLines(LineOrder):
    """The lines of groups and of the pool in memory, each in order."""

    def __init__(self, groups: Iterable[GroupSettings]) -> None:
        self.time_ms = 0
        self.uses = {group.name: GroupUse(group.name, group.limit, group.rate) for group in groups}
        self._standing: dict[str, list[tuple[int, str, int]]] = {}
        self._waiting: dict[tuple[str, int], Occurrence] = {}

    @property
    def now_ms(self) -> int:
        return self.time_ms

    def lines(self) -> set[str]:
        return set(self._standing)

    def use(self, name: str) -> GroupUse:
        return self.uses.setdefault(name, GroupUse(name))

    def head(self, name: str) -> Occurrence | None:
        standing = self._standing.get(name)
        return None if not standing else self._waiting[standing[0][1:]]

    def current(self, job: str, nominal_ms: int) -> Occurrence | None:
        return self._waiting.get((job, nominal_ms))

    def join(self, occurrence: Occurrence, wait: LineWait) -> Occurrence:
        """It stands in these lines from now on, and in no others."""
        self.leave(occurrence)
        placed = replace(occurrence, lines=wait.lines, order_ms=wait.order_ms)
        self._waiting[placed.job, placed.nominal_ms] = placed
        for name in placed.lines:
            insort(self._standing.setdefault(name, []), (placed.order_ms, placed.job, placed.nominal_ms))
        return placed

    def leave(self, occurrence: Occurrence) -> None:
        found = self._waiting.pop((occurrence.job, occurrence.nominal_ms), None)
        if found is None:
            return
        for name in found.lines:
            standing = self._standing[name]
            standing.remove((found.order_ms, found.job, found.nominal_ms))
            if not standing:
                del self._standing[name]

    def started(self, job: Job, occurrence: Occurrence) -> None:
        for name, places in job.groups.items():
            self.uses[name] = self.use(name).with_start(places, occurrence, self.time_ms)

    def ended(self, job: Job) -> None:
        for name, places in job.groups.items():
            use = self.use(name)
            self.uses[name] = use._replace(held=use.held - places)

    def remembers_until(self) -> int | None:
        """When the last start counts no longer for any rate."""
        last = [use.starts[-1] + use.rate.per_ms for use in self.uses.values() if use.rate and use.starts]
        return max(last, default=None)

    def next_ms(self) -> int | None:
        """When a rate lets a line go on that it holds up now."""
        waits = [
            ready_at(use.rate, use.starts, self.time_ms) for name in self._standing if (use := self.uses.get(name))
        ]
        return min((ms for ms in waits if ms > self.time_ms), default=None)


class RunSimulation:
    def __init__(
        self, jobs: Iterable[Job], from_ms: int, to_ms: int, duration_of: DurationOf, slots: int, chance: Chance,
        groups: Iterable[GroupSettings] = (),
    ) -> None:  # fmt: skip
        self.from_ms, self.to_ms, self.duration_of, self.slots, self.chance = (
            from_ms,
            to_ms,
            duration_of,
            slots,
            chance,
        )
        begun = [
            job.progressed(cursor_ms=from_ms, anchor_ms=job.progress.anchor_ms or from_ms)
            for job in jobs
            if job.enabled
        ]
        self.jobs = {job.id: job for job in begun}
        self.parts = {job.id: _job_part(job) for job in begun}
        self.due: list[tuple[tuple[int, int, bool, str, int], Occurrence]] = []
        self.plans: list[tuple[int, str]] = []  # jobs whose instants depend on what happened are planned one by one
        self.skips: list[int] = []  # when nothing is due, and the engine looks at those who wait all the same
        self.ends: list[_Running] = []
        self.running: dict[str, list[Occurrence]] = {job.id: [] for job in begun}
        self.queued: dict[str, list[int]] = {}  # only jobs that have a queue: its instants, in order
        self.waiting: dict[tuple[str, int], Occurrence] = {}  # those of the queues that stand in no line
        self.lines = SimulatedLines(groups)
        self.canceled: set[int] = set()
        self.stopping: list[Occurrence] = []  # are to be canceled, and hold their places until all has been decided
        one_by_one = (name for name, part in self.parts.items() if part.is_planned_one_by_one)
        self.chains = SimulatedChains(self.jobs, from_ms, one_by_one)
        self.count = 0

    def play(self, from_ms: int) -> Iterator[Played]:
        found = self._with_delays(self._play(from_ms))
        return with_followers(found, self.chains, self.push, self._now) if self.chains else found

    def _now(self) -> int:
        return self.lines.time_ms

    def _play(self, from_ms: int) -> Iterator[Played]:
        for begin in range(from_ms, self.to_ms, _CHUNK_MS):
            until = min(begin + _CHUNK_MS, self.to_ms)
            for job_id in self.jobs:
                yield from self._plan(job_id, begin, until)
            yield from self.advance(until)
        yield from self.advance(None)

    # -- planning ----------------------------------------------------------------------------------------

    def _plan(self, job_id: str, begin: int, until: int) -> Iterator[Played]:
        """All instants up to `until` at once; one that follows its own end has been planned there."""
        part = self.parts[job_id]
        if part.is_planned_one_by_one:
            if begin == self.jobs[job_id].progress.cursor_ms:
                yield from self._plan_first(job_id, begin)
            return
        while True:
            plan = plan_job(self.jobs[job_id], part.schedule, until, begin, self.chance)
            self.jobs[job_id] = self.jobs[job_id].progressed(cursor_ms=plan.cursor_ms)
            yield from self._planned(plan)
            if not plan.planned or plan.next_ms is None or plan.next_ms > until:
                return

    def _planned(self, plan: Plan) -> Iterator[Played]:
        for planned in plan.planned:
            self.chains.planned(planned.occurrence)
            if planned.outcome.runs:
                self.push(planned.occurrence)
            else:
                heappush(self.skips, planned.occurrence.nominal_ms)
                yield Played(planned.occurrence, OccurrenceState.SKIPPED, planned.outcome.reason)

    def _plan_first(self, job_id: str, begin: int) -> Iterator[Played]:
        if not self.parts[job_id].follows_its_end:
            yield from self._plan_now(job_id, begin)
        elif (counted_ms := schedule_of(self.jobs[job_id]).next(begin)) is not None:
            self._plan_again(job_id, counted_ms)  # from the end of its last run
        else:
            self._count_from(job_id, begin)

    def _plan_now(self, job_id: str, at: int) -> Iterator[Played]:
        """What `max` leaves is known when the instant has come: one that is skipped or waits has not started."""
        if self._is_used_up(job_id):
            return
        job, part = self.jobs[job_id], self.parts[job_id]
        schedule = schedule_of(job) if part.follows_its_end else part.schedule
        plan = plan_job(job, schedule, at, at, self.chance)
        self.jobs[job_id] = job.progressed(cursor_ms=plan.cursor_ms)
        if not part.follows_its_end:
            self._plan_again(job_id, plan.next_ms)
        yield from self._planned(plan)

    def _plan_again(self, job_id: str, at: int | None) -> None:
        if at is not None and at <= self.to_ms:
            heappush(self.plans, (at, job_id))

    def _is_used_up(self, job_id: str) -> bool:
        most = self.parts[job_id].max
        return most is not None and self.jobs[job_id].progress.counters.fired >= most

    def _with_delays(self, played: Iterator[Played]) -> Iterator[Played]:
        """A fixed delay counts from the end of a run, and from what came instead of one."""
        for one in played:
            if self.parts[one.occurrence.job].follows_its_end:
                self._count_from(one.occurrence.job, one.ended_ms if one.ended_ms is not None else self._now())
            yield one

    def _count_from(self, job_id: str, at: int) -> None:
        job = self.jobs[job_id] = self.jobs[job_id].progressed(anchor_ms=at, cursor_ms=at)
        self._plan_again(job_id, next_plan_ms(job, schedule_of(job), at))

    def push(self, occurrence: Occurrence) -> None:
        """What is due at one instant is decided by priority; then jobs before occurrences that are there already, and
        each by name: the order of the engine's index. What a spread puts before the beginning is due then."""
        self.count += 1
        due_ms, priority = max(occurrence.due_ms, self.from_ms), self.jobs[occurrence.job].priority
        order = (due_ms, -priority, due_ms != occurrence.nominal_ms, occurrence.job, self.count)
        heappush(self.due, (order, occurrence))

    # -- time passes -------------------------------------------------------------------------------------

    def advance(self, until: int | None) -> Iterator[Played]:
        """Ends, turns and due times in order; a slot that becomes free can be taken by what is due at that time."""
        while True:
            self._drop_what_does_not_happen()
            next_end = self._unless_later(self.ends[0].ends_ms if self.ends else None, until)
            next_due = self._unless_later(self.due[0][0][0] if self.due else None, until)
            next_turn = self._unless_later(self.lines.next_ms() if self.lines.uses else None, until)
            next_skip = self._unless_later(self.skips[0] if self.skips else None, until)
            next_plan = self._unless_later(self.plans[0][0] if self.plans else None, until)
            times = (next_end, next_plan, next_due, next_turn, next_skip)
            first = min((at for at in times if at is not None), default=None)
            if first is None:
                return
            self.lines.time_ms = first
            while self.skips and self.skips[0] <= first:
                heappop(self.skips)
            if first == next_end:
                yield from self._end(heappop(self.ends))
            elif first == next_plan:
                yield from self._plan_now(heappop(self.plans)[1], first)
                heappush(self.skips, first)  # it may have planned nothing for now, and a rate may have its turn now
            elif first == next_due:
                while self.due and self.due[0][0][0] == first:
                    yield from self._admit(heappop(self.due)[1], first)
                    self._drop_what_does_not_happen()
                yield from self._start_queued(first)
            else:
                yield from self._start_queued(first)
            yield from self._stop(first)

    def _drop_what_does_not_happen(self) -> None:
        """The end of what was canceled, and the end of a wait that is over: the engine does not look then."""
        while self.ends and self.ends[0].number in self.canceled:
            self.canceled.discard(heappop(self.ends).number)
        while self.due and self.due[0][1].wait_until_ms is not None and not self._still_waits(self.due[0][1]):
            heappop(self.due)

    def _still_waits(self, one: Occurrence) -> bool:
        return one.nominal_ms in self.queued.get(one.job, ()) or self.chains.holds(one)

    def goes_on_until(self, at: int) -> int | None:
        """The next time at which all may be at rest; None where it is at `at`, once what ends then has ended.

        At rest is: nothing runs, nobody waits, and no rate remembers a start.
        """
        ends = [run.ends_ms for run in self.ends]
        remembered = self.lines.remembers_until()
        if not self.queued and max((*ends, remembered or 0), default=0) <= at:
            return None
        times = (*ends, remembered, self.lines.next_ms())
        return min((ms for ms in times if ms is not None and ms > at), default=at + 1)

    @staticmethod
    def _unless_later(at: int | None, until: int | None) -> int | None:
        return None if at is None or (until is not None and at > until) else at

    def _end(self, run: _Running) -> Iterator[Played]:
        occurrence = run.occurrence
        self.running[occurrence.job].remove(occurrence)
        self.lines.ended(self.jobs[occurrence.job])
        yield Played(occurrence, OccurrenceState.COMPLETED, NO_REASON, run.started_ms, run.ends_ms)
        yield from self._start_queued(run.ends_ms, occurrence.job)

    @property
    def free_slots(self) -> int:
        return self.slots - (len(self.ends) - len(self.canceled))

    def _start_queued(self, at: int, ended: str = "") -> Iterator[Played]:
        """First the job that has just `ended`, then all that are free, then those whose turn it is in their lines."""
        names = [*([ended] if ended in self.queued else []), *self.queued] if self.waiting else []
        for job_id in names:
            if self.free_slots <= 0:
                return
            yield from self._start_queue_of(job_id, at)
        for head in self.lines.heads() if self.lines.lines() else ():
            if self.free_slots <= 0:
                return
            over = [*self._admit(head, at, from_queue=True)]
            yield from over
            if over:  # it was skipped, and who waited for it alone stands in no line yet
                yield from self._start_queue_of(head.job, at)

    def _start_queue_of(self, job_id: str, at: int) -> Iterator[Played]:
        """Its first one; behind one that is skipped, the next."""
        while job_id in self.queued and self.free_slots > 0:
            first = self.waiting.get((job_id, self.queued[job_id][0]))
            # Admitted again only when the answer can differ: finding the blocker's name costs more than all the rest.
            if first is None or (self.running[job_id] and self.jobs[job_id].overlap is not OverlapPolicy.ALLOW):
                return
            ended = [*self._admit(first, at, from_queue=True)]
            yield from ended
            if not any(one.occurrence is first for one in ended):
                return

    def _admit(self, occurrence: Occurrence, at: int, *, from_queue: bool = False) -> Iterator[Played]:
        job, queue = self.jobs[occurrence.job], self.queued.get(occurrence.job, [])
        running = self.running[occurrence.job]
        if occurrence.nominal_ms in queue and not from_queue:  # it waits, and its window is over
            occurrence, from_queue = self._queued(job.id, occurrence.nominal_ms), True
        if self.parts[job.id].may_be_barred and (barred := _barred(job, occurrence, at)) is not None:
            self._unqueue(occurrence)
            self.chains.forget(occurrence)
            yield Played(occurrence, OccurrenceState.SKIPPED, barred)
            return
        if self.chains and not from_queue and (held := self.chains.verdict(occurrence, at)) is not None:
            if held.code is not ReasonCode.WAITS_FOR:
                yield Played(occurrence, OccurrenceState.SKIPPED, held)
            else:
                self._wait_until_window_is_over(occurrence)
            return
        replaced = [] if from_queue else self._replaced_by(job, occurrence)
        waiting = bisect_left(queue, occurrence.nominal_ms) if from_queue else len(queue) - len(replaced)
        answer = admit(job, occurrence, running, waiting, 1, at, self.parts[job.id].window_ms)
        wait = None
        if answer.verdict is Verdict.START:
            wait = self.lines.wait(job, occurrence, self.free_slots)
            answer = answer if wait is None else wait_in_line(job, occurrence, wait.reason, waiting)
        if replaced and answer.verdict is not Verdict.SKIP:
            for other in replaced:
                self._unqueue(other)
                yield Played(other, OccurrenceState.SKIPPED, Reason(ReasonCode.GAVE_WAY, occurrence.id))
        yield from self._carry_out(job, occurrence, answer, wait, at)

    def _carry_out(
        self, job: Job, occurrence: Occurrence, answer: Admission, wait: LineWait | None, at: int
    ) -> Iterator[Played]:
        if answer.verdict is Verdict.SKIP:
            self._unqueue(occurrence)
            yield Played(occurrence, OccurrenceState.SKIPPED, answer.reason)
        elif answer.verdict is Verdict.START:
            self._unqueue(occurrence)
            if self._is_used_up(job.id):
                yield Played(occurrence, OccurrenceState.SKIPPED, Reason(ReasonCode.MAX_REACHED))
            else:
                self._start(job, occurrence, at)
        else:
            self._queue(occurrence, wait)
            if answer.verdict is Verdict.CANCEL_OTHERS:
                self.stopping += [one for one in self.running[job.id] if one not in self.stopping]

    def _replaced_by(self, job: Job, newer: Occurrence) -> list[Occurrence]:
        if job.overlap is not OverlapPolicy.CANCEL_RUNNING:
            return []
        queued = (self._queued(job.id, nominal_ms) for nominal_ms in self.queued.get(job.id, ()))
        return [other for other in queued if gives_way(job, other, newer)]

    def _queued(self, job_id: str, nominal_ms: int) -> Occurrence:
        found = self.waiting.get((job_id, nominal_ms)) or self.lines.current(job_id, nominal_ms)
        assert found is not None, "what is queued waits in a line, or for its own job"
        return found

    def _queue(self, occurrence: Occurrence, wait: LineWait | None) -> None:
        queue = self.queued.setdefault(occurrence.job, [])
        if occurrence.nominal_ms not in queue:
            insort(queue, occurrence.nominal_ms)
            self._wait_until_window_is_over(occurrence)
        if wait is None:
            self.lines.leave(occurrence)
            self.waiting[occurrence.job, occurrence.nominal_ms] = occurrence
        else:
            self.waiting.pop((occurrence.job, occurrence.nominal_ms), None)
            self.lines.join(occurrence, wait)

    def _wait_until_window_is_over(self, occurrence: Occurrence) -> None:
        until_ms = window_over_ms(occurrence, self.parts[occurrence.job].window_ms)
        if until_ms is not None:
            self.push(replace(occurrence, due_ms=until_ms, wait_until_ms=until_ms))

    def _unqueue(self, occurrence: Occurrence) -> None:
        queue = self.queued.get(occurrence.job, [])
        if occurrence.nominal_ms not in queue:
            return
        self.lines.leave(occurrence)
        self.waiting.pop((occurrence.job, occurrence.nominal_ms), None)
        queue.remove(occurrence.nominal_ms)
        if not queue:
            del self.queued[occurrence.job]

    def _start(self, job: Job, occurrence: Occurrence, at: int) -> None:
        self.count += 1
        self.running[occurrence.job].append(occurrence)
        if self.parts[job.id].max is not None:
            counters = job.progress.counters
            self.jobs[job.id] = job.progressed(counters=replace(counters, fired=counters.fired + 1))
        if job.groups:
            self.lines.started(job, occurrence)
        heappush(self.ends, _Running(at + self.duration_of(occurrence.job), self.count, occurrence, at))

    def _stop(self, at: int) -> Iterator[Played]:
        """As in the engine, where the end of a canceled run is another transaction than the one that cancels it."""
        while self.stopping:
            other = self.stopping.pop(0)
            self.running[other.job].remove(other)
            self.lines.ended(self.jobs[other.job])
            run = next(run for run in self.ends if run.occurrence is other)
            self.canceled.add(run.number)
            reason = Reason(ReasonCode.CANCELED_FOR_NEXT)
            yield Played(other, OccurrenceState.CANCELED, reason, run.started_ms, at)
            yield from self._start_queued(at, other.job)


def _barred(job: Job, occurrence: Occurrence, at: int) -> Reason | None:
    """As the engine asks: first for a pause, then for a blackout."""
    if is_held(job, occurrence, at):
        return Reason(ReasonCode.PAUSED, by=job.progress.paused_by)
    return barred_now(job, occurrence, at)


def _job_part(job: Job) -> _JobPart:
    follows = job.cadence is Cadence.FIXED_DELAY and is_interval(job)
    may_be_barred = bool(blackouts_of(job)) or job.progress.paused or job.progress.paused_from_ms is not None
    options = options_of(job)
    return _JobPart(schedule_of(job), options.window, follows, may_be_barred, options.max)


HOURS_OF_WEEK = 168
THURSDAY = 3  # 1 January 1970; weeks here begin on Monday
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
        # A year has half a million minutes: what cannot be among the first is left out before it is sorted.
        counts, least = Counter(self.minutes.values()), 2
        while sum(times for starts, times in counts.items() if starts > least) >= MOST_COLLISIONS:
            least += 1
        most = nsmallest(
            MOST_COLLISIONS, ((-starts, minute) for minute, starts in self.minutes.items() if starts >= least)
        )
        return [(minute, -starts) for starts, minute in most]


def tally(played: Iterable[Played], names: Iterable[str], zone: Zone) -> SimulationTally:
    found = SimulationTally({name: JobTally() for name in names}, [0] * HOURS_OF_WEEK, Counter())
    edges: Counter[int] = Counter()
    for each in played:
        count_run(found.jobs[each.occurrence.job], each)
        if each.started_ms is not None and each.ended_ms is not None:
            second = each.started_ms // 1000
            wall = second + zone.offset_at(second)
            found.hours[(wall // 3600 + THURSDAY * 24) % HOURS_OF_WEEK] += 1
            found.minutes[each.started_ms // 60_000] += 1
            edges[each.started_ms] += 1
            edges[each.ended_ms] -= 1
    now = 0
    for at in sorted(edges):
        now += edges[at]
        found.most_at_once = max(found.most_at_once, now)
    return found


def count_run(job: JobTally, each: Played) -> None:
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
