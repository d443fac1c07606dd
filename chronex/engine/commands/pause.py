"""pause and resume: what the schedule asks for meanwhile is skipped, with who paused it; triggers still run."""

from __future__ import annotations

from chronex.engine.commands.actor import Asker, tell
from chronex.engine.commands.names import job_named
from chronex.errors import NotPossibleError
from chronex.model.definition import Job
from chronex.storage.records import Records


def pause(records: Records, job_id: str, asker: Asker, *, until_ms: int | None = None) -> Job:
    """Hold the job's schedule, until `until_ms` or until it is resumed. A paused job gets the new end."""
    job = job_named(records, job_id)
    if until_ms is not None and until_ms <= records.now_ms:
        raise NotPossibleError("a pause must end in the future")
    goes_on = job.progress.is_paused_at(records.now_ms) and job.progress.paused_from_ms is not None
    paused = job.progressed(
        paused=True,
        paused_until_ms=until_ms,
        paused_by=str(asker),
        paused_from_ms=job.progress.paused_from_ms if goes_on else records.now_ms,
    )
    records.put(paused)
    tell(records, "JobPaused", asker, job.id, data={} if until_ms is None else {"until_ms": until_ms})
    return paused


def resume(records: Records, job_id: str, asker: Asker) -> Job:
    """End a pause. What was due in it stays skipped, also where no daemon was there to skip it yet."""
    job = job_named(records, job_id)
    if not job.progress.is_paused_at(records.now_ms):
        return job
    resumed = job.progressed(paused=False, paused_until_ms=records.now_ms)
    records.put(resumed)
    tell(records, "JobResumed", asker, job.id)
    return resumed
