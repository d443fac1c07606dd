"""What changed, in which way an update takes effect, and what two versions of a job are compared by."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from msgspec.structs import replace

from chronex.model.records import Job


class Change(StrEnum):
    NEW = "new"
    PRESERVED = "preserved"
    OVERRIDDEN = "overridden"
    ORPHANED = "orphaned"


class Policy(StrEnum):
    """When an edited schedule takes effect.

    immediate: now; what waits and is no longer wanted is withdrawn. graceful: the next occurrence of the old schedule
    still happens, and its period ends, before the new one begins. windowed: as immediate, for what lies within the
    window; what waits beyond it is left as it was.
    """

    IMMEDIATE = "immediate"
    GRACEFUL = "graceful"
    WINDOWED = "windowed"


class Changed(NamedTuple):
    job: str
    change: Change
    version: int = 0


EARNED = (
    "version",
    "paused",
    "paused_until_ms",
    "paused_by",
    "paused_from_ms",
    "cursor_ms",
    "anchor_ms",
    "next_ms",
    "late_ms",
    "last_run_ms",
    "counters",
    "created_ms",
    "updated_ms",
    "updated_by",
    "source",
)
# A job with other values of these has other nominal instants.
_DECIDES_INSTANTS = ("schedule", "dialect", "timezone", "dst", "cadence", "enabled")


def definition(job: Job) -> Job:
    """The job without what it has earned while it lived: what two versions are compared by."""
    blank = Job(id=job.id, schedule=job.schedule)
    return replace(job, **{name: getattr(blank, name) for name in EARNED})


def has_other_instants(old: Job, new: Job) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in _DECIDES_INSTANTS)


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
    if job.cursor_ms is not None:
        data["cursor_ms"] = job.cursor_ms  # what is due later is decided by this definition
    if not job.enabled:
        data["enabled"] = False
    retries = {job.retry_for(task) for task in job.tasks}
    if len(retries) == 1 and (retry := retries.pop()).max != 0 and retry.backoff == 1.0 and not retry.jitter:
        data["retry_ms"] = min(retry.interval_ms, retry.max_interval_ms or retry.interval_ms)
    return data
