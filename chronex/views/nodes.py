"""The schedulers that work or worked on a store: which process each is, and whether it lives."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Any, NamedTuple

from chronex.engine.membership import seems_alive
from chronex.model.records import Node
from chronex.storage import keys
from chronex.storage.records import Reading, pages
from chronex.views.jobs import IsAlive

# A heartbeat is written every 30 s; a process that has missed three of them hangs, or was stopped by a signal.
SILENT_AFTER_MS = 90_000


class NodeHealth(StrEnum):
    """How a scheduler is, in one word."""

    ALIVE = "alive"
    SILENT = "silent"
    STOPPED = "stopped"
    DEAD = "dead"
    LOST = "lost"
    DRAINING = "draining"


class NodeRow(NamedTuple):
    """A scheduler in one line; `running` counts the attempts that it has begun and not ended."""

    node: Node
    state: NodeHealth
    silent_ms: int
    running: int

    @property
    def is_alive(self) -> bool:
        return self.state in (NodeHealth.ALIVE, NodeHealth.SILENT, NodeHealth.DRAINING)


def nodes_of(reading: Reading, now_ms: int, is_alive: IsAlive) -> list[NodeRow]:
    """Those that live first, then the others, the youngest first."""
    running = Counter(attempt.owner for attempt in reading.active_attempts(limit=1_000_000))
    rows = [
        NodeRow(node, _state(node, now_ms, is_alive), max(0, now_ms - node.seen_ms), running[node.id])
        for page in pages(reading.tx, keys.NODE)
        for key, _ in page
        if (node := reading.get(key, Node)) is not None
    ]
    return sorted(rows, key=lambda row: (not row.is_alive, -row.node.started_ms, row.node.id))


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


def owner_facts(reading: Reading, owner: str) -> dict[str, Any] | None:
    """Who ran it: id, host and process; only the id where its node is kept no longer, None where nobody did."""
    if not owner:
        return None
    node = reading.node(owner)
    if node is None:
        return {"id": owner, "host": None, "pid": None}
    return {"id": owner, "host": node.host or None, "pid": node.process.pid}
