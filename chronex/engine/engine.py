"""One tick: the engine decides and records what is due in one transaction; only then is anything started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.decisions import Decisions, earliest
from chronex.engine.group_limits import CONDITIONS
from chronex.engine.lines import GroupReader
from chronex.engine.membership import awake_since, refuse_lost
from chronex.engine.notices import hooks_left, hooks_waiting
from chronex.engine.orders import AttemptEnd, Order
from chronex.engine.plan import (
    Chance,
)
from chronex.engine.shared_logs import put_excerpt
from chronex.engine.takeover import AgeOf, IsAlive, IsKept, TakenOver, deadline_from, has_begun, take_over
from chronex.errors import StaleClaimError
from chronex.model.groups import CatchUpPace
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, ProcessIdentity
from chronex.model.policies import SHORTEST_PAUSE_MS, Found
from chronex.model.states import AttemptState
from chronex.storage.ports import ReadTransaction, Store, Transaction, UpdateFn, ViewFn
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import WHOLE, DueClaim, Scope, shared_group

BATCH = 500
# Where much is due on one instant, its first commands start while the rest is decided.
FIRST_BATCH = 100
# A claim is followed by its start within milliseconds, unless the disk is full or an `on_start` hook takes its time.
SLOW_START_MS = 1_000


class Tick(NamedTuple):
    """Orders to carry out, when the next tick is due, and whether more was due than one transaction took."""

    orders: tuple[Order, ...]
    next_ms: int | None
    has_more: bool


class AttemptStart(NamedTuple):
    """An attempt has begun: the process that runs it (None for a Python function), and where its output goes."""

    attempt: Attempt
    process: ProcessIdentity | None
    log_path: str
    at_ms: int
    log_limit: int = 0


class Engine:
    """Decides for one node. Time is an argument; nothing here starts a process or sleeps."""

    def __init__(
        self, store: Store, node: str, slots: int, chance: Chance | None = None,
        *, shortest_pause_ms: int = SHORTEST_PAUSE_MS,
    ) -> None:  # fmt: skip
        self.store, self.node, self.slots = store, node, slots
        self.shortest_pause_ms = shortest_pause_ms  # before a next attempt; tests in real time give less
        # Where machines share the store: the epoch with which this node registered; None where only one uses it.
        self.epoch: int | None = None
        self.stopping = False  # set once: from then on ends are recorded and nothing is started
        # With `run --once`: what comes due later is for the next call, but for what follows from a run of this one.
        self.due_until_ms: int | None = None
        # By what jobs choose where they run; None where nobody has said, and then any job may run here.
        self.placement: Callable[[Job], bool] | None = None
        self.has_function: Callable[[str], bool] = lambda target: True
        # Where machines share the store: whether this one has the secret of a source such as "env:PGPASSWORD".
        self.has_secret: Callable[[str], bool] = lambda source: True
        self.lacking_secrets: set[str] = set()  # sources that jobs named and this node has not
        # How long a process of this machine has been there, whatever its clock was set to; None where nobody knows.
        self.age_of: AgeOf = lambda process: None
        # An update may wait for the store after its time was read. What leaves a queue then starts at the time of the
        # transaction: another update may have queued it meanwhile, and by the time that was read it was not due yet.
        self.read_clock: Callable[[], int] | None = None
        self.pace = CatchUpPace()  # of missed runs
        # What a daemon found of the conditions of jobs, by their ids; whether it has found something since the last
        # tick; and whether anybody waits for that.
        self.found: dict[str, Found] = {}
        self.has_news = False
        self.awaits_conditions = False
        self.asked_last: bytes | None = None  # how far the line of conditions was gone through
        self.left_alone = 0  # how many due records the last tick left to nodes that have their function or schedule
        self.was_draining = False  # as the last tick found it
        self.served_last = ""  # the job whose queue was served last; only fairness depends on it
        # Where machines share the store, as it was when somebody looked last: the lines that may go on, and when the
        # rate of another one lets it. A tick holds the groups of the former, and leaves the others alone.
        self.open_lines: frozenset[str] = frozenset()
        self.lines_next_ms: int | None = None
        self.must_read_lines = False  # somebody stood in line at the last tick
        self.chance: Chance = chance or Random()  # noqa: S311  jitter spreads load, it guards nothing

    def can_run(self, job: Job) -> bool:
        """Whether the job may run here, and this node has every function that it calls; else it is left to others."""
        if self.placement is not None and not self.placement(job):
            return False
        if (functions := job.functions) and not all(map(self.has_function, functions)):
            return False
        return self.epoch is None or not [one for one in job.secret_sources if not self._finds(one)]

    def _finds(self, source: str) -> bool:
        """Whether this node has the secret of that source; what it lacks is told to the others."""
        if self.has_secret(source):
            self.lacking_secrets.discard(source)
            return True
        self.lacking_secrets.add(source)
        return False

    def tick(self, now_ms: int, awake_since_ms: int) -> Tick:
        """Plan jobs that are due, admit occurrences that are due, and retry runs whose pause is over."""
        if self.epoch is not None and self.must_read_lines:
            self.store.view(lambda tx: self.read_lines(Reading(tx), now_ms))
        return self.store.update(self.tick_update(now_ms, awake_since_ms), scope=self.tick_scope(now_ms))

    def resting(self, now_ms: int) -> ViewFn[Tick | None]:
        """The tick of a store in which nothing is due and nothing can leave its queue, found by reading alone.

        Every start and every end changes the store and wakes the daemon that watches it; a thousand of them must not
        cost a thousand write transactions that write nothing.
        """

        def read(tx: ReadTransaction) -> Tick | None:
            reading = Reading(tx)
            first_ms = reading.next_due_ms()
            is_due = first_ms is not None and first_ms <= now_ms
            if is_due and self.epoch is None:
                return None
            groups = self.read_lines(reading, now_ms)
            self.awaits_conditions = CONDITIONS in groups.lines()
            if is_due or (self.has_news and self.awaits_conditions):
                return None
            has_queue = next(reading.queued_jobs(), None) is not None
            if (has_queue or self.open_lines) and self.free_slots(reading) > 0:
                return None
            return Tick((), earliest(first_ms, self.lines_next_ms), has_more=False)

        return read

    def read_lines(self, reading: Reading, now_ms: int) -> GroupReader:
        """Which lines may go on. What becomes of them is decided by the update that holds their groups."""
        groups = GroupReader(reading, self.pace, self.slots, self.pool_owner)
        self.open_lines, self.lines_next_ms = groups.open_lines(now_ms), groups.next_ms(now_ms)
        self.must_read_lines = False
        return groups

    def free_slots(self, reading: Reading) -> int:
        """One pool for a store of one machine: the child of a dead scheduler takes a slot until it is gone.

        Where machines share the store, each has a pool of its own.
        """
        return self.slots - reading.count_active(self.slots, self.pool_owner)

    @property
    def pool_owner(self) -> str | None:
        """Whose runs fill the pool: this node's where machines share the store, else all."""
        return None if self.epoch is None else self.node

    def records(self, tx: Transaction, now_ms: int) -> Records:
        """What a decision of this node reads and writes; FencedError where others have given the node up."""
        records = Records.cached(tx, now_ms)
        if self.epoch is not None:
            refuse_lost(records, self.node, self.epoch)
        return records

    def tick_scope(self, now_ms: int) -> Scope:
        """What a tick is about: of what is due at most what this node can run, so that the others have their share.

        One that counts the running work of all nodes must have the store to itself.
        """
        if self.epoch is None:
            return WHOLE
        begins = not self.was_draining
        due = DueClaim(
            now_ms, self.node, self.slots, beyond=self.left_alone, served_last=self.served_last, begins=begins
        )
        return Scope(due=due, shared=frozenset(map(shared_group, self.open_lines)))

    def tick_update(self, now_ms: int, awake_since_ms: int, most: int = BATCH) -> UpdateFn[Tick]:
        """One tick as an update of the store: the daemon awaits it, `tick` waits for it."""

        def decide(tx: Transaction) -> Tick:
            records = self.records(tx, now_ms)
            awake_ms = awake_since_ms
            if self.epoch is not None:
                awake_ms = awake_since(records.nodes(), awake_since_ms, now_ms)
            decisions = Decisions(records, self, awake_ms)
            decisions.own_awake_since_ms = awake_since_ms
            has_more = decisions.take_due(most)
            decisions.serve_conditions()
            decisions.start_queued()
            decisions.write()
            self.must_read_lines = bool(decisions.lines.lines())
            next_ms = earliest(records.next_due_after(now_ms), decisions.next_turn_ms(), self._next_line_ms(now_ms))
            return Tick(tuple(decisions.orders), next_ms, has_more)

        return decide

    def _next_line_ms(self, now_ms: int) -> int | None:
        """When a line that this tick did not hold may go on."""
        next_ms = self.lines_next_ms if self.epoch is not None else None
        return next_ms if next_ms is not None and next_ms > now_ms else None

    def started(
        self, attempt: Attempt, process: ProcessIdentity | None, log_path: str, now_ms: int, log_limit: int = 0
    ) -> UpdateFn[frozenset[str]]:
        """An update that records who runs the attempt, so that a successor can find it, or see that it is gone."""
        return self.all_started([AttemptStart(attempt, process, log_path, now_ms, log_limit)])

    def all_started(self, starts: Sequence[AttemptStart]) -> UpdateFn[frozenset[str]]:
        """The same for some that began together; it gives the ids of those whose claim was taken away meanwhile.

        A node that stood still (SIGSTOP) between claim and start may have been declared dead, and its claim ended:
        what it holds at the start barrier must then never run.
        """

        def record(tx: Transaction) -> frozenset[str]:
            tx.expect({start.attempt.job for start in starts})
            if self.epoch is not None and starts:
                refuse_lost(Records(tx, starts[0].at_ms), self.node, self.epoch)
            return frozenset(
                start.attempt.id for start in starts if not _record_start(Records(tx, start.at_ms), start)
            )

        return record

    def ended(self, attempt: Attempt, end: AttemptEnd, now_ms: int) -> UpdateFn[tuple[Order, ...]]:
        """An update that records an attempt's end; it gives the orders that follow, none where it came too late."""

        def record(tx: Transaction) -> tuple[Order, ...]:
            tx.expect({attempt.job})
            records = self.records(tx, now_ms)
            decisions = Decisions(records, self, now_ms)
            try:
                decisions.lifecycle.attempt_ended(attempt, end)
            except StaleClaimError:
                if not records.is_written:
                    raise  # half of a decision must not be kept
                return ()
            if end.excerpt is not None:
                put_excerpt(records, attempt, end.excerpt)
            decisions.start_queued(attempt.job)
            decisions.write()
            return tuple(decisions.orders)

        return record

    def take_over(self, is_alive: IsAlive, now_ms: int, is_kept: IsKept = lambda _attempt: False) -> TakenOver:
        """`take_over_update`, waited for."""
        return self.store.update(self.take_over_update(is_alive, now_ms, is_kept), use_reserve=True)

    def take_over_update(
        self, is_alive: IsAlive, now_ms: int, is_kept: IsKept = lambda _attempt: False
    ) -> UpdateFn[TakenOver]:
        """Take up what dead nodes left behind and reap what outlived its deadline: orders, and living orphans.

        `is_kept` says whether a keeper has the attempt of this id, or knows how it ended.
        """

        def record(tx: Transaction) -> TakenOver:
            records = self.records(tx, now_ms)
            decisions = Decisions(records, self, now_ms)
            adopted = take_over(records, decisions.lifecycle, self.node, is_alive, is_kept, self.age_of)
            decisions.orders[:0] = hooks_left(records, self.node, self.has_function)
            decisions.start_queued()
            decisions.write()
            return tuple(decisions.orders), adopted

        return record

    def hooks_waiting(self, now_ms: int) -> ViewFn[tuple[bool, bool]]:
        """Whether the next try of a hook is due, and whether any notice waits at all."""
        return lambda tx: hooks_waiting(Reading(tx), self.node, now_ms)

    def hooks_due(self, now_ms: int) -> UpdateFn[tuple[Order, ...]]:
        """An update that gives the orders for hooks whose next try is due."""
        return lambda tx: tuple(hooks_left(Records(tx, now_ms), self.node, self.has_function))


def _record_start(records: Records, start: AttemptStart) -> bool:
    """False where the attempt has ended, or is another node's by now."""
    claimed = start.attempt
    found = records.attempt(claimed.job, claimed.nominal_ms, claimed.task, claimed.number)
    if found is None or found.state is not AttemptState.RUNNING:
        return False
    if (found.owner, found.epoch) != (claimed.owner, claimed.epoch):
        return False
    if start.at_ms - found.created_ms > SLOW_START_MS:
        _count_from_start(records, found, start.at_ms)
    kept = {"log_path": start.log_path, "log_limit": start.log_limit}
    records.put(replace(found, process=start.process, started_ms=start.at_ms, **kept))
    return True


def _count_from_start(records: Records, attempt: Attempt, at_ms: int) -> None:
    """The first start of an occurrence came long after its claim, so its execution timeout counts from here."""
    occurrence = records.occurrence(attempt.job, attempt.nominal_ms)
    if occurrence is not None and occurrence.deadline_ms is not None and not has_begun(records, occurrence):
        records.put(replace(occurrence, deadline_ms=deadline_from(records, occurrence, at_ms)))
