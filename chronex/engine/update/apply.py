"""Write an update: all of it or nothing, and only over what the writer has read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec.structs import replace

from chronex.engine.lifecycle import Lifecycle
from chronex.engine.plan import NO_CHANCE
from chronex.engine.update.diff import (
    DEFAULT_WINDOW_MS,
    Change,
    Changed,
    JobChange,
    Owns,
    Policy,
    UpdateOptions,
    definition_data,
    kept_versions,
    losses_of,
    of_no_trigger_file,
    plan_changes,
    prune_versions,
)
from chronex.engine.update.group_changes import leave_changed_groups, write_groups
from chronex.engine.update.sources import JobSource
from chronex.errors import NotPossibleError, PruneError, StaleUpdateError, UnknownJobError
from chronex.model.event import Event
from chronex.model.job import Job, JobVersion
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append, tail
from chronex.storage.keys import occurrence_key
from chronex.storage.ports import ReadTransaction, Store, Transaction
from chronex.storage.records import Records
from chronex.text.suggestions import nearest
from chronex.timing.job_schedule import absolute_schedule

_CHANGES = {f"Job{change.value.capitalize()}": change.value for change in Change if change is not Change.UNCHANGED}


def apply_jobs(
    store: Store,
    desired: Iterable[Job],
    now_ms: int,
    actor: str = "",
    *,
    policy: Policy = Policy.IMMEDIATE,
    window_ms: int = DEFAULT_WINDOW_MS,
    basis: int | None = None,
    owns: Owns | JobSource = of_no_trigger_file,
) -> list[Changed]:
    """Make the store hold exactly these jobs, of all those that the writer `owns`, or that its source applied.

    PruneError where it would remove most jobs of a source that may not do so.

    A job that did not change keeps its position in its schedule, so that applying twice is applying once. `basis` is
    the number of the journal's last event when the writer read the jobs; StaleUpdateError when jobs changed since.
    """
    jobs, options = [absolute_schedule(job, now_ms) for job in desired], UpdateOptions(policy, window_ms, owns)

    def write(tx: Transaction) -> list[Changed]:
        tx.expect({job.id for job in jobs})
        records = Records(tx, now_ms)
        changes = plan_changes(records, jobs, now_ms, options)
        losses = losses_of(changes)
        if isinstance(owns, JobSource) and losses.are_most and not owns.may_prune:
            raise PruneError(owns.name, losses.removed, losses.had)
        if basis is not None and any(change.kind is not Change.UNCHANGED for change in changes):
            refuse_if_stale(tx, basis)
        changed = write_changes(records, changes, actor)
        if isinstance(owns, JobSource) and owns.groups is not None and (owns.groups or records.groups()):
            write_groups(records, owns.groups, owns.name, actor)
        return changed

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
        desired = replace(found[version].as_written(), source=found[version].source)
        changes = plan_changes(records, [desired], now_ms, UpdateOptions(owns=lambda job: False))
        changed, *_ = write_changes(records, changes, actor, {"rolled_back_to": version})
        return changed

    return store.update(write)


def write_changes(
    records: Records, changes: Iterable[JobChange], actor: str, data: dict[str, int] | None = None
) -> list[Changed]:
    return [_write(records, change, actor, data or {}) for change in changes]


def _write(records: Records, change: JobChange, actor: str, data: dict[str, int]) -> Changed:
    version = change.job.version if change.job is not None else 0
    if change.kind is Change.UNCHANGED:
        if change.job is not None and change.job != change.old:  # another source has it now
            records.put(change.job)
        return Changed(change.job_id, change.kind, version)
    events = [_change_event(records, change, actor, data)]
    if change.old is not None:
        records.put(JobVersion(job=change.old))
        prune_versions(records, change.job_id)
    if change.job is not None:
        records.put(replace(change.job, updated_by=actor))
    _write_occurrences(records, change, events)
    if change.old is not None and change.job is not None and change.old.groups != change.job.groups:
        leave_changed_groups(records, change.job.id)
    if change.job is None:
        records.delete_job(change.job_id)
    append(records.tx, *events)
    return Changed(change.job_id, change.kind, version)


def _write_occurrences(records: Records, change: JobChange, events: list[Event]) -> None:
    reason = (
        Reason(ReasonCode.JOB_REMOVED) if change.job is None else Reason(ReasonCode.REPLACED, str(change.job.version))
    )
    lifecycle = Lifecycle(records, "", NO_CHANCE, [], events)  # nothing is drawn
    for one in change.withdrawn:
        lifecycle.end_unstarted(one, OccurrenceState.CANCELED, reason)
    for one in change.restored:
        records.delete(occurrence_key(one.job, one.nominal_ms))
    _uncount(records, change.job_id, sum(1 for one in change.restored if one.reason.code is ReasonCode.REPLACED))
    for one in change.rewritten:
        records.put(one)
    for one in change.added:
        records.create(one)
    for one in change.rewritten:
        if one.waits_for:
            lifecycle.followers.decide_waiting(one)
    lifecycle.decide_waiting_for(change.job_id)
    if change.skipped_span is not None:
        span = {"from_ms": change.skipped_span[0], "to_ms": change.skipped_span[1]}
        events.append(
            Event(name="OccurrencesMissed", at_ms=records.now_ms, job=change.job_id, reason=reason, data=dict(span))
        )


def _uncount(records: Records, job_id: str, restored: int) -> None:
    """What is wanted again was counted as canceled when it was withdrawn."""
    job = records.job(job_id) if restored else None
    if job is not None:
        counters = job.progress.counters
        kept = replace(counters, canceled=max(counters.canceled - restored, 0))
        records.put(replace(job.progress, counters=kept))


def _change_event(records: Records, change: JobChange, actor: str, data: dict[str, int]) -> Event:
    definition = {} if change.job is None else definition_data(change.job)
    name = f"Job{change.kind.value.capitalize()}"
    return Event(name=name, at_ms=records.now_ms, job=change.job_id, actor=actor, data={**definition, **data})


def refuse_if_stale(tx: ReadTransaction, basis: int) -> None:
    """StaleUpdateError with who has changed which job since the writer read them, from the journal."""
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
