"""A job: its schedule, its policies and its tasks as they were written, and how far it has come.

`JobDefinition` is what a person or a program asked for. `JobProgress` is what the job has decided and done so far,
and whether it is paused. `Job` is both together. The store keeps the two in rows of their own: every start and every
end changes the progress, and the definition may be long.

Frozen values that hold values have no cycles, so the collector of cycles need not visit them (gc=False): a tick
makes thousands of them, and the visits cost a seventh of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from chronex.errors import ChronexError
from chronex.model.calendars import CalendarRules
from chronex.model.job_parameters import Parameter
from chronex.model.policies import (
    Cadence,
    CrashCheck,
    CrashPolicy,
    DstSetting,
    FailureStrategy,
    LeftoverPolicy,
    NotifyPolicy,
    OverlapPolicy,
    Overrides,
    ProcessSettings,
    RecoveryPolicy,
    ResourceLimits,
    RetryPolicy,
    RunOn,
    SpreadPolicy,
    TaskMode,
    When,
)

Command = tuple[str, ...] | str


class Call(Struct, frozen=True, gc=False, omit_defaults=True):
    """A Python function: the name it is registered by in the scheduler's own program, or "module:function".

    `args` and `kwargs` are what it is called with behind its context: values that JSON has, because they are stored.
    """

    target: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """As it would be written: `mail('ann', copies=2)`."""
        given = [*(repr(one) for one in self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.target}({', '.join(given)})"


# What can be done: job files have commands only; programs that use Chronex as a library have calls too.
Work = Command | Call
# One object, because msgspec leaves a field out of a stored record when it holds the default object itself.
ONLY_ZERO = (0,)
RETRIES_ON_FAILURE = 3


# No expression has a bar in it.
SCHEDULES_APART = " | "


class TaskCheck(Struct, frozen=True, gc=False, omit_defaults=True):
    """A command that must end with 0, or a file that must be there, as large as this, and written by the attempt."""

    run: Command = ()
    file: str = ""
    min_size: int = 0
    newer: bool = False


class Task(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One step of a job. What is None is inherited from the job."""

    # Unique within the job; part of the keys of its runs.
    name: str
    # What is started: an argv, a text for the shell, or a Python function.
    run: Work = ()
    # Variables for the command, over those that it inherits.
    env: dict[str, str] = {}
    # Names of variables whose values are fetched when the command starts and are not stored.
    secrets: tuple[str, ...] = ()
    # Where the values of secrets come from, such as "file:/run/secrets/pg"; one without a source is a variable of the
    # daemon's environment.
    secret_sources: dict[str, str] = {}
    # Files with variables, read when the command starts; a later one wins, and `env` wins over all of them.
    env_file: tuple[str, ...] = ()
    # As whom and within what the command runs; None stands for what its scheduler has.
    user: str | None = None
    group: str | None = None
    umask: str | None = None
    nice: int | None = None
    limits: ResourceLimits | None = None
    # The working directory; None stands for the daemon's.
    directory: str | None = None
    # How long one attempt may take.
    timeout_ms: int | None = None
    retry: RetryPolicy | None = None
    # What a failure of this task means for the others.
    on_failure: FailureStrategy | None = None
    # The template of the key under which the task executes at most once; None for no such key.
    idempotency_key: str | None = None
    # How long an idempotency key lives; None stands for a day.
    idempotency_ttl_ms: int | None = None
    # Exit codes that are no failure.
    success_codes: tuple[int, ...] = ONLY_ZERO
    # Failing exit codes that are worth another attempt; None stands for all of them.
    retry_codes: tuple[int, ...] | None = None
    # Free values that the command finds as CHRONEX_META_*.
    metadata: dict[str, str] = {}
    # What must be so after the command has ended well; else it has failed.
    check: TaskCheck | None = None
    # The tasks that must have ended before it begins, or matrices of tasks; None where the job's mode says it.
    needs: tuple[str, ...] | None = None
    # How those must have ended.
    when: When = When.SUCCESS
    # Where it is one combination of a matrix: the name of the task as it was written, what its command finds as
    # CHRONEX_MATRIX_*, and how many of them run at once (None: all).
    matrix_of: str = ""
    combination: dict[str, str] = {}
    at_most: int | None = None

    @property
    def step(self) -> str:
        """The name as it was written: that of its matrix, where it is a combination of one."""
        return self.matrix_of or self.name

    @property
    def process_settings(self) -> ProcessSettings | None:
        """None where it runs as its scheduler does, which is nearly always."""
        if all(one is None for one in (self.user, self.group, self.umask, self.nice, self.limits)):
            return None
        return ProcessSettings(user=self.user, group=self.group, umask=self.umask, nice=self.nice, limits=self.limits)


class JobDefinition(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A schedule with its policies and tasks, in one version."""

    # The job's own name is its key in the store.
    id: str
    # The expression, in the words of `dialect`, or several with SCHEDULES_APART between them, whose instants are
    # united; for a custom schedule the name it is registered by. Empty for a job that only follows others.
    schedule: str
    # One line for people.
    description: str = ""
    # The language of `schedule`: chronex, posix, or custom.
    dialect: str = "chronex"
    # The IANA zone of a schedule that names none.
    timezone: str = "UTC"
    # The steps, in their order.
    tasks: tuple[Task, ...] = ()
    # One task after another, or all at once.
    mode: TaskMode = TaskMode.SEQUENTIAL
    # What becomes of an occurrence that is due while an earlier one runs.
    overlap: OverlapPolicy = OverlapPolicy.SKIP
    # What becomes of instants that were missed while no scheduler ran.
    recovery: RecoveryPolicy = RecoveryPolicy()
    # What a failed task means for the others, where a task does not say it itself.
    failure: FailureStrategy = FailureStrategy.FAIL_FAST
    # What follows when the outcome of an attempt is unknown.
    on_crash: CrashPolicy | CrashCheck = CrashPolicy.RETRY
    # Whether an interval counts from its anchor, or from the end of the run before.
    cadence: Cadence = Cadence.FIXED_RATE
    # How failed runs are tried again, where a task does not say it itself.
    retry: RetryPolicy = RetryPolicy()
    # Where inside a window an occurrence starts; None starts it at its nominal time.
    spread: SpreadPolicy | None = None
    # What clock changes do to the schedule; None stands for the dialect's own rule.
    dst: DstSetting | None = None
    # Days and times on which it does not start, or only then; None where every instant of the schedule counts.
    calendars: CalendarRules | None = None
    # How long a whole occurrence may take, its retries included.
    execution_timeout_ms: int | None = None
    # How long one attempt of a task may take, where the task does not say it itself.
    task_timeout_ms: int | None = None
    # How long a command has between TERM and KILL.
    grace_ms: int | None = None
    # What becomes of processes that a command leaves behind.
    leftovers: LeftoverPolicy = LeftoverPolicy.KEEP
    # How many bytes of an attempt's output are kept; None stands for the daemon's limit.
    log_limit: int | None = None
    # What is run before the first task of an occurrence.
    on_start: Work | None = None
    # What is run when an occurrence has ended.
    on_complete: Work | None = None
    # Which command is given notices, and of what.
    notify: NotifyPolicy | None = None
    # How long after its time an occurrence must have completed before the job counts as late.
    expect_within_ms: int | None = None
    # A run that takes longer than the job's runs usually do is told while it still runs.
    expect_usual: bool = False
    # After so many failures in a row the job is paused until somebody resumes it; None never pauses it.
    pause_after_failures: int | None = None
    # The jobs whose occurrences it follows; it may then be without a schedule of its own.
    after: tuple[str, ...] = ()
    # What a trigger may give it, and what every other run gets; commands find the values as CHRONEX_PARAM_*.
    parameters: dict[str, Parameter] = {}
    # Words to select jobs by.
    tags: tuple[str, ...] = ()
    # Free values that commands find as CHRONEX_META_*.
    metadata: dict[str, str] = {}
    # The groups that it is in, each with the places that a run of it takes there.
    groups: dict[str, int] = {}
    # Who goes first where several wait; a point is worth a minute of waiting.
    priority: int = 0
    # Conditions that must hold before it starts, and how long after its time they are awaited.
    wait_for: tuple[str, ...] = ()
    wait_at_most_ms: int = 3_600_000
    # On which nodes it may run: patterns of their names, and labels that they must have. Empty: on any.
    nodes: tuple[str, ...] = ()
    node_labels: dict[str, str] = {}
    # On one of them, or an occurrence of its own on each of them.
    run_on: RunOn = RunOn.ANY
    # The node that this job was made for, from a job that runs on each; empty for every other.
    target: str = ""
    # How long an occurrence waits for a node that fits before it is missed; None: until the next instant.
    wait_for_node_ms: int | None = None
    # A job that is not enabled is kept and shown, and never planned.
    enabled: bool = True
    # The schedule as the job file has it, where that counts from the moment it was applied.
    written: str = ""
    # Who owns the definition: the file or the program that applied it.
    source: str = ""
    # Grows by one with every change of the definition.
    version: int = 1
    # When this version was applied.
    updated_ms: int = 0
    # Who applied this version.
    updated_by: str = ""

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

    def overridden(self, given: Overrides) -> Self:
        """The job with the policies of one occurrence, for all its tasks."""
        job, tasks = self, self.tasks
        if given.timeout_ms is not None:
            job = replace(job, execution_timeout_ms=given.timeout_ms, task_timeout_ms=None)
            tasks = tuple(replace(task, timeout_ms=None) for task in tasks)
        if given.on_failure is not None:
            job = replace(job, failure=given.on_failure)
            tasks = tuple(replace(task, on_failure=None) for task in tasks)
        if given.retries is not None:
            tasks = tuple(replace(task, retry=replace(task.retry or job.retry, max=given.retries)) for task in tasks)
        if given.retries == 0:  # no retries is an answer here, not a policy that was left out
            tasks = tuple(_without_retries(job, task) for task in tasks)
        return replace(job, tasks=tasks)

    @property
    def schedules(self) -> tuple[str, ...]:
        """The expressions of its schedule; none for a job that only follows others."""
        return tuple(self.schedule.split(SCHEDULES_APART)) if self.schedule else ()

    @property
    def follows(self) -> bool:
        """It has no schedule: each of its occurrences comes from those of the jobs that it is after."""
        return bool(self.after) and not self.schedule

    @property
    def shown_schedule(self) -> str:
        """When it runs, in one line: its schedule, and the jobs that it is after."""
        follows = f"after {', '.join(self.after)}" if self.after else ""
        return ", ".join(part for part in (self.schedule, follows) if part)

    @property
    def has_needs(self) -> bool:
        """Do its tasks say what each of them needs? Otherwise its mode says in what order they run."""
        return any(task.needs is not None for task in self.tasks)

    @property
    def functions(self) -> tuple[str, ...]:
        """The Python functions that its tasks and hooks call: who runs the job must have all of them."""
        called: list[str] = []
        for task in self.tasks:  # asked twice for every start, and most jobs call none
            if type(task.run) is Call:
                called.append(task.run.target)
        for hook in (self.on_start, self.on_complete):
            if type(hook) is Call:
                called.append(hook.target)
        return tuple(dict.fromkeys(called)) if called else ()

    @property
    def secret_sources(self) -> tuple[str, ...]:
        """Where the secrets of its tasks come from: who runs the job must have all of them."""
        found = (task.secret_sources.get(name) or f"env:{name}" for task in self.tasks for name in task.secrets)
        return tuple(dict.fromkeys(found))

    @property
    def made_from(self) -> str:
        """The job that this one was made from for its target; empty for every other."""
        return self.id.removesuffix(f"{TARGET_APART}{self.target}") if self.target else ""

    @property
    def shown_name(self) -> str:
        """What people call it: the id, or the name that the id of a declarative task was made from."""
        name = self.metadata.get("name", "") if _MADE_ID.fullmatch(self.id) else ""
        return name if name and task_job_id(name) == self.id else self.id

    def task(self, name: str) -> Task | None:
        return next((task for task in self.tasks if task.name == name), None)


def _without_retries(job: JobDefinition, task: Task) -> Task:
    retries = job.failure_for(task) is FailureStrategy.RETRY_ON_FAILURE
    return replace(task, on_failure=FailureStrategy.FAIL_FAST) if retries else task


class Counters(Struct, frozen=True, gc=False, omit_defaults=True):
    """How a job's occurrences ended since it was first applied."""

    # Occurrences that began, however they ended.
    fired: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    missed: int = 0
    canceled: int = 0
    # Failures since the last occurrence that completed.
    failures_in_a_row: int = 0
    # Those of `completed` with a task that failed and is set to `continue`.
    completed_with_errors: int = 0


# While a scheduler runs, one is enough: what is due in a pause is skipped at once.
MOST_PAUSES = 64
# Who has paused a job that failed too often in a row.
PAUSED_BY_FAILURES = "pause_after_failures"


class JobProgress(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What changes while a job lives; every start and every end writes it anew."""

    # Whose progress it is: the job's id.
    job: str = ""
    # The job was paused and has not been resumed; a pause with an end may be over all the same.
    paused: bool = False
    # When the pause ends by itself, or ended when it was resumed; None for a pause without an end.
    paused_until_ms: int | None = None
    # Who paused it.
    paused_by: str = ""
    # The boot of each machine for which `@start` has been answered; a store of one machine has one without a name.
    boots: dict[str, str] = {}
    # When the last pause began; what was due since then and before its end is skipped.
    paused_from_ms: int | None = None
    # Earlier pauses as spans of their own, the oldest first; what was due in one of them is skipped too.
    pauses: tuple[tuple[int, int], ...] = ()
    # The last nominal instant that was decided.
    cursor_ms: int | None = None
    # Since when its instants count: when it was made, moved, enabled or resumed; None once the clock was set back.
    begun_ms: int | None = None
    # How far the job, or the store, had come when the clock was set back. No instant up to here that passes in a
    # downtime or in a step of the clock is made up for; retention never removes this.
    watermark_ms: int | None = None
    # Every instant after this one and up to the cursor has had a record of its own.
    decided_from_ms: int | None = None
    # Spans, after the first and up to the last instant, that were decided before the clock was set back.
    decided: tuple[tuple[int, int], ...] = ()
    # What intervals count from.
    anchor_ms: int | None = None
    # When the engine must plan the job again (None: never). The due index holds it.
    next_ms: int | None = None
    # When an occurrence last started.
    last_run_ms: int | None = None
    # When an occurrence last completed; None also where that was before this was recorded.
    last_success_ms: int | None = None
    # Since when the job is late: the nominal time of the occurrence that should have completed.
    late_ms: int | None = None
    # The last run that was told to be slow, by its nominal time.
    slow_ms: int | None = None
    # The last run that was told to take longer than `long_after`, by its nominal time.
    long_ms: int | None = None
    counters: Counters = Counters()
    # How many attempts of the job were ordered so far. Each is given its number, which is greater than that of every
    # earlier one: a resource that remembers the greatest it has seen can refuse a command that was given up.
    fence: int = 0
    # When the job was first applied.
    created_ms: int = 0

    def is_paused_at(self, now_ms: int) -> bool:
        """A pause with an end is over by itself when the end has come."""
        return self.paused and (self.paused_until_ms is None or now_ms < self.paused_until_ms)

    def was_paused_at(self, ms: int) -> bool:
        """Does `ms` lie in a pause, over or not? What was due then is skipped, whenever it is planned."""
        if self.pauses and any(begin <= ms < end for begin, end in self.pauses):
            return True
        if self.paused_from_ms is None or ms < self.paused_from_ms:
            return False
        return self.paused_until_ms is None or ms < self.paused_until_ms

    def pauses_with_last(self) -> tuple[tuple[int, int], ...]:
        """Its pauses before the one that begins now. Those before the cursor were skipped and are forgotten first."""
        begin, end = self.paused_from_ms, self.paused_until_ms
        if begin is None or end is None or end <= begin:
            return self.pauses
        pauses = (*self.pauses, (begin, end))
        if len(pauses) > MOST_PAUSES:
            pauses = tuple(pause for pause in pauses if pause[1] > (self.cursor_ms or 0))
        return pauses[-MOST_PAUSES:]

    def was_decided(self, nominal_ms: int) -> bool:
        """Was this instant decided before the clock was set back? Its record may have gone with old history."""
        return bool(self.decided) and any(begin < nominal_ms <= end for begin, end in self.decided)


NO_PROGRESS = JobProgress()


class Job(JobDefinition, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A definition and how far it has come."""

    # Kept in a row of its own; a job that is read from the row of its definition alone has none.
    progress: JobProgress = NO_PROGRESS

    def progressed(self, **changes: Any) -> Job:
        """The same definition, with these fields of its progress changed."""
        return replace(self, progress=replace(self.progress, **changes))

    def counted(self, now_ms: int, last_run_ms: int | None, more: Mapping[str, int]) -> JobProgress:
        """Its progress after an occurrence that counts `more`; paused where it has failed too often in a row."""
        progress = self.progress
        counters: dict[str, int] = {name: getattr(progress.counters, name) + step for name, step in more.items()}
        if "failed" in more:
            counters["failures_in_a_row"] = progress.counters.failures_in_a_row + 1
        elif "completed" in more:
            counters["failures_in_a_row"] = 0
        changed = replace(
            progress,
            counters=replace(progress.counters, **counters),
            last_run_ms=progress.last_run_ms if last_run_ms is None else last_run_ms,
            last_success_ms=now_ms if "completed" in more else progress.last_success_ms,
        )
        limit = self.pause_after_failures
        has_failed = "failed" in more and limit is not None and changed.counters.failures_in_a_row >= limit
        if not has_failed or progress.is_paused_at(now_ms):
            return changed
        return replace(
            changed,
            paused=True,
            paused_until_ms=None,
            paused_by=PAUSED_BY_FAILURES,
            paused_from_ms=now_ms,
            pauses=progress.pauses_with_last(),
        )

    def as_written(self) -> Job:
        """The definition alone: without its progress, and without who brought it in which version."""
        return replace(self, progress=NO_PROGRESS, source="", version=1, updated_ms=0, updated_by="")


class JobVersion(Struct, frozen=True, gc=False):
    """A job as it was when its version was replaced, for occurrences that began with it and for replays."""

    job: Job


MAX_NAME = 128
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}", re.ASCII)
# Between the name of a job that runs on each node and the name of the node: no name that a person gives has it.
TARGET_APART = ":"
_TARGET = re.compile(r"[a-zA-Z0-9._-]{1,64}", re.ASCII)
_KEY_NAME = re.compile(rf"{_NAME.pattern}(?:{TARGET_APART}{_TARGET.pattern})?", re.ASCII)

# Names of declarative tasks that are ids of jobs as they are; from others an id is made.
_PLAIN = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_MADE_ID = re.compile(r"task-[0-9a-f]{32}", re.ASCII)


def task_job_id(name: str) -> str:
    """The id of a declarative task's job: its name where a job may have that id, else one made from its hash."""
    if _PLAIN.fullmatch(name) and not _MADE_ID.fullmatch(name):
        return name
    return f"task-{sha256(name.encode()).hexdigest()[:32]}"


# What the template of an idempotency key may name between braces.
KEY_FIELDS = ("job", "task", "scheduled", "date", "occurrence")
KEY_FIELD = re.compile(r"\{([^{}]*)\}")
MAX_KEY_BYTES = 512


def unknown_key_fields(template: str) -> list[str]:
    """What the template of an idempotency key names that no key can be made of."""
    return [name for name in KEY_FIELD.findall(template) if name not in KEY_FIELDS]


def is_name(text: str) -> bool:
    """Could this name a job, also one that was made for a node, or a task?"""
    return _KEY_NAME.fullmatch(text) is not None


def is_target(text: str) -> bool:
    """Could this name a node?"""
    return _TARGET.fullmatch(text) is not None


def target_of(job: str) -> str:
    """The node that the job of this id was made for; empty for every other."""
    return job.partition(TARGET_APART)[2]


def target_job_id(job: str, target: str) -> str:
    """The id of the job that is made for one node from a job that runs on each."""
    return f"{job}{TARGET_APART}{target}"


def check_new_name(name: str, what: str = "job") -> str:
    """The same for one that is to be made. Older stores may have names that a command line takes for an option."""
    if name.startswith("-"):
        raise ChronexError(f"{name[:40]!r} cannot name a {what}: a command line would take it for an option")
    return _refuse_unless(_NAME, name, what)


def check_name(name: str, what: str = "job") -> str:
    """The name of a job or task is part of its key: letters, digits, `_`, `-`, at most 128 of them."""
    return _refuse_unless(_NAME, name, what)


def check_job_name(name: str) -> str:
    """The same for a job; the name of one that was made for a node ends with a colon and the name of that node."""
    return _refuse_unless(_KEY_NAME, name, "job")


def _refuse_unless(pattern: re.Pattern[str], name: str, what: str) -> str:
    if not pattern.fullmatch(name):
        raise ChronexError(f"{name[:40]!r} cannot name a {what}; use 1 to {MAX_NAME} letters, digits, '_' and '-'")
    return name
