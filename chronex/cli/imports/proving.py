"""Prove the move: read the written file as Chronex will, and compare five years of instants with the source."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.cli.imports.hosts import five_years
from chronex.cli.imports.imported import Import, Imported
from chronex.cli.imports.proof import POLICIES, Difference, differences
from chronex.cli.imports.writing import job_file
from chronex.engine.jobfile import JobFile, read_job_file
from chronex.engine.placement import place
from chronex.engine.schedule import options_of, schedule_of
from chronex.model.records import Job

_NEVER_LATE = Random(0)  # noqa: S311  jitter moves a start, and what is compared are the scheduled times


class Proven(NamedTuple):
    """A job of the import with what differs, and how many instants were compared."""

    job: Imported
    compared: int
    differences: tuple[Difference, ...]


def prove(found: Import, now_s: int) -> tuple[Import, list[Proven]]:
    """The import with each job's clock-change rule chosen so that the fewest instants differ."""
    proven = [_best(found, job, now_s) for job in found.jobs]
    return found._replace(jobs=[each.job for each in proven]), proven


def _best(found: Import, job: Imported, now_s: int) -> Proven:
    if job.theirs is None:
        return Proven(job, 0, ())
    start, end = five_years(now_s)
    theirs = list(job.theirs(start, end))
    plain = _compare(found, job, theirs, start, end)
    if not plain.differences:
        return plain
    others = [
        _compare(found, job._replace(table={**job.table, "dst": policy._asdict()}), theirs, start, end)
        for policy in POLICIES[1:]
    ]
    best = min(others, key=lambda each: len(each.differences))
    return best if len(best.differences) < len(plain.differences) else plain


def _compare(found: Import, job: Imported, theirs: Iterable[int], start: int, end: int) -> Proven:
    read = as_chronex_reads(found._replace(jobs=[job])).jobs[0]
    ours = _seconds(read, start, end)
    source = set(theirs)
    listed = differences(source, ours, job.zone)
    return Proven(job, len(source | ours), tuple(listed))


def _seconds(job: Job, start: int, end: int) -> set[int]:
    """When Chronex starts the job; instants that its constraints rule out are not among them."""
    anchored = replace(job, anchor_ms=start * 1000)
    nominal = schedule_of(anchored).between(start * 1000 - 1, end * 1000 - 1)
    if job.spread is None:
        return {ms // 1000 for ms in nominal}
    options = options_of(job)
    return {ms // 1000 for ms in nominal if not place(job, options, ms, _NEVER_LATE).impossible}


def as_chronex_reads(found: Import) -> JobFile:
    """What an import wrote must be a job file; a JobFileError here is a defect of the import."""
    return read_job_file(job_file(found).encode(), "imported.toml", found.timezone)
