"""Whether a source says something else than what was applied from it: its jobs that are new, changed or gone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chronex.engine.update.diff import Change, UpdateOptions, plan_changes
from chronex.engine.update.sources import JobSource
from chronex.model.job import Job
from chronex.storage.records import Reading

_ALL_JOBS = 1_000_000


class SourceChanges(NamedTuple):
    """What an apply of the source would do, as the names of jobs."""

    source: str
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def is_applied(self) -> bool:
        return not (self.new or self.changed or self.removed)

    @property
    def total(self) -> int:
        return len(self.new) + len(self.changed) + len(self.removed)


def source_changes(reading: Reading, wanted: Iterable[Job], source: JobSource, now_ms: int) -> SourceChanges:
    """What an apply of these jobs would change. JobSourceError where another source has one of the names."""
    planned = plan_changes(reading, wanted, now_ms, UpdateOptions(owns=source))

    def names(kind: Change) -> tuple[str, ...]:
        return tuple(change.job_id for change in planned if change.kind is kind)

    return SourceChanges(source.name, names(Change.NEW), names(Change.CHANGED), names(Change.REMOVED))


def file_sources(reading: Reading) -> tuple[str, ...]:
    """The files and directories that the jobs of the store were applied from, in order."""
    return tuple(sorted({job.source for job in reading.jobs(limit=_ALL_JOBS) if job.source.startswith("/")}))
