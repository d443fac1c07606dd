"""Earlier versions of a job: for occurrences that began with them, for replays, and for the way back."""

from __future__ import annotations

from chronex.errors import DamagedRecordError
from chronex.model.definition import Job, JobVersion
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.records import Reading, Records

MOST_VERSIONS = 50


def last_version(reading: Reading, job: str, at_least: int) -> int:
    """The highest number ever given to a version of the job that is still kept."""
    rows = reading.tx.scan(keys.within_job(keys.JOB_VERSION, job), None, 1, reverse=True)
    return max(at_least, _number(rows[0][0]) if rows else 0)


def kept_versions(reading: Reading, job: str) -> list[Job]:
    """The present version first, then the earlier ones that are kept; also of a job that was removed."""
    present = reading.job(job)
    earlier: list[Job] = [] if present is None else [present]
    for key, raw in reading.tx.scan(keys.within_job(keys.JOB_VERSION, job), None, reverse=True):
        try:
            record = decode(key, raw)
        except DamagedRecordError:
            continue
        if isinstance(record, JobVersion) and (present is None or record.job.version != present.version):
            earlier.append(record.job)
    return earlier


def prune_versions(records: Records, job: str) -> None:
    """Forget the oldest beyond the bound, but none that something that runs, waits, or may be replayed began with."""
    rows = records.tx.scan(keys.within_job(keys.JOB_VERSION, job))
    if len(rows) <= MOST_VERSIONS:
        return
    open_ones = [*records.active(job), *records.queued(job)]
    recent = records.occurrences(job, limit=MOST_VERSIONS)
    used = {one.version for one in (*open_ones, *recent)}
    for run in records.dead_letters():
        occurrence = records.occurrence(run.job, run.nominal_ms) if run.job == job else None
        used |= {occurrence.version} if occurrence is not None else set()
    for key, _ in rows[: len(rows) - MOST_VERSIONS]:
        if _number(key) not in used:
            records.delete(key)


def _number(key: bytes) -> int:
    return int.from_bytes(key[-4:], "big")
