"""Decide whether a due occurrence may start now: a pure function of the job and of its other occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.group_limits import CONDITIONS
from chronex.engine.plan import CATCHING_UP, blackout_at
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Found, OverlapPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.text.instants import rfc3339

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


DROPPING = (OverlapPolicy.SKIP, OverlapPolicy.QUEUE_ONE)
START = Admission(Verdict.START)


def is_held(job: Job, occurrence: Occurrence, now_ms: int) -> bool:
    """A pause, now or at its due time, holds an occurrence of the schedule; a triggered one runs all the same."""
    return not occurrence.manual and (
        job.progress.is_paused_at(now_ms) or job.progress.was_paused_at(occurrence.due_ms)
    )


def barred_now(job: Job, occurrence: Occurrence, now_ms: int) -> Reason | None:
    """A blackout, now or at its due time, lets nothing start that no person asked for."""
    if occurrence.manual:
        return None
    return blackout_at(job, now_ms) or blackout_at(job, occurrence.due_ms)


def comes_now(occurrence: Occurrence) -> bool:
    """It is due, or its parents have just let it go, which is the same; it has not waited for its turn yet."""
    return occurrence.state is OccurrenceState.PENDING or occurrence.released_ms is not None


def gives_way(job: Job, waiting: Occurrence, newcomer: Occurrence) -> bool:
    """Under `cancel_running` the newest wins: what waits gives way to it, as what runs is canceled for it.

    Otherwise a job that once waited for the pool would go on that far behind for ever. What a person asked for and
    what a recovery strategy runs one by one give way to nothing, and take the place of nothing.
    """
    if job.overlap is not OverlapPolicy.CANCEL_RUNNING or not comes_now(newcomer):
        return False
    return not any(one.manual or one.replay_of or _is_catch_up(job, one) for one in (waiting, newcomer))


def _is_catch_up(job: Job, occurrence: Occurrence) -> bool:
    """It is one of several missed instants, each of which has its turn."""
    return occurrence.recovery and job.recovery.strategy in CATCHING_UP


def admit(
    job: Job, occurrence: Occurrence, running: Sequence[Occurrence], waiting: int, free_slots: int, now_ms: int,
    window_ms: int | None, retry_ms: int | None = None,
) -> Admission:  # fmt: skip
    """`running` are the job's other occurrences that run; `waiting` counts its queued ones that come before.

    `retry_ms` is when the first of `running` is tried again, where it only waits for that: it counts as running.

    A recovery strategy that runs several missed instants runs each of them, one after the other. Otherwise five hours
    of an hourly `execute_all` would be one run and four that were skipped because of it.
    """
    if window_ms is not None and now_ms > occurrence.nominal_ms + window_ms and not occurrence.manual:
        return Admission(Verdict.SKIP, Reason(ReasonCode.WINDOW_EXCEEDED))
    blocker = _blocker(job.overlap, running, waiting, retry_ms)
    if _is_catch_up(job, occurrence) and (blocker is not None or free_slots <= 0):
        return Admission(Verdict.QUEUE, blocker or Reason(ReasonCode.POOL_FULL))
    if blocker is not None:
        # A replay was requested to be done, so it waits for its turn instead of being skipped.
        policy = OverlapPolicy.QUEUE if occurrence.replay_of and job.overlap in DROPPING else job.overlap
        if policy is OverlapPolicy.CANCEL_RUNNING and occurrence.manual and retry_ms is not None:
            policy = OverlapPolicy.QUEUE  # who asks for a run does not ask to give up the retry of another one
        return _overlapping(policy, blocker, is_running=bool(running), waiting=waiting)
    if free_slots <= 0:
        return queue(Reason(ReasonCode.POOL_FULL), waiting)
    return START


def window_over_ms(occurrence: Occurrence, window_ms: int | None) -> int | None:
    """The first moment behind its window, at which one that waits is decided: whether somebody looks at it then must
    not decide what becomes of the next one. None where it has none, or a person asked for it."""
    return None if window_ms is None or occurrence.manual else occurrence.nominal_ms + window_ms + 1


def patient(job: Job) -> Job:
    """The job while it makes up for what it missed: no instant of now is dropped for that, each has its turn."""
    return replace(job, overlap=OverlapPolicy.QUEUE) if job.overlap in DROPPING else job


def overlap_on_time(occurrence: Occurrence, before: Occurrence | None) -> Admission:
    """The turn of one that waited for the past of its job: it is skipped only where it would have been without that.

    `before` is the one that ran before it. Had that started when it was due, would it have ended by now? By their
    instants it is the earlier one; a spread may have put it behind this one, and it would not have begun yet then.
    """
    if before is None or before.started_ms is None or before.finished_ms is None or before.due_ms > occurrence.due_ms:
        return START
    took_ms = before.finished_ms - before.started_ms
    is_over = before.due_ms + took_ms <= occurrence.due_ms
    return START if is_over else Admission(Verdict.SKIP, Reason(ReasonCode.OVERLAP_ON_TIME, before.id))


def wait_in_line(job: Job, occurrence: Occurrence, reason: Reason, waiting: int) -> Admission:
    """It could start but for a group, the pool, or the pace of catch-up."""
    return Admission(Verdict.QUEUE, reason) if _is_catch_up(job, occurrence) else queue(reason, waiting)


def _blocker(
    policy: OverlapPolicy, running: Sequence[Occurrence], waiting: int, retry_ms: int | None
) -> Reason | None:
    """The earlier occurrence of the job that this one must not overlap; None where nothing is in its way."""
    if policy is OverlapPolicy.ALLOW:
        return None
    if running and retry_ms is not None:
        return Reason(ReasonCode.RETRY_WAITS, f"{running[0].id} until {rfc3339(retry_ms)}")
    if running:
        return Reason(ReasonCode.OVERLAP, running[0].id)
    return Reason(ReasonCode.EARLIER_WAITS) if waiting else None


def _overlapping(policy: OverlapPolicy, blocker: Reason, *, is_running: bool, waiting: int) -> Admission:
    match policy:
        case OverlapPolicy.SKIP:
            return Admission(Verdict.SKIP, blocker)
        case OverlapPolicy.QUEUE_ONE if waiting:
            return Admission(Verdict.SKIP, Reason(ReasonCode.EARLIER_WAITS))
        case OverlapPolicy.CANCEL_RUNNING if is_running and waiting < MOST_QUEUED:
            return Admission(Verdict.CANCEL_OTHERS, blocker)
        case _:
            return queue(blocker, waiting)


def queue(reason: Reason, waiting: int) -> Admission:
    if waiting >= MOST_QUEUED:
        return Admission(Verdict.SKIP, Reason(ReasonCode.QUEUE_FULL))
    return Admission(Verdict.QUEUE, reason)


# -- conditions: a daemon looks, outside of every transaction, and what it found enters here as a value --------

# What was found counts for so long; then it is looked at again.
FRESH_MS = 10_000


def is_met(job: Job, occurrence: Occurrence, found: Found | None, now_ms: int) -> bool:
    """One that has left the line of conditions and stands in another has had its answer."""
    if not job.wait_for or (occurrence.lines and CONDITIONS not in occurrence.lines):
        return True
    return found is not None and found.holds and abs(now_ms - found.at_ms) <= FRESH_MS


def until_met(job: Job, occurrence: Occurrence, found: Found | None, now_ms: int) -> Admission:
    """It waits, or is skipped with what was lacking when its time was over."""
    lacking = found.lacking if found is not None and found.lacking else ", ".join(job.wait_for)
    if now_ms >= gives_up_at(job, occurrence):
        return Admission(Verdict.SKIP, Reason(ReasonCode.NOT_MET, lacking))
    return Admission(Verdict.QUEUE, Reason(ReasonCode.CONDITION, lacking))


def gives_up_at(job: Job, occurrence: Occurrence) -> int:
    """Counted from when it could first have started: a missed one from when it was found."""
    return max(occurrence.due_ms, occurrence.created_ms) + job.wait_at_most_ms
