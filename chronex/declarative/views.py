"""What the engine's records say of a task: AwaitingRun, Running, AwaitingRetry, and its timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from chronex.declarative.persistence import TASK, PersistedTask, persisted
from chronex.declarative.states import TaskState, TaskStatus
from chronex.model.records import Attempt
from chronex.model.states import AttemptState, RunState
from chronex.storage.records import Reading

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE = 20
# Further back than this no success is looked for.
_MOST_OCCURRENCES = 2_000


def moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else _EPOCH + timedelta(milliseconds=at_ms)


def statuses(reading: Reading) -> dict[str, TaskStatus]:
    """Every task of the store by its name."""
    return {task.name: status(reading, task) for task in persisted(reading).values()}


def status(reading: Reading, task: PersistedTask) -> TaskStatus:
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
    state = TaskState.AWAITING_RUN if retry_ms is None else TaskState.AWAITING_RETRY
    return TaskStatus(
        name=task.name,
        state=TaskState.RUNNING if is_running else state,
        last_attempt_at=moment(last.created_ms if last is not None else None),
        last_success_at=moment(success_ms),
        last_failure_at=moment(failure_ms),
        pending_retry_until=moment(retry_ms),
        scheduler=task.scheduler,
    )


def _attempts(reading: Reading, task: PersistedTask) -> Iterator[Attempt]:
    """Newest first, back to when the task was registered as it is now."""
    before: int | None = None
    for _ in range(_MOST_OCCURRENCES // _PAGE):
        page = reading.occurrences(task.job.id, before, _PAGE)
        for occurrence in page:
            for attempt in reversed(reading.attempts(occurrence.job, occurrence.nominal_ms, TASK)):
                if attempt.created_ms < task.since_ms:
                    return
                yield attempt
        if len(page) < _PAGE:
            return
        before = page[-1].nominal_ms
