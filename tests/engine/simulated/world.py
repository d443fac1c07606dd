"""One machine: its clock, its store, its daemons one after the other, and the children they start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from chronex.daemon.wakeups import Wakefulness
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.errors import StoreError, StoreOutcomeUnknownError
from chronex.model.reasons import NO_REASON, Reason
from chronex.model.records import Attempt, Node, ProcessIdentity
from chronex.model.records import Event as Told
from chronex.storage.journal import append
from chronex.storage.ports import T, Transaction
from chronex.storage.records import Ledger
from chronex_store.fault_injection import FaultyStore, PlannedFault
from tests.engine.simulated.hands import HOUR, MINUTE, SECOND, Hands
from tests.engine.simulated.troubles import Event, Trouble
from tests.engine.simulated.witness import Witness
from tests.engine.simulated.workload import Drawn

LONGEST_RUN = 12 * MINUTE
# A daemon looks around at least every 30 s; here once an hour is enough, because every change is told.
LONGEST_SLEEP = HOUR


class DaemonDiedError(Exception):
    """Where the script kills the daemon in the middle of a step, or its store leaves it in doubt."""


@dataclass
class Process:
    """A scripted child: it lives from `started` to `ended` by true time, whoever its parent is."""

    launch: Launch
    attempt: str
    identity: ProcessIdentity
    started: int
    ends: int  # by the monotonic hand: a child stands still while the machine sleeps
    state: str
    reason: Reason = NO_REASON
    ended: int | None = None
    recorded: bool = False
    reported: bool = False


class World:
    """Lives until `horizon`, the latest wall time at which the engine has decided something."""

    def __init__(
        self, random: Random, drawn: list[Drawn], start: int, places: int, faults: Iterable[PlannedFault]
    ) -> None:
        self.random, self.drawn, self.start, self.places = random, drawn, start, places
        self.hands = Hands(start, 1_000_000, start)
        self.rows = Witness(self.hands)
        self.store = FaultyStore(self.rows, faults)
        self.chance = Random(random.randrange(1 << 30))
        self.horizon = start
        self.processes: list[Process] = []
        self.live: dict[str, Process] = {}
        self.boots = 0
        self.armed: Trouble | None = None
        apply_jobs(self.rows, [job for job, _ in drawn], start)
        self.boot()

    # -- daemons -----------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Start a daemon, again and again where its store refuses."""
        while True:
            self.boots += 1
            try:
                self._boot()
                return
            except (StoreError, DaemonDiedError):
                self._lose_children(but_recorded=True)
                self.pass_time(SECOND)

    def _boot(self) -> None:
        self.wakefulness = Wakefulness(self.hands)
        self.engine = Engine(self.store, f"node-{self.boots}", self.places, self.chance)
        self.adopted: dict[str, Attempt] = {}
        now = self.hands.wall
        node = Node(id=self.engine.node, process=ProcessIdentity(self.boots, "boot", 1), started_ms=now)
        self.store.update(lambda tx: Ledger(tx, now).put(node))
        self._journal("SchedulerStarted", node=self.engine.node)
        self._take_over()

    def _journal(self, name: str, **data: str | int) -> None:
        event = Told(name=name, at_ms=self.hands.wall, data=data)
        self.store.update(lambda tx: append(tx, event))

    def _take_over(self) -> None:
        orders, adopted = self.engine.take_over(self._is_alive, self.hands.wall)
        self.adopted |= {attempt.id: attempt for attempt in adopted}
        self._carry_out(orders)

    def _is_alive(self, process: ProcessIdentity) -> bool:
        return process.pid == self.boots or any(p.identity == process for p in self.live.values())

    def die(self, down: int, orphans_survive: bool) -> None:
        """kill -9, then nobody for a while."""
        self._lose_children(but_recorded=orphans_survive)
        self.armed = None
        self.pass_time(down)
        self.boot()

    def _lose_children(self, *, but_recorded: bool) -> None:
        """A child whose start nobody knows to be on record still waits at its gate, and dies with its daemon."""
        for process in list(self.live.values()):
            if not (but_recorded and process.recorded):
                self._gone(process)

    # -- time --------------------------------------------------------------------------------------------

    def pass_time(self, ms: int) -> None:
        """Time goes by and nobody looks; children that end are seen by nobody."""
        self.hands.go_on(ms)
        for process in list(self.live.values()):
            if process.ends <= self.hands.monotonic:
                self._gone(process)

    def _gone(self, process: Process) -> None:
        process.ended = self.hands.boot - max(self.hands.monotonic - process.ends, 0)
        del self.live[process.attempt]

    def live_until(self, end: int) -> None:
        """By true time."""
        while self.hands.boot < end:
            try:
                self._step(end)
            except DaemonDiedError:
                self.die(self.random.choice((SECOND, MINUTE, HOUR)), self.random.random() < 0.5)

    def _step(self, end: int) -> None:
        if jump := self.wakefulness.look():
            slept = jump.slept_ms > 0
            self._guarded(lambda: self._journal("MachineSlept" if slept else "ClockStepped", by_ms=jump.by_ms))
        try:
            tick = self.engine.tick(self.hands.wall, self.wakefulness.since_ms)
        except StoreOutcomeUnknownError:
            raise DaemonDiedError from None
        except StoreError:
            self.hands.go_on(SECOND)
            return
        self.horizon = max(self.horizon, self.hands.wall)
        self._stumble(Trouble.KILL_BEFORE_LAUNCH, tick.orders)
        self._carry_out(tick.orders)
        if tick.has_more:
            return
        if any(self._is_overdue(process) for process in self.live.values()):
            self._guarded(self._take_over)
        self._wait(self._until_next(tick.next_ms, end))
        self._report_ends()

    def _wait(self, ms: int) -> None:
        """A daemon looks around every half minute; one that did not for longer would have been stalled."""
        for _ in range(ms // MINUTE):
            self.hands.go_on(MINUTE)
            self.wakefulness.look()
        self.hands.go_on(ms % MINUTE)

    def _is_overdue(self, process: Process) -> bool:
        deadline = process.launch.occurrence.deadline_ms
        return deadline is not None and deadline <= self.hands.wall and not process.reason

    def _until_next(self, next_ms: int | None, end: int) -> int:
        waits = [LONGEST_SLEEP, end - self.hands.boot]
        waits += [process.ends - self.hands.monotonic for process in self.live.values()]
        deadlines = (process.launch.occurrence.deadline_ms for process in self.live.values())
        waits += [at - self.hands.wall for at in deadlines if at is not None and at > self.hands.wall]
        if next_ms is not None:
            waits.append(next_ms - self.hands.wall)
        return max(min(waits), 0)

    # -- children ----------------------------------------------------------------------------------------

    def _carry_out(self, orders: Iterable[Order]) -> None:
        for order in orders:
            if isinstance(order, Launch):
                self._launch(order)
            elif isinstance(order, Cancel) and (process := self.live.get(order.attempt.id)) and not process.reason:
                stops = self.hands.monotonic + self.random.choice((0, 0, 700, 5_000))
                process.state, process.reason, process.ends = "canceled", order.reason, min(process.ends, stops)

    def _launch(self, order: Launch) -> None:
        lasts = self.random.choice((200, 5_000, 5_000, 50_000, LONGEST_RUN))
        process = Process(
            launch=order,
            attempt=order.attempt.id,
            identity=ProcessIdentity(10_000 + len(self.processes), "boot", self.hands.boot),
            started=self.hands.boot,
            ends=self.hands.monotonic + self.random.randrange(100, 100 + lasts),
            state="failed" if self.random.random() < 0.2 else "success",
        )
        self.processes.append(process)
        self.live[process.attempt] = process
        self._stumble(Trouble.KILL_BEFORE_RECORD, (order,))
        update = self.engine.started(order.attempt, process.identity, "", self.hands.wall)
        self._guarded(lambda: self.store.update(update, essential=True))
        process.recorded = True

    def _report_ends(self) -> None:
        done = [process for process in self.live.values() if process.ends <= self.hands.monotonic]
        for process in sorted(done, key=lambda p: (p.ends, p.attempt)):
            self._gone(process)
            self._stumble(Trouble.KILL_BEFORE_END, (process,))
            self._carry_out(self._guarded(lambda process=process: self._report(process)))  # type: ignore[misc]

    def _report(self, process: Process) -> tuple[Order, ...]:
        attempt = self.adopted.get(process.attempt, process.launch.attempt)
        code = {"success": 0, "failed": 1}.get(process.state)
        end = AttemptEnd(process.state, process.reason, exit_code=code, error="" if code == 0 else "exit code 1")
        orders = self.store.update(self.engine.ended(attempt, end, self.hands.wall), essential=True)
        process.reported = True
        return orders

    def _guarded(self, work: Callable[[], T]) -> T:
        """What cannot be written down brings the daemon down: a successor reads what there is."""
        try:
            return work()
        except StoreError:
            raise DaemonDiedError from None

    # -- troubles ----------------------------------------------------------------------------------------

    def suffer(self, event: Event) -> None:
        match event.trouble:
            case Trouble.KILL:
                self.die(event.length, orphans_survive=event.chance < 0.5)
            case Trouble.SLEEP:
                self.hands.sleep(event.length)
            case Trouble.STEP:
                self.hands.step(event.length)
            case Trouble.PAUSE:
                name = self.drawn[int(event.chance * len(self.drawn))].job.id
                self._pause(name, by="operator")
                self.live_until(self.hands.boot + event.length)
                self._pause(name, by="")
            case _:
                self.armed = event.trouble

    def _stumble(self, trouble: Trouble, over: Iterable[object]) -> None:
        if self.armed is trouble and any(True for _ in over):
            self.armed = None
            raise DaemonDiedError

    def _pause(self, name: str, by: str) -> None:
        def write(tx: Transaction) -> None:
            ledger = Ledger(tx, self.hands.wall)
            job = ledger.job(name)
            assert job is not None
            ledger.put(replace(job, paused=bool(by), paused_by=by))

        self.rows.update(write)
