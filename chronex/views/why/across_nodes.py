"""What several machines have to do with an occurrence: who tried it, who took it over from whom, and why."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

from chronex.engine.update.targets import living
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.placement import lacking_everywhere
from chronex.model.records import Node
from chronex.model.states import AttemptState
from chronex.storage.records import Reading
from chronex.text.durations import format_duration
from chronex.timing.zones import Zone
from chronex.views.nodes import shown_name
from chronex.views.why.answer import Cause, Link, Source, WhyAnswer, stamp
from chronex.views.why.schedule_versions import VersionHistory, names_instant, zone_of


def where(reading: Reading, attempt: Attempt) -> str:
    """` on db-1` for an attempt on a store that machines share; empty elsewhere."""
    node = reading.node(attempt.owner) if attempt.owner else None
    return f" on {shown_name(node)}" if node is not None and node.lease_ms else ""


def lacking_node(reading: Reading, job: Job, now_ms: int) -> str:
    """What no node that lives has, where some live that share the store; empty where one of them can run the job."""
    found = living([node for node in reading.nodes() if node.lease_ms], now_ms)
    return lacking_everywhere(job, found) if found else ""


def waits_words(job: Job) -> str:
    wait_ms = job.wait_for_node_ms
    return "the next instant" if wait_ms is None else f"{format_duration(wait_ms)} have passed"


def on_each(reading: Reading, history: VersionHistory, instant_ms: int) -> WhyAnswer | None:
    """A job that runs on each node, where nodes have jobs of their own: those answer for its instants."""
    job, made = history.last, reading.targets(history.last.id)
    if not made or history.is_gone or not names_instant(job, instant_ms):
        return None
    links = [Link(_of_target(reading, one, instant_ms), None, Source.RECORD) for one in made]
    summary = f"each node has it for itself: {', '.join(one.id for one in made)}"
    names = {"targets": [one.target for one in made]}
    return WhyAnswer(job.id, instant_ms, zone_of(job), Cause.ON_EACH, summary, tuple(links), names=names)


def _of_target(reading: Reading, job: Job, instant_ms: int) -> str:
    found = reading.occurrence(job.id, instant_ms)
    return f"{job.id}: {'nothing on record' if found is None else found.state.value}"


def handover_links(reading: Reading, occurrence: Occurrence, zone: Zone, names: dict[str, Any]) -> list[Link]:
    """For each attempt that went on where another node's had crashed: who took it over, and why that node lost it."""
    if occurrence.started_ms is None:
        return []
    attempts = sorted(reading.attempts(occurrence.job, occurrence.nominal_ms), key=lambda one: (one.task, one.number))
    links: list[Link] = []
    taken: list[dict[str, Any]] = []
    for _, of_task in groupby(attempts, key=lambda one: one.task):
        for before, after in pairwise(of_task):
            former = reading.node(before.owner) if before.owner else None
            if former is None or not former.lease_ms or before.state is not AttemptState.CRASHED:
                continue
            if before.owner != after.owner:
                links += _handover(reading, former, after, zone)
                taken.append(_names(former, after))
    if taken:
        names["taken_over"] = taken
    return links


def _handover(reading: Reading, former: Node, after: Attempt, zone: Zone) -> list[Link]:
    successor = reading.node(after.owner) if after.owner else None
    successor_name = shown_name(successor) if successor is not None else after.owner
    if successor is not None and successor.host_id == former.host_id:
        fact = f"{successor_name} began anew as {successor.id} and took over from {former.id}"
    else:
        fact = f"{successor_name} took it over because {shown_name(former)} {_lost_because(former, zone)}"
    links = [Link(f"{after.task}: {fact}", after.created_ms, Source.RECORD)]
    if former.refused_ms is not None:
        links.append(Link(f"{shown_name(former)} came back and was refused", former.refused_ms, Source.RECORD))
    return links


def _lost_because(former: Node, zone: Zone) -> str:
    if former.forgotten_ms is not None:
        return f"was given up for good by a person at {stamp(former.forgotten_ms, zone)}"
    if former.lost_ms is None and former.stopped_ms is not None:
        return f"had left at {stamp(former.stopped_ms, zone)} and nobody went on with its work"
    return f"had not been seen since {stamp(former.seen_ms, zone)}"


def _names(former: Node, after: Attempt) -> dict[str, Any]:
    return {
        "task": after.task,
        "from": former.id,
        "by": after.owner,
        "at_ms": after.created_ms,
        "seen_ms": former.seen_ms,
        "refused_ms": former.refused_ms,
    }
