"""Tasks as jobs of the store: how one is written, read back, and brought to what the registrations say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.declarative.cron import check_cron
from chronex.declarative.errors import (
    CronCalculationError,
    InvalidCronExpressionError,
    SchedulerError,
    ScheduleTaskError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskListMismatchError,
    TaskMissingFieldError,
)
from chronex.declarative.registrations import Definition
from chronex.engine.lifecycle import Progress
from chronex.engine.plan import next_look
from chronex.engine.update.apply import write_steps
from chronex.engine.update.diff import Change, Step, told_of
from chronex.engine.update.versions import last_version
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Call, Counters, Event, Job, Occurrence, Task
from chronex.model.states import OccurrenceState, RunState
from chronex.storage.journal import append
from chronex.storage.records import Ledger, Reading
from chronex.timing.job_schedule import schedule_of
from chronex.timing.zones import load_zone

MINUTE_MS = 60_000
SOURCE = "declarative"  # what marks a job as a task of a scheduler of this kind
TASK = "main"
_ALL_JOBS = 1_000_000
_PLAIN = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_HASHED = re.compile(r"task-[0-9a-f]{32}", re.ASCII)


class Classification(StrEnum):
    NEW = "new"
    PRESERVED = "preserved"
    OVERRIDDEN = "overridden"
    ORPHANED = "orphaned"


class Resolved(NamedTuple):
    """What became of one task. `scheduler` is who had it before, where that was another one."""

    task: str
    classification: Classification
    scheduler: str = ""


class PersistedTask(NamedTuple):
    """A task's record, read and checked."""

    name: str
    cron: str
    delay_ms: int
    scheduler: str
    since_ms: int
    job: Job

    def is_identical(self, definition: Definition) -> bool:
        return (self.name, self.cron, self.delay_ms) == (definition.name, definition.cron, definition.delay_ms)


def job_id(name: str) -> str:
    """The task's name where a job may be called that, else one made from its hash; always the same for a name."""
    if _PLAIN.fullmatch(name) and not _HASHED.fullmatch(name):
        return name
    return f"task-{sha256(name.encode()).hexdigest()[:32]}"


# -- one record ---------------------------------------------------------------------------------------------


def job_of(definition: Definition, scheduler: str, zone: str, now_ms: int) -> Job:
    """The job that stands for the task. It begins with the minute that is now, so that this one still counts."""
    name = job_id(definition.name)
    return Job(
        id=name,
        schedule=definition.cron,
        dialect="posix",
        timezone=zone,
        tasks=(Task(name=TASK, run=Call(name)),),
        overlap=OverlapPolicy.SKIP,
        recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_LAST),
        retry=RetryPolicy(max=None, interval_ms=definition.delay_ms),
        metadata={
            "name": definition.name,
            "retryDelayMs": str(definition.delay_ms),
            "scheduler": scheduler,
            "since_ms": str(now_ms),
        },
        source=SOURCE,
        cursor_ms=now_ms - now_ms % MINUTE_MS - 1,
        anchor_ms=now_ms,
        created_ms=now_ms,
        updated_ms=now_ms,
        counters=Counters(),
    )


def read_task(job: Job) -> PersistedTask:
    """The task that a job stands for, or what is wrong with its record."""
    name, scheduler = _text(job, "name"), _text(job, "scheduler")
    delay, since = _number(job, "retryDelayMs"), _number(job, "since_ms")
    if not name or job_id(name) != job.id:
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


def persisted(reading: Reading) -> dict[str, PersistedTask]:
    """Every task of the store by the id of its job; jobs of other kinds are none of ours."""
    found = (job for job in reading.jobs(limit=_ALL_JOBS) if job.source == SOURCE)
    return {job.id: read_task(job) for job in found}


# -- all of them --------------------------------------------------------------------------------------------


def resolve(ledger: Ledger, definitions: Iterable[Definition], scheduler: str, zone: str) -> list[Resolved]:
    """Make the store hold exactly these tasks; in one transaction, so all of it happens or nothing."""
    wanted = {job_id(definition.name): definition for definition in definitions}
    present = persisted(ledger)
    resolved = [_scheduled(ledger, one, present.get(key), scheduler, zone) for key, one in wanted.items()]
    resolved += [_orphan(ledger, task, scheduler) for key, task in present.items() if key not in wanted]
    actual = sorted(task.name for task in persisted(ledger).values())
    expected = sorted(definition.name for definition in wanted.values())
    if actual != expected:
        raise TaskListMismatchError(expected, actual)
    return resolved


def _scheduled(
    ledger: Ledger, definition: Definition, old: PersistedTask | None, scheduler: str, zone: str
) -> Resolved:
    try:
        if old is not None and old.is_identical(definition):
            return _preserve(ledger, old, scheduler, zone)
        return _put(ledger, definition, old, scheduler, zone)
    except SchedulerError:
        raise
    except Exception as problem:
        raise ScheduleTaskError(definition.name, definition.cron, problem) from problem


def _preserve(ledger: Ledger, old: PersistedTask, scheduler: str, zone: str) -> Resolved:
    """It goes on where it was; only who looks after it, and the host's zone, may be different."""
    job = replace(old.job, timezone=zone, metadata={**old.job.metadata, "scheduler": scheduler})
    if job.timezone != old.job.timezone:
        job = _looked(job, ledger.now_ms)
        moved = Event(
            name="JobOverridden",
            at_ms=ledger.now_ms,
            job=job.id,
            reason=Reason(ReasonCode.ZONE_CHANGED),
            data=told_of(job),
        )
        append(ledger.tx, moved)
    if job != old.job:
        ledger.put(job)
    return Resolved(old.name, Classification.PRESERVED, old.scheduler if old.scheduler != scheduler else "")


def _put(ledger: Ledger, definition: Definition, old: PersistedTask | None, scheduler: str, zone: str) -> Resolved:
    job = job_of(definition, scheduler, zone, ledger.now_ms)
    if old is None and ledger.job(job.id) is not None:
        raise ValueError(f"the store has a job {job.id!r} that is no task of a declarative scheduler")
    job = _looked(
        replace(job, version=last_version(ledger, job.id, old.job.version if old else 0) + 1), ledger.now_ms
    )
    if old is None:
        write_steps(ledger, [Step(Change.NEW, None, job)], SOURCE)
        return Resolved(definition.name, Classification.NEW)
    step = Step(Change.OVERRIDDEN, _without_retries(old.job), job, withdrawn=_waiting(ledger, job.id))
    _end_retries(ledger, job.id)
    write_steps(ledger, [step], SOURCE)
    return Resolved(definition.name, Classification.OVERRIDDEN, old.scheduler if old.scheduler != scheduler else "")


def _orphan(ledger: Ledger, old: PersistedTask, scheduler: str) -> Resolved:
    step = Step(Change.ORPHANED, _without_retries(old.job), None, withdrawn=_waiting(ledger, old.job.id))
    _end_retries(ledger, old.job.id)
    write_steps(ledger, [step], SOURCE)
    return Resolved(old.name, Classification.ORPHANED, old.scheduler if old.scheduler != scheduler else "")


def _looked(job: Job, now_ms: int) -> Job:
    """With the time of its next instant; CronCalculationError where that cannot be said."""
    try:
        return replace(job, next_ms=next_look(job, schedule_of(job), job.cursor_ms or now_ms))
    except Exception as problem:
        raise CronCalculationError(job.schedule, _local(now_ms, job.timezone), problem) from problem


def _local(at_ms: int, zone: str) -> str:
    return datetime.fromtimestamp(at_ms / 1000, load_zone(zone).tzinfo).isoformat()


def _without_retries(job: Job) -> Job:
    """The version that a running callback keeps: it may end, and is not tried again."""
    return replace(job, retry=RetryPolicy(max=0))


def _waiting(ledger: Ledger, job: str) -> tuple[Occurrence, ...]:
    newest = ledger.occurrences(job, limit=100)
    return tuple(o for o in newest if o.state in (OccurrenceState.PENDING, OccurrenceState.QUEUED))


def _end_retries(ledger: Ledger, job: str) -> None:
    """A retry that is pending belongs to what the task was before."""
    progress = Progress(ledger, "", Random(0), [], [])  # noqa: S311  nothing is drawn
    for occurrence in ledger.active(job):
        runs = ledger.runs(job, occurrence.nominal_ms)
        if any(run.state is RunState.RETRY for run in runs):
            progress.cancel(occurrence, Reason(ReasonCode.JOB_REMOVED))
    append(ledger.tx, *progress.events)
