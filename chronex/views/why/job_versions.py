"""Which version of a job was in force at an instant."""

from __future__ import annotations

from typing import NamedTuple

from chronex.model.job import Job, JobVersion
from chronex.storage import journal, keys
from chronex.storage.journal import Line
from chronex.storage.records import Reading

# So many events are looked through for one fact; what lies further back is told without its time.
MOST_EVENTS = 5_000


class Lives(NamedTuple):
    """Every kept version of a job, the oldest first; `removed_ms` when the job is gone."""

    versions: tuple[Job, ...]
    is_gone: bool
    removed_ms: int | None = None

    def in_force(self, at_ms: int) -> Job | None:
        """The version that held at `at_ms`; None before the first and after the removal."""
        if self.removed_ms is not None and at_ms >= self.removed_ms:
            return None
        held = [job for job in self.versions if job.updated_ms <= at_ms]
        return held[-1] if held else None

    @property
    def first_ms(self) -> int:
        return self.versions[0].progress.created_ms or self.versions[0].updated_ms

    @property
    def last(self) -> Job:
        return self.versions[-1]


def lives_of(reading: Reading, job: str) -> Lives | None:
    """None for a job that the store has never known, or has forgotten."""
    current = reading.job(job)
    earlier = [found.job for found in reading.scan(keys.within_job(keys.JOB_VERSION, job), JobVersion)]
    versions = sorted([*earlier, *([current] if current else [])], key=lambda one: (one.updated_ms, one.version))
    if not versions:
        return None
    removed = None if current else _removed(reading, job)
    return Lives(tuple(versions), current is None, removed)


def _removed(reading: Reading, job: str) -> int | None:
    found = last_event(reading, None, job, {"JobOrphaned", "JobRemoved"})
    return found[1].at_ms if found else None


def last_event(reading: Reading, before: int | None, job: str, names: set[str]) -> Line | None:
    """The newest event of the job with one of these names, below number `before`."""
    for number, event in journal.backward(reading.tx, before, MOST_EVENTS):
        if event.job == job and event.name in names:
            return number, event
    return None
