"""What a simulation begins with: the jobs of a file as they would be if it were applied now, with what a store knows
of them. What runs, waits or was missed at that time is not played; `max` counts those that wait for their turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from chronex.model.job import Job
from chronex.storage.records import Reading
from chronex.views.coming_runs import runs_left
from chronex.views.known_runs import behind_queue

# What an apply leaves a job as it was.
_KEPT = ("paused", "paused_until_ms", "paused_by", "paused_from_ms", "pauses", "counters")


class SimulationStart(NamedTuple):
    """The jobs, and of which of them the store says something that decides what starts."""

    jobs: list[Job]
    paused: tuple[str, ...] = ()
    partly_used: tuple[str, ...] = ()  # of whose `max` some is used, or all


def starting_now(reading: Reading, jobs: Iterable[Job], now_ms: int) -> SimulationStart:
    begun = [_as_stored(job, _stored(reading, job.id, now_ms)) for job in jobs]
    paused = tuple(job.id for job in begun if job.enabled and job.progress.is_paused_at(now_ms))
    used = tuple(job.id for job in begun if runs_left(job) is not None and job.progress.counters.fired)
    return SimulationStart(begun, paused, used)


def _stored(reading: Reading, name: str, now_ms: int) -> Job | None:
    found = reading.job(name)
    return None if found is None else behind_queue(found, reading.waiting(name), now_ms)


def _as_stored(job: Job, stored: Job | None) -> Job:
    """An interval counts from where it did, unless its schedule is another."""
    if stored is None:
        return job
    if job.written and job.written == stored.written:
        job = replace(job, schedule=stored.schedule)  # `@once +20m` counts from when it was first applied
    kept = {name: getattr(stored.progress, name) for name in _KEPT}
    if (job.schedule, job.timezone) == (stored.schedule, stored.timezone):
        kept["anchor_ms"] = stored.progress.anchor_ms
    return job.progressed(**kept)
