"""What the engine wants done after a commit: values that a daemon, a simulator or a test carries out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from chronex.engine.execution_report import Report
from chronex.model.job import Job, Task, Work
from chronex.model.occurrence import Attempt, Occurrence, ProcessIdentity, Usage
from chronex.model.reasons import NO_REASON, Reason
from chronex.model.records import Excerpt, Notice

Inputs = Mapping[str, Mapping[str, str]]
NO_INPUTS: Inputs = MappingProxyType({})


class Launch(NamedTuple):
    """Start this attempt; it is recorded as running already."""

    job: Job
    occurrence: Occurrence
    task: Task
    attempt: Attempt
    idempotency_key: str = ""
    # What the tasks and jobs before it have handed over: by their name, then by the name of the value.
    inputs: Inputs = NO_INPUTS


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
    """Do the job's `on_start` before the tasks of this occurrence, or its `on_complete` after them.

    `notice` is its record, which `notices.settled` removes when it has ended well; None where too many wait already
    and this is its only call.
    """

    job: Job
    occurrence: Occurrence
    work: Work
    report: Report
    notice: Notice | None = None


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
    usage: Usage | None = None
    leftovers: int = 0  # processes of the attempt that live on
    errno: int | None = None  # what the system said where it would not start the command
    retryable: bool = True
    finished_ms: int | None = None  # where it ended before it could be recorded
    task_state: dict[str, str | None] | None = None  # a name with None is removed
    values: dict[str, str] | None = None  # for those that need it
    values_problem: str = ""
    excerpt: Excerpt | None = None  # what of its log is for every machine of a shared store
