"""Writing an update: all of it or nothing, and only over what the writer has seen."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random

from msgspec.structs import replace

from chronex.engine.lifecycle import Progress
from chronex.engine.update.diff import (
    DEFAULT_WINDOW_MS,
    Change,
    Changed,
    Owns,
    Policy,
    Step,
    Way,
    kept_versions,
    of_no_trigger_file,
    plan_steps,
    prune_versions,
    told_of,
)
from chronex.errors import NotPossibleError, StaleUpdateError, UnknownJobError
from chronex.model.definition import Job, JobVersion
from chronex.model.event import Event
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append, tail
from chronex.storage.keys import occurrence_key
from chronex.storage.ports import ReadTransaction, Store, Transaction
from chronex.storage.records import Records
from chronex.text.suggestions import nearest

_CHANGES = {f"Job{change.value.capitalize()}": change.value for change in Change if change is not Change.PRESERVED}


def apply_jobs(
    store: Store,
    wanted: Iterable[Job],
    now_ms: int,
    actor: str = "",
    *,
    policy: Policy = Policy.IMMEDIATE,
    window_ms: int = DEFAULT_WINDOW_MS,
    basis: int | None = None,
    owns: Owns = of_no_trigger_file,
) -> list[Changed]:
    """Make the store hold exactly these jobs, of all those that the writer `owns`.

    A job that did not change keeps its place in its schedule, so that applying twice is applying once. `basis` is the
    number of the journal's last event when the writer looked: StaleUpdateError when jobs have been changed since.
    """
    jobs, way = list(wanted), Way(policy, window_ms, owns)

    def write(tx: Transaction) -> list[Changed]:
        records = Records(tx, now_ms)
        steps = plan_steps(records, jobs, now_ms, way)
        if basis is not None and any(step.change is not Change.PRESERVED for step in steps):
            _refuse_if_stale(tx, basis)
        return write_steps(records, steps, actor)

    return store.update(write)


def roll_back(store: Store, job_id: str, version: int, now_ms: int, actor: str = "") -> Changed:
    """Give a job the definition of an earlier version, as a new version; a removed job comes back."""

    def write(tx: Transaction) -> Changed:
        records = Records(tx, now_ms)
        found = {job.version: job for job in kept_versions(records, job_id)}
        if not found:
            raise UnknownJobError(job_id, nearest(job_id, (job.id for job in records.jobs(limit=100_000))))
        if version not in found:
            kept = ", ".join(str(number) for number in sorted(found))
            raise NotPossibleError(f"version {version} of {job_id} is not kept; there are {kept}")
        wanted = replace(found[version].as_written(), source=found[version].source)
        steps = plan_steps(records, [wanted], now_ms, Way(owns=lambda job: False))
        (changed,) = write_steps(records, steps, actor, {"rolled_back_to": version})
        return changed

    return store.update(write)


def write_steps(
    records: Records, steps: Iterable[Step], actor: str, data: dict[str, int] | None = None
) -> list[Changed]:
    return [_write(records, step, actor, data or {}) for step in steps]


def _write(records: Records, step: Step, actor: str, data: dict[str, int]) -> Changed:
    version = step.job.version if step.job is not None else 0
    if step.change is Change.PRESERVED:
        return Changed(step.job_id, step.change, version)
    events = [_told(records, step, actor, data)]
    if step.old is not None:
        records.put(JobVersion(job=step.old))
        prune_versions(records, step.job_id)
    if step.job is not None:
        records.put(replace(step.job, updated_by=actor))
    _write_occurrences(records, step, events)
    if step.job is None:
        records.delete_job(step.job_id)
    append(records.tx, *events)
    return Changed(step.job_id, step.change, version)


def _write_occurrences(records: Records, step: Step, events: list[Event]) -> None:
    progress = Progress(records, "", Random(0), [], events)  # noqa: S311  nothing is drawn
    reason = (
        Reason(ReasonCode.JOB_REMOVED) if step.job is None else Reason(ReasonCode.REPLACED, str(step.job.version))
    )
    for one in step.withdrawn:
        progress.end_unstarted(one, OccurrenceState.CANCELED, reason)
    for one in step.revived:
        records.delete(occurrence_key(one.job, one.nominal_ms))
    for one in step.rewritten:
        records.put(one)
    for one in step.added:
        records.create(one)
    if step.passed is not None:
        span = {"from_ms": step.passed[0], "to_ms": step.passed[1]}
        events.append(
            Event(name="OccurrencesMissed", at_ms=records.now_ms, job=step.job_id, reason=reason, data=dict(span))
        )


def _told(records: Records, step: Step, actor: str, data: dict[str, int]) -> Event:
    told = {} if step.job is None else told_of(step.job)
    name = f"Job{step.change.value.capitalize()}"
    return Event(name=name, at_ms=records.now_ms, job=step.job_id, actor=actor, data={**told, **data})


def _refuse_if_stale(tx: ReadTransaction, basis: int) -> None:
    """Who has changed which job since the writer looked, from the journal itself."""
    changes: list[str] = []
    seen = basis
    while page := tail(tx, seen):
        seen = page[-1][0]
        for _, event in page:
            if event.name in _CHANGES:
                when = datetime.fromtimestamp(event.at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                changes.append(f"{event.job} {_CHANGES[event.name]} by {event.actor or 'somebody'} at {when}")
    if changes:
        raise StaleUpdateError(changes)
