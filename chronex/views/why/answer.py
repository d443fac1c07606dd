"""What `why` answers with: one cause, one sentence, and the links of the chain that leads to it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from chronex.model.reasons import ReasonCode
from chronex.timing.zones import Zone
from chronex.views.wording import stamp

__all__ = ["NO_NAMES", "Cause", "Link", "Source", "WhyAnswer", "cause_of", "stamp"]


class Cause(StrEnum):
    """What `why` answers with, one word for programs. The first group is of records, the second of schedules."""

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
    BLACKOUT = "blackout"
    OVERLAP = "overlap"
    EARLIER_WAITS = "earlier_waits"
    RETRY_WAITS = "retry_waits"
    QUEUE_FULL = "queue_full"
    GAVE_WAY = "gave_way"
    POOL_FULL = "pool_full"
    NO_NODE = "no_node"
    DOWN = "down"
    FOLDED = "folded"
    TOO_OLD = "too_old"
    TOO_MANY = "too_many"
    SUPERSEDED = "superseded"
    PREEMPTED = "preempted"
    TIMEOUT = "timeout"
    MADE_ROOM = "made_room"
    STOPPED = "stopped"
    WAITS_FOR = "waits_for"
    PARENT = "parent"
    IDEMPOTENT = "idempotent"
    MAX_REACHED = "max_reached"
    JOB_REMOVED = "job_removed"

    NOT_MATCHED = "not_matched"
    EXCLUDED = "excluded"
    MOVED = "moved"
    ON_EACH = "on_each"
    BEFORE_FROM = "before_from"
    AFTER_UNTIL = "after_until"
    NOT_YET_APPLIED = "not_yet_applied"
    REPLACED = "replaced"
    DISABLED = "disabled"
    UNDECIDED = "undecided"
    FORGOTTEN = "forgotten"
    WILL_RUN = "will_run"


_CAUSES = {
    ReasonCode.PAUSED: Cause.PAUSED,
    ReasonCode.WINDOW_EXCEEDED: Cause.WINDOW_EXCEEDED,
    ReasonCode.UNSCHEDULABLE: Cause.UNSCHEDULABLE,
    ReasonCode.BLACKOUT: Cause.BLACKOUT,
    ReasonCode.OVERLAP: Cause.OVERLAP,
    ReasonCode.EARLIER_WAITS: Cause.EARLIER_WAITS,
    ReasonCode.RETRY_WAITS: Cause.RETRY_WAITS,
    ReasonCode.QUEUE_FULL: Cause.QUEUE_FULL,
    ReasonCode.GAVE_WAY: Cause.GAVE_WAY,
    ReasonCode.POOL_FULL: Cause.POOL_FULL,
    ReasonCode.NO_NODE: Cause.NO_NODE,
    ReasonCode.WAITS_FOR: Cause.WAITS_FOR,
    ReasonCode.PARENT_FAILED: Cause.PARENT,
    ReasonCode.PARENT_CANCELED: Cause.PARENT,
    ReasonCode.PARENT_SKIPPED: Cause.PARENT,
    ReasonCode.PARENT_MISSED: Cause.PARENT,
    ReasonCode.PARENT_NEVER_RAN: Cause.PARENT,
    ReasonCode.PARENT_TOO_LATE: Cause.PARENT,
    ReasonCode.DOWN: Cause.DOWN,
    ReasonCode.FOLDED: Cause.FOLDED,
    ReasonCode.TOO_OLD: Cause.TOO_OLD,
    ReasonCode.TOO_MANY: Cause.TOO_MANY,
    ReasonCode.SUPERSEDED: Cause.SUPERSEDED,
    ReasonCode.NOT_BEGUN: Cause.NOT_YET_APPLIED,
    ReasonCode.PREEMPTED: Cause.PREEMPTED,
    ReasonCode.EXECUTION_TIMEOUT: Cause.TIMEOUT,
    ReasonCode.CANCELED_FOR_NEXT: Cause.MADE_ROOM,
    ReasonCode.STOPPING: Cause.STOPPED,
    ReasonCode.IDEMPOTENT: Cause.IDEMPOTENT,
    ReasonCode.MAX_REACHED: Cause.MAX_REACHED,
    ReasonCode.REPLACED: Cause.REPLACED,
    ReasonCode.JOB_REMOVED: Cause.JOB_REMOVED,
}


def cause_of(code: ReasonCode) -> Cause | None:
    """The cause that a recorded reason stands for; None where its state says all there is ("exit code 3")."""
    return _CAUSES.get(code)


NO_NAMES: Mapping[str, Any] = MappingProxyType({})


class Source(StrEnum):
    """Where a fact was found: what was written down, or what the schedule and the policies say."""

    RECORD = "record"
    JOURNAL = "journal"
    SCHEDULE = "schedule"
    POLICY = "policy"


class Link(NamedTuple):
    """One fact of the chain. `at_ms` is when it came to be, None for what always holds."""

    fact: str
    at_ms: int | None
    source: Source


class WhyAnswer(NamedTuple):
    """`names` has the data of the chain for programs: the run that blocked it, a version, an outage."""

    job: str
    instant_ms: int
    zone: Zone
    cause: Cause
    summary: str
    links: tuple[Link, ...] = ()
    occurrence: str = ""
    names: Mapping[str, Any] = NO_NAMES
    previous_ms: int | None = None
    next_ms: int | None = None
