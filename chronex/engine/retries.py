"""When a failed run is tried again."""

from __future__ import annotations

from chronex.engine.placement import Chance
from chronex.model.policies import CrashPolicy, RetryPolicy, retry_pause
from chronex.model.records import Attempt, Job
from chronex.model.states import AttemptState

_JITTER_STEPS = 1_000_000


def retry_at(policy: RetryPolicy, attempts: int, now_ms: int, chance: Chance) -> int | None:
    """The time of the next attempt after `attempts` failed ones; None when the policy has no more."""
    if policy.max is not None and attempts > policy.max:
        return None
    pause = retry_pause(policy, attempts)
    if policy.jitter:
        # Up to `jitter` of the pause, either way, so that peers which failed together do not return together.
        share = policy.jitter * (2 * chance.randrange(_JITTER_STEPS + 1) / _JITTER_STEPS - 1)
        pause = max(0, round(pause * (1 + share)))
    return now_ms + pause


def may_repeat(job: Job, attempt: Attempt) -> bool:
    """`on_crash = "fail"` wants no second try of what may have done its work; what never began has not."""
    is_unknown = attempt.state is AttemptState.CRASHED and attempt.started_ms is not None
    return not is_unknown or job.on_crash is CrashPolicy.RETRY
