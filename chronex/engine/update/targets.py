"""Jobs that run on each node: for every node that fits there is a job of its own, made from the one applied.

Such a job is `backup:db-1`, for the node db-1. It has the definition of `backup` and a progress of its own, so that
the cursor, the counters, the queue and the history of one node are not those of another (specs/machines.md).
`apply` changes and removes them with the job that they were made from; the tick makes them when that is planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from chronex.engine.clock_steps import begun_at
from chronex.engine.membership import SLACK_MS
from chronex.engine.plan import next_plan_ms
from chronex.engine.update.apply import write_changes
from chronex.engine.update.diff import definition_data, last_version, removal
from chronex.model.event import Event
from chronex.model.job import Job, is_target, target_job_id
from chronex.model.placement import fits_node
from chronex.model.records import Node, newest_by_machine
from chronex.storage.journal import append
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import schedule_of

# What a job of a new node takes over from the one that it is made from.
_PAUSE = ("paused", "paused_until_ms", "paused_by", "paused_from_ms", "pauses")


def living(nodes: Iterable[Node], now_ms: int) -> list[Node]:
    """The nodes of a shared store that have given their word lately."""
    return [
        node
        for node in nodes
        if node.stopped_ms is None and node.lost_ms is None and now_ms - node.seen_ms <= node.lease_ms + SLACK_MS
    ]


def make_targets(records: Records, job: Job, nodes: Iterable[Node]) -> list[Job]:
    """Make the jobs of nodes that fit and have none yet, and remove those of nodes that do not fit any more.

    It gives the jobs that are new, in the order of their nodes' names.
    """
    known = list(nodes)
    fitting = _began(node for node in living(known, records.now_ms) if fits_node(job, node))
    present = {one.target: one for one in records.targets(job.id)}
    for target, one in present.items():
        if target not in fitting and _is_over(target, job, known, records.now_ms):
            write_changes(records, [removal(records, one)], "")
    made = [_made(records, job, name, fitting[name]) for name in sorted(fitting) if name not in present]
    for one in made:
        records.put(one)
        append(records.tx, _event(records, one))
    return made


def _began(nodes: Iterable[Node]) -> Mapping[str, int]:
    """The names of these nodes, each with when the first of them began."""
    found: dict[str, int] = {}
    for node in nodes:
        name = node.name or node.host
        if is_target(name):
            found[name] = min(node.started_ms, found.get(name, node.started_ms))
    return found


def _is_over(target: str, job: Job, nodes: Iterable[Node], now_ms: int) -> bool:
    """Its node lives and fits no more, was forgotten, or has been away for longer than its record is kept."""
    named = [node for node in nodes if (node.name or node.host) == target]
    if any(fits_node(job, node) for node in living(named, now_ms)):
        return False
    last = newest_by_machine(named).values()  # a machine that was forgotten had daemons before that one
    return bool(living(named, now_ms)) or all(node.forgotten_ms is not None for node in last)


def _made(records: Records, job: Job, target: str, began_ms: int) -> Job:
    """A node that joins does not redo the past: nothing before it began is its business."""
    name, now_ms, progress = target_job_id(job.id, target), records.now_ms, job.progress
    cursor_ms = max(progress.cursor_ms if progress.cursor_ms is not None else now_ms, began_ms - 1)
    begun: dict[str, Any] = {one: getattr(progress, one) for one in _PAUSE} | begun_at(records.tx, now_ms)
    own = replace(
        type(progress)(), job=name, cursor_ms=cursor_ms, anchor_ms=progress.anchor_ms, created_ms=now_ms, **begun
    )
    version = last_version(records, name, 0) + 1
    made = replace(job, id=name, target=target, version=version, updated_ms=now_ms, progress=own)
    return made.progressed(next_ms=next_plan_ms(made, schedule_of(made), cursor_ms))


def _event(records: Records, made: Job) -> Event:
    data = {**definition_data(made), "made_from": made.made_from, "target": made.target}
    return Event(name="JobNew", at_ms=records.now_ms, job=made.id, data=data)


def jobs_meant(reading: Reading, job: Job) -> list[Job]:
    """Those that an act on the job is for: the jobs of its nodes where it has any, else itself."""
    return reading.targets(job.id) or [job]
