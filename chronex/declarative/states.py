"""The three state machines of the specification, as values; every change goes through `moved`."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from chronex.errors import IllegalTransitionError


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


class TaskState(StrEnum):
    """A view of the engine's records: what they say of the newest run of the task."""

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


def moved(source: State, destination: State) -> State:
    """`destination`, if the table has a way there from `source`."""
    if (source, destination) not in TRANSITIONS:
        raise IllegalTransitionError(type(source).__name__, source, destination)
    return destination


class TaskStatus(NamedTuple):
    """One task as the store has it. Times are aware, in UTC; None where there is none."""

    name: str
    state: TaskState
    last_attempt_at: datetime | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    pending_retry_until: datetime | None = None
    scheduler: str = ""


class SchedulerEvent(NamedTuple):
    """One event as a listener gets it: the journal's, with the task's own name. `at` is aware, in UTC."""

    name: str
    at: datetime
    task: str
    data: dict[str, Any]
