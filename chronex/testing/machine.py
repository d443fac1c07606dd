"""A machine on a fake clock: the real engine decides, and scripted processes take the place of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import NamedTuple, TypeVar

from chronex.daemon.wakeups import WakeupDetector
from chronex.engine import checked_ends
from chronex.engine.checked_ends import after_check, check_of
from chronex.engine.clock_steps import follow_clock
from chronex.engine.engine import Engine
from chronex.engine.notices import after_try
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order, RunHook, StopProcess
from chronex.engine.update import apply_jobs
from chronex.engine.update.group_changes import write_groups
from chronex.errors import StoreError, StoreOutcomeUnknownError
from chronex.model.event import Event
from chronex.model.groups import CatchUpPace, GroupSettings
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence, ProcessIdentity
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Node
from chronex.model.states import AttemptState
from chronex.storage import journal
from chronex.storage.ports import ReadTransaction, Store
from chronex.storage.records import Reading, Records
from chronex.testing.clock import HOUR, MINUTE, SECOND, FakeClock, Instant, Span, instant_ms, span_ms
from chronex_store import MemoryStore

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
# A daemon ticks at least every 30 s. Here once an hour is enough, because a tick follows every change of the store.
LONGEST_SLEEP = HOUR
_FIRST_PID = 10_000
_EVERYTHING = 10_000_000

R = TypeVar("R")


class ProcessOutcome(NamedTuple):
    """What a scripted process does: it runs for `duration_ms` and ends with `exit_code`."""

    duration_ms: int = SECOND
    exit_code: int = 0


OutcomeOf = Callable[[Launch], ProcessOutcome]
StopTimeOf = Callable[[Launch], int]
CheckOf = Callable[[Attempt], int]


def succeed(_launch: Launch) -> ProcessOutcome:
    """The process succeeds after one second."""
    return ProcessOutcome()


def stop_at_once(_launch: Launch) -> int:
    """A canceled process ends in the same millisecond."""
    return 0


def nothing_done(_attempt: Attempt) -> int:
    """The check of `on_crash` finds that the work was not done."""
    return 1


def all_done(_attempt: Attempt) -> int:
    """The check of a task finds that the work was done."""
    return 0


class RandomOutcomes:
    """Processes of random length, some of which fail."""

    def __init__(self, seed: int | Random, fail_share: float = 0.2, longest_ms: int = 3 * MINUTE) -> None:
        self._random = Random(seed) if isinstance(seed, int) else seed
        self.fail_share = fail_share
        self.longest_ms = longest_ms

    def __call__(self, _launch: Launch) -> ProcessOutcome:
        failed = self._random.random() < self.fail_share
        return ProcessOutcome(self._random.randrange(100, self.longest_ms), int(failed))


class KillPoint(StrEnum):
    """Where the scheduler can be killed in the middle of its work."""

    BEFORE_LAUNCH = "before launch"  # a start is on record, and its process does not exist
    BEFORE_RECORD = "before record"  # a process exists behind its start barrier, and is not on record
    BEFORE_END = "before end"  # a process has ended, and its end is not on record


class _KilledError(Exception):
    """The scheduler was killed at a kill point, or its store left it in doubt."""


@dataclass
class SimulatedProcess:
    """A scripted child process. It outlives its scheduler when the test says so."""

    launch: Launch
    identity: ProcessIdentity
    started_ms: int  # true time
    stops_at: int  # monotonic time, because a process stands still while the machine sleeps
    exit_code: int
    canceled_by: Cancel | None = None
    cancel_number: int = 0  # counts those that were canceled, in their order; 0 where it ends by itself
    ended_ms: int | None = None  # true time
    is_recorded: bool = False  # its start is on record
    is_reported: bool = False  # its end is on record
    is_kept: bool = True  # a keeper waits for it, so that its end is known though its scheduler died

    @property
    def attempt_id(self) -> str:
        return self.launch.attempt.id

    @property
    def job(self) -> str:
        return self.launch.job.id

    @property
    def task(self) -> str:
        return self.launch.task.name

    @property
    def nominal_ms(self) -> int:
        return self.launch.occurrence.nominal_ms

    @property
    def state(self) -> str:
        """The state of its attempt once it has ended."""
        if self.canceled_by is not None:
            is_late = self.canceled_by.reason.code is ReasonCode.EXECUTION_TIMEOUT
            return "timeout" if is_late else "canceled"
        if not self.is_kept:
            return "crashed"
        return "success" if self.exit_code == 0 else "failed"

    def end(self) -> AttemptEnd:
        """Its end as a supervisor reports it."""
        if self.canceled_by is not None:
            return AttemptEnd(self.state, self.canceled_by.reason, retryable=self.state != "timeout")
        if not self.is_kept:
            unknown = "whoever watched it had died"
            return AttemptEnd(self.state, Reason(ReasonCode.UNKNOWN_EXIT, unknown), error=unknown)
        error = f"exit code {self.exit_code}" if self.exit_code else ""
        return AttemptEnd(self.state, exit_code=self.exit_code, error=error)


class SimulatedMachine:
    """One machine: its clock, its store, its schedulers one after the other, and the processes they start.

    Nothing here waits: a year of a job takes seconds. The same arguments and the same calls give the same store, byte
    for byte. Times are true time unless they are named otherwise; see FakeClock.
    """

    def __init__(
        self,
        jobs: Iterable[Job] = (),
        *,
        start: Instant = NEW_YEAR,
        slots: int = 50,
        seed: int | Random = 0,
        outcome: OutcomeOf = succeed,
        stop_time: StopTimeOf = stop_at_once,
        clock: FakeClock | None = None,
        store: Store | None = None,
    ) -> None:
        self.start_ms = instant_ms(start)
        self.clock = clock or FakeClock(self.start_ms)
        self.store: Store = store or MemoryStore(self.clock)
        self.slots = slots
        self.outcome = outcome
        self.stop_time = stop_time
        self.check: CheckOf = nothing_done
        self.task_check: CheckOf = all_done
        self.pace = CatchUpPace()  # of missed runs, for the schedulers that are started from now on
        self.processes: list[SimulatedProcess] = []
        self.live: dict[str, SimulatedProcess] = {}
        self._ended: dict[str, SimulatedProcess] = {}  # their ends are known to a keeper, and not on record
        self.hooks: list[RunHook] = []
        self.horizon_ms = self.start_ms  # the latest wall time at which the engine has decided something
        self.boots = 0
        self._jitter = Random(seed) if isinstance(seed, int) else seed
        self._kill_point: KillPoint | None = None
        self._cancels = 0
        jobs = list(jobs)
        if jobs:
            self.apply(jobs)
        self.boot()

    @property
    def now(self) -> int:
        """The wall time in milliseconds."""
        return self.clock.wall

    def apply(self, jobs: Iterable[Job], actor: str = "", groups: Iterable[GroupSettings] | None = None) -> None:
        """Give the store these jobs, as `chronex apply` does: jobs it has beside them are removed.

        `groups` are those of their file; None leaves the groups of the store as they are.
        """
        apply_jobs(self.store, list(jobs), self.now, actor)
        if groups is not None:
            self.store.update(lambda tx: write_groups(Records(tx, self.now), groups, "", actor))

    # -- schedulers ----------------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Start a scheduler; where its store refuses, again after a second."""
        while True:
            self.boots += 1
            try:
                self._boot()
                return
            except (StoreError, _KilledError):
                self._end_processes(keep_recorded=True)
                self.pass_time(SECOND)

    def _boot(self) -> None:
        self.detector = WakeupDetector(self.clock)
        self.engine = Engine(self.store, f"node-{self.boots}", self.slots, self._jitter)
        self.engine.pace = self.pace
        self._adopted: dict[str, Attempt] = {}
        self._put_node()
        self.journal("SchedulerStarted", node=self.engine.node)
        self._take_over()

    def _put_node(self, stopped_ms: int | None = None) -> None:
        process = ProcessIdentity(self.boots, "boot", 1)
        started_ms = self.detector.since_ms
        node = Node(id=self.engine.node, process=process, started_ms=started_ms, stopped_ms=stopped_ms)
        self.store.update(lambda tx: Records(tx, self.now).put(node))

    def _take_over(self) -> None:
        orders, adopted = self.engine.take_over(self._is_alive, self.now, self._ended.__contains__)
        self._adopted |= {attempt.id: attempt for attempt in adopted}
        self.carry_out(orders)
        for attempt in adopted:
            if attempt.id in self._ended:
                self.carry_out(self._report(self._ended[attempt.id]))
            elif attempt.id not in self.live:  # it died with its scheduler, and its check is asked
                gone = AttemptEnd(AttemptState.CRASHED, Reason(ReasonCode.OWNER_DIED))
                self.carry_out(self._record_end(attempt, gone))

    def _is_alive(self, process: ProcessIdentity) -> bool:
        return process.pid == self.boots or any(child.identity == process for child in self.live.values())

    def stop(self) -> None:
        """Stop the scheduler in order: nothing more is started, and what runs is canceled and recorded."""
        self.engine.stopping = True
        self.journal("SchedulerStopRequested", node=self.engine.node)
        for process in self.live.values():
            self._cancel(process, Cancel(process.launch.attempt, Reason(ReasonCode.STOPPING)))
            process.stops_at = self.clock.monotonic
        self.report_ends()
        self._put_node(stopped_ms=self.now)
        self.journal("SchedulerStopped", node=self.engine.node)

    def crash(self, *, orphans_survive: bool = False, keeper_survives: bool = False) -> None:
        """kill -9 of the scheduler. Its processes die with it, or live on as orphans for the next one to find.

        Where their keeper lives on too, as it does when a daemon is killed, the next scheduler knows how they ended.
        """
        self._end_processes(keep_recorded=orphans_survive)
        if not keeper_survives:
            self._ended.clear()
            for process in self.live.values():
                process.is_kept = False
        self._kill_point = None

    def go_down(self, span: Span, *, orphans_survive: bool = False, keeper_survives: bool = False) -> None:
        """The scheduler crashes, and the next one starts after `span`."""
        self.crash(orphans_survive=orphans_survive, keeper_survives=keeper_survives)
        self.pass_time(span)
        self.boot()

    def kill_at(self, point: KillPoint) -> None:
        """The scheduler is killed as soon as its work passes that point; `run_until` then starts the next one."""
        self._kill_point = point

    def restart_after_kill(self) -> None:
        """What follows a death at a kill point; a subclass may choose another downtime."""
        self.go_down(SECOND)

    def _pass_kill_point(self, point: KillPoint) -> None:
        if self._kill_point is point:
            self._kill_point = None
            raise _KilledError

    def _end_processes(self, *, keep_recorded: bool) -> None:
        """A process whose start is not on record waits at its start barrier, and dies with its scheduler."""
        for process in list(self.live.values()):
            if not (keep_recorded and process.is_recorded):
                self._remove(process)
                self._ended.pop(process.attempt_id, None)

    # -- time ----------------------------------------------------------------------------------------------------

    def sleep(self, span: Span) -> None:
        """Suspend the machine; the scheduler notices with its next tick."""
        self.clock.sleep(span)

    def set_clock(self, by: Span) -> None:
        """Set the wall clock forward, or back by a negative span; the scheduler notices with its next tick."""
        self.clock.step(by)

    def pass_time(self, span: Span) -> None:
        """Time passes without a tick, and without a record of the processes that end."""
        self.clock.advance(span)
        for process in list(self.live.values()):
            if process.stops_at <= self.clock.monotonic:
                self._remove(process)

    def _remove(self, process: SimulatedProcess) -> None:
        process.ended_ms = self.clock.boot - max(self.clock.monotonic - process.stops_at, 0)
        del self.live[process.attempt_id]
        if process.is_kept:
            self._ended[process.attempt_id] = process

    def run_for(self, span: Span) -> None:
        """Let the scheduler work for so long."""
        self.run_until(self.clock.boot + span_ms(span))

    def advance(self, **units: float) -> None:
        """The same in words: `advance(hours=3)`."""
        self.run_for(timedelta(**units))

    def run_until(self, end: Instant) -> None:
        """Let the scheduler work until that instant of true time."""
        end_ms = instant_ms(end)
        while self.clock.boot < end_ms:
            try:
                self._step(end_ms)
            except _KilledError:
                self.restart_after_kill()

    def _step(self, end_ms: int) -> None:
        """One round of the daemon's loop: notice, decide, carry out, wait, report what has ended."""
        self._notice_clock()
        seen = self.store.wait(-1, 0)
        try:
            tick = self.engine.tick(self.now, self.detector.since_ms)
        except StoreOutcomeUnknownError:
            raise _KilledError from None
        except StoreError:
            self.clock.advance(SECOND)
            return
        self.horizon_ms = max(self.horizon_ms, self.now)
        if tick.orders:
            self._pass_kill_point(KillPoint.BEFORE_LAUNCH)
        self.carry_out(tick.orders)
        if tick.has_more or self._is_woken(seen):
            return
        if any(self._is_overdue(process) for process in self.live.values()):
            self._or_die(self._take_over)
        self._wait(self._time_to_next(tick.next_ms, end_ms))
        self.report_ends()

    def _is_woken(self, seen: int) -> bool:
        """A daemon is woken by what its own tick has written: what that made due is decided at once, and not when
        something else is due."""
        if self.store.wait(-1, 0) == seen:
            return False
        next_ms = self.read(Reading.next_due_ms)
        return next_ms is not None and next_ms <= self.now

    def _notice_clock(self) -> None:
        if jump := self.detector.check():
            if jump.set_by_ms:
                self._or_die(lambda: follow_clock(self.store, jump.set_by_ms, jump.at_ms, self.engine.node))
            self._or_die(lambda: self.journal(jump.name, by_ms=jump.by_ms, slept_ms=jump.slept_ms))

    def _wait(self, ms: int) -> None:
        """A daemon reads its clocks every half minute; after a longer pause it would take itself for stalled."""
        for _ in range(ms // MINUTE):
            self.clock.advance(MINUTE)
            self.detector.check()
        self.clock.advance(ms % MINUTE)

    def _is_overdue(self, process: SimulatedProcess) -> bool:
        deadline = self._deadline_of(process)
        return deadline is not None and deadline <= self.now and process.canceled_by is None

    def _deadline_of(self, process: SimulatedProcess) -> int | None:
        """As it is on record: a clock that is set moves it."""
        claimed = process.launch.occurrence
        if claimed.deadline_ms is None:
            return None
        found = self.read(lambda reading: reading.occurrence(claimed.job, claimed.nominal_ms))
        return claimed.deadline_ms if found is None else found.deadline_ms

    def _time_to_next(self, next_ms: int | None, end_ms: int) -> int:
        waits = [LONGEST_SLEEP, end_ms - self.clock.boot]
        waits += [process.stops_at - self.clock.monotonic for process in self.live.values()]
        deadlines = (self._deadline_of(process) for process in self.live.values())
        waits += [at - self.now for at in deadlines if at is not None and at > self.now]
        if next_ms is not None:
            waits.append(next_ms - self.now)
        return max(min(waits), 0)

    # -- processes -----------------------------------------------------------------------------------------------

    def carry_out(self, orders: Iterable[Order]) -> None:
        """Start and stop processes as the engine orders."""
        for order in orders:
            if isinstance(order, Launch):
                self.launch(order)
            elif isinstance(order, RunHook):
                self._call_hook(order)
            elif (process := self.live.get(order.attempt.id)) is None:
                continue
            elif isinstance(order, StopProcess):
                process.stops_at = min(process.stops_at, self.clock.monotonic)
            elif process.canceled_by is None:
                self._cancel(process, order)

    def _call_hook(self, order: RunHook) -> None:
        """Every hook ends well and at once."""
        self.hooks.append(order)
        if (notice := order.notice) is not None:
            self._or_die(lambda: self.store.update(after_try(notice, "", self.now), use_reserve=True))

    def _cancel(self, process: SimulatedProcess, order: Cancel) -> None:
        process.canceled_by = order
        self._cancels += 1
        process.cancel_number = self._cancels
        process.stops_at = min(process.stops_at, self.clock.monotonic + self.stop_time(process.launch))

    def launch(self, order: Launch) -> None:
        """Start a process behind its barrier and record its start; a subclass may add to it."""
        outcome = self.outcome(order)
        process = SimulatedProcess(
            launch=order,
            identity=ProcessIdentity(_FIRST_PID + len(self.processes), "boot", self.clock.boot),
            started_ms=self.clock.boot,
            stops_at=self.clock.monotonic + outcome.duration_ms,
            exit_code=outcome.exit_code,
        )
        self.processes.append(process)
        self.live[process.attempt_id] = process
        self._pass_kill_point(KillPoint.BEFORE_RECORD)
        update = self.engine.started(order.attempt, process.identity, "", self.now)
        if self._or_die(
            lambda: self.store.update(update, use_reserve=True)
        ):  # its claim was taken away: it never runs
            del self.live[process.attempt_id]
            self.processes.remove(process)
        process.is_recorded = True

    def report_ends(self) -> None:
        """Record the ends of the processes that have stopped by now, the earliest first.

        Of several in one millisecond: in the order in which they started, and then those that were canceled, in the
        order in which that was ordered.
        """
        stopped = [process for process in self.live.values() if process.stops_at <= self.clock.monotonic]
        for process in sorted(stopped, key=lambda each: (each.stops_at, each.cancel_number)):
            self._remove(process)
            self._pass_kill_point(KillPoint.BEFORE_END)
            self.carry_out(self._report(process))

    def _report(self, process: SimulatedProcess) -> tuple[Order, ...]:
        attempt = self._adopted.get(process.attempt_id, process.launch.attempt)
        orders = self._record_end(attempt, self.end_of(process))
        process.is_reported = True
        self._ended.pop(process.attempt_id, None)
        return orders

    def _record_end(self, attempt: Attempt, end: AttemptEnd) -> tuple[Order, ...]:
        version = self._version_of(attempt)
        if checked_ends.is_unknown(end) and checked_ends.asks(version):
            code = self.check(attempt)
            end = checked_ends.answered(end, code, f"exit code {code}" if code else "")
        if check_of(version, attempt.task, end) is not None:
            end = after_check(end, self.task_check(attempt), "the check was not content")
        update = self.engine.ended(attempt, end, self.now)
        return self._or_die(lambda: self.store.update(update, use_reserve=True))

    def _version_of(self, attempt: Attempt) -> Job | None:
        def read(tx: ReadTransaction) -> Job | None:
            occurrence = Reading(tx).occurrence(attempt.job, attempt.nominal_ms)
            return None if occurrence is None else Reading(tx).version_run(occurrence)

        return self.store.view(read)

    def end_of(self, process: SimulatedProcess) -> AttemptEnd:
        """How the process ended; a subclass may know more of it."""
        return process.end()

    def _or_die(self, work: Callable[[], R]) -> R:
        """A scheduler that cannot write what it must is replaced: the next one reads what there is."""
        try:
            return work()
        except StoreError:
            raise _KilledError from None

    # -- what is on record ---------------------------------------------------------------------------------------

    def journal(self, name: str, **data: str | int) -> None:
        """Append an event to the journal."""
        event = Event(name=name, at_ms=self.now, data=data)
        self.store.update(lambda tx: journal.append(tx, event))

    def read(self, fn: Callable[[Reading], R]) -> R:
        """Read records in one transaction."""
        return self.store.view(lambda tx: fn(Reading(tx)))

    def occurrences(self, job: str) -> list[Occurrence]:
        """The occurrences of a job on record, the earliest first."""
        found = self.read(lambda reading: reading.occurrences(job, limit=_EVERYTHING))
        return sorted(found, key=lambda occurrence: occurrence.nominal_ms)

    def events(self, name: str = "") -> list[Event]:
        """The journal, oldest first: all events, or those of one name."""
        lines = self.store.view(lambda tx: journal.tail(tx, limit=_EVERYTHING))
        return [event for _, event in lines if name in ("", event.name)]

    def starts(self, job: str) -> list[datetime]:
        """When the processes of a job were started, by true time, in UTC."""
        return [datetime.fromtimestamp(p.started_ms / 1000, UTC) for p in self.processes if p.job == job]
