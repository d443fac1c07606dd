"""When a run that failed is tried again, and what is known of an attempt that crashed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chronex.engine.plan import Chance
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.policies import SHORTEST_PAUSE_MS, CrashPolicy, OverlapPolicy, RetryPolicy, retry_pause
from chronex.model.reasons import ReasonCode
from chronex.model.states import AttemptState, RunState
from chronex.storage.records import Reading


def retry_of(runs: Iterable[Run]) -> int | None:
    """When the next of these runs is tried again, where they only wait for that; None where one of them runs."""
    runs = list(runs)
    if any(run.state in (RunState.CLAIMED, RunState.RUNNING) for run in runs):
        return None
    return min((run.next_attempt_ms or 0 for run in runs if run.state is RunState.RETRY), default=None)


def waiting_first(reading: Reading, running: Iterable[Occurrence]) -> tuple[list[Occurrence], int | None]:
    """Those that only wait for a retry come first, and when the first of all is tried again."""
    known = [(retry_of(reading.runs(one.job, one.nominal_ms)), one) for one in running]
    known.sort(key=lambda pair: pair[0] is None)
    return [one for _, one in known], known[0][0] if known else None


class RetryWait(NamedTuple):
    """An occurrence that waits for its retry: what is due before `skips_until_ms` is skipped for its sake."""

    occurrence: Occurrence
    retry_ms: int
    skips_until_ms: int


def retry_wait(reading: Reading, job: Job, now_ms: int) -> RetryWait | None:
    """None where nothing is skipped for one: with `newest_wins` the next of the schedule takes its place.

    Where the time of the retry has passed, it comes with the next tick, before what is due then and was missed.
    Behind one that makes up for a missed instant the next one waits, and is skipped at its turn where that one, on
    time, would still have run when it was due: it ends with its retry at the earliest.
    """
    if job.overlap is not OverlapPolicy.SKIP or any(job.retry_for(task).newest_wins for task in job.tasks):
        return None
    running, retry_ms = waiting_first(reading, reading.active(job.id))
    if retry_ms is None:
        return None
    first = running[0]
    if not first.recovery and not first.behind:
        return RetryWait(first, retry_ms, max(retry_ms, now_ms + 1))
    if first.started_ms is None or any(one.recovery for one in reading.queued(job.id)):
        return None  # how long the last of them takes nobody knows
    return RetryWait(first, retry_ms, first.due_ms + max(retry_ms, now_ms) - first.started_ms)


_JITTER_STEPS = 1_000_000


def retry_at(
    policy: RetryPolicy, attempts: int, now_ms: int, chance: Chance, shortest_ms: int = SHORTEST_PAUSE_MS
) -> int | None:
    """The time of the next attempt after `attempts` failed ones; None when the policy has no more."""
    if policy.max is not None and attempts > policy.max:
        return None
    pause = retry_pause(policy, attempts, shortest_ms)
    if policy.jitter:
        # Up to `jitter` of the pause, either way, so that peers which failed together do not return together.
        share = policy.jitter * (2 * chance.randrange(_JITTER_STEPS + 1) / _JITTER_STEPS - 1)
        pause = max(shortest_ms, round(pause * (1 + share)))
    return now_ms + pause


def has_begun(attempt: Attempt) -> bool:
    """Its command may have run: its start is on record, and no keeper says that its barrier stayed shut."""
    return attempt.started_ms is not None and attempt.reason.code is not ReasonCode.NEVER_STARTED


def may_repeat(job: Job, attempt: Attempt) -> bool:
    """`on_crash = "fail"` wants no second try of what may have done its work; what never began has not.

    Nor has what its check has looked for in vain.
    """
    is_unknown = attempt.state is AttemptState.CRASHED and has_begun(attempt)
    is_undone = attempt.reason.code is ReasonCode.CHECK_UNDONE
    return not is_unknown or is_undone or job.on_crash is CrashPolicy.RETRY
