"""One job added, changed or removed, while the others of its source stay: what a program does at run time."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from chronex.engine.update.apply import refuse_if_stale, write_changes
from chronex.engine.update.diff import Changed, Policy, UpdateOptions, plan_changes
from chronex.engine.update.sources import JobSource, check_source, is_unknown
from chronex.errors import JobSourceError, NotPossibleError, UnknownJobError
from chronex.model.job import Job, is_name
from chronex.storage.ports import Store, Transaction
from chronex.storage.records import Records
from chronex.text.suggestions import nearest

_MOST_SEARCHED = 100_000


def put_job(store: Store, job: Job, now_ms: int, actor: str, source: JobSource) -> Changed:
    """The job in this version, of this source. JobSourceError where another one has a job of its name."""

    def write(tx: Transaction) -> Changed:
        records = Records(tx, now_ms)
        check_source(records.job(job.id), source)
        return _write(records, replace(job, source=source.name), actor, UpdateOptions(owns=_owns_nothing))

    return store.update(write)


def add_job(store: Store, job: Job, now_ms: int, actor: str, sources: tuple[JobSource, ...]) -> Changed:
    """The same for a job that is new, of the last of these sources; NotPossibleError where there is one already."""

    def write(tx: Transaction) -> Changed:
        records = Records(tx, now_ms)
        present = records.job(job.id)
        if present is not None:
            _owner(present, sources)
            raise NotPossibleError(f"there is a job {job.id!r} already; update it, or remove it first")
        return _write(records, replace(job, source=sources[-1].name), actor, UpdateOptions(owns=_owns_nothing))

    return store.update(write)


def change_job(
    store: Store,
    job_id: str,
    change: Callable[[Job], Job],
    now_ms: int,
    actor: str,
    sources: tuple[JobSource, ...],
    *,
    policy: Policy = Policy.IMMEDIATE,
    basis: int | None = None,
) -> Changed:
    """What `change` makes of the job, which must belong to one of the sources. UnknownJobError without the job."""

    def write(tx: Transaction) -> Changed:
        records = Records(tx, now_ms)
        present = _present(records, job_id)
        source = _owner(present, sources)
        if basis is not None:
            refuse_if_stale(tx, basis)
        desired = replace(change(present.as_written()), source=source)
        return _write(records, desired, actor, UpdateOptions(policy, owns=_owns_nothing))

    return store.update(write)


def remove_job(store: Store, job_id: str, now_ms: int, actor: str, sources: tuple[JobSource, ...]) -> Changed:
    """The job is gone, its history stays, and what waits is withdrawn. UnknownJobError without the job."""

    def write(tx: Transaction) -> Changed:
        records = Records(tx, now_ms)
        present = _present(records, job_id)
        _owner(present, sources)
        options = UpdateOptions(owns=lambda job: present.id in (job.id, job.made_from))
        changed, *_ = write_changes(records, plan_changes(records, [], now_ms, options), actor)
        return changed

    return store.update(write)


def _present(records: Records, job_id: str) -> Job:
    job = records.job(job_id) if is_name(job_id) else None
    if job is None:
        raise UnknownJobError(job_id, nearest(job_id, (known.id for known in records.jobs(limit=_MOST_SEARCHED))))
    return job


def _write(records: Records, desired: Job, actor: str, options: UpdateOptions) -> Changed:
    changes = plan_changes(records, [desired], records.now_ms, options)
    changed, *_ = write_changes(records, changes, actor)
    return changed


def _owner(job: Job, sources: tuple[JobSource, ...]) -> str:
    """The one of these sources that the job belongs to; the last one for a job that nobody owns any more."""
    for source in sources:
        if job.source == source.name:
            return source.name
    last = sources[-1]
    if is_unknown(job.source) or last.is_gone(job.source):
        return last.name
    raise JobSourceError(job.id, job.source)


def _owns_nothing(job: Job) -> bool:
    return False
