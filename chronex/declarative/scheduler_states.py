"""The three state machines of the specification: scheduler, polling, and task.

The first two are values that change only by `change_state`. The state of a task is not stored: it is read from the
records of the engine, with its timestamps.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, TypeVar

from chronex.declarative.persistence import TASK, PersistedTask, persisted_tasks
from chronex.errors import IllegalTransitionError
from chronex.model.occurrence import Attempt
from chronex.model.states import AttemptState, RunState
from chronex.storage.records import Reading
from chronex.text.instants import utc_datetime

# The last success is searched in this many occurrences, a page at a time.
_MAX_OCCURRENCES = 2_000
_PAGE = 20


class SchedulerState(StrEnum):
    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    REINITIALIZING = "Reinitializing"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class PollingState(StrEnum):
    INACTIVE = "Inactive"
    ACTIVE = "Active"
    STOPPING = "Stopping"


class ScheduledTaskState(StrEnum):
    """What the records say of the newest run of a task."""

    AWAITING_RUN = "AwaitingRun"
    RUNNING = "Running"
    AWAITING_RETRY = "AwaitingRetry"


_S, _P = SchedulerState, PollingState
TRANSITIONS: frozenset[tuple[StrEnum, StrEnum]] = frozenset(
    {
        (_S.UNINITIALIZED, _S.INITIALIZING),
        (_S.INITIALIZING, _S.RUNNING),
        (_S.INITIALIZING, _S.UNINITIALIZED),
        (_S.RUNNING, _S.REINITIALIZING),
        (_S.REINITIALIZING, _S.RUNNING),
        (_S.REINITIALIZING, _S.UNINITIALIZED),
        (_S.RUNNING, _S.STOPPING),
        (_S.STOPPING, _S.STOPPED),
        (_S.STOPPED, _S.INITIALIZING),  # the formal model allows it: quiet until the next initialization
        (_P.INACTIVE, _P.ACTIVE),
        (_P.ACTIVE, _P.INACTIVE),
        (_P.ACTIVE, _P.STOPPING),
        (_P.STOPPING, _P.INACTIVE),
    }
)

State = TypeVar("State", SchedulerState, PollingState)


def change_state(source: State, destination: State) -> State:
    """`destination`; IllegalTransitionError unless the table has the change from `source`."""
    if (source, destination) not in TRANSITIONS:
        raise IllegalTransitionError(type(source).__name__, source, destination)
    return destination


class TaskStatus(NamedTuple):
    """One task as the store has it. Times are aware, in UTC; None for what has not happened."""

    name: str
    state: ScheduledTaskState
    last_attempt_at: datetime | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    pending_retry_until: datetime | None = None
    scheduler: str = ""


# -- the state of a task, read from the records ------------------------------------------------------------------


def _datetime_or_none(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else utc_datetime(at_ms)


def task_statuses(reading: Reading, source: str) -> dict[str, TaskStatus]:
    """Every task of this source by its name."""
    return {task.name: _task_status(reading, task) for task in persisted_tasks(reading, source).values()}


def _task_status(reading: Reading, task: PersistedTask) -> TaskStatus:
    retry_ms: int | None = None
    is_running = False
    for occurrence in reading.active(task.job.id):
        run = reading.run(occurrence.job, occurrence.nominal_ms, TASK)
        is_running |= run is not None and run.state in (RunState.CLAIMED, RunState.RUNNING)
        if run is not None and run.state is RunState.RETRY:
            retry_ms = run.next_attempt_ms
    last: Attempt | None = None
    success_ms: int | None = None
    failure_ms: int | None = None
    for attempt in _attempts(reading, task):
        last = last or attempt
        if attempt.state is AttemptState.SUCCESS:
            success_ms = attempt.finished_ms
            break
        if attempt.state is not AttemptState.RUNNING and failure_ms is None:
            failure_ms = attempt.finished_ms
    if success_ms is None and (task.job.progress.last_success_ms or 0) >= task.since_ms:
        success_ms = task.job.progress.last_success_ms  # longer ago than history is kept or searched
    state = ScheduledTaskState.AWAITING_RUN if retry_ms is None else ScheduledTaskState.AWAITING_RETRY
    return TaskStatus(
        name=task.name,
        state=ScheduledTaskState.RUNNING if is_running else state,
        last_attempt_at=_datetime_or_none(last.created_ms if last is not None else None),
        last_success_at=_datetime_or_none(success_ms),
        last_failure_at=_datetime_or_none(failure_ms),
        pending_retry_until=_datetime_or_none(retry_ms),
        scheduler=task.scheduler,
    )


def _attempts(reading: Reading, task: PersistedTask) -> Iterator[Attempt]:
    """Newest first, back to when the task was registered as it is now."""
    before: int | None = None
    for _ in range(_MAX_OCCURRENCES // _PAGE):
        page = reading.occurrences(task.job.id, before, _PAGE)
        for occurrence in page:
            for attempt in reversed(reading.attempts(occurrence.job, occurrence.nominal_ms, TASK)):
                if attempt.created_ms < task.since_ms:
                    return
                yield attempt
        if len(page) < _PAGE:
            return
        before = page[-1].nominal_ms
