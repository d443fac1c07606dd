"""Hold a job's schedule (pause, resume), or end one of its occurrences (cancel)."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from chronex.engine.clock_steps import begun_at
from chronex.engine.commands.actor import Actor, record_command
from chronex.engine.commands.names import job_named, occurrence_named, open_occurrences
from chronex.engine.lifecycle import Lifecycle
from chronex.errors import NotPossibleError
from chronex.model.event import Event
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import is_final
from chronex.storage.journal import append
from chronex.storage.records import Records
from chronex.text.instants import LAST_MS


def pause(records: Records, job_id: str, actor: Actor, *, until_ms: int | None = None) -> Job:
    """Hold the job's schedule until `until_ms`, or until it is resumed. A paused job gets the new end.

    Occurrences of the schedule that are due meanwhile are skipped, with who paused the job; triggers still run.
    """
    job = job_named(records, job_id)
    if until_ms is not None and until_ms <= records.now_ms:
        raise NotPossibleError("a pause must end in the future")
    if until_ms is not None and until_ms > LAST_MS:
        raise NotPossibleError("a pause must end by the year 9999; without an end it holds until somebody resumes it")
    for one in records.targets(job.id):
        pause(records, one.id, actor, until_ms=until_ms)
    progress = job.progress
    goes_on = job.progress.is_paused_at(records.now_ms) and job.progress.paused_from_ms is not None
    paused = job.progressed(
        paused=True,
        paused_until_ms=until_ms,
        paused_by=str(actor),
        paused_from_ms=progress.paused_from_ms if goes_on else records.now_ms,
        pauses=progress.pauses if goes_on else progress.pauses_with_last(),
    )
    records.put(paused)
    record_command(records, "JobPaused", actor, job.id, data={} if until_ms is None else {"until_ms": until_ms})
    return paused


def resume(records: Records, job_id: str, actor: Actor) -> Job:
    """End a pause. What was due in it stays skipped, also where no daemon ran that could have skipped it."""
    job = job_named(records, job_id)
    for one in records.targets(job.id):
        resume(records, one.id, actor)
    if not job.progress.is_paused_at(records.now_ms):
        return job
    begun = begun_at(records.tx, records.now_ms)
    watermarks = (job.progress.watermark_ms, begun["watermark_ms"])
    begun["watermark_ms"] = max((one for one in watermarks if one is not None), default=None)
    resumed = job.progressed(paused=False, paused_until_ms=records.now_ms, **begun)
    records.put(resumed)
    record_command(records, "JobResumed", actor, job.id)
    return resumed


class Canceled(NamedTuple):
    """`is_over`: nothing ran, so it has ended; else the node that runs it is requested to stop it."""

    occurrence: Occurrence
    is_over: bool
    reason: Reason


def cancel(records: Records, run_or_occurrence_id: str | Occurrence, actor: Actor, reason: str = "") -> Canceled:
    """Cancel an occurrence as a whole; the id of a run or an attempt names the occurrence it belongs to.

    An occurrence that waits ends at once. One that runs is stopped by the daemon that runs it, or by its successor.
    """
    named = run_or_occurrence_id
    found = named if isinstance(named, Occurrence) else occurrence_named(records, named)
    found = records.occurrence(found.job, found.nominal_ms) or found
    if is_final(found.state):
        raise NotPossibleError(f"{found.id} has ended already: {found.state}")
    canceled = Reason(ReasonCode.CANCELED, reason, str(actor))
    record_command(records, "CancelRequested", actor, found.job, found.nominal_ms, reason)
    events: list[Event] = []
    lifecycle = Lifecycle(records, "", Random(0), [], events)  # noqa: S311  nothing is drawn
    is_over = lifecycle.cancel(found, canceled)
    append(records.tx, *events)
    return Canceled(records.occurrence(found.job, found.nominal_ms) or found, is_over, canceled)


def cancel_job(records: Records, name: str, actor: Actor, reason: str = "") -> list[Canceled]:
    """Cancel what of the job runs or waits for its turn; its schedule goes on. Raises where nothing does."""
    job = job_named(records, name)
    found = [one for each in (job, *records.targets(job.id)) for one in open_occurrences(records, each)]
    if not found:
        raise NotPossibleError(
            f"nothing of {job.shown_name} runs or waits; chronex pause {job.shown_name} holds its schedule"
        )
    return [cancel(records, one, actor, reason) for one in found]
