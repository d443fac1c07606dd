"""The clock was set: waits last as long as they were to, and after a step back jobs are planned from the new time."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.engine.plan import next_plan_ms
from chronex.model.event import Event
from chronex.model.job import Job
from chronex.model.occurrence import Run
from chronex.model.records import Node
from chronex.model.states import RunState
from chronex.storage import journal
from chronex.storage.ports import ReadTransaction, Store, Transaction
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import is_known, schedule_of

_MOST_JOBS = 1_000_000
_MOST_EVENTS = 1_000
_MOST_RUNS = 1_000_000
_END_OF_TIME = 1 << 62


def rewind(store: Store, now_ms: int) -> int:
    """Set cursors that lie ahead of now back to now. How many jobs that was.

    A clock that was a year ahead and is set right must not silence every job for a year. Nothing runs twice: an
    instant that has its record is never decided again. A retry that would wait longer than its pause is due earlier.
    """

    def write(tx: Transaction) -> int:
        records = Records(tx, now_ms)
        ahead = [job for job in records.jobs(limit=_MOST_JOBS) if _is_ahead(job, now_ms)]
        for job in ahead:
            if is_known(job.dialect, job.schedule):
                anchor = None if job.progress.anchor_ms is None else min(job.progress.anchor_ms, now_ms)
                back = job.progressed(cursor_ms=now_ms, anchor_ms=anchor)
                records.put(replace(back.progress, next_ms=next_plan_ms(back, schedule_of(back), now_ms)))
        for node in records.nodes():
            records.put(_not_later(node, now_ms))
        for run in _retries(records):
            _move(records, run, run.next_attempt_ms or now_ms)
        return len(ahead)

    return store.update(write)


def move_waits(store: Store, by_ms: int, now_ms: int, node: str) -> int:
    """The clock was set by `by_ms`: the retries and execution timeouts of this node, and of those that have left, are
    moved with it. How many retries that was. What belongs to another node that lives, that node moves.
    """

    def write(tx: Transaction) -> int:
        records = Records(tx, now_ms)
        living = {one.id for one in records.nodes() if one.stopped_ms is None} - {node}
        for occurrence in records.active(limit=_MOST_RUNS):
            if occurrence.deadline_ms is not None and occurrence.owner not in living:
                records.put(replace(occurrence, deadline_ms=occurrence.deadline_ms + by_ms))
        moved = [run for run in _retries(records) if run.owner not in living]
        for run in moved:
            _move(records, run, (run.next_attempt_ms or now_ms) + by_ms)
        return len(moved)

    return store.update(write)


def _retries(records: Records) -> list[Run]:
    found = records.due(_END_OF_TIME, _MOST_RUNS)
    return [run for run in found if isinstance(run, Run) and run.state is RunState.RETRY]


def _move(records: Records, run: Run, at_ms: int) -> None:
    """No retry waits longer than its pause, whatever the clock was."""
    if run.pause_ms is not None:
        at_ms = min(at_ms, records.now_ms + run.pause_ms)
    if at_ms == run.next_attempt_ms:
        return
    records.put(replace(run, next_attempt_ms=at_ms))
    event = Event(name="TaskRetryMoved", at_ms=records.now_ms, job=run.job, nominal_ms=run.nominal_ms, task=run.task,
                  attempt=run.attempts, data={"at_ms": at_ms})  # fmt: skip
    journal.append(records.tx, event)


def _is_ahead(job: Job, now_ms: int) -> bool:
    """Is its cursor or its anchor in the future?"""
    return max(job.progress.cursor_ms or 0, job.progress.anchor_ms or 0) > now_ms


def newest_sign(tx: ReadTransaction) -> int:
    """The latest time that schedulers and events have on record, since the clock was last known to be set back."""
    signs = [sign for node in Reading(tx).nodes() for sign in (node.started_ms, node.seen_ms, node.stopped_ms or 0)]
    for _, event in journal.backward(tx, None, _MOST_EVENTS):
        if event.name == "ClockStepped" and event.data.get("by_ms", 0) < 0:
            break
        signs.append(event.at_ms)
    return max(signs, default=0)


def _not_later(node: Node, now_ms: int) -> Node:
    """Times in the future are no sign of life, so they are set back to now."""
    stopped = None if node.stopped_ms is None else min(node.stopped_ms, now_ms)
    return replace(
        node, started_ms=min(node.started_ms, now_ms), seen_ms=min(node.seen_ms, now_ms), stopped_ms=stopped
    )
