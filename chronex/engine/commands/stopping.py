"""Asking the daemon to stop or to restart: written to its node, and read by it when the signal comes."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.engine.commands.actor import Actor
from chronex.errors import NotPossibleError
from chronex.model.event import Event
from chronex.model.records import Node
from chronex.storage.journal import append
from chronex.storage.records import Records

RESTART = "restart"


def ask_to_stop(records: Records, pid: int, mode: str, within_ms: int | None, actor: Actor) -> Node:
    """The node of the daemon with this pid, with the request in it."""
    found = [one for one in records.nodes() if one.process.pid == pid and one.stopped_ms is None]
    if not found:
        raise NotPossibleError("the daemon has not begun yet; try again in a moment")
    node = max(found, key=lambda one: one.started_ms)
    asked = replace(node, stop_mode=mode, stop_within_ms=within_ms, stop_by=str(actor), stop_refused="")
    records.put(asked)
    data = {"node": node.id, "mode": mode, "by": str(actor)}
    append(records.tx, Event(name="SchedulerStopAsked", at_ms=records.now_ms, data=data))
    return asked
