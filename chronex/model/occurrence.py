"""One firing of a job, its runs and their attempts: the records of what happens, with their ids."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha1

from msgspec import Struct

from chronex.model.policies import Overrides
from chronex.model.reasons import NO_REASON, Reason
from chronex.model.states import AttemptState, OccurrenceState, RunState

# An id is a hash of what it names, so every process computes the same text for the same thing. The ids of what runs
# now are computed again and again, and a hash costs as much as a record.
_REMEMBERED = 4096
# The name spaces of RFC 4122 for DNS, URL and OID; they only keep the three kinds apart.
_OCCURRENCES = bytes.fromhex("6ba7b8109dad11d180b400c04fd430c8")
_RUNS = bytes.fromhex("6ba7b8119dad11d180b400c04fd430c8")
_ATTEMPTS = bytes.fromhex("6ba7b8129dad11d180b400c04fd430c8")


@lru_cache(maxsize=_REMEMBERED)
def occurrence_id(job: str, nominal_ms: int) -> str:
    """`occ_` and the UUIDv5 of "job:seconds", or "job:seconds.mmm" where the time is not a whole second."""
    seconds, milliseconds = divmod(nominal_ms, 1000)
    fraction = f".{milliseconds:03d}" if milliseconds else ""
    return f"occ_{_uuid5(_OCCURRENCES, f'{job}:{seconds}{fraction}')}"


@lru_cache(maxsize=_REMEMBERED)
def run_id(occurrence: str, task: str) -> str:
    """`run_` and the UUIDv5 of "occurrence:task"."""
    return f"run_{_uuid5(_RUNS, f'{occurrence}:{task}')}"


@lru_cache(maxsize=_REMEMBERED)
def attempt_id(run: str, number: int) -> str:
    """`attempt_` and the UUIDv5 of "run:number"; the first attempt is number 1."""
    return f"attempt_{_uuid5(_ATTEMPTS, f'{run}:{number}')}"


def _uuid5(space: bytes, name: str) -> str:
    """The text of uuid.uuid5, which makes an object first and takes three times as long."""
    digest = sha1(space + name.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


class Decision(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Why the occurrence starts where it does inside its window."""

    # The first number of the DECISION_VERSION that decided.
    algorithm: int
    # What the draw was seeded with, so that it can be repeated.
    seed_hash: str = ""
    # The window of the spread.
    window_start_ms: int | None = None
    window_end_ms: int | None = None
    # Where in the window it starts; None where no start satisfied the constraints.
    chosen_ms: int | None = None
    # What the stagger added.
    stagger_ms: int = 0
    # How many draws the constraints took.
    attempts: int = 0
    # Why no start could be chosen, in the decision core's own words.
    reason: str = ""


class MissedSpan(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Missed instants that were too many for a record each. With `is_more` there are more than `count`."""

    from_ms: int
    to_ms: int
    count: int
    is_more: bool = False
    # Why none of them ran.
    reason: Reason = NO_REASON


class Occurrence(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One firing of a job, known by its nominal time."""

    # The id of the job, and the instant that its schedule names: together the key.
    job: str
    nominal_ms: int
    # When it may start: the nominal time after spread, stagger and jitter.
    due_ms: int
    # What was drawn for it once, when it was planned.
    jitter_ms: int = 0
    # How spread and stagger placed it; None where the job has neither.
    decision: Decision | None = None
    state: OccurrenceState = OccurrenceState.PENDING
    # Why it is in that state.
    reason: Reason = NO_REASON
    # The version of the job that it runs.
    version: int = 1
    # The node that runs it, and a number that grows with every change of owner: a stale owner cannot write.
    owner: str = ""
    epoch: int = 0
    # It was due while no scheduler ran, and the recovery strategy runs it now.
    recovery: bool = False
    # A person or a program asked for it.
    manual: bool = False
    # Who asked for it.
    triggered_by: str = ""
    # What was given with the request; commands find it as CHRONEX_PARAM_*.
    parameters: dict[str, str] = {}
    # What a compressed run covers.
    span_start_ms: int | None = None
    span_end_ms: int | None = None
    # Missed instants right before this one that have no records of their own.
    older: MissedSpan | None = None
    # When the occurrence before this one started.
    last_run_ms: int | None = None
    # Which execution of its job it is, from 1; 0 before it starts, and where that was not recorded.
    fire_count: int = 0
    # The id of the occurrence that a replay repeats, and the scheduled time that its tasks are given.
    replay_of: str = ""
    stands_for_ms: int | None = None
    # The nominal time of what a replay repeats.
    repeats_ms: int | None = None
    # The calendar that moved it here from the time that it stands for.
    moved_by: str = ""
    # Why a person asked for it, in that person's words.
    asked_for: str = ""
    # The tasks that run, where not all of them do.
    only: tuple[str, ...] = ()
    # What holds for this occurrence in place of the job's policies.
    overrides: Overrides | None = None
    # The occurrences that it followed, or whose end it waited for: each parent's name with its nominal time.
    parents: dict[str, int] = {}
    # While it waits for parents: their names.
    waits_for: tuple[str, ...] = ()
    # While it waits, for whatever: the first moment behind its window (None: for as long as it takes).
    wait_until_ms: int | None = None
    # When its last parent had completed; it is decided anew at the next tick.
    released_ms: int | None = None
    # A replay or a backfill whose children run again too.
    with_children: bool = False
    # Why a running occurrence is to be stopped; until its owner has ordered that, `cancel_ms` keeps it due.
    cancel_reason: Reason = NO_REASON
    cancel_ms: int | None = None
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None
    # How many tasks failed of one that completed all the same, because each of them is set to `continue`.
    errors: int = 0
    # When its execution timeout passes.
    deadline_ms: int | None = None
    # The places that it takes in groups, by their names, once it has started.
    groups: dict[str, int] = {}
    # While it waits for one of them, for the pool or for a condition: the lines that it stands in, and its place in
    # all of them. The smallest goes first.
    lines: tuple[str, ...] = ()
    order_ms: int = 0
    # It waits, or waited, because its job made up for instants that it had missed.
    behind: bool = False

    @property
    def id(self) -> str:
        return occurrence_id(self.job, self.nominal_ms)

    @property
    def scheduled_ms(self) -> int:
        """The time that its tasks are given."""
        return self.nominal_ms if self.stands_for_ms is None else self.stands_for_ms


class Run(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One task within one occurrence."""

    # The occurrence it belongs to, and the name of its task: together the key.
    job: str
    nominal_ms: int
    task: str
    state: RunState = RunState.SCHEDULED
    # Why it is in that state.
    reason: Reason = NO_REASON
    # The node that claimed it, and a number that grows with every claim.
    owner: str = ""
    epoch: int = 0
    # How many attempts it has had.
    attempts: int = 0
    # When a scheduled or retried run may be claimed.
    next_attempt_ms: int | None = None
    # How long the pause before its next attempt was to be; None where it waits for none.
    pause_ms: int | None = None
    # The key that it holds over all its attempts; empty where its task has none.
    idempotency_key: str = ""
    # How its last attempt ended.
    exit_code: int | None = None
    error: str = ""
    # The names, never the values, of the variables that a dead letter was given.
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
    # The process group, where it leads one.
    group: int | None = None


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a command took, with the children that it waited for, as the system counts it when it ends."""

    # Processor time of all of them, and the memory of the largest at its peak. The system counts a new process as
    # large as whoever started it: where it was never larger, None, because how large it was is not known.
    cpu_ms: int = 0
    peak_kib: int | None = None
    # Blocks of 512 bytes that had to be read from a disk, and that were written to one.
    blocks_read: int = 0
    blocks_written: int = 0
    # What held its limits: "cgroup", "process", or both with a comma; empty where it had none.
    limits_by: str = ""


def is_limited_by_process(usage: Usage | None) -> bool:
    """Whether limits that no control group held were set for each of its processes."""
    return usage is not None and "process" in usage.limits_by


class Attempt(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One try of a run."""

    # The run it belongs to, and which try it is, from 1: together the key.
    job: str
    nominal_ms: int
    task: str
    number: int
    state: AttemptState = AttemptState.RUNNING
    # Why it ended so.
    reason: Reason = NO_REASON
    # Its number among all attempts of the job, those of other occurrences too; 0 where the job was removed before.
    fence: int = 0
    # The node that started it, and the epoch of that claim: an end with another epoch comes too late.
    owner: str = ""
    epoch: int = 0
    # Who runs it; None before it has started, and for a Python function.
    process: ProcessIdentity | None = None
    exit_code: int | None = None
    signal: int | None = None
    # What went wrong, in the words of the system or of the function.
    error: str = ""
    # Where its output is, relative to the directory of logs.
    log_path: str = ""
    # The limit of its log in bytes: where the head ends while it is written; 0 where that is not known.
    log_limit: int = 0
    # What it wrote, and how much of that was dropped from the middle.
    log_bytes: int = 0
    log_dropped: int = 0
    # How many processes it left behind.
    leftovers: int = 0
    # What it gave those that need it, and what was wrong with the rest of what it wrote.
    values: dict[str, str] = {}
    values_problem: str = ""
    # What it took; None for a function, and where nobody could wait for it.
    usage: Usage | None = None
    # The system's error number, where it could not be started.
    errno: int | None = None
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None
    # By how much the clock was set while it ran, as far as the deadline of its occurrence allows for it.
    clock_set_ms: int = 0

    @property
    def id(self) -> str:
        return attempt_id(run_id(occurrence_id(self.job, self.nominal_ms), self.task), self.number)
