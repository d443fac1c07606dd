"""May a due occurrence start? One row per policy and situation."""

from __future__ import annotations

import pytest

from chronex.engine.admit import MOST_QUEUED, Verdict, admit
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy

OCCURRENCE = Occurrence(job="j", nominal_ms=1000, due_ms=1000)
EARLIER = Occurrence(job="j", nominal_ms=500, due_ms=500)
P, V = OverlapPolicy, Verdict


def verdict(policy: OverlapPolicy, *, running: int, waiting: int, free: int) -> Verdict:
    job = Job(id="j", schedule="* * * * *", overlap=policy)
    answer = admit(job, OCCURRENCE, [EARLIER] * running, waiting, free, 1000, None)
    assert answer.reason or answer.verdict is Verdict.START
    return answer.verdict


@pytest.mark.parametrize(
    ("policy", "running", "waiting", "free", "expected"),
    [
        # nothing in the way
        *((policy, 0, 0, 1, V.START) for policy in P),
        # an earlier one runs
        (P.SKIP, 1, 0, 1, V.SKIP),
        (P.QUEUE, 1, 0, 1, V.QUEUE),
        (P.QUEUE_ONE, 1, 0, 1, V.QUEUE),
        (P.ALLOW, 1, 0, 1, V.START),
        (P.CANCEL_RUNNING, 1, 0, 1, V.CANCEL_OTHERS),
        # an earlier one runs and another waits
        (P.SKIP, 1, 1, 1, V.SKIP),
        (P.QUEUE, 1, 1, 1, V.QUEUE),
        (P.QUEUE_ONE, 1, 1, 1, V.SKIP),
        (P.ALLOW, 1, 1, 1, V.START),
        # only the pool is full
        *((policy, 0, 0, 0, V.QUEUE) for policy in P),
        # an earlier one waits for the pool
        (P.SKIP, 0, 1, 0, V.SKIP),
        (P.QUEUE_ONE, 0, 1, 0, V.SKIP),
        (P.QUEUE, 0, 1, 0, V.QUEUE),
        # no queue grows without end
        (P.QUEUE, 1, MOST_QUEUED, 0, V.SKIP),
        (P.ALLOW, 1, MOST_QUEUED, 0, V.SKIP),
        (P.CANCEL_RUNNING, 1, MOST_QUEUED, 0, V.SKIP),
    ],
)
def test_the_policy_answers(policy: OverlapPolicy, running: int, waiting: int, free: int, expected: Verdict) -> None:
    assert verdict(policy, running=running, waiting=waiting, free=free) is expected


@pytest.mark.parametrize(("now", "expected"), [(6000, V.START), (6001, V.SKIP)])
def test_the_end_of_the_window_is_allowed_and_nothing_later(now: int, expected: Verdict) -> None:
    job = Job(id="j", schedule="* * * * * {window:5s}")
    assert admit(job, OCCURRENCE, [], 0, 1, now, 5000).verdict is expected


@pytest.mark.parametrize("policy", P)
@pytest.mark.parametrize(
    ("strategy", "is_catch_up"),
    [
        (RecoveryStrategy.EXECUTE_ALL, True),
        (RecoveryStrategy.BOUNDED, True),
        (RecoveryStrategy.EXECUTE_LAST, False),
        (RecoveryStrategy.COMPRESSED, False),
    ],
)
def test_each_of_several_missed_runs_has_its_turn(
    policy: OverlapPolicy, strategy: RecoveryStrategy, is_catch_up: bool
) -> None:
    """Five hours of an hourly execute_all are five runs, not one and four that were skipped because of it."""
    recovery = RecoveryPolicy(strategy, max_count=5 if strategy is RecoveryStrategy.BOUNDED else None)
    job = Job(id="j", schedule="* * * * *", overlap=policy, recovery=recovery)
    caught_up = Occurrence(job="j", nominal_ms=1000, due_ms=1000, recovery=True)
    answer = admit(job, caught_up, [EARLIER], MOST_QUEUED, 0, 1000, None)
    assert (answer.verdict is Verdict.QUEUE) is is_catch_up


def test_the_reason_of_an_overlap_names_the_run_in_the_way() -> None:
    job = Job(id="j", schedule="* * * * *")
    assert EARLIER.id in admit(job, OCCURRENCE, [EARLIER], 0, 1, 1000, None).reason.detail
