"""Why an occurrence, a run or an attempt is in its state: a code, what was said, and who asked.

Records hold codes and every decision compares codes. The words are written here, in `text_of` and `short_text`, for
history, `why`, the journal's readers, hooks and the dashboard.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class ReasonCode(StrEnum):
    """Stored as text, so a code keeps its spelling for ever; a code of a newer version is read as it stands."""

    NONE = ""

    # It does not start, or waits.
    PAUSED = "paused"
    WINDOW_EXCEEDED = "window_exceeded"
    UNSCHEDULABLE = "unschedulable"
    BLACKOUT = "blackout"  # the detail is the calendar
    OVERLAP = "overlap"
    OVERLAP_ON_TIME = "overlap_on_time"  # the detail is the occurrence that would still have run
    EARLIER_WAITS = "earlier_waits"
    RETRY_WAITS = "retry_waits"  # the detail is "ID until INSTANT"
    QUEUE_FULL = "queue_full"
    GAVE_WAY = "gave_way"  # the detail is the newer occurrence
    POOL_FULL = "pool_full"
    NO_NODE = "no_node"  # the detail is what no node has
    IDEMPOTENT = "idempotent"
    MAX_REACHED = "max_reached"
    GROUP_FULL = "group_full"  # the detail is the group, with who holds it since when
    GROUP_RATE = "group_rate"  # the detail is the group, with when its rate allows the next start
    GROUP_LINE = "group_line"  # the detail is the group: others wait there, and come first
    CATCH_UP = "catch_up"
    CONDITION = "condition"  # the detail is the condition, with what was found
    NOT_MET = "not_met"  # the same, when it had waited as long as it may

    # It follows other jobs. The detail is the parent's occurrence, `by` the parent.
    WAITS_FOR = "waits_for"
    PARENT_FAILED = "parent_failed"
    PARENT_CANCELED = "parent_canceled"
    PARENT_SKIPPED = "parent_skipped"
    PARENT_MISSED = "parent_missed"
    PARENT_NEVER_RAN = "parent_never_ran"
    PARENT_TOO_LATE = "parent_too_late"

    # A task whose needs cannot be met any more. The detail is the need.
    NEED_FAILED = "need_failed"
    NEED_LEFT_OUT = "need_left_out"
    NEED_CANCELED = "need_canceled"
    NOTHING_FAILED = "nothing_failed"

    # It was due in a downtime.
    DOWN = "down"
    FOLDED = "folded"
    TOO_OLD = "too_old"
    TOO_MANY = "too_many"
    SUPERSEDED = "superseded"
    NOT_BEGUN = "not_begun"

    # It was ended from outside.
    PREEMPTED = "preempted"
    EXECUTION_TIMEOUT = "execution_timeout"
    CANCELED_FOR_NEXT = "canceled_for_next"
    PEER_FAILED = "peer_failed"
    OWNER_DIED = "owner_died"
    NEVER_STARTED = "never_started"
    STOPPING = "stopping"
    INTERRUPTED = "interrupted"
    CUT_OFF = "cut_off"
    TAKEN_OVER = "taken_over"
    CANCELED = "canceled"
    REPLACED = "replaced"
    JOB_REMOVED = "job_removed"
    TASK_REMOVED = "task_removed"

    # An attempt ended by itself; the values are those that the supervisor of attempts uses.
    RUN_FAILED = "run_failed"
    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    NOT_STARTED = "not_started"
    UNKNOWN_EXIT = "unknown_exit"
    MEMORY_LIMIT = "memory_limit"
    # The command ended well, and the check of its task found that nothing was done; the detail is what it found.
    NOTHING_DONE = "nothing_done"

    # Nobody saw its end, and the check of `on_crash` was asked; the detail is how the check ended.
    CHECK_DONE = "check_done"
    CHECK_UNDONE = "check_undone"
    CHECK_UNCLEAR = "check_unclear"

    # An occurrence began, and its job had nothing for it to do.
    NO_TASKS = "no_tasks"

    # A dead letter was taken off the list.
    REPLAYED = "replayed"
    DROPPED = "dropped"
    DROPPED_BY_LIMIT = "dropped_by_limit"

    # Events and notices.
    PAUSE_OVER = "pause_over"
    ZONE_CHANGED = "zone_changed"
    LATE = "late"
    SLOW = "slow"
    LONG = "long"  # the detail is for how long it runs, and what is asked for
    FREE_TEXT = "free_text"  # the words of a person or a program that no other code stands for

    @classmethod
    def _missing_(cls, value: object) -> ReasonCode | None:
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


class Reason(Struct, frozen=True, gc=False, array_like=True):
    """`detail` is what it speaks of or what was said: the id of the occurrence in the way, "exit code 3".

    `by` is who asked for it, or the task whose end it is.
    """

    code: ReasonCode = ReasonCode.NONE
    detail: str = ""
    by: str = ""

    def __bool__(self) -> bool:
        return self.code is not ReasonCode.NONE

    def __str__(self) -> str:
        return text_of(self)


# One object, because what is left out of a stored record is what is the default itself.
NO_REASON = Reason()


def free_text(words: str) -> Reason:
    """The words of a person or a program; no reason where there are none."""
    return Reason(ReasonCode.FREE_TEXT, words) if words else NO_REASON


def of_task(task: str, reason: Reason) -> Reason:
    """The reason of an occurrence that failed because this task ended for `reason`."""
    return Reason(reason.code, reason.detail, task)


# Where the detail is part of the sentence the words name it; else it follows them after a colon.
_DETAIL = "{detail}"
# A parent comes first in the sentence; where those of several are counted together, it has no name.
_BY, _SOME_PARENT = "{by}", "a job that it follows"
_WORDS = {
    ReasonCode.NONE: "",
    ReasonCode.PAUSED: "paused",
    ReasonCode.WINDOW_EXCEEDED: "window exceeded",
    ReasonCode.UNSCHEDULABLE: "no start inside its spread window satisfies the constraints",
    ReasonCode.BLACKOUT: "nothing starts during a blackout",
    ReasonCode.OVERLAP: "an earlier occurrence still runs",
    ReasonCode.OVERLAP_ON_TIME: "it waited for missed runs, and on time the one before it would still have run",
    ReasonCode.EARLIER_WAITS: "an earlier occurrence still waits",
    ReasonCode.RETRY_WAITS: "an earlier occurrence waits for its retry",
    ReasonCode.QUEUE_FULL: "the queue of the job is full",
    ReasonCode.GAVE_WAY: "a newer occurrence took its place",
    ReasonCode.POOL_FULL: "waits for a free place in the pool",
    ReasonCode.NO_NODE: "no node that works here can run it",
    ReasonCode.IDEMPOTENT: "its idempotency key has been executed already",
    ReasonCode.MAX_REACHED: "the limit of executions is reached",
    ReasonCode.GROUP_FULL: "group {detail}",
    ReasonCode.GROUP_RATE: "group {detail}",
    ReasonCode.GROUP_LINE: "others wait before it in group {detail}",
    ReasonCode.CATCH_UP: "missed runs are made up for one after the other, behind those of now",
    ReasonCode.CONDITION: "waits for {detail}",
    ReasonCode.NOT_MET: "it waited in vain for {detail}",
    ReasonCode.WAITS_FOR: "waits for {detail}",
    ReasonCode.PARENT_FAILED: "{by} failed",
    ReasonCode.PARENT_CANCELED: "{by} was canceled",
    ReasonCode.PARENT_SKIPPED: "{by} was skipped",
    ReasonCode.PARENT_MISSED: "{by} was missed",
    ReasonCode.PARENT_NEVER_RAN: "{by} has not run yet",
    ReasonCode.PARENT_TOO_LATE: "{by} had not completed within the window",
    ReasonCode.NEED_FAILED: "{detail} failed, which it needs",
    ReasonCode.NEED_LEFT_OUT: "{detail} did not run, which it needs",
    ReasonCode.NEED_CANCELED: "{detail} was canceled, which it needs",
    ReasonCode.NOTHING_FAILED: "nothing that it needs failed",
    ReasonCode.DOWN: "the scheduler was not running",
    ReasonCode.FOLDED: "folded into a later occurrence by the recovery strategy",
    ReasonCode.TOO_OLD: "beyond the bounds of the recovery strategy",
    ReasonCode.TOO_MANY: "only the newest {detail} missed occurrences of a job are made up for",
    ReasonCode.SUPERSEDED: "a later missed occurrence runs instead",
    ReasonCode.NOT_BEGUN: "the clock was set past it, and in truth the job began later",
    ReasonCode.PREEMPTED: "a new occurrence pre-empted the pending retry",
    ReasonCode.EXECUTION_TIMEOUT: "the execution timeout passed",
    ReasonCode.CANCELED_FOR_NEXT: "canceled to make room for the next occurrence",
    ReasonCode.PEER_FAILED: "another task failed first",
    ReasonCode.OWNER_DIED: "the scheduler died while it ran",
    ReasonCode.NEVER_STARTED: "the scheduler was lost before it started",
    ReasonCode.STOPPING: "the scheduler was stopped",
    ReasonCode.INTERRUPTED: "the scheduler was stopped while it ran",
    ReasonCode.CUT_OFF: "its machine was cut off from the store for so long that others may take it over",
    ReasonCode.TAKEN_OVER: "{detail} gave no sign of life for so long that another node took its work over",
    ReasonCode.CANCELED: "canceled",
    ReasonCode.REPLACED: "replaced by a new version",
    ReasonCode.JOB_REMOVED: "the job was removed",
    ReasonCode.TASK_REMOVED: "the task was removed",
    ReasonCode.RUN_FAILED: "a task failed",
    ReasonCode.EXIT_CODE: _DETAIL,
    ReasonCode.SIGNAL: _DETAIL,
    ReasonCode.EXCEPTION: _DETAIL,
    ReasonCode.TIMEOUT: _DETAIL,
    ReasonCode.NOT_STARTED: _DETAIL,
    ReasonCode.UNKNOWN_EXIT: _DETAIL,
    ReasonCode.MEMORY_LIMIT: _DETAIL,
    ReasonCode.NOTHING_DONE: "the command ended well, and its check failed",
    ReasonCode.CHECK_DONE: "nobody saw its end, and its check says that the work was done",
    ReasonCode.CHECK_UNDONE: "nobody saw its end, and its check says that the work was not done",
    ReasonCode.CHECK_UNCLEAR: "nobody saw its end, and its check gave no answer",
    ReasonCode.NO_TASKS: "its job has no task to run",
    ReasonCode.REPLAYED: "replayed",
    ReasonCode.DROPPED: "dropped",
    ReasonCode.DROPPED_BY_LIMIT: "dropped: too many dead letters, or too old",
    ReasonCode.PAUSE_OVER: "its pause is over",
    ReasonCode.ZONE_CHANGED: "the host is in another time zone",
    ReasonCode.LATE: "no run has completed in time",
    ReasonCode.SLOW: "it takes longer than usual",
    ReasonCode.LONG: "it runs for long",
    ReasonCode.FREE_TEXT: _DETAIL,
}
# How an attempt can fail for good: `by` is then the task, and its name comes first.
ENDS_OF_TASKS = frozenset(
    {
        ReasonCode.RUN_FAILED,
        ReasonCode.EXIT_CODE,
        ReasonCode.SIGNAL,
        ReasonCode.EXCEPTION,
        ReasonCode.TIMEOUT,
        ReasonCode.NOT_STARTED,
        ReasonCode.UNKNOWN_EXIT,
        ReasonCode.MEMORY_LIMIT,
        ReasonCode.NOTHING_DONE,
        ReasonCode.CHECK_UNDONE,
        ReasonCode.CHECK_UNCLEAR,
        ReasonCode.EXECUTION_TIMEOUT,
        ReasonCode.OWNER_DIED,
        ReasonCode.NEVER_STARTED,
        ReasonCode.INTERRUPTED,
        ReasonCode.CUT_OFF,
        ReasonCode.TAKEN_OVER,
        ReasonCode.FREE_TEXT,
    }
)


# The end of a job that it follows: `by` is that job, and the words say what became of it.
OF_PARENTS = frozenset(
    {
        ReasonCode.PARENT_FAILED,
        ReasonCode.PARENT_CANCELED,
        ReasonCode.PARENT_SKIPPED,
        ReasonCode.PARENT_MISSED,
        ReasonCode.PARENT_NEVER_RAN,
        ReasonCode.PARENT_TOO_LATE,
    }
)


def text_of(reason: Reason) -> str:
    """The reason in words: "paused by ann@desk (cli)", "main: exit code 3"; empty where there is none."""
    template = _template(reason.code)
    text = words_of(reason)
    if reason.code in OF_PARENTS:
        text = template.replace(_BY, reason.by or _SOME_PARENT)
        return f"{text}: {reason.detail}" if reason.detail else text
    is_of_task = reason.code in ENDS_OF_TASKS
    if reason.by and not is_of_task:
        text += f" by {reason.by}"
    if reason.detail and _DETAIL not in template:
        text += f": {reason.detail}"
    return f"{reason.by}: {text}" if reason.by and is_of_task else text


# Whose detail begins with the id of an occurrence: of use to programs and in logs, and noise to a person.
_WITH_ID = (
    ReasonCode.OVERLAP,
    ReasonCode.OVERLAP_ON_TIME,
    ReasonCode.RETRY_WAITS,
    ReasonCode.GAVE_WAY,
    ReasonCode.PREEMPTED,
    ReasonCode.REPLAYED,
)


def shown_text(reason: Reason) -> str:
    """The reason as a person reads it: without ids."""
    if reason.code not in _WITH_ID:
        return text_of(reason)
    _, _, rest = reason.detail.partition(" ")
    text = text_of(Reason(reason.code, "", reason.by))
    return f"{text} {rest}" if rest else text


def words_of(reason: Reason) -> str:
    """The words of its code alone, without whom or what it speaks of: the same for all that are counted together."""
    return _template(reason.code).replace(_BY, _SOME_PARENT).replace(_DETAIL, reason.detail)


def words_beyond(reason: Reason, error: str) -> str:
    """What a program said that the reason does not say already."""
    return "" if error == text_of(reason) else error


def short_text(reason: Reason) -> str:
    """For narrow columns: `main: exit code 1` as `exit 1`, and no end of a task with the task's name."""
    text = words_of(reason) if reason.code in ENDS_OF_TASKS else shown_text(reason)
    return text.replace("exit code ", "exit ")


def _template(code: ReasonCode) -> str:
    """A code of a newer version is its own words."""
    words = _WORDS.get(code)
    return code.replace("_", " ") if words is None else words


# What needs a person: troubles by code and severity, and those that only the scheduler itself can know.


class Severity(StrEnum):
    """`error`: something does not happen that should. `warning`: it will not, or nobody hears of it."""

    ERROR = "error"
    WARNING = "warning"


class TroubleCode(StrEnum):
    """Stored as text in the record of a node; a code of a newer version is read as it stands."""

    # Of the store and of whoever works on it.
    NO_SCHEDULER = "no_scheduler"
    NODE_SILENT = "node_silent"
    DISK_FULL = "disk_full"
    STORE_FULL = "store_full"
    STORE_NEARLY_FULL = "store_nearly_full"
    JOB_FILE_REJECTED = "job_file_rejected"
    RESTART_NEEDED = "restart_needed"
    UNAPPLIED_CHANGES = "unapplied_changes"
    METRICS_UNAVAILABLE = "metrics_unavailable"
    HEARTBEAT_FAILS = "heartbeat_fails"
    CHORE_FAILS = "chore_fails"
    SPANS_FAIL = "spans_fail"
    FAULT = "fault"

    # Of telling people.
    CHANNEL_FAILS = "channel_fails"
    NOTICES_UNDELIVERABLE = "notices_undeliverable"
    NOTICES_DROPPED = "notices_dropped"

    # Of jobs.
    JOB_FAILING = "job_failing"
    JOB_LATE = "job_late"
    JOB_NEVER_RUNS = "job_never_runs"
    NO_FUNCTION = "no_function"
    NO_NODE = "no_node"
    DEAD_LETTERS = "dead_letters"
    CALENDAR_MOVED = "calendar_moved"

    @classmethod
    def _missing_(cls, value: object) -> TroubleCode | None:
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


class NodeTrouble(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a scheduler knows of itself, in its record, so that other processes can tell it."""

    code: TroubleCode
    # What it speaks of, in words: the file and its first mistake, the address, the answer.
    detail: str = ""
    since_ms: int = 0
