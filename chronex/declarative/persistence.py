"""Tasks as jobs of the store: how a task is written, read back, and changed to what its registration says."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.declarative.registrations import TaskDefinition, check_cron
from chronex.declarative.scheduler_errors import (
    CronCalculationError,
    InvalidCronExpressionError,
    SchedulerError,
    ScheduleTaskError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskListMismatchError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)
from chronex.engine.clock_steps import begun_at
from chronex.engine.lifecycle import Lifecycle
from chronex.engine.plan import next_plan_ms
from chronex.engine.update.apply import write_changes
from chronex.engine.update.diff import Change, JobChange, definition_data, last_version
from chronex.model.event import Event
from chronex.model.job import Call, Counters, Job, JobProgress, Task, task_job_id
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import OccurrenceState, RunState
from chronex.storage.journal import append
from chronex.storage.records import Reading, Records
from chronex.text.durations import MINUTE_MS
from chronex.text.instants import local_datetime
from chronex.timing.job_schedule import schedule_of
from chronex.timing.zones import load_zone

SOURCE = "declarative"  # who changes a task, for the journal; and the source of tasks from before programs had names
TASK = "main"
_MAX_JOBS = 1_000_000


class TaskResolution(NamedTuple):
    """What `initialize` did with one task. `scheduler` is the one that had it before, if that was another."""

    task: str
    classification: Change
    scheduler: str = ""


class PersistedTask(NamedTuple):
    """A task's record, read and checked."""

    name: str
    cron: str
    delay_ms: int
    scheduler: str
    since_ms: int
    job: Job

    def is_identical(self, definition: TaskDefinition) -> bool:
        return (self.name, self.cron, self.delay_ms) == (definition.name, definition.cron, definition.delay_ms)


# -- one task -----------------------------------------------------------------------------------------------


def job_of(definition: TaskDefinition, scheduler: str, zone: str, now_ms: int, source: str = SOURCE) -> Job:
    """The job of the task. It begins with the current minute, so that this minute still counts."""
    name = task_job_id(definition.name)
    return Job(
        id=name,
        schedule=definition.cron,
        dialect="posix",
        timezone=zone,
        tasks=(Task(name=TASK, run=Call(name)),),
        overlap=OverlapPolicy.SKIP,
        recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_LAST),
        # The specification has one delay for every retry of a task.
        retry=RetryPolicy(max=None, interval_ms=definition.delay_ms, backoff=1.0, jitter=0.0, newest_wins=True),
        metadata={
            "name": definition.name,
            "retryDelayMs": str(definition.delay_ms),
            "scheduler": scheduler,
            "since_ms": str(now_ms),
        },
        source=source,
        updated_ms=now_ms,
        progress=JobProgress(
            cursor_ms=now_ms - now_ms % MINUTE_MS - 1, anchor_ms=now_ms, created_ms=now_ms, counters=Counters()
        ),
    )


def read_task(job: Job) -> PersistedTask:
    """The task of a job; raises a TaskTryDeserializeError that says what is wrong with the record of which task."""
    try:
        return _read_task(job)
    except TaskTryDeserializeError as problem:
        problem.name_task(job.metadata.get("name") or job.id)
        raise


def _read_task(job: Job) -> PersistedTask:
    name = _text(job, "name")
    scheduler = _text(job, "scheduler")
    delay = _number(job, "retryDelayMs")
    since = _number(job, "since_ms")
    if not name or task_job_id(name) != job.id:
        raise TaskInvalidValueError("name", name, f"it does not belong to the record {job.id}")
    try:
        check_cron(job.schedule)
    except InvalidCronExpressionError as problem:
        raise TaskInvalidValueError("cronExpression", job.schedule, str(problem)) from problem
    if [task.run for task in job.tasks] != [Call(job.id)]:
        raise TaskInvalidStructureError(f"the record {job.id} does not call the task's function", job.tasks)
    return PersistedTask(name, job.schedule, delay, scheduler, since, job)


def _text(job: Job, field: str) -> str:
    if field not in job.metadata:
        raise TaskMissingFieldError(field)
    return job.metadata[field]


def _number(job: Job, field: str) -> int:
    text = _text(job, field)
    if not text.lstrip("-").isdigit() or not text.isascii():
        raise TaskInvalidTypeError(field, text, "number", "string")
    if text.startswith("-"):
        raise TaskInvalidValueError(field, text, "must not be negative")
    return int(text)


def persisted_tasks(reading: Reading, source: str) -> dict[str, PersistedTask]:
    """Every task of this source by the id of its job; jobs from other sources are left out."""
    found = (job for job in reading.jobs(limit=_MAX_JOBS) if job.source == source)
    return {job.id: read_task(job) for job in found}


# -- all tasks ----------------------------------------------------------------------------------------------


def resolve_tasks(
    records: Records, definitions: Iterable[TaskDefinition], scheduler: str, zone: str, source: str = SOURCE
) -> list[TaskResolution]:
    """Make the store hold exactly these tasks of this source; in one transaction, so all of it happens or nothing."""
    desired = {task_job_id(definition.name): definition for definition in definitions}
    _take_over_nameless(records, desired, source)
    present = persisted_tasks(records, source)
    resolved = [_schedule(records, one, present.get(key), scheduler, zone, source) for key, one in desired.items()]
    resolved += [_remove(records, task, scheduler) for key, task in present.items() if key not in desired]
    actual = sorted(task.name for task in persisted_tasks(records, source).values())
    expected = sorted(definition.name for definition in desired.values())
    if actual != expected:
        raise TaskListMismatchError(expected, actual)
    return resolved


def _take_over_nameless(records: Records, desired: Iterable[str], source: str) -> None:
    """Tasks from before programs had names belong to the first one that names them."""
    for key in desired:
        job = records.job(key)
        if job is not None and job.source == SOURCE != source:
            records.put(replace(job, source=source))


def _schedule(
    records: Records, definition: TaskDefinition, old: PersistedTask | None, scheduler: str, zone: str, source: str
) -> TaskResolution:
    try:
        if old is not None and old.is_identical(definition):
            return _preserve(records, old, scheduler, zone)
        return _put(records, definition, old, scheduler, zone, source)
    except SchedulerError:
        raise
    except Exception as problem:
        raise ScheduleTaskError(definition.name, definition.cron, problem) from problem


def _preserve(records: Records, old: PersistedTask, scheduler: str, zone: str) -> TaskResolution:
    """The task goes on where it was; only its scheduler and the host's zone may be different."""
    retry = replace(old.job.retry, newest_wins=True)  # an older version stored tasks without it
    job = replace(old.job, timezone=zone, retry=retry, metadata={**old.job.metadata, "scheduler": scheduler})
    if job.timezone != old.job.timezone:
        job = _with_next_instant(job, records.now_ms)
        changed = Event(
            name="JobOverridden",
            at_ms=records.now_ms,
            job=job.id,
            reason=Reason(ReasonCode.ZONE_CHANGED),
            data=definition_data(job),
        )
        append(records.tx, changed)
    if job != old.job:
        records.put(job)
    return TaskResolution(old.name, Change.UNCHANGED, _previous_scheduler(old, scheduler))


def _put(
    records: Records, definition: TaskDefinition, old: PersistedTask | None, scheduler: str, zone: str, source: str
) -> TaskResolution:
    job = job_of(definition, scheduler, zone, records.now_ms, source)
    job = job.progressed(**begun_at(records.tx, records.now_ms))
    if old is None and (other := records.job(job.id)) is not None:
        whose = f"that belongs to {other.source}" if other.source else "that is no task of a declarative scheduler"
        raise ValueError(f"the store has a job {job.id!r} {whose}")
    version = last_version(records, job.id, old.job.version if old else 0) + 1
    job = _with_next_instant(replace(job, version=version), records.now_ms)
    if old is None:
        write_changes(records, [JobChange(Change.NEW, None, job)], SOURCE)
        return TaskResolution(definition.name, Change.NEW)
    step = JobChange(Change.CHANGED, _without_retries(old.job), job, withdrawn=_unstarted(records, job.id))
    _end_retries(records, job.id)
    write_changes(records, [step], SOURCE)
    return TaskResolution(definition.name, Change.CHANGED, _previous_scheduler(old, scheduler))


def _remove(records: Records, old: PersistedTask, scheduler: str) -> TaskResolution:
    step = JobChange(Change.REMOVED, _without_retries(old.job), None, withdrawn=_unstarted(records, old.job.id))
    _end_retries(records, old.job.id)
    write_changes(records, [step], SOURCE)
    return TaskResolution(old.name, Change.REMOVED, _previous_scheduler(old, scheduler))


def _previous_scheduler(old: PersistedTask, scheduler: str) -> str:
    """The scheduler that had the task before, if that was another one."""
    return old.scheduler if old.scheduler != scheduler else ""


def _with_next_instant(job: Job, now_ms: int) -> Job:
    """The job with its next planning time; CronCalculationError when that cannot be calculated."""
    try:
        return job.progressed(next_ms=next_plan_ms(job, schedule_of(job), job.progress.cursor_ms or now_ms))
    except Exception as problem:
        raise CronCalculationError(job.schedule, _local(now_ms, job.timezone), problem) from problem


def _local(at_ms: int, zone: str) -> str:
    return local_datetime(at_ms, load_zone(zone).tzinfo).isoformat()


def _without_retries(job: Job) -> Job:
    """The version for a callback that still runs: it may end, and is not tried again."""
    return replace(job, retry=RetryPolicy(max=0))


def _unstarted(records: Records, job: str) -> tuple[Occurrence, ...]:
    """The occurrences that wait for their start, which a change withdraws."""
    newest = records.occurrences(job, limit=100)
    return tuple(o for o in newest if o.state in (OccurrenceState.PENDING, OccurrenceState.QUEUED))


def _end_retries(records: Records, job: str) -> None:
    """Cancel a pending retry: it belongs to the task as it was before."""
    progress = Lifecycle(records, "", Random(0), [], [])  # noqa: S311  nothing is drawn
    for occurrence in records.active(job):
        runs = records.runs(job, occurrence.nominal_ms)
        if any(run.state is RunState.RETRY for run in runs):
            progress.cancel(occurrence, Reason(ReasonCode.JOB_REMOVED))
    append(records.tx, *progress.events)
