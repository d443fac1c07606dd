"""Whether a source says something else than was applied from it: jobs and groups that are new, changed or gone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from chronex.engine.update.diff import Change, Owns, UpdateOptions, plan_changes
from chronex.engine.update.group_changes import GroupChange, plan_group_changes
from chronex.engine.update.sources import JobSource, is_owned
from chronex.model.job import Job
from chronex.storage.records import Reading

_ALL_JOBS = 1_000_000


class SourceChanges(NamedTuple):
    """What an apply of the source would do, as the names of jobs and of groups."""

    source: str
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them in words: jobs by their names, then groups."""
        jobs = sorted((*self.new, *self.changed, *self.removed))
        return (*jobs, *(f"group {name}" for name in self.groups))


def source_changes(reading: Reading, desired: Sequence[Job], source: JobSource, now_ms: int) -> SourceChanges:
    """What an apply of these jobs would change. JobSourceError where another source has one of the names."""
    planned = plan_changes(reading, desired, now_ms, UpdateOptions(owns=source))

    def names(kind: Change) -> tuple[str, ...]:
        return tuple(change.job_id for change in planned if change.kind is kind)

    groups = tuple(change.name for change in changed_groups(reading, desired, source))
    return SourceChanges(source.name, names(Change.NEW), names(Change.CHANGED), names(Change.REMOVED), groups)


def changed_groups(reading: Reading, desired: Sequence[Job], source: Owns | JobSource) -> tuple[GroupChange, ...]:
    """What the same apply would do to groups; nothing, where its source says nothing of them."""
    if not isinstance(source, JobSource) or source.groups is None:
        return ()
    named = {job.id for job in desired}
    stored = (job for job in reading.jobs(limit=_ALL_JOBS) if job.id not in named and not is_owned(job, source.name))
    return tuple(plan_group_changes(reading, source.groups, source.name, chain(desired, stored)))
