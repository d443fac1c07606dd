"""A simulated month that keeps its own list of outages, pauses, edits and processes.

`expected_causes` works out from that list alone, without any record of the engine but the drawn start, why an instant
ended as it did. It follows the policies as they are documented, not as the engine codes them.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from chronex.engine.commands.actor import Actor
from chronex.engine.commands.control import pause, resume
from chronex.engine.engine import Tick
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import ReasonCode
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, MINUTE, RandomOutcomes, SimulatedMachine, SimulatedProcess
from chronex.views.why import WhyAnswer
from chronex.views.why.answer import Cause
from tests.kit.machine import START

MONTH = 30 * DAY
ALICE = Actor("alice", "cli", "laptop")
_STALE = 6 * MINUTE  # an execution timeout of five minutes and the grace of one


class RecordedMonth(SimulatedMachine):
    """A machine, and a list of what happened to it: (from, until) of each outage and pause, and the edits."""

    def __init__(self, seed: int, jobs: list[Job], slots: int, orphans_survive: bool) -> None:
        self.jobs = jobs
        self.orphans_survive = orphans_survive
        self.outages: list[tuple[int, int]] = []
        self.crashes: list[tuple[int, int]] = []
        self.pauses: dict[str, list[tuple[int, int]]] = {}
        self.edits: dict[str, tuple[int, Job]] = {}
        # By the time of a tick: how many processes had been started before it, and which of them lived.
        self.ticks: dict[int, tuple[int, frozenset[str]]] = {}
        outcomes = RandomOutcomes(seed, longest_ms=70 * MINUTE)
        super().__init__(jobs, slots=slots, seed=seed, outcome=outcomes)

    def boot(self) -> None:
        super().boot()
        tick = self.engine.tick

        def recorded(now_ms: int, awake_since_ms: int) -> Tick:
            self.ticks.setdefault(now_ms, (len(self.processes), frozenset(self.live)))
            return tick(now_ms, awake_since_ms)

        self.engine.tick = recorded  # type: ignore[method-assign]

    def outage(self, at: int, length: int) -> None:
        """The scheduler is killed, and the next one starts after `length`."""
        self.run_until(at)
        self.outages.append((at, at + length))
        self.crashes.append((at, at + length))
        self.go_down(length, orphans_survive=self.orphans_survive)

    def suspend(self, at: int, length: int) -> None:
        """The machine sleeps; the scheduler notices and records it."""
        self.run_until(at)
        self.outages.append((at, at + length))
        self.sleep(length)

    def pause(self, job: str, at: int, length: int) -> None:
        self.run_until(at)
        self.store.update(lambda tx: pause(Records(tx, self.now), job, ALICE))
        self.run_until(at + length)
        self.store.update(lambda tx: resume(Records(tx, self.now), job, ALICE))
        self.pauses.setdefault(job, []).append((at, at + length))

    def edit(self, at: int, edited: Job) -> None:
        self.run_until(at)
        wanted = [edited if job.id == edited.id else job for job in self.jobs]
        self.apply(wanted, actor="bob")
        self.edits[edited.id] = (at, edited)

    # -- what must follow ----------------------------------------------------------------------------

    def outage_of(self, instant: int) -> tuple[int, int] | None:
        return next((o for o in self.outages if o[0] <= instant < o[1]), None)

    def expected_causes(self, job: Job, instants: list[int], due: dict[int, int]) -> dict[int, Cause]:
        """The cause of every instant, in order: earlier verdicts say who waited for whom."""
        known: dict[int, Cause] = {}
        for instant in instants:
            known[instant] = self._cause(job, instants, instant, due, known)
        return known

    def _cause(
        self, job: Job, instants: list[int], instant: int, due: dict[int, int], known: dict[int, Cause]
    ) -> Cause:
        mine = self._processes(job.id, instant)
        if mine:
            return self._outcome(job, mine, instant, instants, due)
        if "max:" in job.schedule and self._fired_before(job.id, instant) >= 20:
            return Cause.MAX_REACHED
        if (dropped := self._dropped(job, instants, instant)) is not None:
            return dropped
        wanted = due.get(instant, instant)
        at = self._awake_from(wanted)
        if self._is_paused(job.id, wanted) or self._is_paused(job.id, at):
            return Cause.PAUSED
        return self._not_admitted(job, instant, at, due, known)

    def _is_paused(self, job: str, at: int) -> bool:
        return any(begin <= at < end for begin, end in self.pauses.get(job, []))

    def _dropped(self, job: Job, instants: list[int], instant: int) -> Cause | None:
        """What the recovery strategy makes of a missed instant."""
        outage = self.outage_of(instant)
        if outage is None:
            return None
        later = [i for i in instants if instant < i < outage[1]]
        match job.recovery.strategy:
            case RecoveryStrategy.MARK_MISSED:
                return Cause.DOWN
            case RecoveryStrategy.EXECUTE_LAST if later:
                return Cause.SUPERSEDED
            case RecoveryStrategy.COMPRESSED if later:
                return Cause.FOLDED
            case RecoveryStrategy.BOUNDED if len(later) >= (job.recovery.max_count or 0):
                return Cause.TOO_OLD
            case _:
                return None

    def _not_admitted(self, job: Job, instant: int, at: int, due: dict[int, int], known: dict[int, Cause]) -> Cause:
        """It was to start at `at`, and no process of it was ever seen."""
        window = 2 * MINUTE if "window:2m" in job.schedule else None
        if window is not None and at > instant + window:
            return Cause.WINDOW_EXCEEDED
        if at >= self.now:
            return Cause.PENDING
        if self._is_caught_up(job, instant):
            return Cause.QUEUED
        waiting = self._waiting(job, instant, at, due, known)
        if job.overlap is OverlapPolicy.SKIP and self._retry_waits(job.id, instant, at, due):
            return Cause.RETRY_WAITS
        if job.overlap is OverlapPolicy.SKIP and self._busy(job.id, instant, at, due):
            return Cause.OVERLAP
        if job.overlap is OverlapPolicy.SKIP and waiting:
            return Cause.EARLIER_WAITS
        if job.overlap is OverlapPolicy.QUEUE_ONE and waiting:
            return Cause.EARLIER_WAITS
        if job.overlap is OverlapPolicy.CANCEL_RUNNING and self._has_newer(job, instant, at, due):
            return Cause.GAVE_WAY
        if waiting >= 100:
            return Cause.QUEUE_FULL
        if window is not None:
            return Cause.QUEUED if self._turn(job.id, instant, at) >= self.now else Cause.WINDOW_EXCEEDED
        return Cause.QUEUED

    def _has_newer(self, job: Job, instant: int, at: int, due: dict[int, int]) -> bool:
        """A later one of the schedule came while this one waited."""
        later = [other for other in due if other > instant and not self._is_caught_up(job, other)]
        return any(at <= self._awake_from(due[other]) < self.now for other in later)

    def _is_caught_up(self, job: Job, instant: int) -> bool:
        """One of several missed runs that the strategy asks for: it waits for its turn, however many wait."""
        asked_for = job.recovery.strategy in (RecoveryStrategy.EXECUTE_ALL, RecoveryStrategy.BOUNDED)
        return asked_for and self.outage_of(instant) is not None

    def _waiting(self, job: Job, instant: int, at: int, due: dict[int, int], known: dict[int, Cause]) -> int:
        """Earlier ones that were to start by then, were not turned away, and began later or never."""
        count = 0
        for other, cause in known.items():
            wanted = self._awake_from(due.get(other, other))
            if cause in (Cause.QUEUED, Cause.PENDING):
                count += 1
            elif cause is Cause.WINDOW_EXCEEDED:
                count += wanted <= other + 2 * MINUTE and wanted <= at < self._turn(job.id, other, wanted)
            elif processes := self._processes(job.id, other):
                count += wanted <= at and not self._had_begun(processes[0], at)
        return count

    def _had_begun(self, process: SimulatedProcess, at: int) -> bool:
        """Before the tick at `at`: what that tick started, it started after this decision."""
        if process.started_ms != at or at not in self.ticks:
            return process.started_ms <= at
        return self._order[process.attempt_id] < self.ticks[at][0]

    def _turn(self, job: str, instant: int, at: int) -> int:
        """When the job was free for one that waited since `at`."""
        asked = (job, instant, at)
        if asked not in self._turns:
            for begun, ended, nominal in self._spans.get(job, []):
                if nominal < instant and begun <= at < ended:
                    at = ended
            self._turns[asked] = at
        return self._turns[asked]

    def _busy(self, job: str, instant: int, at: int, due: dict[int, int]) -> bool:
        """A process of another occurrence was alive at the tick, or was started in that same tick.

        One that had waited before it is started at the end of the tick: until then it still waits.
        """
        started, living = self.ticks[at]
        for process in self._of_job(job):
            if process.nominal_ms == instant:
                continue
            now = process.started_ms == at and self._order[process.attempt_id] >= started
            nominal = process.nominal_ms
            first = self._processes(job, nominal)[0] is process  # else it is under way, and tried again
            had_waited = first and self._awake_from(due.get(nominal, nominal)) < at
            if process.attempt_id in living or (now and nominal < instant and not had_waited):
                return True
        return False

    def _retry_waits(self, job: str, instant: int, at: int, due: dict[int, int]) -> bool:
        """Another occurrence was between two attempts at the tick.

        Where its retry came in that same tick, the one of the two that was due first was decided first.
        """
        started, living = self.ticks[at]
        for process in self._of_job(job):
            attempts = self._processes(job, process.nominal_ms)
            if process.nominal_ms == instant or process is attempts[0] or process.started_ms < at:
                continue
            if any(one.attempt_id in living for one in attempts):
                continue
            if process.started_ms > at:
                earlier = attempts[attempts.index(process) - 1]
                if self._end_of(earlier) <= at and not self._killed(earlier):
                    return True
            elif self._order[process.attempt_id] >= started and self._retry_due(process) > due.get(instant, instant):
                return True
        return False

    def _retry_due(self, process: SimulatedProcess) -> int:
        """When the retry that this process is was to begin; 0 for one that is no retry."""
        return max(
            (
                event.data["at_ms"]
                for event in self.events("TaskRetryScheduled")
                if (event.job, event.nominal_ms, event.task) == (process.job, process.nominal_ms, process.task)
                and event.at_ms <= process.started_ms
            ),
            default=0,
        )

    def running_at(self, answer: WhyAnswer) -> set[int]:
        """The occurrences of the job that had a process at the end of the one in question."""
        occurrence = self.store.view(lambda tx: Reading(tx).occurrence(answer.job, answer.instant_ms))
        assert occurrence is not None
        at = occurrence.finished_ms or 0
        living = self.ticks[at][1]
        return {p.nominal_ms for p in self._of_job(answer.job) if p.attempt_id in living or p.started_ms == at}

    def _of_job(self, job: str) -> list[SimulatedProcess]:
        self._processes(job, 0)
        return self._by_job.get(job, [])

    def _outcome(
        self, job: Job, mine: list[SimulatedProcess], instant: int, instants: list[int], due: dict[int, int]
    ) -> Cause:
        last = mine[-1]
        if last.canceled_by is not None and last.canceled_by.reason.code is ReasonCode.EXECUTION_TIMEOUT:
            return Cause.TIMEOUT
        if self._was_reaped(job, mine):
            return Cause.STALE
        if last.attempt_id in self.live:
            return Cause.RUNNING
        if last.state == "canceled":
            return Cause.MADE_ROOM
        died = self._crashed(last)
        if last.state == "success" and not died:
            is_last_task = last.task == job.tasks[-1].name
            return Cause.COMPLETED if is_last_task else Cause.RUNNING
        tries = len([p for p in mine if p.task == last.task and not self._crashed(p)])
        crashed = sum(1 for p in mine if p.task == last.task and self._crashed(p))
        if (died and crashed <= 3) or (not died and tries <= (job.retry.max or 0)):
            # Another attempt was due and never came: it would have come after the execution timeout, or a new
            # occurrence took its turn where the policy says so, unless the month ended first.
            if job.execution_timeout_ms is not None and not died:
                return Cause.TIMEOUT
            return Cause.MADE_ROOM if self._newcomer(instant, instants, due, self._end_of(last)) else Cause.RUNNING
        return Cause.FAILED

    def _newcomer(self, instant: int, instants: list[int], due: dict[int, int], after: int) -> bool:
        return any(self._awake_from(due[i]) >= after for i in instants if i != instant and due.get(i, 0) < self.now)

    def _crashed(self, process: SimulatedProcess) -> bool:
        """It died with its scheduler, or outlived it, so that how it ended is not known."""
        return self._killed(process) or self._ended_unseen(process) or process.state == "crashed"

    def _killed(self, process: SimulatedProcess) -> bool:
        return not self.orphans_survive and any(
            self._end_of(process) == at and process.started_ms <= at for at, _ in self.crashes
        )

    def _ended_unseen(self, process: SimulatedProcess) -> bool:
        """It outlived its scheduler and ended before the next one came: how it ended is not known."""
        return self.orphans_survive and any(
            process.started_ms <= crash and crash <= self._end_of(process) < boot for crash, boot in self.crashes
        )

    def _was_reaped(self, job: Job, mine: list[SimulatedProcess]) -> bool:
        """It was under way at a crash, and too old when the next scheduler came."""
        if job.execution_timeout_ms is None:
            return False
        begun = mine[0].started_ms
        for crash, boot in self.crashes:
            under_way = begun <= crash and self._end_of(mine[-1]) >= crash
            if under_way and boot > begun + _STALE and mine[-1].started_ms <= crash:
                return True
        return False

    def _processes(self, job: str, instant: int) -> list[SimulatedProcess]:
        if len(self.processes) != getattr(self, "_indexed", -1):
            self._by_instant: dict[tuple[str, int], list[SimulatedProcess]] = {}
            self._by_job: dict[str, list[SimulatedProcess]] = {}
            self._order = {process.attempt_id: number for number, process in enumerate(self.processes)}
            for process in self.processes:
                self._by_job.setdefault(process.job, []).append(process)
                self._by_instant.setdefault((process.job, process.nominal_ms), []).append(process)
            self._spans: dict[str, list[tuple[int, int, int]]] = {}
            for (name, nominal), attempts in self._by_instant.items():
                insort(
                    self._spans.setdefault(name, []), (attempts[0].started_ms, self._end_of(attempts[-1]), nominal)
                )
            self._turns: dict[tuple[str, int, int], int] = {}
            self._indexed = len(self.processes)
        return self._by_instant.get((job, instant), [])

    def _end_of(self, process: SimulatedProcess) -> int:
        return self.clock.boot + DAY if process.ended_ms is None else process.ended_ms

    def _fired_before(self, job: str, instant: int) -> int:
        return len({p.nominal_ms for p in self._of_job(job) if p.started_ms < instant})

    def _awake_from(self, instant: int) -> int:
        outage = self.outage_of(instant)
        return instant if outage is None else outage[1]


@dataclass(frozen=True)
class Hourly:
    """An expression, and its instants in (after, until] by plain sums."""

    minute: int

    @property
    def expression(self) -> str:
        return f"{self.minute} * * * *"

    def instants(self, after: int, until: int) -> list[int]:
        first = after + 1 + (self.minute * MINUTE - after - 1) % HOUR
        return list(range(first, until + 1, HOUR))


def a_month(
    seed: int, slots: int = 50, orphans: bool = False, weeks: int = 4
) -> tuple[RecordedMonth, dict[str, Hourly]]:
    """Every overlap and recovery policy, jitter, stagger, window, max; crashes, a sleep, pauses, an edit."""
    random = Random(seed)
    families: dict[str, Hourly] = {}
    jobs: list[Job] = []
    strategies = list(RecoveryStrategy)
    # In a crowded pool the turn of one that waits is decided by other jobs; a window would then end it unseen.
    options = ["", "{jitter:20s}", "{window:2m}" if slots > 10 else "", "{stagger:30s}", ""]
    for number, overlap in enumerate(OverlapPolicy):
        family = Hourly(random.randrange(60))
        strategy = strategies[(number + seed) % 5]
        families[f"job-{number}"] = family
        bounded = strategy is RecoveryStrategy.BOUNDED
        jobs.append(
            Job(
                id=f"job-{number}",
                schedule=f"{family.expression} {options[(number + seed) % 5]}".strip(),
                tasks=tuple(Task(name=f"task-{n}", run=("true",)) for n in range(1 + number % 2)),
                overlap=overlap,
                recovery=RecoveryPolicy(strategy, max_count=3 if bounded else None),
                retry=RetryPolicy(max=number % 3, interval_ms=20_000, backoff=2.0, jitter=0.1),
                execution_timeout_ms=5 * MINUTE if number == 2 else None,
            )
        )
    families["few"] = Hourly(7)
    jobs.append(Job(id="few", schedule="7 * * * * {max:20}", tasks=(Task(name="task-0", run=("true",)),)))
    families["edited"] = Hourly(11)
    jobs.append(Job(id="edited", schedule="11 * * * *", tasks=(Task(name="task-0", run=("true",)),)))
    machine = RecordedMonth(seed, jobs, slots, orphans)
    for week in range(weeks):
        at = START + week * 7 * DAY
        machine.outage(at + random.randrange(DAY), random.choice([MINUTE, 3 * HOUR, 12 * HOUR]))
        machine.suspend(at + 2 * DAY + random.randrange(DAY), random.choice([5 * MINUTE, 8 * HOUR]))
        begin, length = at + 4 * DAY + random.randrange(DAY), random.randrange(HOUR, 9 * HOUR)
        if slots > 10:  # those that wait in a queue are turned away one by one when their turn falls into a pause
            pausable = [job.id for job in jobs[:5] if job.overlap in (OverlapPolicy.SKIP, OverlapPolicy.ALLOW)]
            machine.pause(random.choice(pausable), begin, length)
        if week == min(1, weeks - 1):
            machine.edit(at + 5 * DAY + 12 * HOUR, replace(jobs[-1], schedule="41 * * * *"))
    machine.run_until(START + MONTH - (4 - weeks) * 7 * DAY)
    return machine, families
