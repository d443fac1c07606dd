"""May a due occurrence start now? A pure answer from what the store says of its job."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from chronex.engine.plan import CATCHING_UP
from chronex.model.definition import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode

# A job that takes longer than its interval would otherwise queue without end.
MOST_QUEUED = 100


class Verdict(Enum):
    START = "start"
    QUEUE = "queue"
    SKIP = "skip"
    CANCEL_OTHERS = "cancel others"  # is queued, and the running ones are canceled


class Admission(NamedTuple):
    verdict: Verdict
    reason: Reason = NO_REASON


_DROPPING = (OverlapPolicy.SKIP, OverlapPolicy.QUEUE_ONE)
START = Admission(Verdict.START)


def is_held(job: Job, occurrence: Occurrence, now_ms: int) -> bool:
    """A pause holds what the schedule asks for, now or when it was due; what a person asks for runs all the same."""
    return not occurrence.manual and (
        job.progress.is_paused_at(now_ms) or job.progress.was_paused_at(occurrence.due_ms)
    )


def admit(
    job: Job, occurrence: Occurrence, running: Sequence[Occurrence], waiting: int, free_places: int, now_ms: int,
    window_ms: int | None,
) -> Admission:  # fmt: skip
    """`running` are the job's other occurrences that run; `waiting` counts its queued ones that come before.

    A strategy that asks for several missed runs asks for each of them: they come one after the other. Else five
    hours of an hourly `execute_all` would be one run and four that were skipped because of it.
    """
    if window_ms is not None and now_ms > occurrence.nominal_ms + window_ms and not occurrence.manual:
        return Admission(Verdict.SKIP, Reason(ReasonCode.WINDOW_EXCEEDED))
    if job.overlap is OverlapPolicy.ALLOW:
        blocker = NO_REASON
    elif running:
        blocker = Reason(ReasonCode.OVERLAP, running[0].id)
    else:
        blocker = Reason(ReasonCode.EARLIER_WAITS) if waiting else NO_REASON
    is_owed = occurrence.recovery and job.recovery.strategy in CATCHING_UP
    if is_owed and (blocker or free_places <= 0):
        return Admission(Verdict.QUEUE, blocker or Reason(ReasonCode.POOL_FULL))
    if blocker:
        # Whoever asks for a replay wants it done, not dropped: it waits for its turn.
        policy = OverlapPolicy.QUEUE if occurrence.replay_of and job.overlap in _DROPPING else job.overlap
        return _overlapping(policy, blocker, is_running=bool(running), waiting=waiting)
    if free_places <= 0:
        return _queue(Reason(ReasonCode.POOL_FULL), waiting)
    return START


def _overlapping(policy: OverlapPolicy, blocker: Reason, *, is_running: bool, waiting: int) -> Admission:
    match policy:
        case OverlapPolicy.SKIP:
            return Admission(Verdict.SKIP, blocker)
        case OverlapPolicy.QUEUE_ONE if waiting:
            return Admission(Verdict.SKIP, Reason(ReasonCode.EARLIER_WAITS))
        case OverlapPolicy.CANCEL_RUNNING if is_running and waiting < MOST_QUEUED:
            return Admission(Verdict.CANCEL_OTHERS, blocker)
        case _:
            return _queue(blocker, waiting)


def _queue(reason: Reason, waiting: int) -> Admission:
    if waiting >= MOST_QUEUED:
        return Admission(Verdict.SKIP, Reason(ReasonCode.QUEUE_FULL))
    return Admission(Verdict.QUEUE, reason)
