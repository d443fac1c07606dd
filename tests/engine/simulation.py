"""The whole engine under a virtual clock: scripted tasks, crashes, downtime; the same seed gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import NO_REASON, Reason
from chronex.model.records import Event, Job, Node, Occurrence, ProcessIdentity, Task
from chronex.storage import journal
from chronex.storage.records import Ledger, Reading
from chronex_store import MemoryStore

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
START = 1_798_761_600_000  # 2027-01-01T00:00:00Z


@dataclass
class Process:
    """A scripted child: alive from `started` to `ends`, whoever its parent is."""

    attempt_id: str
    job: str
    started: int
    ends: int
    state: str
    identity: ProcessIdentity
    launch: Launch
    canceled: Reason = NO_REASON


@dataclass
class Simulation:
    """One machine: its clock, its store, its daemons one after the other, and the children they start."""

    seed: int
    jobs: list[Job]
    places: int = 50
    fail_share: float = 0.2
    longest_ms: int = 3 * MINUTE
    orphans_survive: bool = False
    now: int = START
    launched: list[str] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.store = MemoryStore(clock=self)
        self.live: dict[str, Process] = {}
        self.node_number = 0
        self.alive_nodes: set[int] = set()
        apply_jobs(self.store, self.jobs, self.now)
        self.boot()

    # the store's clock
    def wall_ms(self) -> int:
        return self.now

    monotonic_ms = boottime_ms = wall_ms

    def boot(self) -> None:
        self.node_number += 1
        self.alive_nodes = {self.node_number}
        self.awake_since = self.now
        self.engine = Engine(self.store, f"node-{self.node_number}", self.places, self.random)
        node = Node(id=self.engine.node, process=ProcessIdentity(self.node_number, "boot", 1), started_ms=self.now)
        self.store.update(lambda tx: Ledger(tx, self.now).put(node))
        started = Event(name="SchedulerStarted", at_ms=self.now, data={"node": node.id})
        self.store.update(lambda tx: journal.append(tx, started))
        orders, adopted = self.engine.take_over(self._is_alive, self.now)
        self.adopted = {attempt.id: attempt for attempt in adopted}
        self.carry_out(orders)

    def _is_alive(self, process: ProcessIdentity) -> bool:
        return process.pid in self.alive_nodes or any(p.identity == process for p in self.live.values())

    def crash(self) -> None:
        """kill -9: the daemon is gone; its children live on as orphans, or die with it."""
        self.alive_nodes = set()
        if not self.orphans_survive:
            for process in self.live.values():
                process.ends = self.now
            self.live.clear()

    def carry_out(self, orders: tuple[Order, ...]) -> None:
        for order in orders:
            if isinstance(order, Launch):
                self._launch(order)
            elif isinstance(order, Cancel) and order.attempt.id in self.live:
                process = self.live[order.attempt.id]
                process.ends, process.state, process.canceled = self.now, "canceled", order.reason

    def _launch(self, order: Launch) -> None:
        attempt_id = order.attempt.id
        self.launched.append(attempt_id)
        state = "failed" if self.random.random() < self.fail_share else "success"
        ends = self.now + self.random.randrange(100, self.longest_ms)
        identity = ProcessIdentity(10_000 + len(self.launched), "boot", self.now)
        process = Process(attempt_id, order.job.id, self.now, ends, state, identity, order)
        self.live[attempt_id] = process
        self.processes.append(process)
        self.store.update(self.engine.started(order.attempt, identity, "", self.now))

    def run_until(self, end: int) -> None:
        while self.now < end:
            tick = self.engine.tick(self.now, self.awake_since)
            self.carry_out(tick.orders)
            if tick.has_more:
                continue
            times = [process.ends for process in self.live.values()]
            if tick.next_ms is not None:
                times.append(tick.next_ms)
            # A tick at least every ten minutes, as a daemon would look around.
            upcoming = min([t for t in times if t > self.now] + [self.now + 10 * MINUTE])
            overdue = any(process.ends <= self.now for process in self.live.values())
            self.now = min(upcoming, end) if not overdue else self.now
            self._report_ends()

    def _report_ends(self) -> None:
        done = [p for p in self.live.values() if p.ends <= self.now]
        for process in sorted(done, key=lambda p: (p.ends, p.attempt_id)):
            del self.live[process.attempt_id]
            attempt = self.adopted.get(process.attempt_id, process.launch.attempt)
            code = {"success": 0, "failed": 1}.get(process.state)
            end = AttemptEnd(process.state, process.canceled, exit_code=code)
            self.carry_out(self.store.update(self.engine.ended(attempt, end, self.now)))

    # what came of it
    def occurrences(self, job: str) -> list[Occurrence]:
        found = self.store.view(lambda tx: Reading(tx).occurrences(job, limit=1_000_000))
        return sorted(found, key=lambda o: o.nominal_ms)

    def events(self) -> list[str]:
        lines = self.store.view(lambda tx: journal.tail(tx, limit=1_000_000))
        return [f"{number} {event}" for number, event in lines]


# -- schedules with an oracle of their own -----------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """An expression and its nominal instants in (after, until], told without the engine's help."""

    expression: str
    instants: Callable[[int, int], list[int]]


def every_minutes(step: int) -> Family:
    """`*/step` for a step that divides the hour."""
    return Family(f"*/{step} * * * *", lambda after, until: _grid(0, step * MINUTE, after, until))


def hourly(minute: int) -> Family:
    return Family(f"{minute} * * * *", lambda after, until: _grid(minute * MINUTE, HOUR, after, until))


def daily(hour: int, minute: int) -> Family:
    at = hour * HOUR + minute * MINUTE
    return Family(f"{minute} {hour} * * *", lambda after, until: _grid(at, DAY, after, until))


def interval(seconds: int) -> Family:
    return Family(f"@every {seconds}s", lambda after, until: _grid(START, seconds * 1000, after, until))


def _grid(offset: int, period: int, after: int, until: int) -> list[int]:
    first = after + 1 + (offset - after - 1) % period
    return list(range(first, until + 1, period))


def random_jobs(random: Random, count: int) -> list[tuple[Job, Family]]:
    made: list[tuple[Job, Family]] = []
    for number in range(count):
        family = random.choice(
            [
                every_minutes(random.choice([1, 2, 5, 10, 15, 30])),
                hourly(random.randrange(60)),
                daily(random.randrange(24), random.randrange(60)),
                interval(random.choice([45, 90, 600, 3600])),
            ]
        )
        options = random.choice(["", "", "{jitter:20s}", "{stagger:30s}", "{window:2m}"])
        strategy = random.choice(list(RecoveryStrategy))
        bounded = strategy is RecoveryStrategy.BOUNDED
        made.append(
            (
                Job(
                    id=f"job-{number}",
                    schedule=f"{family.expression} {options}".strip(),
                    tasks=tuple(Task(name=f"task-{n}", run=("true",)) for n in range(random.choice([1, 1, 2, 3]))),
                    overlap=random.choice(list(OverlapPolicy)),
                    recovery=RecoveryPolicy(strategy, max_count=3 if bounded else None),
                    retry=RetryPolicy(max=random.choice([0, 1, 3]), interval_ms=20_000, backoff=2.0, jitter=0.1),
                    execution_timeout_ms=random.choice([None, 5 * MINUTE]),
                ),
                family,
            )
        )
    return made


def simulate(seed: int, length: int, jobs: int = 4, crashes: int = 3) -> tuple[Simulation, list[tuple[Job, Family]]]:
    """A stretch of time with a few crashes, each followed by downtime of up to half a day."""
    random = Random(seed)
    made = random_jobs(random, jobs)
    world = Simulation(
        seed, [job for job, _ in made], places=random.choice([2, 50]), orphans_survive=random.random() < 0.5
    )
    for crash_at in sorted(random.randrange(START, START + length) for _ in range(crashes)):
        if crash_at <= world.now:
            continue
        world.run_until(crash_at)
        world.crash()
        world.now += random.choice([1000, MINUTE, HOUR, 12 * HOUR])
        world.boot()
    world.run_until(max(START + length, world.now + MINUTE))
    return world, made
