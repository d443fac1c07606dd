"""The execution report of an occurrence: what hooks read, and what `chronex report` tells later.

It is made from the records alone, so a hook that is called again after a crash reads the same report once more.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.reasons import Reason, ReasonCode, text_of
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage.records import Reading
from chronex.text.instants import rfc3339_to_milliseconds

# A task may fail with a long story, and may be tried for ever; the report of fifty of them must still fit a pipe.
_LONGEST_TEXT = 500
MOST_TRIES = 50


class TryReport(Struct, frozen=True, kw_only=True):
    """One attempt. The pause is the time between the end of the one before it and the start of this one."""

    number: int
    id: str
    state: str
    status: str
    started: str | None
    started_ms: int | None
    ended: str | None
    ended_ms: int | None
    duration_ms: int | None
    pause_ms: int | None
    exit_code: int | None
    signal: int | None
    reason: str
    node: str


class TaskReport(Struct, frozen=True, kw_only=True):
    """One task with its attempts, the last MOST_TRIES of them; `earlier_tries` counts those before."""

    task: str
    run: str
    state: str
    # What became of it in the words of people: `failed`, `timed_out` or `crashed` where it is a dead letter.
    status: str
    # The failure strategy that held for it: its own, else that of its job; None where its version is kept no longer.
    on_failure: str | None
    attempts: int
    exit_code: int | None
    reason: str
    # What was done with its dead letter later on.
    since_then: str
    started: str | None
    started_ms: int | None
    ended: str | None
    ended_ms: int | None
    # From the first start to the end; in that its attempts ran so long, and it paused between them so long.
    duration_ms: int | None
    running_ms: int
    pausing_ms: int
    tries: tuple[TryReport, ...]
    earlier_tries: int


class Totals(Struct, frozen=True, kw_only=True):
    """How many tasks ended how, and what all of them took together; `failed` has those that timed out or crashed."""

    tasks: int = 0
    succeeded: int = 0
    failed: int = 0
    canceled: int = 0
    skipped: int = 0
    attempts: int = 0
    retries: int = 0
    running_ms: int = 0
    pausing_ms: int = 0


class Report(Struct, frozen=True, kw_only=True):
    """Plain values, as they stand in the JSON; times are RFC 3339 in UTC, each with a twin in epoch milliseconds."""

    # `on_start`, `on_complete`, or empty where nobody is called.
    hook: str = ""
    # The same for every call of this hook for this occurrence, so that a receiver can drop doubles.
    delivery: str = ""
    # Which call of it this is, from 1.
    call: int = field(default=1, name="try")
    job: str
    version: int = 0
    occurrence: str
    nominal: str
    nominal_ms: int = 0
    due: str
    due_ms: int = 0
    started: str | None
    started_ms: int | None = None
    ended: str | None
    ended_ms: int | None = None
    # From the due time to the start, and from there to the end.
    wait_ms: int | None = None
    duration_ms: int | None = None
    state: str
    # The state in the words of people: `completed_with_errors`, `timed_out`.
    status: str = ""
    reason: str
    # The strategy of the job; each task has the one that held for it.
    on_failure: str
    mode: str = ""
    node: str = ""
    recovery: bool
    manual: bool
    triggered_by: str = ""
    replay_of: str = ""
    parameters: dict[str, str]
    metadata: dict[str, str]
    tasks: tuple[TaskReport, ...]
    errors: int = 0
    totals: Totals = Totals()


def report_of(reading: Reading, job: Job | None, occurrence: Occurrence) -> Report:
    """`job` is the version that the occurrence ran, None where that is kept no longer."""
    tasks = tuple(_task(reading, job, run) for run in _runs(reading, job, occurrence))
    began, ended = occurrence.started_ms, occurrence.finished_ms
    return Report(
        job=occurrence.job,
        version=occurrence.version,
        occurrence=occurrence.id,
        nominal=_stamp(occurrence.nominal_ms) or "",
        nominal_ms=occurrence.nominal_ms,
        due=_stamp(occurrence.due_ms) or "",
        due_ms=occurrence.due_ms,
        **_timed("started", began),
        **_timed("ended", ended),
        wait_ms=None if began is None else max(0, began - occurrence.due_ms),
        duration_ms=_between(began, ended),
        state=occurrence.state.value,
        status=occurrence_status(occurrence),
        reason=_words(occurrence.reason),
        on_failure="" if job is None else job.failure.value,
        mode="" if job is None else job.mode.value,
        node=occurrence.owner,
        recovery=occurrence.recovery,
        manual=occurrence.manual,
        triggered_by=occurrence.triggered_by,
        replay_of=occurrence.replay_of,
        parameters=occurrence.parameters,
        metadata={} if job is None else job.metadata,
        tasks=tasks,
        errors=occurrence.errors,
        totals=_totals(tasks),
    )


def _runs(reading: Reading, job: Job | None, occurrence: Occurrence) -> list[Run]:
    """In the order of the tasks; those that the version does not name, because it is lost, come last."""
    if job is None or job.version != occurrence.version:
        found = {run.task: run for run in reading.runs(occurrence.job, occurrence.nominal_ms)}
    else:
        asked = (reading.run(occurrence.job, occurrence.nominal_ms, task.name) for task in job.tasks)
        found = {run.task: run for run in asked if run is not None}
    known = [] if job is None else [task.name for task in job.tasks if task.name in found]
    return [found[name] for name in (*known, *(name for name in found if name not in known))]


def _task(reading: Reading, job: Job | None, run: Run) -> TaskReport:
    task = None if job is None else job.task(run.task)
    first = max(1, run.attempts - MOST_TRIES + 1)
    asked = (reading.attempt(run.job, run.nominal_ms, run.task, number) for number in range(first, run.attempts + 1))
    attempts = [attempt for attempt in asked if attempt is not None]
    last = attempts[-1] if attempts else None
    tries = tuple(_try(attempt, before) for attempt, before in zip(attempts, [None, *attempts], strict=False))
    is_taken_off = run.reason.code in _TAKEN_OFF
    return TaskReport(
        task=run.task,
        run=run.id,
        state=run.state.value,
        status=task_status(run, last),
        on_failure=None if job is None or task is None else job.failure_for(task).value,
        attempts=run.attempts,
        exit_code=run.exit_code,
        reason=_reason_of(last) if is_taken_off and last is not None else _words(run.reason),
        since_then=_words(run.reason) if is_taken_off else "",
        **_timed("started", run.started_ms),
        **_timed("ended", run.finished_ms),
        duration_ms=_between(run.started_ms, run.finished_ms),
        running_ms=sum(one.duration_ms or 0 for one in tries),
        pausing_ms=sum(one.pause_ms or 0 for one in tries),
        tries=tries,
        earlier_tries=run.attempts - len(tries),
    )


def _try(attempt: Attempt, before: Attempt | None) -> TryReport:
    began = attempt.created_ms if attempt.started_ms is None else attempt.started_ms
    return TryReport(
        number=attempt.number,
        id=attempt.id,
        state=attempt.state.value,
        status=_ATTEMPT_STATUS[attempt.state],
        **_timed("started", attempt.started_ms),
        **_timed("ended", attempt.finished_ms),
        duration_ms=_between(began, attempt.finished_ms),
        pause_ms=None if before is None else _between(before.finished_ms, began),
        exit_code=attempt.exit_code,
        signal=attempt.signal,
        reason=_reason_of(attempt),
        node=attempt.owner,
    )


def _reason_of(attempt: Attempt) -> str:
    return _words(attempt.reason) or attempt.error[:_LONGEST_TEXT]


# -- words --------------------------------------------------------------------------------------------------------

_TAKEN_OFF = frozenset({ReasonCode.REPLAYED, ReasonCode.DROPPED, ReasonCode.DROPPED_BY_LIMIT})
_ATTEMPT_STATUS = {
    AttemptState.RUNNING: "running",
    AttemptState.SUCCESS: "succeeded",
    AttemptState.FAILED: "failed",
    AttemptState.TIMEOUT: "timed_out",
    AttemptState.CANCELED: "canceled",
    AttemptState.CRASHED: "crashed",
}
_RUN_STATUS = {
    RunState.SCHEDULED: "waiting",
    RunState.CLAIMED: "running",
    RunState.RUNNING: "running",
    RunState.SUCCESS: "succeeded",
    RunState.RETRY: "waiting_for_retry",
    RunState.CANCELED: "canceled",
    RunState.SKIPPED: "skipped",
}


def task_status(run: Run, last: Attempt | None) -> str:
    """What became of a task, as people say it: it is a dead letter because it failed, timed out or crashed."""
    if run.state in (RunState.FAILED, RunState.DLQ) or run.reason.code in _TAKEN_OFF:
        if run.reason.code is ReasonCode.EXECUTION_TIMEOUT:
            return "timed_out"
        status = "failed" if last is None else _ATTEMPT_STATUS[last.state]
        return status if status in ("timed_out", "crashed") else "failed"
    if run.state is RunState.CANCELED and run.reason.code is ReasonCode.IDEMPOTENT:
        return "skipped"
    return _RUN_STATUS[run.state]


def occurrence_status(occurrence: Occurrence) -> str:
    if occurrence.errors:
        return "completed_with_errors"
    return "timed_out" if occurrence.state is OccurrenceState.FAILED_STALE else occurrence.state.value


def _totals(tasks: tuple[TaskReport, ...]) -> Totals:
    statuses = [task.status for task in tasks]
    return Totals(
        tasks=len(tasks),
        succeeded=statuses.count("succeeded"),
        failed=sum(status in ("failed", "timed_out", "crashed") for status in statuses),
        canceled=statuses.count("canceled"),
        skipped=statuses.count("skipped"),
        attempts=sum(task.attempts for task in tasks),
        retries=sum(max(0, task.attempts - 1) for task in tasks),
        running_ms=sum(task.running_ms for task in tasks),
        pausing_ms=sum(task.pausing_ms for task in tasks),
    )


def _words(reason: Reason) -> str:
    return text_of(reason)[:_LONGEST_TEXT]


def _between(began: int | None, ended: int | None) -> int | None:
    """Not below zero, where the clock was set back meanwhile."""
    return None if began is None or ended is None else max(0, ended - began)


def _timed(name: str, ms: int | None) -> dict[str, Any]:
    return {name: _stamp(ms), f"{name}_ms": ms}


def _stamp(ms: int | None) -> str | None:
    return None if ms is None else rfc3339_to_milliseconds(ms)
