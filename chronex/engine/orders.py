"""What the engine wants done after a commit: values that a daemon, a simulator or a test carries out."""

from __future__ import annotations

from typing import NamedTuple

from chronex.engine.reports import Report
from chronex.model.attempt import Attempt
from chronex.model.definition import Job, Task, Work
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import NO_REASON, Reason


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


class RunHook(NamedTuple):
    """Do the job's `on_start` before the tasks of this occurrence, or its `on_complete` after them."""

    job: Job
    occurrence: Occurrence
    work: Work
    report: Report


Order = Launch | Cancel | RunHook


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
