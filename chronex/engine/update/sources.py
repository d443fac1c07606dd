"""Whose job it is: every job belongs to the source that applied it, and an update of one source leaves others alone.

A source is the absolute path of a file or directory, `program NAME`, `declarative NAME`, or `chronex at`. Jobs from
before sources were kept have none, or the path of their file as it was written: the first update that names such a
job takes it over.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple

from chronex.errors import JobSourceError
from chronex.model.groups import GroupSettings
from chronex.model.job import Job

PROGRAM, DECLARATIVE = "program ", "declarative "
# Jobs that `chronex at` has put into the store: each runs once, and no file has them.
AT = "chronex at"
# Whether a source exists no longer; a file that was renamed must not keep its jobs from the new name.
IsGone = Callable[[str], bool]


# Where a source says that a job follows another one, as `FILE:LINE:COLUMN`; empty where it does not say so. Asked
# when an update is refused for it, and not before: the places of a long file take as long to find as its values.
PositionOfParent = Callable[[str, str], str]


def none_is_gone(source: str) -> bool:
    return False


def no_position(job: str, parent: str) -> str:
    return ""


class JobSource(NamedTuple):
    """Who applies jobs: it owns what it applied before, and no job of another source. One that may not prune does
    not lose most of its jobs: a file that was cut short looks just like that."""

    name: str
    is_gone: IsGone = none_is_gone
    may_prune: bool = True
    # The groups that it says; None leaves groups as they are.
    groups: tuple[GroupSettings, ...] | None = None
    position_of_parent: PositionOfParent = no_position


def is_unknown(source: str) -> bool:
    """From before sources were kept."""
    return not source.startswith(("/", PROGRAM, DECLARATIVE, DECLARATIVE.strip(), AT))


def is_owned(job: Job, source: str) -> bool:
    """Whether an update of `source` removes the job where it does not name it. A path as it was written is owned by
    a file of that name."""
    if job.source == source:
        return True
    return bool(job.source) and is_unknown(job.source) and PurePath(job.source).name == PurePath(source).name


def check_source(present: Job | None, source: JobSource) -> None:
    """JobSourceError where another source has a job of this name."""
    if present is None or present.source == source.name:
        return
    if is_unknown(present.source) or source.is_gone(present.source):
        return
    raise JobSourceError(present.id, present.source)
