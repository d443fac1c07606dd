"""What goes into an attempt and what comes out of it: plain values, times in epoch milliseconds."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from chronex.engine.orders import AttemptEnd
from chronex.model import Attempt, AttemptState, Job, Occurrence, ProcessIdentity, Task
from chronex.model.job import Call, Command
from chronex.model.policies import LeftoverPolicy
from chronex.run.attempt_log import DEFAULT_LIMIT, LogSummary

DEFAULT_GRACE_MS = 30_000


class EndReason(StrEnum):
    """Why an attempt ended as it did, for programs; `AttemptResult.error` says it to people."""

    EXITED = "exited"
    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    NOT_STARTED = "not_started"
    UNKNOWN_EXIT = "unknown_exit"


Listener = Callable[[], None]


class Cancellation:
    """The request that an attempt should end. Made on the event loop; seen from every thread."""

    __slots__ = ("_listeners", "_waiters", "reason", "requested")

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self._listeners: list[Listener] = []
        self._waiters: list[threading.Event] = []  # one for each thread that waits; commands have none

    def request(self, reason: str = "") -> None:
        """The first reason stays."""
        if self.requested:
            return
        self.reason = reason
        self.requested = True
        for waiter in tuple(self._waiters):
            waiter.set()
        for listener in tuple(self._listeners):
            listener()

    def wait(self, timeout: float | None = None) -> bool:
        """For threads: wait until the end is requested; False where `timeout` seconds passed first."""
        waiter = threading.Event()
        self._waiters.append(waiter)
        # Read after entering: a request that came before has not set this waiter.
        if not self.requested:
            waiter.wait(timeout)
        self._waiters.remove(waiter)
        return self.requested

    def listen(self, listener: Listener) -> None:
        """Called once, at once where the request is there already."""
        if self.requested:
            listener()
        else:
            self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRequest:
    """One attempt, complete: nothing else decides what runs.

    `secrets` are names; their values are taken from the daemon's environment at the start and kept nowhere.
    `extra_environment` is the engine's own (for example CHRONEX_STORE) and wins over everything.
    """

    attempt_id: str
    number: int
    job: str
    task: str
    occurrence_id: str
    nominal_ms: int
    command: Command = ()
    directory: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    span_start_ms: int | None = None
    span_end_ms: int | None = None
    idempotency_key: str = ""
    last_run_ms: int | None = None
    timeout_ms: int | None = None
    grace_ms: int = DEFAULT_GRACE_MS
    success_codes: tuple[int, ...] = (0,)
    retry_codes: tuple[int, ...] | None = None
    leftovers: LeftoverPolicy = LeftoverPolicy.KEEP
    log_limit: int = DEFAULT_LIMIT
    extra_environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        job: Job,
        task: Task,
        occurrence: Occurrence,
        attempt: Attempt,
        *,
        idempotency_key: str = "",
        grace_ms: int = DEFAULT_GRACE_MS,
        log_limit: int = DEFAULT_LIMIT,
        extra_environment: Mapping[str, str] | None = None,
    ) -> AttemptRequest:
        """The attempt as the records have it, with a grace and a log limit where its job has none of its own."""
        return cls(
            attempt_id=attempt.id,
            number=attempt.number,
            job=job.id,
            task=task.name,
            occurrence_id=occurrence.id,
            nominal_ms=occurrence.scheduled_ms,
            command=() if isinstance(task.run, Call) else task.run,
            directory=task.directory,
            env=task.env,
            secrets=task.secrets,
            metadata={**job.metadata, **task.metadata},
            parameters=occurrence.parameters,
            span_start_ms=occurrence.span_start_ms,
            span_end_ms=occurrence.span_end_ms,
            last_run_ms=occurrence.last_run_ms,
            idempotency_key=idempotency_key,
            timeout_ms=job.timeout_for(task),
            grace_ms=grace_ms if job.grace_ms is None else job.grace_ms,
            success_codes=task.success_codes,
            retry_codes=task.retry_codes,
            leftovers=job.leftovers,
            log_limit=job.log_limit or log_limit,
            extra_environment=extra_environment or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """How an attempt ended. `retryable` says whether trying again may help; the retry policy decides.

    `leftovers` are processes of the attempt that outlived its main process; `leftovers_killed` of them are gone.
    `state_changes` (callables only) belong into the transaction that records the success.
    """

    state: AttemptState
    reason: EndReason
    retryable: bool = False
    error: str = ""
    exit_code: int | None = None
    signal: int | None = None
    errno: int | None = None
    process: ProcessIdentity | None = None
    started_ms: int | None = None
    finished_ms: int = 0
    duration_ms: int = 0
    log: LogSummary = field(default_factory=LogSummary)
    leftovers: tuple[ProcessIdentity, ...] = ()
    leftovers_killed: int = 0
    state_changes: Mapping[str, str | None] = field(default_factory=dict)

    def as_end(self) -> AttemptEnd:
        """What the engine records of it."""
        return AttemptEnd(
            state=self.state,
            exit_code=self.exit_code,
            signal=self.signal,
            error=self.error,
            log_bytes=self.log.size,
            log_dropped=self.log.dropped,
            leftovers=len(self.leftovers) - self.leftovers_killed,
            errno=self.errno,
            retryable=self.retryable,
            task_state=dict(self.state_changes) or None,
        )


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Why a command could not be started. `path` is what the system refused, where it was a path."""

    error: str
    errno: int | None = None
    path: str = ""
    retryable: bool = True


class ExitVerdict(NamedTuple):
    """The part of a result that follows from how the process ended and from who ended it."""

    state: AttemptState
    reason: EndReason
    retryable: bool
    error: str
    exit_code: int | None = None
    signal: int | None = None


def judge(
    request: AttemptRequest, status: int | None, stop: ExitVerdict | None = None, unknown: str = ""
) -> ExitVerdict:
    """`status` as waitpid gives it; None where it is not known, and `unknown` why.

    `stop` is why Chronex ended the process, where it did.
    """
    if status is None:
        return stop or unknown_exit(unknown)
    code = os.waitstatus_to_exitcode(status)
    exit_code, number = (code, None) if code >= 0 else (None, -code)
    if stop is not None:
        return stop._replace(exit_code=exit_code, signal=number)
    if exit_code is not None and exit_code in request.success_codes:
        return ExitVerdict(AttemptState.SUCCESS, EndReason.EXITED, False, "", exit_code)
    # A shell reports a signal as 128 plus its number; the rule for retries reads both the same way.
    shell_code = exit_code if exit_code is not None else 128 + (number or 0)
    retryable = request.retry_codes is None or shell_code in request.retry_codes
    if number is not None:
        return ExitVerdict(
            AttemptState.FAILED, EndReason.SIGNAL, retryable, f"ended by {_name(number)}", None, number
        )
    return ExitVerdict(AttemptState.FAILED, EndReason.EXIT_CODE, retryable, f"exit code {exit_code}", exit_code)


def timed_out(timeout_ms: int) -> ExitVerdict:
    return ExitVerdict(AttemptState.TIMEOUT, EndReason.TIMEOUT, True, f"still running after {timeout_ms / 1000:g} s")


def canceled(why: str) -> ExitVerdict:
    return ExitVerdict(AttemptState.CANCELED, EndReason.CANCELED, False, why or "canceled")


def unknown_exit(why: str) -> ExitVerdict:
    """It ended with an exit code that is not known; that is never a success."""
    return ExitVerdict(
        AttemptState.CRASHED, EndReason.UNKNOWN_EXIT, True, f"ended, and its exit code is not known: {why}"
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
