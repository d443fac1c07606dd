"""The clock was set back: jobs are planned from the new time on."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.engine.plan import next_plan_ms
from chronex.model.job import Job
from chronex.model.records import Node
from chronex.storage import journal
from chronex.storage.ports import ReadTransaction, Store, Transaction
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import is_known, schedule_of

_MOST_JOBS = 1_000_000
_MOST_EVENTS = 1_000


def rewind(store: Store, now_ms: int) -> int:
    """Set cursors that lie ahead of now back to now. How many jobs that was.

    A clock that was a year ahead and is set right must not silence every job for a year. Nothing runs twice: an
    instant that has its record is never decided again.
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
        return len(ahead)

    return store.update(write)


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
