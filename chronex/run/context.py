"""What a callable is given: who it is, what it was called for, its state, its log, and the wish to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from chronex.engine.staging import MAX_NAMES, check_state
from chronex.errors import TaskStateError
from chronex.run.logfile import BoundedLog
from chronex.run.request import AttemptRequest
from chronex.run.stopping import Cancellation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TaskState:
    """Small values that a task keeps. Changes are buffered; they count once the attempt has succeeded."""

    def __init__(self, committed: Mapping[str, str]) -> None:
        self._committed = dict(committed)
        self.changes: dict[str, str | None] = {}

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value as this attempt sees it: its own change first, then what was there before."""
        value = self.changes[key] if key in self.changes else self._committed.get(key)
        return default if value is None else value

    def set(self, key: str, value: str) -> None:
        """Keep `value` under `key` if this attempt succeeds. TaskStateError for what is too long or too many."""
        if not isinstance(value, str):
            raise TypeError(f"the state {key!r} must be text, not {type(value).__name__}")
        self._change(key, value)

    def remove(self, key: str) -> None:
        """Forget `key` if this attempt succeeds."""
        self._change(key, None)

    def names(self) -> tuple[str, ...]:
        """Every key that has a value as this attempt sees it, in order."""
        return tuple(sorted(key for key in {*self._committed, *self.changes} if self.get(key) is not None))

    def _change(self, key: str, value: str | None) -> None:
        check_state(key, value)
        if key not in self.changes and len(self.changes) >= MAX_NAMES:
            raise TaskStateError(f"one attempt can change at most {MAX_NAMES} names of its task's state")
        self.changes[key] = value


class TaskLog:
    """Lines for the attempt's log, from any thread. `print` does not come here."""

    def __init__(self, log: BoundedLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._open = True

    def __call__(self, text: str) -> None:
        """Write one line."""
        self.write(text + "\n")

    def write(self, text: str) -> None:
        """Write text as it is. After the attempt has ended it goes nowhere."""
        with self._lock:
            if self._open:
                self._log.write(text.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        with self._lock:
            self._open = False


@dataclass(frozen=True, slots=True)
class TaskContext:
    """One attempt, as the callable sees it. All times are aware, in UTC."""

    job: str
    task: str
    occurrence_id: str
    attempt_id: str
    attempt: int
    scheduled: datetime
    actual: datetime
    last_run: datetime | None
    span_start: datetime | None
    span_end: datetime | None
    idempotency_key: str
    metadata: Mapping[str, str]
    parameters: Mapping[str, str]
    cancellation: Cancellation
    state: TaskState
    log: TaskLog


def context_for(
    request: AttemptRequest, actual_ms: int, cancellation: Cancellation, state: TaskState, log: TaskLog
) -> TaskContext:
    return TaskContext(
        job=request.job,
        task=request.task,
        occurrence_id=request.occurrence_id,
        attempt_id=request.attempt_id,
        attempt=request.number,
        scheduled=_instant(request.nominal_ms),
        actual=_instant(actual_ms),
        last_run=_if_given(_instant, request.last_run_ms),
        span_start=_if_given(_instant, request.span_start_ms),
        span_end=_if_given(_instant, request.span_end_ms),
        idempotency_key=request.idempotency_key,
        metadata=dict(request.metadata),
        parameters=dict(request.parameters),
        cancellation=cancellation,
        state=state,
        log=log,
    )


def _instant(at_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at_ms)


def _if_given(make: Callable[[int], datetime], value: int | None) -> datetime | None:
    return None if value is None else make(value)
