"""What a person asks of the nodes of a shared store: to begin nothing, to begin again, or to be given up for good."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.engine.commands.actor import Actor
from chronex.engine.membership import seems_alive
from chronex.errors import NotPossibleError
from chronex.model.event import Event
from chronex.model.records import Node, newest_by_machine
from chronex.storage.journal import append
from chronex.storage.records import Records
from chronex.text.suggestions import nearest


def drain_node(records: Records, name: str, actor: Actor, *, draining: bool) -> Node:
    """The node begins nothing from now on, or begins again; what runs there goes on to its end."""
    node = _named(records, name)
    if not node.lease_ms:
        raise NotPossibleError(f"{node.id} has its store to itself; to let it end what runs: chronex stop --drain")
    changed = replace(node, draining=draining, drained_by=str(actor) if draining else "")
    records.put(changed)
    event = "NodeDrained" if draining else "NodeUndrained"
    append(records.tx, Event(name=event, at_ms=records.now_ms, actor=str(actor), data={"node": node.id}))
    return changed


def forget_node(records: Records, name: str, actor: Actor) -> Node:
    """The node will never come back: its work need not wait for the takeover time."""
    node = _named(records, name)
    if node.forgotten_ms is not None or (node.stopped_ms is not None and not node.lease_ms):
        raise NotPossibleError(f"{node.id} is not counted on any more: it stopped, or was forgotten before")
    if seems_alive(node, records.now_ms, lambda _process: True):
        raise NotPossibleError(f"{node.id} lives; stop it first, or wait until it has been silent for a while")
    gone = replace(node, stopped_ms=node.stopped_ms or records.now_ms, forgotten_ms=records.now_ms)
    if node.stopped_ms is not None:
        records.put(gone)  # it left, or was found dead before; what it left need not wait for its return any more
        return gone
    gone = replace(gone, epoch=node.epoch + 1)
    records.put(gone)
    data = {"node": node.id}
    append(records.tx, Event(name="SchedulerCrashed", at_ms=records.now_ms, actor=str(actor), data=data))
    return gone


def _named(records: Records, name: str) -> Node:
    """By its name, its id or the beginning of it, or its host; of several the one that has not left yet.

    Of daemons of one machine that have all left, the newest: the next one takes its place.
    """
    nodes = records.nodes()
    exact = [node for node in nodes if node.id == name]
    found = exact or [node for node in nodes if node.id.startswith(name) or name in (node.host, node.name)]
    open_ones = [node for node in found if node.stopped_ms is None and node.refused_ms is None]
    lost = [node for node in found if node.lost_ms is not None and node.forgotten_ms is None]
    found = open_ones or list(newest_by_machine(lost or found).values())
    if len(found) == 1:
        return found[0]
    if found:
        raise NotPossibleError(f"{name} could be {', '.join(sorted(node.id for node in found))}; name one of them")
    suggestion = nearest(name, (word for node in nodes for word in (node.name, node.host, node.id) if word))
    raise NotPossibleError(f"no node is called {name}" + (f"; did you mean {suggestion}?" if suggestion else ""))


# Asking the daemon to stop or to restart: written to its node, and read by it when the signal comes.

RESTART = "restart"
# Whoever asked for one waits so long for it.
_RESTARTS_WITHIN_MS = 60_000


def ask_to_stop(records: Records, pid: int, mode: str, within_ms: int | None, actor: Actor) -> Node:
    """The node of the daemon with this pid, with the request in it."""
    found = [one for one in records.nodes() if one.process.pid == pid and one.stopped_ms is None]
    if not found:
        raise NotPossibleError("the daemon has not begun yet; try again in a moment")
    node = max(found, key=lambda one: one.started_ms)
    if mode == RESTART == node.stop_mode and records.now_ms - (node.stop_asked_ms or 0) < _RESTARTS_WITHIN_MS:
        return node  # it is about to, and must not be asked twice: its successor would be, who is the same process
    # One that was asked before tells by the time that it is asked anew.
    asked_ms = max(records.now_ms, (node.stop_asked_ms or 0) + 1)
    asked = replace(
        node,
        stop_mode=mode,
        stop_within_ms=within_ms,
        stop_by=str(actor),
        stop_asked_ms=asked_ms,
        stop_refused="",
    )
    records.put(asked)
    data = {"node": node.id, "mode": mode, "by": str(actor)}
    append(records.tx, Event(name="SchedulerStopAsked", at_ms=records.now_ms, data=data))
    return asked
