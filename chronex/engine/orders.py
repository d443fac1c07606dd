"""What the engine wants done after a commit: values that a daemon, a simulator or a test carries out."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from chronex.model.job import Job, Task, Work
from chronex.model.occurrence import Attempt, Occurrence, ProcessIdentity, Run
from chronex.model.reasons import NO_REASON, Reason, text_of
from chronex.storage.records import Reading
from chronex.text.instants import rfc3339_to_milliseconds


class Launch(NamedTuple):
    """Start this attempt; it is recorded as running already."""

    job: Job
    occurrence: Occurrence
    task: Task
    attempt: Attempt
    idempotency_key: str = ""


class Cancel(NamedTuple):
    """Stop this attempt if it is yours; its end is reported like any other."""

    attempt: Attempt
    reason: Reason


class StopProcess(NamedTuple):
    """Stop this process, which the node that started it does not: TERM to its group, KILL after the grace.

    Only while it is this very process; `grace_ms` is None where the scheduler's own grace holds.
    """

    attempt: Attempt
    process: ProcessIdentity
    grace_ms: int | None


class RunHook(NamedTuple):
    """Do the job's `on_start` before the tasks of this occurrence, or its `on_complete` after them."""

    job: Job
    occurrence: Occurrence
    work: Work
    report: Report


Order = Launch | Cancel | StopProcess | RunHook


class AttemptEnd(NamedTuple):
    """How an attempt ended, as its supervisor saw it."""

    state: str  # an AttemptState that is not running
    reason: Reason = NO_REASON
    exit_code: int | None = None
    signal: int | None = None
    error: str = ""
    log_bytes: int = 0
    log_dropped: int = 0
    leftovers: int = 0  # processes of the attempt that live on
    errno: int | None = None  # what the system said where it would not start the command
    retryable: bool = True
    task_state: dict[str, str | None] | None = None  # a name with None is removed


# A task may fail with a long story; the report of fifty of them must still fit a pipe.
_LONGEST_TEXT = 500


class Report(Struct, frozen=True, kw_only=True):
    """Plain values, as they stand in the JSON; times are RFC 3339 in UTC."""

    hook: str
    job: str
    occurrence: str
    nominal: str
    due: str
    started: str | None
    ended: str | None
    state: str
    reason: str
    on_failure: str
    recovery: bool
    manual: bool
    parameters: dict[str, str]
    metadata: dict[str, str]
    tasks: tuple[dict[str, Any], ...]
    errors: int = 0


def report_of(reading: Reading, hook: str, job: Job, occurrence: Occurrence) -> Report:
    runs = (reading.run(occurrence.job, occurrence.nominal_ms, task.name) for task in job.tasks)
    return Report(
        hook=hook,
        job=occurrence.job,
        occurrence=occurrence.id,
        nominal=_stamp(occurrence.nominal_ms) or "",
        due=_stamp(occurrence.due_ms) or "",
        started=_stamp(occurrence.started_ms),
        ended=_stamp(occurrence.finished_ms),
        state=occurrence.state.value,
        reason=text_of(occurrence.reason)[:_LONGEST_TEXT],
        on_failure=job.failure.value,
        recovery=occurrence.recovery,
        manual=occurrence.manual,
        parameters=occurrence.parameters,
        metadata=job.metadata,
        tasks=tuple(_task(run) for run in runs if run is not None),
        errors=occurrence.errors,
    )


def _task(run: Run) -> dict[str, Any]:
    return {
        "task": run.task,
        "run": run.id,
        "state": run.state.value,
        "attempts": run.attempts,
        "exit_code": run.exit_code,
        "reason": text_of(run.reason)[:_LONGEST_TEXT],
        "started": _stamp(run.started_ms),
        "ended": _stamp(run.finished_ms),
    }


def _stamp(ms: int | None) -> str | None:
    if ms is None:
        return None
    return rfc3339_to_milliseconds(ms)
