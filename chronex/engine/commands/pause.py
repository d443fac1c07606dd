"""pause and resume: what the schedule asks for meanwhile is skipped, with who paused it; triggers still run."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.engine.commands.actor import Asker, tell
from chronex.engine.commands.names import job_named
from chronex.errors import NotPossibleError
from chronex.model.records import Job
from chronex.storage.records import Ledger


def pause(ledger: Ledger, job_id: str, asker: Asker, *, until_ms: int | None = None) -> Job:
    """Hold the job's schedule, until `until_ms` or until it is resumed. A paused job gets the new end."""
    job = job_named(ledger, job_id)
    if until_ms is not None and until_ms <= ledger.now_ms:
        raise NotPossibleError("a pause must end in the future")
    goes_on = job.is_paused_at(ledger.now_ms) and job.paused_from_ms is not None
    paused = replace(
        job,
        paused=True,
        paused_until_ms=until_ms,
        paused_by=str(asker),
        paused_from_ms=job.paused_from_ms if goes_on else ledger.now_ms,
    )
    ledger.put(paused)
    tell(ledger, "JobPaused", asker, job.id, data={} if until_ms is None else {"until_ms": until_ms})
    return paused


def resume(ledger: Ledger, job_id: str, asker: Asker) -> Job:
    """End a pause. What was due in it stays skipped, also where no daemon was there to skip it yet."""
    job = job_named(ledger, job_id)
    if not job.is_paused_at(ledger.now_ms):
        return job
    resumed = replace(job, paused=False, paused_until_ms=ledger.now_ms)
    ledger.put(resumed)
    tell(ledger, "JobResumed", asker, job.id)
    return resumed
