"""What goes into an attempt and what comes out of it: plain values, times in epoch milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct, field

from chronex.model import AttemptState, ProcessIdentity
from chronex.model.job import Command
from chronex.model.occurrence import Usage
from chronex.model.policies import LeftoverPolicy, ProcessSettings
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
    NEVER_STARTED = "never_started"
    MEMORY_LIMIT = "memory_limit"


class AttemptRequest(Struct, frozen=True, kw_only=True):
    """One attempt, complete: nothing else decides what runs.

    `secrets` are names; their values come from `secret_sources`, or else from the daemon's environment, at the start,
    and are kept nowhere. With `settings` the command runs as another user or within limits.
    `inputs` are the values that tasks before it handed over, by the task and then by name; `matrix` its combination.
    `extra_environment` is the engine's own (for example CHRONEX_STORE) and wins over everything. `args` and `kwargs`
    are for a function instead of a command. With `is_traced` a collector is told of it as a span.
    """

    attempt_id: str
    number: int
    job: str
    task: str
    occurrence_id: str
    nominal_ms: int
    run_id: str = ""
    version: int = 0
    recovery: bool = False
    fire_count: int = 0
    epoch: int = 0
    fence: int = 0
    command: Command = ()
    directory: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    secret_sources: Mapping[str, str] = field(default_factory=dict)
    env_file: tuple[str, ...] = ()
    settings: ProcessSettings | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    span_start_ms: int | None = None
    span_end_ms: int | None = None
    inputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    matrix: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str = ""
    last_run_ms: int | None = None
    timeout_ms: int | None = None
    grace_ms: int = DEFAULT_GRACE_MS
    success_codes: tuple[int, ...] = (0,)
    retry_codes: tuple[int, ...] | None = None
    leftovers: LeftoverPolicy = LeftoverPolicy.KEEP
    log_limit: int = DEFAULT_LIMIT
    extra_environment: Mapping[str, str] = field(default_factory=dict)
    is_traced: bool = False
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


class CommandRules(Struct, frozen=True, kw_only=True):
    """How a command that runs is watched, stopped and judged: what of a request still counts once it has begun.

    `marks` are in the environment of each of its processes, and of no other process of this machine.
    """

    attempt_id: str
    timeout_ms: int | None = None
    grace_ms: int = DEFAULT_GRACE_MS
    success_codes: tuple[int, ...] = (0,)
    retry_codes: tuple[int, ...] | None = None
    leftovers: LeftoverPolicy = LeftoverPolicy.KEEP
    log_limit: int = DEFAULT_LIMIT
    marks: frozenset[bytes] = frozenset()


class AttemptResult(Struct, frozen=True, kw_only=True):
    """How an attempt ended. `retryable` says whether trying again may help; the retry policy decides.

    `leftovers` are processes of the attempt that outlived its main process; `leftovers_killed` of them are gone.
    `state_changes` (callables only) belong into the transaction that records the success. `stop_code` is the code of
    why it was canceled. `values` are for those that need it, where it succeeded, and `values_problem` says what of
    them could not be kept. `usage` is None where the system did not tell: for callables, and for what was adopted.
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
    stop_code: str = ""
    usage: Usage | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    values_problem: str = ""


class NotStarted(Struct, frozen=True):
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
