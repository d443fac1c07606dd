"""Several machines on one store and on one fake clock: the real engine and membership, scripted commands.

A machine has a scheduler and a keeper. The scheduler can be stopped (SIGSTOP), cut off from the store, or killed; the
machine can be switched off. The keeper lives as long as its machine, and ends what runs when its time is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from chronex.engine.engine import AttemptStart, Engine
from chronex.engine.membership import (
    KILL_AFTER_MS,
    LEASE_MS,
    RENEW_MS,
    STOP_AFTER_MS,
    TRUSTED_MS,
    is_any_silent,
    next_silence_ms,
    refuse_lost,
    renewed,
)
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.errors import FencedError
from chronex.model.event import Event
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, ProcessIdentity
from chronex.model.placement import fits_node
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Node
from chronex.model.states import AttemptState
from chronex.storage.journal import append
from chronex.storage.ports import Store, Transaction
from chronex.storage.records import Reading, Records
from chronex_store import MemoryStore

SLEEP_MS = 30_000
STEP_MS = 1_000
REAP_EVERY_MS = 30_000


@dataclass
class Execution:
    """What a command itself would have written: from when to when it ran, and where."""

    attempt: Attempt
    host: str
    started_ms: int
    stops_ms: int
    ended_ms: int | None = None
    end: AttemptEnd | None = None


@dataclass
class Machine:
    """One machine. `executions` are those that its keeper has, with those whose end is not on record yet."""

    name: str
    cluster: Cluster
    is_on: bool = True
    frozen_until: int = 0
    cut_until: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    drains: bool = False
    secrets: set[str] = field(default_factory=set)
    node: Node | None = None
    engine: Engine | None = None
    word_sent_ms: int = 0
    reaped_ms: int = 0
    looks_at: int | None = None  # when another is to be given up, as far as was known at the last word
    sleeps_until: int = 0  # unless the store changes, as a daemon does
    seen: int = -1
    claimed: list[Launch] = field(default_factory=list)  # claimed, their start not on record
    recorded: list[tuple[Launch, int]] = field(default_factory=list)  # on record, and until when they may begin
    executions: dict[str, Execution] = field(default_factory=dict)
    watched: dict[str, Attempt] = field(default_factory=dict)  # as this scheduler knows them

    @property
    def can_act(self) -> bool:
        return self.is_on and self.cluster.now >= self.frozen_until

    def boot(self) -> None:
        """A new scheduler under a new name; what the last one had in memory is gone."""
        now = self.cluster.now
        number = self.cluster.next_number()
        self.claimed, self.recorded, self.watched = [], [], {}
        self.node = Node(
            id=f"node-{number}", process=ProcessIdentity(number, f"boot-{self.name}", 1), host=self.name,
            host_id=self.name, lease_ms=LEASE_MS, steady_since_ms=now, started_ms=now, seen_ms=now, places=5,
            awake_since_ms=now, name=self.name, labels=self.labels,
        )  # fmt: skip
        self.engine = Engine(self.cluster.store, self.node.id, 5, self.cluster.random)
        here = self.node
        self.engine.placement = lambda job: fits_node(job, here)
        self.engine.has_secret = self.secrets.__contains__
        self.engine.epoch = self.node.epoch
        self.reaped_ms = self.word_sent_ms = self.sleeps_until = 0

    def kill(self) -> None:
        """kill -9 of the scheduler; its keeper and its commands go on."""
        self.node = self.engine = None

    def leave(self) -> None:
        """The scheduler stops in good order, and what runs is left to its keeper."""
        assert self.node is not None
        left = replace(self.node, stopped_ms=self.cluster.now)
        self.cluster.store.update(lambda tx: Records(tx, self.cluster.now).put(left))
        self.kill()

    def switch_off(self) -> None:
        self.kill()
        self.is_on = False
        for execution in self.executions.values():
            if execution.ended_ms is None:
                execution.ended_ms = self.cluster.now
        self.executions = {}

    # -- one step ------------------------------------------------------------------------------------------------

    def step(self) -> None:
        if self.is_on:
            self._keep()
        if not self.can_act or self.engine is None or self.node is None:
            return
        if self.cluster.now < self.cut_until:
            return
        try:
            self._open_recorded()
            self._say_word()
            self._look()
            self._record_starts()
            self._record_ends()
            self._tick()
        except FencedError:
            self._note_refused(self.node.id)
            self.boot()

    def _note_refused(self, node: str) -> None:
        """As the daemon's registration does."""
        now = self.cluster.now

        def write(tx: Transaction) -> None:
            records = Records(tx, now)
            found = records.node(node)
            if found is not None and found.refused_ms is None:
                records.put(replace(found, refused_ms=now))
                append(tx, Event(name="NodeRefused", at_ms=now, data={"node": node}))

        self.cluster.store.update(write)

    def _keep(self) -> None:
        """The keeper: commands end, and past the trust in the node they are ended."""
        now = self.cluster.now
        for execution in self.executions.values():
            if execution.ended_ms is not None:
                continue
            if execution.stops_ms <= now:
                execution.ended_ms, execution.end = execution.stops_ms, AttemptEnd(AttemptState.SUCCESS, exit_code=0)
            elif now >= self.cluster.trusted_ms(self) + STOP_AFTER_MS + self.cluster.stubborn_ms:
                cut_off = Reason(ReasonCode.CUT_OFF)
                execution.ended_ms, execution.end = now, AttemptEnd(AttemptState.CRASHED, cut_off, retryable=True)

    def _open_recorded(self) -> None:
        for launch, until_ms in self.recorded:
            if self.cluster.now < until_ms:
                self.cluster.begin(self, launch)
            else:
                self.executions[launch.attempt.id] = Execution(
                    launch.attempt, self.name, 0, 0, self.cluster.now,
                    AttemptEnd(AttemptState.CRASHED, Reason(ReasonCode.NEVER_STARTED), retryable=True),
                )  # fmt: skip
        self.recorded = []

    def _say_word(self) -> None:
        assert self.node is not None
        now = self.cluster.now
        if self.word_sent_ms and now - self.word_sent_ms < RENEW_MS:
            return
        lacking = () if self.engine is None else tuple(sorted(self.engine.lacking_secrets))
        told = self.node = replace(
            renewed(self.node, now), lacking_secrets=lacking, draining=self.drains or self.node.draining
        )

        def write(tx: Transaction) -> None:
            records = Records(tx, now)
            if records.node(told.id) is None:
                append(tx, Event(name="SchedulerStarted", at_ms=now, data={"node": told.id}))
            else:
                refuse_lost(records, told.id, told.epoch)
            records.put(told)

        self.cluster.store.update(write)
        self.word_sent_ms = now
        self.looks_at = self.cluster.store.view(lambda tx: next_silence_ms(Reading(tx).nodes(), told))
        if now - self.reaped_ms >= REAP_EVERY_MS:
            self._take_over()

    def _look(self) -> None:
        """At those who are to be given up unless they were heard, as the daemon's registration does."""
        assert self.node is not None
        here, now = self.node, self.cluster.now
        if self.looks_at is None or now < self.looks_at:
            return
        if self.cluster.store.view(lambda tx: is_any_silent(Reading(tx).nodes(), here, now)):
            self._take_over()

    def _take_over(self) -> None:
        assert self.engine is not None
        self.reaped_ms = self.cluster.now
        orders, adopted = self.engine.take_over(self._sees, self.cluster.now, self.executions.__contains__)
        for attempt in adopted:
            self.watched[attempt.id] = attempt
        self._carry_out(orders)

    def _sees(self, process: ProcessIdentity) -> bool:
        """Processes of this machine alone."""
        if self.node is not None and process == self.node.process:
            return True
        return any(
            execution.ended_ms is None and execution.attempt.id == self.cluster.attempt_of(process)
            for execution in self.executions.values()
        )

    def _record_starts(self) -> None:
        assert self.engine is not None
        claimed, self.claimed = self.claimed, []
        now = self.cluster.now
        starts = [
            AttemptStart(launch.attempt, self.cluster.process_of(launch.attempt.id), "log", now) for launch in claimed
        ]
        refused = self.cluster.store.update(self.engine.all_started(starts)) if starts else frozenset()
        for launch in claimed:
            if launch.attempt.id not in refused:
                self.watched[launch.attempt.id] = launch.attempt
                self.recorded.append((launch, self.word_sent_ms + TRUSTED_MS))

    def _record_ends(self) -> None:
        assert self.engine is not None
        for attempt_id, attempt in list(self.watched.items()):
            execution = self.executions.get(attempt_id)
            if execution is None or execution.end is None:
                continue
            orders = self.cluster.store.update(self.engine.ended(attempt, execution.end, self.cluster.now))
            del self.watched[attempt_id], self.executions[attempt_id]
            self._carry_out(orders)

    def _tick(self) -> None:
        assert self.engine is not None
        assert self.node is not None
        now, store = self.cluster.now, self.cluster.store
        if now >= self.word_sent_ms + TRUSTED_MS or (now < self.sleeps_until and store.wait(-1, 0) == self.seen):
            return
        tick = self.engine.tick(now, self.node.awake_since_ms or now)
        self.sleeps_until = now if tick.has_more else min(tick.next_ms or now + SLEEP_MS, now + SLEEP_MS)
        self.seen = store.wait(-1, 0)
        self._carry_out(tick.orders)

    def _carry_out(self, orders: Iterable[Order]) -> None:
        for order in orders:
            if isinstance(order, Launch):
                self.claimed.append(order)
            elif isinstance(order, Cancel):
                self._cancel(order)

    def _cancel(self, order: Cancel) -> None:
        found = self.executions.get(order.attempt.id)
        if found is not None and found.ended_ms is None:
            found.ended_ms, found.end = self.cluster.now, AttemptEnd(AttemptState.CANCELED, order.reason)


class Cluster:
    """Machines on one store. `begun` is every execution there ever was, which no store can know of."""

    def __init__(
        self, jobs: Iterable[Job], machines: int, seed: int, start_ms: int, longest_ms: dict[str, int] | None = None
    ) -> None:
        self.random = Random(seed)
        self.now = start_ms
        self.longest_ms = longest_ms or {}  # how long the commands of a job take; a minute at most for others
        self._words: dict[str, int] = {}
        self.stubborn_ms = KILL_AFTER_MS - STOP_AFTER_MS  # what is asked to stop goes on until it is killed
        self.store: Store = MemoryStore()
        self.begun: list[Execution] = []
        self._numbers = 0
        self._pids: dict[str, int] = {}
        apply_jobs(self.store, jobs, start_ms)
        self.machines = [Machine(f"host-{number}", self) for number in range(machines)]
        for machine in self.machines:
            machine.boot()

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def process_of(self, attempt_id: str) -> ProcessIdentity:
        pid = self._pids.setdefault(attempt_id, 10_000 + len(self._pids))
        return ProcessIdentity(pid, "boot", 1)

    def attempt_of(self, process: ProcessIdentity) -> str | None:
        return next((name for name, pid in self._pids.items() if pid == process.pid), None)

    def trusted_ms(self, machine: Machine) -> int:
        """When the last word of a scheduler of this machine was sent, as its keeper was told."""
        last = self._words[machine.name] = max(self._words.get(machine.name, 0), machine.word_sent_ms)
        return last

    def begin(self, machine: Machine, launch: Launch) -> None:
        lasts = self.random.randrange(200, self.longest_ms.get(launch.job.id, 60_000))
        execution = Execution(launch.attempt, machine.name, self.now, self.now + lasts)
        machine.executions[launch.attempt.id] = execution
        self.begun.append(execution)

    def run(self, span_ms: int) -> None:
        end = self.now + span_ms
        while self.now < end:
            order = list(self.machines)
            self.random.shuffle(order)
            for machine in order:
                machine.step()
            self.now += STEP_MS

    def drain(self, name: str, *, draining: bool = True) -> None:
        """A person asks a node to begin nothing, or to begin again."""
        machine = next(one for one in self.machines if one.name == name)
        machine.drains = draining
        if machine.node is not None:
            machine.node = replace(machine.node, draining=draining)

    def heal(self) -> None:
        for machine in self.machines:
            machine.frozen_until = machine.cut_until = 0
            machine.is_on = True
            if machine.engine is None:
                machine.boot()
