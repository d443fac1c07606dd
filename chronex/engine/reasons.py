"""Why an occurrence ended as it did, or waits: the words that history, `why` and the journal share."""

from __future__ import annotations

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


def paused_by(who: str) -> str:
    return f"{PAUSED} by {who}" if who else PAUSED
