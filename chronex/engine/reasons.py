"""Why an occurrence ended as it did, or waits: the words that history, `why` and the journal share.

A reason is one of these texts, or one of them, a colon and what it speaks of ("…still runs: occ_…"), or one of them,
"by" and who asked for it. `cause_of` leads back from the words to the cause, which is what programs compare.
"""

from __future__ import annotations

from enum import StrEnum

PAUSED = "paused"
WINDOW_EXCEEDED = "window exceeded"
UNSCHEDULABLE = "no start inside its spread window satisfies the constraints"
OVERLAP = "an earlier occurrence still runs"
EARLIER_WAITS = "an earlier occurrence still waits"
QUEUE_FULL = "the queue of the job is full"
POOL_FULL = "waits for a free place in the pool"
DOWN = "the scheduler was not running"
FOLDED = "folded into a later occurrence by the recovery strategy"
TOO_OLD = "beyond the bounds of the recovery strategy"
TOO_MANY = "only the newest 1000 missed occurrences of a job are made up for"
SUPERSEDED = "a later missed occurrence runs instead"
PREEMPTED = "a new occurrence pre-empted the pending retry"
RUN_FAILED = "a task failed"
EXECUTION_TIMEOUT = "the execution timeout passed"
CANCELED_FOR_NEXT = "canceled to make room for the next occurrence"
PEER_FAILED = "another task failed first"
OWNER_DIED = "the scheduler died while it ran"
NEVER_STARTED = "the scheduler died before it started"
IDEMPOTENT = "its idempotency key has been executed already"
STOPPING = "the scheduler was stopped"
MAX_REACHED = "the limit of executions is reached"
PAUSE_OVER = "its pause is over"
CANCELED_BY = "canceled by"
REPLAYED = "replayed"
DROPPED = "dropped"
REPLACED = "replaced by a new version"
JOB_REMOVED = "the job was removed"


class Cause(StrEnum):
    """What `why` answers with, one word for programs. The first group is told by records, the second by schedules."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    STALE = "stale"
    RUNNING = "running"
    QUEUED = "queued"
    PENDING = "pending"
    SKIPPED = "skipped"
    PAUSED = "paused"
    WINDOW_EXCEEDED = "window_exceeded"
    UNSCHEDULABLE = "unschedulable"
    OVERLAP = "overlap"
    EARLIER_WAITS = "earlier_waits"
    QUEUE_FULL = "queue_full"
    POOL_FULL = "pool_full"
    DOWN = "down"
    FOLDED = "folded"
    TOO_OLD = "too_old"
    TOO_MANY = "too_many"
    SUPERSEDED = "superseded"
    PREEMPTED = "preempted"
    TIMEOUT = "timeout"
    MADE_ROOM = "made_room"
    STOPPED = "stopped"
    IDEMPOTENT = "idempotent"
    MAX_REACHED = "max_reached"
    JOB_REMOVED = "job_removed"

    NOT_MATCHED = "not_matched"
    BEFORE_FROM = "before_from"
    AFTER_UNTIL = "after_until"
    NOT_YET_APPLIED = "not_yet_applied"
    REPLACED = "replaced"
    DISABLED = "disabled"
    UNDECIDED = "undecided"
    FORGOTTEN = "forgotten"
    WILL_RUN = "will_run"


_causes = {
    PAUSED: Cause.PAUSED,
    WINDOW_EXCEEDED: Cause.WINDOW_EXCEEDED,
    UNSCHEDULABLE: Cause.UNSCHEDULABLE,
    OVERLAP: Cause.OVERLAP,
    EARLIER_WAITS: Cause.EARLIER_WAITS,
    QUEUE_FULL: Cause.QUEUE_FULL,
    POOL_FULL: Cause.POOL_FULL,
    DOWN: Cause.DOWN,
    FOLDED: Cause.FOLDED,
    TOO_OLD: Cause.TOO_OLD,
    TOO_MANY: Cause.TOO_MANY,
    SUPERSEDED: Cause.SUPERSEDED,
    PREEMPTED: Cause.PREEMPTED,
    EXECUTION_TIMEOUT: Cause.TIMEOUT,
    CANCELED_FOR_NEXT: Cause.MADE_ROOM,
    STOPPING: Cause.STOPPED,
    IDEMPOTENT: Cause.IDEMPOTENT,
    MAX_REACHED: Cause.MAX_REACHED,
    REPLACED: Cause.REPLACED,
    JOB_REMOVED: Cause.JOB_REMOVED,
}


def cause_of(reason: str) -> Cause | None:
    """The cause that a recorded reason speaks of; None for words of a command's own ("exit code 3")."""
    for words, cause in _causes.items():
        if reason == words or reason.startswith((f"{words}:", f"{words} by ")):
            return cause
    return None


def detail_of(reason: str) -> str:
    """What follows the words: the id of the occurrence in the way, or who paused the job."""
    for words in _causes:
        for joint in (": ", " by "):
            if reason.startswith(words + joint):
                return reason[len(words) + len(joint) :]
    return ""


def paused_by(who: str) -> str:
    return f"{PAUSED} by {who}" if who else PAUSED
