"""Prove the move: read the written file as Chronex will, and compare five years of instants with the source."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.cli.imports.hosts import five_years
from chronex.cli.imports.imported import Import, Imported
from chronex.cli.imports.proof import POLICIES, Difference, differences
from chronex.cli.imports.writing import job_file
from chronex.engine.place import place
from chronex.jobfile import JobFile, read_job_file
from chronex.model.records import Job
from chronex.timing.job_schedule import options_of, schedule_of

_DAY = 86_400
_MONTH = 30 * _DAY
_OFTEN = 60  # starts in an hour
_NEVER_LATE = Random(0)  # noqa: S311  jitter moves a start, and what is compared are the scheduled times


class Proven(NamedTuple):
    """A job of the import with what differs, how many instants were compared, and whether those were all."""

    job: Imported
    compared: int
    differences: tuple[Difference, ...]
    is_whole: bool = True


def prove(found: Import, now_s: int) -> tuple[Import, list[Proven]]:
    """The import with each job's clock-change rule chosen so that the fewest instants differ."""
    proven = [_best(found, job, now_s) for job in found.jobs]
    return found._replace(jobs=[each.job for each in proven]), proven


def _best(found: Import, job: Imported, now_s: int) -> Proven:
    """The rule is chosen where it matters, around the clock changes; then everything is compared once."""
    if job.theirs is None:
        return Proven(job, 0, ())
    start, end = five_years(now_s)
    restless = [(change.at - _DAY, change.at + _DAY) for change in job.zone.changes(start, end)]
    chosen = _compare(found, job, restless)
    for policy in POLICIES[1:]:
        if not chosen.differences:
            break
        other = _compare(found, job._replace(table={**job.table, "dst": policy._asdict()}), restless)
        chosen = min(chosen, other, key=lambda each: len(each.differences))
    return _whole(found, chosen.job, restless, start, end)


def _whole(found: Import, job: Imported, restless: list[tuple[int, int]], start: int, end: int) -> Proven:
    """Five years in months, so that the lists stay short. What fires every few seconds would take hours: of that,
    five days and the days around every clock change."""
    assert job.theirs is not None, "only what the source can time is compared"
    in_an_hour = sum(1 for _ in job.theirs(start, start + 3600))
    if in_an_hour > _OFTEN:
        days = [(start, start + 5 * _DAY), *(span for span in restless if span[0] > start + 5 * _DAY)]
        return _compare(found, job, days)._replace(is_whole=False)
    return _compare(found, job, [(at, min(at + _MONTH, end)) for at in range(start, end, _MONTH)])


def _compare(found: Import, job: Imported, spans: list[tuple[int, int]]) -> Proven:
    assert job.theirs is not None, "only what the source can time is compared"
    read = as_chronex_reads(found._replace(jobs=[job])).jobs[0]
    listed: list[Difference] = []
    compared = 0
    for start, end in spans:
        theirs, ours = set(job.theirs(start, end)), _seconds(read, start, end)
        compared += len(theirs | ours)
        listed += differences(theirs, ours, job.zone)
    return Proven(job, compared, tuple(listed))


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
