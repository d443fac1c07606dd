"""The records of the store as frozen values. Times are epoch milliseconds; durations are milliseconds.

Values that hold values have no cycles, so the collector of cycles need not look at them (gc=False): a tick makes
thousands, and looking cost a seventh of it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from chronex.model.ids import attempt_id, occurrence_id, run_id
from chronex.model.placed import Decision, MissedSpan
from chronex.model.policies import (
    Cadence,
    CrashPolicy,
    DstSetting,
    FailureStrategy,
    LeftoverPolicy,
    NotifyPolicy,
    OverlapPolicy,
    RecoveryPolicy,
    RetryPolicy,
    SpreadPolicy,
    TaskMode,
)
from chronex.model.reasons import NO_REASON, Reason
from chronex.model.states import AttemptState, OccurrenceState, RunState

Command = tuple[str, ...] | str


class Call(Struct, frozen=True, gc=False):
    """A Python function: the name it is registered by in the scheduler's own program, or "module:function"."""

    target: str


# What can be done: job files have commands only; programs that use Chronex as a library have calls too.
Work = Command | Call
# One object, because what is left out of a stored record is what is the default itself.
ONLY_ZERO = (0,)
RETRIES_ON_FAILURE = 3


class Task(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One step of a job; what is None is inherited from the job.

    Exit codes in `success_codes` are no failure. Of the others, those in `retry_codes` are worth another
    attempt; None stands for all of them.
    """

    name: str
    run: Work = ()
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    directory: str | None = None
    timeout_ms: int | None = None
    retry: RetryPolicy | None = None
    on_failure: FailureStrategy | None = None
    idempotency_key: str | None = None
    idempotency_ttl_ms: int | None = None
    success_codes: tuple[int, ...] = ONLY_ZERO
    retry_codes: tuple[int, ...] | None = None
    metadata: dict[str, str] = {}


class Counters(Struct, frozen=True, gc=False, omit_defaults=True):
    """How a job's occurrences ended since it was first applied."""

    fired: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    missed: int = 0
    canceled: int = 0
    failures_in_a_row: int = 0


class Job(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A schedule, its policies and tasks, and how far it has come.

    `cursor_ms` is the last nominal instant that was decided; `anchor_ms` is what intervals count from;
    `next_ms` is when the engine must look at the job again (None: never), and is what the due index holds.
    """

    id: str
    schedule: str
    description: str = ""
    dialect: str = "chronex"
    timezone: str = "UTC"
    tasks: tuple[Task, ...] = ()
    mode: TaskMode = TaskMode.SEQUENTIAL
    overlap: OverlapPolicy = OverlapPolicy.SKIP
    recovery: RecoveryPolicy = RecoveryPolicy()
    failure: FailureStrategy = FailureStrategy.FAIL_FAST
    on_crash: CrashPolicy = CrashPolicy.RETRY
    cadence: Cadence = Cadence.FIXED_RATE
    retry: RetryPolicy = RetryPolicy()
    spread: SpreadPolicy | None = None
    dst: DstSetting | None = None
    execution_timeout_ms: int | None = None
    task_timeout_ms: int | None = None
    grace_ms: int | None = None
    leftovers: LeftoverPolicy = LeftoverPolicy.KEEP
    log_limit: int | None = None
    on_start: Work | None = None
    on_complete: Work | None = None
    notify: NotifyPolicy | None = None
    expect_within_ms: int | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    source: str = ""
    written: str = ""  # the schedule as the job file has it, where that counts from the moment it was applied
    version: int = 1
    enabled: bool = True
    paused: bool = False
    paused_until_ms: int | None = None
    paused_by: str = ""
    paused_from_ms: int | None = None
    cursor_ms: int | None = None
    anchor_ms: int | None = None
    next_ms: int | None = None
    last_run_ms: int | None = None  # when an occurrence last started
    late_ms: int | None = None
    counters: Counters = Counters()
    created_ms: int = 0
    updated_ms: int = 0
    updated_by: str = ""

    def is_paused_at(self, now_ms: int) -> bool:
        """A pause with an end is over by itself when the end has come."""
        return self.paused and (self.paused_until_ms is None or now_ms < self.paused_until_ms)

    def was_paused_at(self, ms: int) -> bool:
        """Does `ms` lie in the last pause, over or not? What was due then is skipped, whenever it is looked at."""
        if self.paused_from_ms is None or ms < self.paused_from_ms:
            return False
        return self.paused_until_ms is None or ms < self.paused_until_ms

    def retry_for(self, task: Task) -> RetryPolicy:
        """Its own policy, else the job's; three retries where `retry_on_failure` meets a policy without any."""
        policy = task.retry if task.retry is not None else self.retry
        if policy.max == 0 and self.failure_for(task) is FailureStrategy.RETRY_ON_FAILURE:
            return replace(policy, max=RETRIES_ON_FAILURE)
        return policy

    def failure_for(self, task: Task) -> FailureStrategy:
        return task.on_failure if task.on_failure is not None else self.failure

    def timeout_for(self, task: Task) -> int | None:
        return task.timeout_ms if task.timeout_ms is not None else self.task_timeout_ms

    def task(self, name: str) -> Task | None:
        return next((task for task in self.tasks if task.name == name), None)


class JobVersion(Struct, frozen=True, gc=False):
    """A job as it was in one version, for occurrences that began with it and for replays."""

    job: Job


class Occurrence(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One firing of a job, known by its nominal time. `epoch` grows with every change of owner.

    A replay `stands_for_ms`: its tasks are told the scheduled time of what it repeats; `only` names the tasks that
    run, where not all do. `older` are missed instants right before this one that have no records of their own.
    `cancel_reason` says that somebody wants a running occurrence stopped; until its owner has ordered that,
    `cancel_ms` holds it in the due index.
    """

    job: str
    nominal_ms: int
    due_ms: int
    jitter_ms: int = 0
    decision: Decision | None = None
    state: OccurrenceState = OccurrenceState.PENDING
    reason: Reason = NO_REASON
    version: int = 1
    owner: str = ""
    epoch: int = 0
    recovery: bool = False
    manual: bool = False
    triggered_by: str = ""
    parameters: dict[str, str] = {}
    span_start_ms: int | None = None
    span_end_ms: int | None = None
    older: MissedSpan | None = None
    last_run_ms: int | None = None  # when the occurrence before this one started
    replay_of: str = ""
    stands_for_ms: int | None = None
    only: tuple[str, ...] = ()
    cancel_reason: Reason = NO_REASON
    cancel_ms: int | None = None
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None
    deadline_ms: int | None = None

    @property
    def id(self) -> str:
        return occurrence_id(self.job, self.nominal_ms)

    @property
    def scheduled_ms(self) -> int:
        """The time that its tasks are told."""
        return self.nominal_ms if self.stands_for_ms is None else self.stands_for_ms


class Run(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One task within one occurrence. `next_attempt_ms` is when a scheduled or retried run may be claimed.

    `environment` holds the names, never the values, of what a dead letter was given.
    """

    job: str
    nominal_ms: int
    task: str
    state: RunState = RunState.SCHEDULED
    reason: Reason = NO_REASON
    owner: str = ""
    epoch: int = 0
    attempts: int = 0
    next_attempt_ms: int | None = None
    idempotency_key: str = ""
    exit_code: int | None = None
    error: str = ""
    environment: tuple[str, ...] = ()
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None

    @property
    def id(self) -> str:
        return run_id(occurrence_id(self.job, self.nominal_ms), self.task)


class ProcessIdentity(Struct, frozen=True, gc=False, omit_defaults=True):
    """A process for sure: pids are reused; the boot and the start time (in ticks after boot) are not."""

    pid: int
    boot_id: str
    start_time: int
    group: int | None = None


class Attempt(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One try of a run; the first has number 1."""

    job: str
    nominal_ms: int
    task: str
    number: int
    state: AttemptState = AttemptState.RUNNING
    reason: Reason = NO_REASON
    owner: str = ""
    epoch: int = 0
    process: ProcessIdentity | None = None
    exit_code: int | None = None
    signal: int | None = None
    error: str = ""
    log_path: str = ""
    log_limit: int = 0  # of its log in bytes: where the head ends while it is written; 0 where it was not told
    log_bytes: int = 0
    log_dropped: int = 0
    leftovers: int = 0
    errno: int | None = None
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None

    @property
    def id(self) -> str:
        return attempt_id(run_id(occurrence_id(self.job, self.nominal_ms), self.task), self.number)


class Node(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One scheduler process working on the store."""

    id: str
    process: ProcessIdentity
    host: str = ""
    epoch: int = 0
    chronex: str = ""
    places: int = 0  # so many occurrences it runs at once; 0 where it was not told
    started_ms: int = 0
    seen_ms: int = 0
    stopped_ms: int | None = None


class Event(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One line of the journal; its sequence number is its key."""

    name: str
    at_ms: int
    job: str = ""
    nominal_ms: int | None = None
    task: str = ""
    attempt: int | None = None
    reason: Reason = NO_REASON
    actor: str = ""
    data: dict[str, Any] = {}


class Idempotency(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A key that must not execute again before `expires_ms`. `holder` is the id of who took it.

    A trigger's key is held by the occurrence of `job` at `nominal_ms`: one that never ran gives it back.
    """

    key: str
    expires_ms: int
    holder: str = ""
    job: str = ""
    nominal_ms: int | None = None
    created_ms: int = 0


class Notice(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Something that somebody must be told: kept until the job's `notify` command has taken it.

    `kind` is failing, recovered, late or on_time; `at_ms` is when it came to be so.
    """

    job: str
    kind: str
    at_ms: int
    nominal_ms: int | None = None
    reason: Reason = NO_REASON
    failures: int = 0
    tries: int = 0
    next_ms: int = 0


class TaskState(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A small value that a task keeps between its runs, or, staged, what an attempt wants to become of it."""

    value: str
    updated_ms: int = 0
    is_removed: bool = False


class Quarantined(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A damaged record, kept as it was found for whoever wants to look at it."""

    reason: str
    at_ms: int
    raw: bytes = b""
    size: int = 0


class StoreMeta(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What the store says of itself."""

    format: int
    map_size: int
    store_id: str
    engine: str
    created_ms: int
    chronex: str = ""
    migrated_from: tuple[int, ...] = ()


class Sequence(Struct, frozen=True, gc=False):
    """The last number given out."""

    last: int


Record = (
    Job
    | JobVersion
    | Occurrence
    | Run
    | Attempt
    | Node
    | Event
    | Idempotency
    | Notice
    | TaskState
    | Quarantined
    | StoreMeta
    | Sequence
)
