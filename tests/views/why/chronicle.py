"""A simulated month whose world keeps its own notes: outages, pauses, edits, and the processes it saw.

`knowledge` tells from these notes alone, without any record of the engine but the drawn start, why an instant ended
as it did. It knows the policies as DESIGN states them, not as the engine codes them.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from chronex.engine.commands.actor import Asker
from chronex.engine.commands.pause import pause, resume
from chronex.engine.engine import Tick
from chronex.engine.update import apply_jobs
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.records import Event, Job, Task
from chronex.storage import journal
from chronex.storage.records import Ledger, Reading
from chronex.views.why import Answer
from chronex.views.why.causes import Cause
from tests.engine.simulation import DAY, HOUR, MINUTE, START, Family, Process, Simulation, hourly

MONTH = 30 * DAY
ALICE = Asker("alice", "cli", "laptop")
_STALE = 6 * MINUTE  # an execution timeout of five minutes and the grace of one


@dataclass
class Chronicle(Simulation):
    """The world, and what it did to the scheduler: (from, until) of each outage and pause, and the edits."""

    outages: list[tuple[int, int]] = field(default_factory=list)
    crashes: list[tuple[int, int]] = field(default_factory=list)
    pauses: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    edits: dict[str, tuple[int, Job]] = field(default_factory=dict)
    # When the scheduler looked: how many processes had been started by then, and which of them lived.
    looks: dict[int, tuple[int, frozenset[str]]] = field(default_factory=dict)

    def boot(self) -> None:
        super().boot()
        look = self.engine.tick

        def noted(now_ms: int, awake_since_ms: int) -> Tick:
            self.looks.setdefault(now_ms, (len(self.launched), frozenset(self.live)))
            return look(now_ms, awake_since_ms)

        self.engine.tick = noted  # type: ignore[method-assign]

    def go_down(self, at: int, length: int) -> None:
        self.run_until(at)
        self.crash()
        self.outages.append((at, at + length))
        self.crashes.append((at, at + length))
        self.now = at + length
        self.boot()

    def sleep(self, at: int, length: int) -> None:
        """The machine slept: the daemon notices the jump and writes it down."""
        self.run_until(at)
        self.outages.append((at, at + length))
        self.now = self.awake_since = at + length
        slept = Event(name="MachineSlept", at_ms=self.now, data={"by_ms": length, "slept_ms": length})
        self.store.update(lambda tx: journal.append(tx, slept))
        self._report_ends()

    def pause(self, job: str, at: int, length: int) -> None:
        self.run_until(at)
        self.store.update(lambda tx: pause(Ledger(tx, self.now), job, ALICE))
        self.run_until(at + length)
        self.store.update(lambda tx: resume(Ledger(tx, self.now), job, ALICE))
        self.pauses.setdefault(job, []).append((at, at + length))

    def edit(self, at: int, edited: Job) -> None:
        self.run_until(at)
        wanted = [edited if job.id == edited.id else job for job in self.jobs]
        apply_jobs(self.store, wanted, self.now, actor="bob")
        self.edits[edited.id] = (at, edited)

    # -- what the world knows ----------------------------------------------------------------------------

    def outage_of(self, instant: int) -> tuple[int, int] | None:
        return next((o for o in self.outages if o[0] <= instant < o[1]), None)

    def knowledge(self, job: Job, instants: list[int], due: dict[int, int]) -> dict[int, Cause]:
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
        """What the recovery strategy makes of an instant that was slept through."""
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
        if self._is_owed(job, instant):
            return Cause.QUEUED
        waiting = self._waiting(job, instant, at, due, known)
        if job.overlap is OverlapPolicy.SKIP and self._busy(job.id, instant, at, due):
            return Cause.OVERLAP
        if job.overlap is OverlapPolicy.SKIP and waiting:
            return Cause.EARLIER_WAITS
        if job.overlap is OverlapPolicy.QUEUE_ONE and waiting:
            return Cause.EARLIER_WAITS
        if waiting >= 100:
            return Cause.QUEUE_FULL
        if window is not None:
            return Cause.QUEUED if self._turn(job.id, instant, at) >= self.now else Cause.WINDOW_EXCEEDED
        return Cause.QUEUED

    def _is_owed(self, job: Job, instant: int) -> bool:
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

    def _had_begun(self, process: Process, at: int) -> bool:
        """Before the scheduler looked at `at`: what it started then, it started after it had looked."""
        if process.started != at or at not in self.looks:
            return process.started <= at
        return self._order[process.attempt_id] < self.looks[at][0]

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
        """A process of another occurrence lived when the scheduler looked, or was started in that very look.

        One that had waited before it is started at the end of the look: until then it still waits.
        """
        started, living = self.looks[at]
        for process in self._of_job(job):
            if _nominal(process) == instant:
                continue
            now = process.started == at and self._order[process.attempt_id] >= started
            nominal = _nominal(process)
            first = self._processes(job, nominal)[0] is process  # else it is under way, and tried again
            had_waited = first and self._awake_from(due.get(nominal, nominal)) < at
            if process.attempt_id in living or (now and nominal < instant and not had_waited):
                return True
        return False

    def running_at(self, answer: Answer) -> set[int]:
        """The occurrences of the job that had a process at the end of the one in question."""
        occurrence = self.store.view(lambda tx: Reading(tx).occurrence(answer.job, answer.instant_ms))
        assert occurrence is not None
        at = occurrence.finished_ms or 0
        living = self.looks[at][1]
        return {_nominal(p) for p in self._of_job(answer.job) if p.attempt_id in living or p.started == at}

    def _of_job(self, job: str) -> list[Process]:
        self._processes(job, 0)
        return self._by_job.get(job, [])

    def _outcome(
        self, job: Job, mine: list[Process], instant: int, instants: list[int], due: dict[int, int]
    ) -> Cause:
        last = mine[-1]
        if last.canceled.code is ReasonCode.EXECUTION_TIMEOUT:
            return Cause.TIMEOUT  # an orphan that still lived when the next scheduler came
        if self._was_reaped(job, mine):
            return Cause.STALE
        if last.attempt_id in self.live:
            return Cause.RUNNING
        if last.state == "canceled":
            return Cause.MADE_ROOM
        died = any(last.ends == begin and last.state != "canceled" for begin, _ in self.crashes) and self._killed(
            last
        )
        if last.state == "success" and not died:
            is_last_task = last.launch.task.name == job.tasks[-1].name
            return Cause.COMPLETED if is_last_task else Cause.RUNNING
        tries = sum(1 for p in mine if p.launch.task.name == last.launch.task.name and not self._killed(p))
        crashed = sum(1 for p in mine if p.launch.task.name == last.launch.task.name and self._killed(p))
        if (died and crashed <= 3) or (not died and tries <= (job.retry.max or 0)):
            # Another attempt was owed and never came: a newcomer took its turn, unless the month ended first.
            # One that a crash had interrupted gives way only where the policy says so.
            given_way = Cause.MADE_ROOM if died else Cause.PREEMPTED
            return given_way if self._newcomer(instant, instants, due, last.ends) else Cause.RUNNING
        return Cause.FAILED

    def _newcomer(self, instant: int, instants: list[int], due: dict[int, int], after: int) -> bool:
        return any(self._awake_from(due[i]) >= after for i in instants if i != instant and due.get(i, 0) < self.now)

    def _killed(self, process: Process) -> bool:
        return not self.orphans_survive and any(
            process.ends == at and process.started <= at for at, _ in self.crashes
        )

    def _was_reaped(self, job: Job, mine: list[Process]) -> bool:
        """It was under way at a crash, and too old when the next scheduler came."""
        if job.execution_timeout_ms is None:
            return False
        begun = mine[0].started
        for crash, boot in self.crashes:
            under_way = begun <= crash and mine[-1].ends >= crash
            if under_way and boot > begun + _STALE and mine[-1].started <= crash:
                return True
        return False

    def _processes(self, job: str, instant: int) -> list[Process]:
        if len(self.processes) != getattr(self, "_indexed", -1):
            self._by_instant: dict[tuple[str, int], list[Process]] = {}
            self._by_job: dict[str, list[Process]] = {}
            self._order = {attempt_id: number for number, attempt_id in enumerate(self.launched)}
            for process in self.processes:
                self._by_job.setdefault(process.job, []).append(process)
                self._by_instant.setdefault((process.job, _nominal(process)), []).append(process)
            self._spans: dict[str, list[tuple[int, int, int]]] = {}
            for (name, nominal), life in self._by_instant.items():
                insort(self._spans.setdefault(name, []), (life[0].started, life[-1].ends, nominal))
            self._turns: dict[tuple[str, int, int], int] = {}
            self._indexed = len(self.processes)
        return self._by_instant.get((job, instant), [])

    def _fired_before(self, job: str, instant: int) -> int:
        return len({_nominal(p) for p in self._of_job(job) if p.started < instant})

    def _awake_from(self, instant: int) -> int:
        outage = self.outage_of(instant)
        return instant if outage is None else outage[1]


def _nominal(process: Process) -> int:
    return process.launch.occurrence.nominal_ms


def a_month(seed: int, places: int = 50, orphans: bool = False) -> tuple[Chronicle, dict[str, Family]]:
    """Every overlap and recovery policy, jitter, stagger, window, max; crashes, a sleep, pauses, an edit."""
    random = Random(seed)
    families: dict[str, Family] = {}
    jobs: list[Job] = []
    strategies = list(RecoveryStrategy)
    # In a crowded pool the turn of one that waits is decided by other jobs; a window would then end it unseen.
    options = ["", "{jitter:20s}", "{window:2m}" if places > 10 else "", "{stagger:30s}", ""]
    for number, overlap in enumerate(OverlapPolicy):
        family = hourly(random.randrange(60))
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
    families["few"] = hourly(7)
    jobs.append(Job(id="few", schedule="7 * * * * {max:20}", tasks=(Task(name="task-0", run=("true",)),)))
    families["edited"] = hourly(11)
    jobs.append(Job(id="edited", schedule="11 * * * *", tasks=(Task(name="task-0", run=("true",)),)))
    world = Chronicle(seed, jobs, places=places, longest_ms=70 * MINUTE, orphans_survive=orphans)
    for week in range(4):
        at = START + week * 7 * DAY
        world.go_down(at + random.randrange(DAY), random.choice([MINUTE, 3 * HOUR, 12 * HOUR]))
        world.sleep(at + 2 * DAY + random.randrange(DAY), random.choice([5 * MINUTE, 8 * HOUR]))
        begin, length = at + 4 * DAY + random.randrange(DAY), random.randrange(HOUR, 9 * HOUR)
        if places > 10:  # those that wait in a queue are turned away one by one when their turn falls into a pause
            pausable = [job.id for job in jobs[:5] if job.overlap in (OverlapPolicy.SKIP, OverlapPolicy.ALLOW)]
            world.pause(random.choice(pausable), begin, length)
        if week == 1:
            world.edit(at + 5 * DAY + 12 * HOUR, replace(jobs[-1], schedule="41 * * * *"))
    world.run_until(START + MONTH)
    return world, families
