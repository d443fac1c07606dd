"""Which nodes of a store live, when several machines share it: by what each has said, and by the store's clock.

A node sends a heartbeat by writing its record anew, every few seconds; it holds for `lease_ms`. One that is silent
for longer is lost: its epoch is raised, so that whatever it still believes to hold it can record no more, and what it
had claimed and not started goes to others. What it had started may still run there, so that is taken over
only `TAKEOVER_MS` after its last heartbeat, before which its keeper has ended it (specs/machines.md).

On a store of one machine nobody sends any (`lease_ms` is 0): there a look at the process tells at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from msgspec.structs import replace

from chronex.errors import FencedError
from chronex.model.event import Event
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node, newest_by_machine, place_of
from chronex.storage.records import Records
from chronex.torture_settings import paced

LEASE_MS = paced(15_000)
RENEW_MS = paced(3_000)
# From the sending of its last heartbeat a node trusts itself for less long than others trust it.
TRUSTED_MS = paced(13_000)
# Who has not more of that left begins nothing before its next heartbeat: what takes longer would come too late.
SHORT_TRUST_MS = TRUSTED_MS // 2
# How much later than the end of its lease a node is given up: what was under way then has landed or never will.
SLACK_MS = paced(2_000)
# An observer that was silent itself may only have been cut off: it judges nobody until it was heard for a while.
LONGEST_GAP_MS = paced(6_000)
STEADY_MS = paced(15_000)
# Failovers of databases take up to two minutes and must end nothing.
TAKEOVER_MS = paced(300_000)

# By its own boot time, counted from the sending of its last heartbeat: when a silent node's keeper stops what runs,
# and when it kills what has not stopped.
STOP_AFTER_MS = TAKEOVER_MS - paced(75_000)
KILL_AFTER_MS = TAKEOVER_MS - paced(15_000)

ProcessLives = Callable[[ProcessIdentity], bool]


class Liveness(Enum):
    """What may be believed of a node."""

    LIVES = "lives"
    LOST = "lost"
    GONE = "gone"


def liveness_of(node: Node, observer: Node | None, now_ms: int, process_lives: ProcessLives) -> Liveness:
    """How `node` stands, as `observer` sees it; None where nobody but the process can tell."""
    if is_here(node, observer):
        lives = node.stopped_ms is None and process_lives(node.process)
        return Liveness.LIVES if lives else Liveness.GONE
    if node.forgotten_ms is not None:
        return Liveness.GONE
    silent_ms = now_ms - node.seen_ms
    if silent_ms > TAKEOVER_MS and _may_judge(observer, now_ms):
        return Liveness.GONE
    # One that left in good order may have left commands running, which its keeper holds and its successor takes up.
    if node.lost_ms is not None or node.stopped_ms is not None:
        return Liveness.LOST
    if silent_ms > node.lease_ms + SLACK_MS and _may_judge(observer, now_ms):
        return Liveness.LOST
    return Liveness.LIVES


def seems_alive(node: Node, now_ms: int, process_lives: ProcessLives) -> bool:
    """For those who only look: by its last heartbeat where it sends them, else by its process."""
    if node.stopped_ms is not None or node.lost_ms is not None:
        return False
    if node.lease_ms:
        return now_ms - node.seen_ms <= node.lease_ms + SLACK_MS
    return process_lives(node.process)


def is_any_silent(nodes: Iterable[Node], observer: Node, now_ms: int) -> bool:
    """Whether a look at the others would find one that is lost or gone, and not noted as such."""
    silent_ms = next_silence_ms(nodes, observer)
    return silent_ms is not None and silent_ms <= now_ms and _may_judge(observer, now_ms)


def next_silence_ms(nodes: Iterable[Node], observer: Node) -> int | None:
    """When the first of the others is to be found lost or gone, unless it is heard before that.

    An observer that looked with its own heartbeats alone would be late by the time between two of them.
    """
    return min(
        (
            node.seen_ms + (node.lease_ms + SLACK_MS if node.lost_ms is None else TAKEOVER_MS) + 1
            for node in nodes
            if node.stopped_ms is None and not is_here(node, observer)
        ),
        default=None,
    )


def is_here(node: Node, observer: Node | None) -> bool:
    """Whether the observer can see the node's processes."""
    return not node.lease_ms or observer is None or node.host_id == observer.host_id


def _may_judge(observer: Node | None, now_ms: int) -> bool:
    """The first one back after an outage has an old heartbeat of its own: it sends a new one before it looks."""
    if observer is None or now_ms - observer.seen_ms > LONGEST_GAP_MS:
        return False
    return now_ms - observer.steady_since_ms >= STEADY_MS


def renewed(node: Node, now_ms: int) -> Node:
    """The node as it says that it lives: after a gap it has to be heard for a while before it judges others."""
    was_silent = now_ms - node.seen_ms > LONGEST_GAP_MS
    # The store's clock was set back: a heartbeat that lies ahead of it would hold for as long as that is.
    is_ahead = node.seen_ms - now_ms > LONGEST_GAP_MS
    steady_since_ms = now_ms if was_silent or is_ahead or not node.steady_since_ms else node.steady_since_ms
    return replace(node, seen_ms=now_ms if is_ahead else max(now_ms, node.seen_ms), steady_since_ms=steady_since_ms)


def taking_over_drain(node: Node, nodes: Iterable[Node]) -> Node:
    """A node that was drained is so until it is undrained, whatever becomes of its daemon meanwhile."""
    before = newest_by_machine(nodes).get(place_of(node))
    if before is None or not before.draining or before.forgotten_ms is not None:
        return node
    return replace(node, draining=True, drained_by=before.drained_by)


def lose(records: Records, node: Node) -> Event:
    """Give a silent node up: from now on its epoch is not that of the store any more."""
    records.put(replace(node, lost_ms=records.now_ms, epoch=node.epoch + 1))
    silent_ms = records.now_ms - node.seen_ms
    return Event(name="NodeLost", at_ms=records.now_ms, data={"node": node.id, "silent_ms": silent_ms})


def refuse_lost(records: Records, node: str, epoch: int) -> None:
    """Ask, in the same transaction, whether the node may still change anything; FencedError where it may not."""
    found = records.node(node)
    if found is not None and (found.epoch != epoch or found.lost_ms is not None):
        raise FencedError


def awake_since(nodes: Iterable[Node], own_ms: int, now_ms: int) -> int:
    """Since when somebody has watched the clock: an instant that another node saw was not missed by the store."""
    others = [
        node.awake_since_ms
        for node in nodes
        if node.awake_since_ms is not None and node.stopped_ms is None and node.lost_ms is None
        if now_ms - node.seen_ms <= node.lease_ms
    ]
    return min([own_ms, *others])
