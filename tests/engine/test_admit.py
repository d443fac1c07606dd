"""May a due occurrence start? One row per policy and situation."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.admit import MOST_QUEUED, Verdict, admit, gives_way, overlap_on_time
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy
from chronex.model.states import OccurrenceState

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


@pytest.mark.parametrize(
    ("policy", "waiting", "newcomer", "expected"),
    [
        (P.CANCEL_RUNNING, {}, {}, True),
        *((policy, {}, {}, False) for policy in P if policy is not P.CANCEL_RUNNING),
        (P.CANCEL_RUNNING, {}, {"state": OccurrenceState.QUEUED}, False),  # it has come long ago, and has its turn
        # who asks for a run has it, and takes it from nobody
        (P.CANCEL_RUNNING, {"manual": True}, {}, False),
        (P.CANCEL_RUNNING, {}, {"manual": True}, False),
        (P.CANCEL_RUNNING, {"replay_of": "occ_1"}, {}, False),
        # of several missed ones each has its turn
        (P.CANCEL_RUNNING, {"recovery": True}, {}, False),
        (P.CANCEL_RUNNING, {}, {"recovery": True}, False),
    ],
)
def test_what_waits_gives_way_to_the_newest(
    policy: OverlapPolicy, waiting: dict[str, Any], newcomer: dict[str, Any], expected: bool
) -> None:
    job = Job(id="j", schedule="* * * * *", overlap=policy, recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL))
    old = Occurrence(job="j", nominal_ms=500, due_ms=500, **{"state": OccurrenceState.QUEUED, **waiting})
    assert gives_way(job, old, replace(OCCURRENCE, **newcomer)) is expected


@pytest.mark.parametrize(
    ("due", "took", "expected"),
    [
        (500, 500, V.START),  # it would have ended by then
        (500, 501, V.SKIP),
        (1000, 1, V.SKIP),  # both at one moment
        # A spread had put the later one before this: on time it would not have begun yet.
        (1001, 5000, V.START),
        (500, None, V.START),  # it never ran
    ],
)
def test_what_waited_for_the_past_is_skipped_only_where_it_would_have_been_on_time(
    due: int, took: int | None, expected: Verdict
) -> None:
    """`due` is that of the one before it, which ran for `took` some time later."""
    ran = {} if took is None else {"started_ms": 9000, "finished_ms": 9000 + took}
    assert overlap_on_time(OCCURRENCE, replace(EARLIER, due_ms=due, **ran)).verdict is expected
