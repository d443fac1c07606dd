"""Bring the jobs of the store to what a job file says, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec.structs import replace

from chronex.engine import reasons
from chronex.engine.journal import append
from chronex.engine.keys import job_key
from chronex.engine.ledger import Ledger
from chronex.engine.planning import next_look
from chronex.engine.ports import Store, Transaction
from chronex.engine.schedule import schedule_of
from chronex.model.records import Counters, Event, Job, JobVersion, Occurrence
from chronex.model.states import OccurrenceState


class Change(StrEnum):
    NEW = "new"
    PRESERVED = "preserved"
    OVERRIDDEN = "overridden"
    ORPHANED = "orphaned"


class Changed(NamedTuple):
    job: str
    change: Change


_EARNED = ("version", "paused", "paused_until_ms", "paused_by", "paused_from_ms", "cursor_ms", "anchor_ms", "next_ms",
           "counters", "created_ms", "updated_ms", "source")  # fmt: skip


def definition(job: Job) -> Job:
    """The job without what it has earned while it lived: what two versions are compared by."""
    blank = Job(id=job.id, schedule=job.schedule)
    return replace(job, **{name: getattr(blank, name) for name in _EARNED})


def apply_jobs(store: Store, wanted: Iterable[Job], now_ms: int, actor: str = "") -> list[Changed]:
    """Make the store hold exactly these jobs. A job that did not change keeps its place in its schedule."""
    jobs = list(wanted)

    def write(tx: Transaction) -> list[Changed]:
        ledger = Ledger(tx, now_ms)
        present = {job.id: job for job in ledger.jobs(limit=1_000_000)}
        changes = [_apply_one(ledger, present.pop(job.id, None), job) for job in jobs]
        changes += [_orphan(ledger, job) for job in present.values()]
        append(tx, *(_event(ledger, change, actor) for change in changes if change.change is not Change.PRESERVED))
        return changes

    return store.update(write)


def _event(ledger: Ledger, change: Changed, actor: str) -> Event:
    job = ledger.job(change.job)
    data = {} if job is None else told_of(job)
    name = f"Job{change.change.value.capitalize()}"
    return Event(name=name, at_ms=ledger.now_ms, job=change.job, actor=actor, data=data)


def told_of(job: Job) -> dict[str, Any]:
    """What decides when the job is due and what may start, so that the journal can be judged by itself."""
    data: dict[str, Any] = {
        "version": job.version,
        "schedule": job.schedule,
        "timezone": job.timezone,
        "overlap": job.overlap.value,
        "recovery": job.recovery.strategy.value,
        "cadence": job.cadence.value,
    }
    if job.dialect != "chronex":
        data["dialect"] = job.dialect
    if job.dst is not None:
        data["dst"] = [job.dst.gap, job.dst.overlap]
    if job.spread is not None:
        data["spread_ms"] = job.spread.duration_ms
    if job.anchor_ms is not None:
        data["anchor_ms"] = job.anchor_ms
    if not job.enabled:
        data["enabled"] = False
    retries = {job.retry_for(task) for task in job.tasks}
    if len(retries) == 1 and (retry := retries.pop()).max != 0 and retry.backoff == 1.0 and not retry.jitter:
        data["retry_ms"] = min(retry.interval_ms, retry.max_interval_ms or retry.interval_ms)
    return data


def _apply_one(ledger: Ledger, old: Job | None, new: Job) -> Changed:
    now = ledger.now_ms
    if old is None:
        job = replace(
            new, version=1, cursor_ms=now, anchor_ms=now, created_ms=now, updated_ms=now, counters=Counters()
        )
        ledger.put(replace(job, next_ms=next_look(job, schedule_of(job), now)))
        return Changed(new.id, Change.NEW)
    if definition(old) == definition(new):
        return Changed(new.id, Change.PRESERVED)
    ledger.put(JobVersion(job=old))
    kept = {
        name: getattr(old, name) for name in _EARNED if name not in ("version", "next_ms", "updated_ms", "source")
    }
    job = replace(new, **kept, version=old.version + 1, updated_ms=now, source=new.source)
    if old.schedule != new.schedule or old.timezone != new.timezone:
        # What the new schedule would have done in the past is nobody's wish: an edit never fires at once.
        job = replace(job, cursor_ms=max(now, old.cursor_ms or now), anchor_ms=now)
    ledger.put(replace(job, next_ms=next_look(job, schedule_of(job), job.cursor_ms or now)))
    return Changed(new.id, Change.OVERRIDDEN)


def _orphan(ledger: Ledger, job: Job) -> Changed:
    """The job goes; its history stays; what has not started will not."""
    for occurrence in [*ledger.queued(job.id), *_pending(ledger, job.id)]:
        ledger.advance(occurrence, OccurrenceState.CANCELED, reason=reasons.JOB_REMOVED, finished_ms=ledger.now_ms)
    ledger.put(JobVersion(job=job))
    ledger.delete(job_key(job.id))
    return Changed(job.id, Change.ORPHANED)


def _pending(ledger: Ledger, job: str) -> list[Occurrence]:
    return [o for o in ledger.occurrences(job, limit=1000) if o.state is OccurrenceState.PENDING]
