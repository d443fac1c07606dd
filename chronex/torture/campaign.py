"""A campaign: real daemons on a schema of their own, one fault after the other, and the verdict when all is quiet."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psycopg
from msgspec.structs import replace

from chronex.clock import SYSTEM_CLOCK
from chronex.engine.commands import Actor, trigger
from chronex.engine.update import apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.errors import StoreError
from chronex.model.groups import GroupSettings
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.states import is_final
from chronex.storage.ports import Store
from chronex.storage.records import EVERYTHING, Reading, Records
from chronex.torture.judgement import CampaignVerdict, Watched, judge
from chronex.torture.metronome import Metronome, uptime_s
from chronex.torture.node_faults import FAULTS, USUAL, Fault
from chronex.torture.relay import Relay, Upstream
from chronex.torture.tormented_node import NodeNetwork, TormentedNode, address_by_relay, upstream_of
from chronex.torture.witness import Span, read_witness, witness_command
from chronex.torture_settings import SCHEMA_PREFIX
from chronex_store.opening import open_postgres
from chronex_store.postgres import pg_schema
from chronex_store.postgres.pg_address import PostgresAddress, read_address
from chronex_store.postgres.pg_connections import Connections
from chronex_store.postgres.pg_frozen import holds_store

TICK, LONG, ASKED = "tick", "long", "asked"
# Two jobs of one group, of which one may run at a time, on whichever nodes they are.
TURNS = ("turn-a", "turn-b")
_NEVER = "@once 9999-12-31T00:00:00Z"
ONE_AT_A_TIME = GroupSettings("turns", limit=1)
EVERY_MS = {TICK: 1_000, LONG: 10_000, **dict.fromkeys(TURNS, 3_000)}
# At the usual pace: longer than a lease, so that the node is given up and comes back.
_SILENT_MS = 25_000
_QUIET_WITHIN_MS = 900_000
_POLL_MS = 200
_BUSY_SHARE = 0.8
# What a node that is gone had claimed moves within 20 s of the usual pace. One that stands still in the middle of a
# transaction holds the others up for 8 s at any pace. The rest is for what all of them have to do then.
_MOVES_MS, _HELD_UP_MS, _BUSY_MS = 20_000, 8_000, 15_000
# An eighth of the time for which a node is trusted: a heartbeat and a start take several times as long as a shell.
_IN_TIME_MS = 1_600

Emit = Callable[[str], None]


@dataclass
class CampaignSettings:
    nodes: int = 4
    rounds: int = 20
    pace: int = 10
    seed: int = 1
    faults: tuple[str, ...] = ()
    # Faults that only somebody who owns the database, or another version of Chronex, can make, by name.
    extra_faults: Mapping[str, Fault] = field(default_factory=dict)

    @property
    def in_namespaces(self) -> bool:
        """Whether each node has a network of its own, whose cable can be pulled."""
        return "unplug" in self.faults


class Campaign:
    """Use it as a context: its schema and its daemons are gone when it ends, however it ends."""

    def __init__(self, address: PostgresAddress, directory: Path, settings: CampaignSettings, emit: Emit) -> None:
        self.random = Random(settings.seed)  # noqa: S311  it chooses whom to hurt
        self.settings, self._emit = settings, emit
        schema = f"{SCHEMA_PREFIX}{self.random.getrandbits(32):08x}{SYSTEM_CLOCK.wall_ms() % 10**8:08d}"
        # Our own way to the store too: a database that fails over is somewhere else then.
        self._relay = Relay(upstream_of(address))
        self.address = _by_relay(address, self._relay.port, schema)
        self.witness = directory / "witness"
        self.nodes = [
            TormentedNode(
                number, directory, address, schema, settings.pace,
                network=NodeNetwork(self.random) if settings.in_namespaces else None,
            )
            for number in range(settings.nodes)
        ]  # fmt: skip
        self.store: Store = open_postgres(self.address)
        self._connections = Connections(self.address)  # for questions to the server itself
        self.acknowledged: list[tuple[str, int]] = []
        self.done: Counter[str] = Counter()
        self._away: list[Span] = []
        self._metronome = Metronome(_IN_TIME_MS // settings.pace)
        self._watched = Span(0, 0)

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self._metronome.close()
        for node in self.nodes:
            node.close()
        self.store.close()
        self._connections.close()
        pg_schema.drop(self.address)
        self._relay.close()

    def turn_to(self, upstream: Upstream) -> None:
        """The database is somewhere else from now on, for everybody at once."""
        for relay in (self._relay, *(node.relay for node in self.nodes)):
            relay.upstream = upstream
            relay.reset()

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """The database is away meanwhile, and nothing can begin."""
        since_s = uptime_s()
        try:
            yield
        finally:
            self._away.append(Span(since_s, uptime_s()))

    def run(self) -> CampaignVerdict:
        self._apply(self._jobs())
        for node in self.nodes:
            node.start()
        # A short campaign could be over before the first instant of the long one, ten seconds apart, had come.
        self._until(lambda: self._completed() >= len(self.nodes) and self._has_begun(LONG), "the first runs")
        begun_s = uptime_s()
        for number in range(self.settings.rounds):
            self._round(number + 1)
        self._watched = Span(begun_s, uptime_s())
        self._heal()
        return self._verdict()

    def _apply(self, jobs: list[Job]) -> None:
        owns = JobSource("", groups=(ONE_AT_A_TIME,))
        apply_jobs(self.store, jobs, self.store.now(), actor="torture", owns=owns)

    def _jobs(self) -> list[Job]:
        short, slow, quick = (witness_command(self.witness, steps) for steps in (4, 25, 2))
        jobs = {TICK: ("* * * * * *", short), LONG: ("*/10 * * * * *", slow), ASKED: ("0 0 1 1 *", short)}
        jobs |= dict.fromkeys(TURNS, ("*/3 * * * * *", quick))
        return [
            Job(
                id=name, schedule=schedule, tasks=(Task(name="main", run=command),),
                overlap=OverlapPolicy.SKIP if name in TURNS else OverlapPolicy.ALLOW,
                groups={ONE_AT_A_TIME.name: 1} if name in TURNS else {},
                recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL),
                retry=RetryPolicy(20, 1_000, backoff=1.0, jitter=0.0),
            )
            for name, (schedule, command) in jobs.items()
        ]  # fmt: skip

    # -- rounds ----------------------------------------------------------------------------------------------------

    def _round(self, number: int) -> None:
        faults = {**FAULTS, **self.settings.extra_faults}
        chosen = self.settings.faults or (*USUAL, *self.settings.extra_faults)
        name = chosen[(number - 1) % len(chosen)]
        victim = self._victim()
        self._ask()
        faults[name](self, victim)
        self.done[name] += 1
        self._ask()
        before = self._completed()
        self._until(lambda: self._completed() > before, f"runs after {name}")
        if number % 10 == 0 or number == self.settings.rounds:
            self._emit(f"round {number} of {self.settings.rounds}: {self._completed()} runs completed")

    def _victim(self) -> TormentedNode:
        """Mostly one that runs something."""
        busy: list[str] = []
        with contextlib.suppress(StoreError):
            busy = self.store.view(lambda tx: _busy_nodes(Reading(tx)))
        found = [node for node in self.nodes if node.name in busy]
        return self.random.choice(found if found and self.random.random() < _BUSY_SHARE else self.nodes)

    def _ask(self) -> None:
        """A person asks for a run; once the store has taken it, it must not be lost."""
        actor, now_ms = Actor("torture", "cli", "campaign"), self.store.now()
        try:
            asked = self.store.update(lambda tx: trigger(Records(tx, now_ms), ASKED, actor))
        except StoreError:
            return  # it was not acknowledged
        self.acknowledged.append((ASKED, asked.occurrence.nominal_ms))

    def silent_ms(self) -> int:
        return _SILENT_MS // self.settings.pace + 500

    @property
    def longest_pause_ms(self) -> int:
        """How long nothing at all may begin, whatever becomes of one node."""
        return _MOVES_MS // self.settings.pace + _HELD_UP_MS + _BUSY_MS

    def is_deciding(self, node: TormentedNode) -> bool:
        """Whether the server waits for a node's next word in the middle of a transaction that holds the store."""
        with contextlib.suppress(StoreError, psycopg.Error), self._connections.reader() as connection:
            return holds_store(connection, self.address.schema, node.name)
        return False

    def pause(self, ms: int) -> None:
        threading.Event().wait(ms / 1000)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _heal(self) -> None:
        """Everything is well again, no instant comes any more, and what is open ends."""
        for node in self.nodes:
            node.plug_in()
            node.signal_all(signal.SIGCONT)
            if not node.is_running:
                node.start()
        # Of jobs that are switched off what waits for its turn would be withdrawn.
        self._apply([replace(job, schedule=_NEVER) if job.schedule else job for job in self._jobs()])
        self._until(lambda: self._open() == 0, "the end of all that was begun", _QUIET_WITHIN_MS)
        for node in self.nodes:
            node.leave()

    def _verdict(self) -> CampaignVerdict:
        cannot = (*self._away, *self._metronome.late)
        watched = Watched(self._watched, cannot, self.longest_pause_ms / 1000)
        found = judge(
            self.store, EVERY_MS, read_witness(self.witness), self.acknowledged, in_turn=TURNS, watched=watched
        )
        return found._replace(figures={"rounds": dict(self.done), **found.figures})

    # -- what the store says ---------------------------------------------------------------------------------------

    def _completed(self) -> int:
        try:
            jobs = self.store.view(lambda tx: [Reading(tx).job(name) for name in (TICK, LONG)])
        except StoreError:
            return 0
        return sum(job.progress.counters.completed for job in jobs if job is not None)

    def _has_begun(self, name: str) -> bool:
        try:
            return bool(self.store.view(lambda tx: Reading(tx).occurrences(name, limit=1)))
        except StoreError:
            return False

    def _open(self) -> int:
        def count(reading: Reading) -> int:
            names = (TICK, LONG, ASKED, *TURNS)
            found = [one for name in names for one in reading.occurrences(name, limit=EVERYTHING)]
            return sum(not is_final(one.state) for one in found)

        try:
            return self.store.view(lambda tx: count(Reading(tx)))
        except StoreError:
            return -1

    def _until(self, holds: Callable[[], bool], what: str, within_ms: int = 180_000) -> None:
        begun = SYSTEM_CLOCK.monotonic_ms()
        while not holds():
            if SYSTEM_CLOCK.monotonic_ms() - begun > within_ms:
                raise CampaignStuckError(f"waited for {what} for {within_ms // 1000} s")
            self.pause(_POLL_MS)


def _busy_nodes(reading: Reading) -> list[str]:
    owners = {attempt.owner for attempt in reading.active_attempts()}
    return [node.name for owner in owners if (node := reading.node(owner)) is not None]


class CampaignStuckError(Exception):
    """What must happen by itself has not happened in any time that it may take."""


def _by_relay(address: PostgresAddress, port: int, schema: str) -> PostgresAddress:
    found = read_address(address_by_relay(address, port, schema))
    password = {name: value for name, value in address.parameters.items() if name == "password"}
    return PostgresAddress({**found.parameters, **password}, found.schema, found.shown)
