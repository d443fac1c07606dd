"""The clock was set: jobs and waits follow, so that nothing runs twice, before its job began, or never again.

Set back, jobs are planned from the new time on, and what they had decided is kept as spans and a watermark, which
outlive the records of history. Set forwards, a job that began by the wrong clock begins as much later. Retries and
execution timeouts last as long as they were to.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.plan import next_plan_ms, spans_with_latest
from chronex.model.event import Event
from chronex.model.job import Job, JobProgress
from chronex.model.occurrence import Occurrence, Run
from chronex.model.records import Idempotency, Node
from chronex.model.states import AttemptState, RunState
from chronex.storage import journal
from chronex.storage.keys import idempotency_key
from chronex.storage.ports import ReadTransaction, Store, Transaction, UpdateFn
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import is_interval, is_known, schedule_of

_MOST_JOBS = 1_000_000
_MOST_EVENTS = 1_000
_MOST_RUNS = 1_000_000
_END_OF_TIME = 1 << 62
# Processes that share a machine read the time a moment apart.
_TOLERANCE_MS = 2_000
# The clock of a machine without a battery begins long before this; nothing real has happened on it yet.
NEVER_SET_BEFORE_MS = 1_577_836_800_000  # 2020-01-01T00:00:00Z


class Followed(NamedTuple):
    """How many jobs and how many retries were moved."""

    jobs: int
    retries: int


def follow_clock(store: Store, by_ms: int, now_ms: int, node: str) -> Followed:
    """The clock was set to `now_ms`, by `by_ms`: the jobs follow, and what waits at `node`, all of it or nothing."""

    def write(tx: Transaction) -> Followed:
        records = Records(tx, now_ms)
        retries = _move_waits(records, by_ms, node)
        jobs = _rewind(records, now_ms) if by_ms < 0 else _begin_later(records, by_ms, now_ms)
        return Followed(jobs, retries)

    return store.update(write)


_SHARED_STEP = "chronex: the clock of the store was set"
# Nodes find out within seconds of one another, and by about the same amount, that the clock of their store was set.
_SAME_STEP_MS = 120_000
_SAME_SIZE_MS = 5_000


def follow_shared_clock(by_ms: int, now_ms: int, node: str, heard_ms: int = 0) -> UpdateFn[Followed | None]:
    """The same for a store that machines share, all of which find it out: one of them moves the jobs, and is given
    how many; each moves what waits at itself.

    It may be done some time after it was found. `heard_ms` is the time by then: heartbeats that were sent meanwhile
    hold, or their nodes would be taken for silent.
    """

    def write(tx: Transaction) -> Followed | None:
        records = Records(tx, now_ms)
        retries = _move_waits(records, by_ms, node)
        found = records.get(idempotency_key(_SHARED_STEP), Idempotency)
        if found is not None and _is_same_step(found, by_ms, now_ms):
            return None
        records.put(
            Idempotency(key=_SHARED_STEP, expires_ms=now_ms + _SAME_STEP_MS, holder=str(by_ms), created_ms=now_ms)
        )
        jobs = _rewind(records, now_ms, heard_ms) if by_ms < 0 else _begin_later(records, by_ms, now_ms)
        return Followed(jobs, retries)

    return write


def _is_same_step(found: Idempotency, by_ms: int, now_ms: int) -> bool:
    return abs(found.created_ms - now_ms) < _SAME_STEP_MS and abs(int(found.holder) - by_ms) < _SAME_SIZE_MS


def rewind(store: Store, now_ms: int, living: Set[str] = frozenset()) -> int:
    """The clock was put right while no scheduler ran: as `_rewind` says. How many jobs had to follow.

    `living` are the nodes that see the step themselves. By how much the others' time was set nobody knows: their
    execution timeouts begin anew at most, as pauses of retries do.
    """

    def write(tx: Transaction) -> int:
        records = Records(tx, now_ms)
        for occurrence in records.active(limit=_MOST_RUNS):
            if occurrence.deadline_ms is not None and occurrence.owner not in living:
                _bound_deadline(records, occurrence, occurrence.deadline_ms)
        return _rewind(records, now_ms)

    return store.update(write)


def _bound_deadline(records: Records, occurrence: Occurrence, deadline_ms: int) -> None:
    job = records.version_run(occurrence)
    if job is not None and job.execution_timeout_ms is not None:
        latest_ms = records.now_ms + job.execution_timeout_ms
        if deadline_ms > latest_ms:
            allow_for_step(records, occurrence, latest_ms - deadline_ms)


def _rewind(records: Records, now_ms: int, heard_ms: int = 0) -> int:
    """Set cursors that lie ahead of now back to now. How many jobs that was.

    A clock that was a year ahead and is set right must not silence every job for a year. Nothing runs twice: an
    instant that has its record, or lies in a span that was decided, is never decided again. A retry that would wait
    longer than its pause is due earlier.
    """
    ahead = 0
    for job in records.jobs(limit=_MOST_JOBS):
        if not is_known(job.dialect, job.schedule):
            continue
        if _is_ahead(job, now_ms):
            ahead += 1
            _put(records, job, _rewound(job, now_ms))
        elif job.progress.begun_ms is not None and job.progress.begun_ms > now_ms:
            records.put(replace(job.progress, watermark_ms=_later(job, job.progress.begun_ms)))
    for node in records.nodes():
        records.put(_not_later(node, max(now_ms, heard_ms)))
    for run in _retries(records):
        _move(records, run, run.next_attempt_ms or now_ms)
    return ahead


def _rewound(job: Job, now_ms: int) -> JobProgress:
    old = job.progress
    anchor = None if old.anchor_ms is None else min(old.anchor_ms, now_ms)
    cursor = old.cursor_ms if old.cursor_ms is not None else now_ms
    keeps_grid = anchor == old.anchor_ms or not is_interval(job)  # one that counts from now on has other instants
    back = job.progressed(
        cursor_ms=now_ms,
        anchor_ms=anchor,
        begun_ms=None if old.begun_ms is None or old.begun_ms <= now_ms else old.begun_ms,
        watermark_ms=_later(job, cursor),
        decided_from_ms=now_ms,
        decided=spans_with_latest(job) if keeps_grid else old.decided,
    )
    return replace(back.progress, next_ms=next_plan_ms(back, schedule_of(back), now_ms))


def _put(records: Records, job: Job, progress: JobProgress) -> None:
    """An interval that counts from another time has other instants: the journal says so, for those who read it."""
    records.put(progress)
    if progress.anchor_ms != job.progress.anchor_ms and is_interval(job):
        from_ms = max(progress.cursor_ms or 0, progress.watermark_ms or 0)
        begun = {"anchor_ms": progress.anchor_ms, "cursor_ms": min(from_ms, records.now_ms)}
        journal.append(records.tx, Event(name="JobAnchored", at_ms=records.now_ms, job=job.id, data=begun))


def _later(job: Job, cursor_ms: int) -> int:
    return max(cursor_ms, job.progress.watermark_ms or cursor_ms, job.progress.begun_ms or cursor_ms)


def _move_waits(records: Records, by_ms: int, node: str) -> int:
    """The retries and execution timeouts of this node, and of those that have left, move with the clock. How many
    retries that was. What belongs to another node that lives, that node moves.
    """
    living = {one.id for one in records.nodes() if one.stopped_ms is None} - {node}
    for occurrence in records.active(limit=_MOST_RUNS):
        if occurrence.deadline_ms is not None and occurrence.owner not in living:
            allow_for_step(records, occurrence, by_ms)
    moved = [run for run in _retries(records) if run.owner not in living]
    for run in moved:
        _move(records, run, (run.next_attempt_ms or records.now_ms) + by_ms)
    _move_lines(records, by_ms)
    return len(moved)


def allow_for_step(records: Records, occurrence: Occurrence, by_ms: int) -> None:
    """Its execution timeout lasts as long as it was to. That is noted in what runs of it, so that whoever finds its
    processes younger than the clock says does not allow for the same step again."""
    if occurrence.deadline_ms is not None:
        records.put(replace(occurrence, deadline_ms=occurrence.deadline_ms + by_ms))
    for attempt in records.attempts(occurrence.job, occurrence.nominal_ms):
        if attempt.state is AttemptState.RUNNING:
            records.put(replace(attempt, clock_set_ms=attempt.clock_set_ms + by_ms))


def _move_lines(records: Records, by_ms: int) -> None:
    """Who waits in line has waited as long as before, and the starts of a group are as long ago."""
    for group in records.groups():
        if group.starts:
            records.put(replace(group, starts=tuple(start + by_ms for start in group.starts)))
    for occurrence in records.queued(limit=_MOST_RUNS):
        if occurrence.order_ms:
            records.put(replace(occurrence, order_ms=occurrence.order_ms + by_ms))


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


def _begin_later(records: Records, by_ms: int, now_ms: int) -> int:
    """The clock was set forwards: a job that began less than `by_ms` ago by the old clock begins as much later.

    Instants in between passed on no clock that the job has seen, so they are not made up for. A job that is older
    keeps them: the clock may have been slow, and what it had not reached yet is still to be done.
    """
    moved = [job for job in records.jobs(limit=_MOST_JOBS) if _began_by_the_old_clock(job, by_ms)]
    for job in moved:
        is_ahead = job.progress.begun_ms is not None and job.progress.begun_ms > now_ms - by_ms
        _put(records, job, _begun_ahead(job, now_ms) if is_ahead else _begun_later(job, by_ms, now_ms))
    return len(moved)


def begin_where_never_set(store: Store, now_ms: int) -> int:
    """Jobs that were made before their machine had been given the time begin now; how many that was."""
    first_ms = store.view(lambda tx: Reading(tx).next_due_ms())
    if now_ms < NEVER_SET_BEFORE_MS or first_ms is None or first_ms >= NEVER_SET_BEFORE_MS:
        return 0  # nothing has been due since then, so there is nothing that would be made up for

    def write(tx: Transaction) -> int:
        records = Records(tx, now_ms)
        begun = [
            job
            for job in records.jobs(limit=_MOST_JOBS)
            if job.progress.begun_ms is not None and job.progress.begun_ms < NEVER_SET_BEFORE_MS
        ]
        for job in begun:
            _put(records, job, _begun_later(job, now_ms - (job.progress.begun_ms or 0), now_ms))
        return len(begun)

    return store.update(write)


def _began_by_the_old_clock(job: Job, by_ms: int) -> bool:
    begun, cursor = job.progress.begun_ms, job.progress.cursor_ms
    return begun is not None and cursor is not None and begun + by_ms > cursor


def _begun_ahead(job: Job, now_ms: int) -> JobProgress:
    """It began, by its record, after the time that the clock showed before this step: the clock was set back since.

    Short of its watermark the clock was put right only in part, and what this step jumped over lies before the job.
    """
    watermark = job.progress.watermark_ms
    is_short = watermark is not None and now_ms < watermark
    return replace(job.progress, begun_ms=now_ms if is_short else None)


def _begun_later(job: Job, by_ms: int, now_ms: int) -> JobProgress:
    old, begun = job.progress, job.progress.begun_ms
    assert begun is not None, "it has a beginning"
    later = min(begun + by_ms, now_ms)
    anchor = old.anchor_ms
    if anchor is not None and anchor >= begun:
        anchor = min(anchor + by_ms, now_ms)
    moved = job.progressed(begun_ms=later, watermark_ms=max(later, old.watermark_ms or later), anchor_ms=anchor)
    if not is_known(job.dialect, job.schedule):
        return moved.progress
    next_ms = next_plan_ms(moved, schedule_of(moved), old.cursor_ms if old.cursor_ms is not None else now_ms)
    return replace(moved.progress, next_ms=next_ms)


def latest_sign(tx: ReadTransaction) -> int:
    """The latest time that the store knows of, also from before the clock was set back."""
    latest = newest_sign(tx)
    for _, event in journal.backward(tx, None, _MOST_EVENTS):
        set_back_ms = -min(event.data.get("by_ms", 0), 0) if event.name == "ClockStepped" else 0
        latest = max(latest, event.at_ms + set_back_ms)
    return latest


def begun_at(tx: ReadTransaction, now_ms: int) -> dict[str, int | None]:
    """The fields of a progress whose instants count from now: by a clock that is behind the store's own time, those
    up to that time are not made up for when the clock is put right."""
    latest = latest_sign(tx)
    return {"begun_ms": now_ms, "watermark_ms": latest if latest > now_ms + _TOLERANCE_MS else None}


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
