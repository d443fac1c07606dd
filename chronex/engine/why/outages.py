"""When nothing ran: the scheduler was down, or the machine slept."""

from __future__ import annotations

from typing import NamedTuple

from chronex.engine import journal
from chronex.engine.ledger import Reading
from chronex.engine.why.versions import MOST_EVENTS
from chronex.model.records import Event

_STARTED = "SchedulerStarted"


class Outage(NamedTuple):
    """`kind` is asleep, clock (set forward), stalled, full (the store) or down; an unknown beginning is None."""

    kind: str
    from_ms: int | None
    until_ms: int | None


def outage_at(reading: Reading, missed_ms: int, decided_ms: int) -> Outage | None:
    """What kept `missed_ms` from being seen before `decided_ms`: the first waking between the two."""
    down = _down(reading, missed_ms, decided_ms)
    jump = _jump(reading, missed_ms, decided_ms)
    if jump is not None and (down is None or (jump.until_ms or 0) <= (down.until_ms or 0)):
        return jump
    return down


def down_since(reading: Reading, now_ms: int) -> int | None:
    """The last sign of life of any scheduler; None where there never was one."""
    return last_sign(reading, now_ms + 1)


def _jump(reading: Reading, missed_ms: int, decided_ms: int) -> Outage | None:
    number = journal.first_at(reading.tx, missed_ms)
    for _, event in journal.onward(reading.tx, number - 1, MOST_EVENTS):
        if event.at_ms > decided_ms:
            break
        outage = told_by(event)
        if outage is not None and (outage.from_ms or 0) <= missed_ms < event.at_ms:
            return outage
    return None


def told_by(event: Event) -> Outage | None:
    """The stretch in which nothing could be claimed, of which this event is the end."""
    match event.name:
        case "MachineSlept" | "ClockStepped":
            kind = "asleep" if event.data.get("slept_ms", 0) > 0 else "clock"
            length = event.data.get("by_ms", 0)
        case "SchedulerStalled":
            kind, length = "stalled", event.data.get("stalled_ms", 0)
        case "StoreRoomBack":
            kind, length = "full", event.data.get("full_ms", 0)
        case _:
            return None
    return Outage(kind, event.at_ms - length, event.at_ms) if length > 0 else None


def _down(reading: Reading, missed_ms: int, decided_ms: int) -> Outage | None:
    starts = [node.started_ms for node in reading.nodes() if missed_ms < node.started_ms <= decided_ms]
    if not starts:
        return None
    began = min(starts)
    last = last_sign(reading, began)
    return Outage("down", None if last is None or last > missed_ms else last, began)


def last_sign(reading: Reading, before_ms: int) -> int | None:
    """The latest trace that a scheduler left before `before_ms`: its goodbye, its heartbeat, or an event."""
    signs = [
        sign
        for node in reading.nodes()
        for sign in (node.started_ms, node.seen_ms, node.stopped_ms or 0)
        if 0 < sign < before_ms
    ]
    number = journal.first_at(reading.tx, before_ms)
    # Commands write events too: those of people have an actor, those of an apply speak of jobs.
    for _, event in journal.backward(reading.tx, number, 50):
        if event.at_ms < before_ms and not event.actor and not event.name.startswith("Job"):
            signs.append(event.at_ms)
            break
    return max(signs, default=None)
