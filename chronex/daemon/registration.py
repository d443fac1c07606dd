"""A daemon's own record in the store: that it works, how it is asked to stop and, among machines, its lease."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol, TypeVar, runtime_checkable
from uuid import uuid4
from zlib import crc32

from msgspec.structs import replace

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.daemon.fault_log import Faults
from chronex.daemon.log_handlers import log_event
from chronex.engine.commands.nodes import RESTART
from chronex.engine.commands.trigger import start_jobs_of_boot
from chronex.engine.membership import (
    LEASE_MS,
    RENEW_MS,
    SHORT_TRUST_MS,
    TRUSTED_MS,
    is_any_silent,
    next_silence_ms,
    refuse_lost,
    renewed,
    taking_over_drain,
)
from chronex.errors import ChronexError, StoreError, StoreUnavailableError
from chronex.model.event import Event
from chronex.model.occurrence import Attempt
from chronex.model.reasons import NodeTrouble, TroubleCode
from chronex.model.records import Node
from chronex.run import identity_of
from chronex.storage.journal import append
from chronex.storage.ports import ReadTransaction, Store, Transaction, UpdateFn
from chronex.storage.records import EVERYTHING, Reading, Records
from chronex.storage.scopes import of_node
from chronex.timing.zones import known_zone_version
from chronex.torture_settings import paced
from chronex.version import __version__

log = logging.getLogger(__name__)
NAME_VARIABLE = "CHRONEX_NODE"
RENEW_S = RENEW_MS / 1000
_TURNS_MS = 500
# What whoever asks a node to stop has written into its record, and the node must not write over.
_ASKED = ("stop_mode", "stop_within_ms", "stop_by", "stop_asked_ms", "stop_refused", "draining", "drained_by")
# How long a store may take to say how we are asked to stop.
_LONGEST_ASKED_S = 5.0
_JUST_ASKED_MS = 1_000
# A store that takes nothing at the start is asked again after so long.
_AGAIN_S = 1.0
T = TypeVar("T")


def this_node(
    slots: int, clock: Clock = SYSTEM_CLOCK, host_id: str = "", labels: Mapping[str, str] | None = None
) -> Node:
    """A new name for every start: what an earlier process left behind belongs to that one.

    `host_id` tells the machines of a shared store apart; without one only this machine uses the store.
    """
    process = identity_of(os.getpid())
    if process is None:
        raise ChronexError("/proc does not show this process, and Chronex needs it: mount -t proc proc /proc")
    now_ms = clock.wall_ms()
    return Node(
        id=f"node-{uuid4().hex[:12]}",
        process=process,
        host=socket.gethostname(),
        chronex=__version__,
        places=slots,
        started_ms=now_ms,
        seen_ms=now_ms,
        host_id=host_id,
        name=os.environ.get(NAME_VARIABLE) or socket.gethostname(),
        tzdata=known_zone_version() if host_id else "",
        labels=dict(labels or {}),
        lease_ms=LEASE_MS if host_id else 0,
        steady_since_ms=now_ms if host_id else 0,
    )


@runtime_checkable
class _ReadFromAfar(Protocol):
    """A clock that is read over a network, and how far off that reading may be."""

    uncertainty_ms: float


def clock_facts(clock: Clock) -> dict[str, int]:
    """How this machine's own clock stands to that of the store, and how well that one is known here."""
    within = {"clock_within_ms": round(clock.uncertainty_ms)} if isinstance(clock, _ReadFromAfar) else {}
    return {"clock_ahead_ms": SYSTEM_CLOCK.wall_ms() - clock.wall_ms(), **within}


def _turn_ms(node: str) -> int:
    """Not all nodes at one moment: to give one up needs the store to itself, and the first who does it is enough."""
    return crc32(node.encode()) % paced(_TURNS_MS)


class Registration:
    """Writes the record of one node. `describe` adds what may change while it works."""

    def __init__(
        self,
        store: Store,
        node: Node,
        clock: Clock,
        describe: Callable[[Node], Node],
        faults: Faults | None = None,
    ) -> None:
        self._store, self._clock, self._describe = store, clock, describe
        self._faults = faults or Faults()
        self.node = node
        self.on_trusted: Callable[[int], None] = lambda sent_ms: None  # given the boot time of the sending
        self.on_silence: Callable[[], None] = lambda: None  # another node is silent for so long that it is given up
        self._check: asyncio.Task[None] | None = None
        self.last_seen: list[Node] = []  # all nodes of a shared store, at the last heartbeat of this one
        self.trusted_until_ms: int | None = None  # by the boot time; None where nobody else works on the store
        self._unheard: asyncio.TimerHandle | None = None  # says that no heartbeat arrives, unless one does
        self._is_unheard = False
        self._answered: tuple[int | None, str] = None, ""  # when and how we were asked to stop, as far as we know
        self._is_drained = False

    @property
    def is_shared(self) -> bool:
        return bool(self.node.lease_ms)

    @property
    def is_trusted(self) -> bool:
        """Whether others still believe that this node lives: past that it must begin nothing."""
        return self.trusted_until_ms is None or self._clock.boottime_ms() < self.trusted_until_ms

    @property
    def may_claim(self) -> bool:
        """Whether what is claimed now can begin in time: who is not heard for half of its trust takes nothing on."""
        until_ms = self.trusted_until_ms
        return until_ms is None or self._clock.boottime_ms() < until_ms - SHORT_TRUST_MS

    async def put(self, node: Node, *, use_reserve: bool = False) -> list[Node]:
        """Write the record; gives all nodes as they were then. FencedError where others have given this node up."""
        described = self.node = self._describe(node)
        sent_ms, now_ms = self._clock.boottime_ms(), self._clock.wall_ms()
        update, scope = self._writing(described, now_ms), of_node(described.id)
        nodes = await self._store.update_async(update, use_reserve=use_reserve, scope=scope)
        if self.is_shared:
            self._trust_from(sent_ms)
            self.on_trusted(sent_ms)
            self.last_seen = nodes
            self._log_drained(any(one.draining for one in nodes if one.id == described.id))
        return nodes

    def _log_drained(self, is_drained: bool) -> None:
        """Also at the start of one whose predecessor was drained: it would seem to do nothing without a reason."""
        if is_drained != self._is_drained:
            self._is_drained = is_drained
            until = f"begins nothing until: chronex nodes undrain {self.node.name}"
            fields = {"node": self.node.id, "so": until if is_drained else "begins work again"}
            log_event(log, "drained" if is_drained else "undrained", fields)

    def _trust_from(self, sent_ms: int) -> None:
        """A question to a database that hangs may be without an answer for long: that is said when it matters."""
        self.trusted_until_ms = sent_ms + TRUSTED_MS
        if self._unheard is not None:
            self._unheard.cancel()
        if self._is_unheard:
            self._is_unheard = False
            log_event(log, "heartbeats arrive again", {"node": self.node.id})
        if self.node.stopped_ms is None:
            left_ms = max(0, self.trusted_until_ms - self._clock.boottime_ms())
            self._unheard = asyncio.get_running_loop().call_later(left_ms / 1000, self._log_unheard)

    def _log_unheard(self) -> None:
        self._is_unheard = True
        fields = {"node": self.node.id, "for": f"{TRUSTED_MS / 1000:g} s", "so": "no runs start; what runs goes on"}
        log_event(log, "no heartbeat arrives", fields, logging.WARNING)

    async def leave(self) -> int | None:
        """Record that this node has stopped; how much it leaves running. None where that could not be recorded."""
        try:
            await self.put(replace(self.node, stopped_ms=self._clock.wall_ms()), use_reserve=True)
            return await self._store.view_async(
                lambda tx: sum(one.owner == self.node.id for one in running_attempts(Reading(tx)))
            )
        except StoreError as error:
            if not self.is_shared:
                raise
            fields = {"node": self.node.id, "so": "other nodes give it up as one that died", "reason": str(error)}
            log_event(log, "stopped, which could not be recorded", fields, logging.WARNING)
            return None

    async def renew(self, node: Node) -> list[Node]:
        """Say that this node lives; gives all nodes."""
        nodes = await self.put(renewed(node, self._clock.wall_ms()))
        silent_ms, now_ms = next_silence_ms(nodes, self.node), self._clock.wall_ms()
        is_soon = silent_ms is not None and silent_ms < now_ms + RENEW_MS
        if self.is_shared and silent_ms is not None and is_soon and (self._check is None or self._check.done()):
            pause_ms = max(0, silent_ms - now_ms) + _turn_ms(self.node.id)
            self._check = self._faults.watched(self._check_after(pause_ms), "the look at a node that is silent")
        return nodes

    async def _check_after(self, pause_ms: int) -> None:
        """Somebody is to be given up before our next heartbeat, unless it is heard: that would be too late."""
        await asyncio.sleep(pause_ms / 1000)
        with contextlib.suppress(StoreError):  # else after the next heartbeat
            nodes = await self._store.view_async(lambda tx: Reading(tx).nodes())
            if is_any_silent(nodes, self.node, self._clock.wall_ms()):
                self.on_silence()

    async def asked_to_stop(self) -> Node | None:
        """Our record with what `chronex stop` or `restart` has asked since we looked last; None where nobody has."""
        found: Node | None = None
        with contextlib.suppress(StoreError, TimeoutError):
            read = self._store.view_async(lambda tx: Reading(tx).node(self.node.id))
            found = await asyncio.wait_for(read, _LONGEST_ASKED_S)
        if found is None or (found.stop_asked_ms, found.stop_mode) == self._answered:
            return None
        self._answered = found.stop_asked_ms, found.stop_mode
        return found

    @property
    def was_just_asked(self) -> bool:
        """A second ago at most: a signal may be that of a request which was read with the one before."""
        asked_ms, _ = self._answered
        return asked_ms is not None and self._clock.wall_ms() - asked_ms < _JUST_ASKED_MS

    async def refuse_stop(self, problem: str) -> None:
        """The answer to whoever asked for a restart, in place of the question."""
        now_ms, node = self._clock.wall_ms(), self.node.id

        def write(tx: Transaction) -> None:
            records = Records(tx, now_ms)
            found = records.node(node)
            if found is not None:
                records.put(replace(found, stop_mode="", stop_within_ms=None, stop_by="", stop_refused=problem))

        await self._store.update_async(write)

    async def note_refused(self) -> None:
        """Others have given this node up: that it came back and was refused is kept, for whoever asks why."""
        now_ms, node = self._clock.wall_ms(), self.node.id

        def write(tx: Transaction) -> None:
            records = Records(tx, now_ms)
            found = records.node(node)
            if found is not None and found.refused_ms is None:
                records.put(replace(found, refused_ms=now_ms))
                append(tx, Event(name="NodeRefused", at_ms=now_ms, data={"node": node}))

        await self._store.update_async(write)

    def _writing(self, described: Node, now_ms: int) -> UpdateFn[list[Node]]:
        def write(tx: Transaction) -> list[Node]:
            records = Records(tx, now_ms)
            found = records.node(described.id)
            if found is not None and described.lease_ms:
                refuse_lost(records, described.id, described.epoch)
            nodes = records.nodes() if described.lease_ms else []
            asked = taking_over_drain(described, nodes) if found is None else found
            records.put(replace(described, **{name: getattr(asked, name) for name in _ASKED}))
            return records.nodes() if described.lease_ms else []

        return write


async def start_what_waits_for_boot(store: Store, node: Node, now_ms: int) -> None:
    """Before this node is on record, by which the next one sees that the boot has been answered."""
    asked = await store.update_async(lambda tx: start_jobs_of_boot(Records(tx, now_ms), node))
    if asked:
        log_event(log, "first daemon since the machine was started", {"jobs": ", ".join(asked[:20])})


async def until_taken(
    ask: Callable[[], Awaitable[T]],
    note_away: Callable[[StoreUnavailableError], None],
    stopping: asyncio.Event | None,
) -> T:
    """Ask until the store can take it or the daemon is stopped; once alone where nothing is given that stops it."""
    while True:
        try:
            return await ask()
        except StoreUnavailableError as error:
            if stopping is None or stopping.is_set():
                raise
            note_away(error)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _AGAIN_S)


async def note_ended_here(store: Store, node: Node, now_ms: int, works: Callable[[str], bool]) -> None:
    """A daemon of this process whose event loop is gone is dead, though the process lives."""

    def ended(tx: ReadTransaction) -> list[Node]:
        return [
            one
            for one in Reading(tx).nodes()
            if one.stopped_ms is None and one.process == node.process and one.id != node.id and not works(one.id)
        ]

    def mark(tx: Transaction) -> None:
        for one in ended(tx):
            Records(tx, now_ms).put(replace(one, stopped_ms=now_ms, epoch=one.epoch + 1))
            append(tx, Event(name="SchedulerCrashed", at_ms=now_ms, data={"node": one.id}))

    if await store.view_async(ended):
        await store.update_async(mark, use_reserve=True)


def running_attempts(reading: Reading) -> list[Attempt]:
    """Those that some node has begun and not ended."""
    return reading.active_attempts(limit=EVERYTHING)


# What goes wrong in this scheduler and is no job's: kept in its record, so that others can tell it.

MOST_TROUBLES = 20
LONGEST_DETAIL = 300


class NodeTroubles:
    """Those that last. `tell` is called when one begins, changes or ends."""

    def __init__(self, clock: Clock, publish: Callable[[], None]) -> None:
        self._clock, self._publish = clock, publish
        self._found: dict[tuple[TroubleCode, str], NodeTrouble] = {}

    @property
    def found(self) -> tuple[NodeTrouble, ...]:
        return tuple(self._found.values())

    def begin(self, code: TroubleCode, detail: str, about: str = "") -> None:
        """It is so, or still so. `about` tells those of one code apart."""
        detail = detail[:LONGEST_DETAIL]
        before = self._found.get((code, about))
        if before is not None and before.detail == detail:
            return
        if before is None and len(self._found) >= MOST_TROUBLES:
            return
        since_ms = self._clock.wall_ms() if before is None else before.since_ms
        self._found[code, about] = NodeTrouble(code, detail, since_ms)
        self._publish()

    def end(self, code: TroubleCode, about: str = "") -> None:
        """It is not so, or not any more."""
        if self._found.pop((code, about), None) is not None:
            self._publish()


# A restart takes about a second; what took longer was a downtime, for which each job has its strategy.
_LONGEST_RESTART_MS = 60_000


def watched_since(nodes: Iterable[Node], node: Node, begun_ms: int) -> int:
    """Since when the clock is watched: where this daemon took the place of another one in the same process, since
    that one did. So what is due in between, or what a busy machine had not decided before, is late and not missed."""
    before = [one for one in nodes if one.process == node.process and one.id != node.id and one.stop_mode == RESTART]
    last = max(before, key=lambda one: one.stop_asked_ms or 0, default=None)
    if last is None or last.stop_asked_ms is None or last.awake_since_ms is None:
        return begun_ms
    took_ms = begun_ms - last.stop_asked_ms
    return min(last.awake_since_ms, begun_ms) if 0 <= took_ms <= _LONGEST_RESTART_MS else begun_ms
