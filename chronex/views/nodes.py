"""The schedulers that work or worked on a store: which process each is, how it is, what it runs, what is odd."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from chronex.engine.membership import LONGEST_GAP_MS, seems_alive
from chronex.model.occurrence import Attempt
from chronex.model.records import Node
from chronex.storage import keys
from chronex.storage.records import EVERYTHING, Reading, pages
from chronex.text.durations import brief_duration
from chronex.views.jobs import IsAlive

# A heartbeat is written every 30 s; a process that has missed three of them hangs, or was stopped by a signal.
SILENT_AFTER_MS = 90_000
# By more than this a node's own clock, or its reading of the store's, is worth a word.
CLOCK_TOLERANCE_MS = 100


class NodeHealth(StrEnum):
    """How a scheduler is, in one word."""

    ALIVE = "alive"
    SILENT = "silent"
    STOPPED = "stopped"
    DEAD = "dead"
    LOST = "lost"
    DRAINING = "draining"


class NodeConcern(StrEnum):
    """What a person may want to know of a scheduler, beside its health."""

    # On a shared store: its heartbeat is late, and it has not been given up yet.
    LATE = "late"
    # Others gave it up, and it has not come back; or it came back and was refused.
    GIVEN_UP = "given_up"
    REFUSED = "refused"
    CLOCK_OFF = "clock_off"
    CLOCK_UNSURE = "clock_unsure"
    # Another node that lives has newer zone data, or a newer Chronex.
    OLD_ZONE_DATA = "old_zone_data"
    OLD_VERSION = "old_version"


# Those that go away by themselves, or say what happened and is over.
_PASSING = (NodeConcern.LATE, NodeConcern.GIVEN_UP, NodeConcern.REFUSED)


class NodeWork(NamedTuple):
    """One attempt that a scheduler has begun and not ended; `since_ms` is None before its start."""

    job: str
    nominal_ms: int
    task: str
    number: int
    since_ms: int | None


class NodeRow(NamedTuple):
    """A scheduler in one line; `running` counts the attempts that it has begun and not ended, `work` lists them."""

    node: Node
    state: NodeHealth
    silent_ms: int
    running: int
    work: tuple[NodeWork, ...] = ()
    concerns: tuple[NodeConcern, ...] = ()

    @property
    def is_alive(self) -> bool:
        return self.state in (NodeHealth.ALIVE, NodeHealth.SILENT, NodeHealth.DRAINING)

    @property
    def name(self) -> str:
        """What people call it: the name by which jobs choose it, else its host, else its id."""
        return shown_name(self.node)

    @property
    def title(self) -> str:
        """The name, with the program that it is a part of."""
        return f"{self.name} ({self.node.program})" if self.node.program else self.name

    @property
    def needs_person(self) -> tuple[NodeConcern, ...]:
        """The concerns that stay until somebody does something."""
        return tuple(concern for concern in self.concerns if concern not in _PASSING)


def shown_name(node: Node) -> str:
    return node.name or node.host or node.id


class LeftAttempt(NamedTuple):
    """An attempt on record as running whose scheduler is gone, and whether its command still runs (None: unknown)."""

    attempt: Attempt
    is_alive: bool | None

    @property
    def words(self) -> str:
        if self.is_alive and self.attempt.process is not None:
            return f"its command still runs (pid {self.attempt.process.pid}), and no scheduler watches it"
        if self.is_alive is False:
            return "its command has ended while no scheduler ran; how is unknown until one runs"
        return "no scheduler watches it; whether it still runs is unknown until one does"


class Watch(NamedTuple):
    """Who looks after the store: whether a scheduler lives, and what those that are gone have left running."""

    has_scheduler: bool = True
    left: tuple[LeftAttempt, ...] = ()

    def left_of(self, job: str, nominal_ms: int | None = None) -> list[LeftAttempt]:
        """Of a job, or of one of its occurrences."""
        mine = (one for one in self.left if one.attempt.job == job)
        return [one for one in mine if nominal_ms is None or one.attempt.nominal_ms == nominal_ms]


WATCHED = Watch()


def watch_of(reading: Reading, now_ms: int, is_alive: IsAlive, boot_id: str) -> Watch:
    """`boot_id` is this machine's: the processes of another one cannot be looked at from here."""
    nodes = {node.id: node for node in reading.nodes()}
    living = {name for name, node in nodes.items() if seems_alive(node, now_ms, is_alive)}
    attempts = reading.active_attempts(limit=EVERYTHING)
    left = [_left(one, nodes.get(one.owner), is_alive, boot_id) for one in attempts if one.owner not in living]
    return Watch(bool(living), tuple(left))


def _left(attempt: Attempt, node: Node | None, is_alive: IsAlive, boot_id: str) -> LeftAttempt:
    process = attempt.process
    if process is not None and process.boot_id == boot_id:
        return LeftAttempt(attempt, is_alive(process))
    # Without a process it had not begun, or was a function of the process that is gone; one of an earlier boot of
    # this machine is gone as well. Only the machines of a shared store are others.
    return LeftAttempt(attempt, None if node is not None and node.lease_ms else False)


def called(node: Node, text: str) -> bool:
    """Whether a person means this node by `text`: its name, its host, its id or the beginning of that."""
    return text in (node.name, node.host, node.id) or (len(text) > len("node-") and node.id.startswith(text))


def nodes_of(reading: Reading, now_ms: int, is_alive: IsAlive) -> list[NodeRow]:
    """Those that live first, then the others, the youngest first."""
    work: defaultdict[str, list[NodeWork]] = defaultdict(list)
    for attempt in reading.active_attempts(limit=EVERYTHING):
        work[attempt.owner].append(_work(attempt))
    found = [
        node
        for page in pages(reading.tx, keys.NODE)
        for key, _ in page
        if (node := reading.get(key, Node)) is not None
    ]
    living = [node for node in found if _state(node, now_ms, is_alive) in (NodeHealth.ALIVE, NodeHealth.DRAINING)]
    rows = [
        NodeRow(
            node,
            _state(node, now_ms, is_alive),
            max(0, now_ms - node.seen_ms),
            len(work[node.id]),
            tuple(sorted(work[node.id], key=lambda one: (one.since_ms or now_ms, one.job))),
            concerns_of(node, living, now_ms),
        )
        for node in found
    ]
    return sorted(rows, key=lambda row: (not row.is_alive, -row.node.started_ms, row.node.id))


def _work(attempt: Attempt) -> NodeWork:
    return NodeWork(attempt.job, attempt.nominal_ms, attempt.task, attempt.number, attempt.started_ms)


def _state(node: Node, now_ms: int, is_alive: IsAlive) -> NodeHealth:
    """One whose process is gone and that did not say that it stops has died; a takeover notes when it found that."""
    if node.stopped_ms is not None:
        return NodeHealth.STOPPED
    if node.lost_ms is not None:
        return NodeHealth.LOST
    if node.draining and seems_alive(node, now_ms, is_alive):
        return NodeHealth.DRAINING
    if node.lease_ms and not seems_alive(node, now_ms, is_alive):
        return NodeHealth.SILENT
    if not seems_alive(node, now_ms, is_alive):
        return NodeHealth.DEAD
    return NodeHealth.SILENT if now_ms - node.seen_ms > SILENT_AFTER_MS else NodeHealth.ALIVE


def concerns_of(node: Node, living: Sequence[Node], now_ms: int) -> tuple[NodeConcern, ...]:
    """What is odd about a node of a shared store; nodes that left in good order are nobody's concern."""
    if not node.lease_ms:
        return ()
    if node.refused_ms is not None:
        return (NodeConcern.REFUSED,)
    if node.lost_ms is not None:
        return (NodeConcern.GIVEN_UP,)
    if node.stopped_ms is not None:
        return ()
    found = {
        NodeConcern.LATE: now_ms - node.seen_ms > LONGEST_GAP_MS,
        NodeConcern.CLOCK_OFF: abs(node.clock_ahead_ms or 0) > CLOCK_TOLERANCE_MS,
        NodeConcern.CLOCK_UNSURE: (node.clock_within_ms or 0) > CLOCK_TOLERANCE_MS,
        NodeConcern.OLD_ZONE_DATA: any(node.tzdata and one.tzdata > node.tzdata for one in living),
        NodeConcern.OLD_VERSION: any(_numbers(one.chronex) > _numbers(node.chronex) for one in living),
    }
    return tuple(concern for concern, holds in found.items() if holds)


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare; nothing where it is not known."""
    parts = version.split("+", maxsplit=1)[0].split(".")
    return tuple(int(part) for part in parts if part.isdecimal())


def concern_words(row: NodeRow, concern: NodeConcern) -> str:
    """One sentence about the node, without its name."""
    node = row.node
    match concern:
        case NodeConcern.LATE:
            return f"has not been heard for {brief_duration(row.silent_ms)}"
        case NodeConcern.GIVEN_UP:
            return "gave no sign of life and was given up"
        case NodeConcern.REFUSED:
            return "was given up, came back and was refused; its scheduler began anew under another name"
        case NodeConcern.CLOCK_OFF:
            ahead = node.clock_ahead_ms or 0
            side = "ahead of" if ahead > 0 else "behind"
            return f"has a clock {_length(abs(ahead))} {side} the database's; it decides nothing here, set it right"
        case NodeConcern.CLOCK_UNSURE:
            within = _length(node.clock_within_ms or 0)
            return f"knows the database's clock only within {within}: its way to the database is slow"
        case NodeConcern.OLD_ZONE_DATA:
            return f"has zone data {node.tzdata}, another node has newer: after a change of rules they would disagree"
        case NodeConcern.OLD_VERSION:
            return f"runs chronex {node.chronex}, another node a newer one"


def _length(ms: int) -> str:
    return f"{ms} ms" if ms < 10_000 else brief_duration(ms)


def owner_facts(reading: Reading, owner: str) -> dict[str, Any] | None:
    """Who ran it: id, host and process; only the id where its node is kept no longer, None where nobody did."""
    if not owner:
        return None
    node = reading.node(owner)
    if node is None:
        return {"id": owner, "host": None, "pid": None}
    return {"id": owner, "host": node.host or None, "pid": node.process.pid}
