"""When a failed run is tried again."""

from __future__ import annotations

from random import Random

import pytest

from chronex.engine.lifecycle import retry_at
from chronex.model.job import Job, Task
from chronex.model.policies import FailureStrategy, RetryPolicy


@pytest.mark.parametrize(
    ("policy", "pauses"),
    [
        (RetryPolicy(max=0), []),
        (RetryPolicy(max=3, interval_ms=1000), [1000, 1000, 1000]),
        (RetryPolicy(max=3, interval_ms=60_000, backoff=2.0), [60_000, 120_000, 240_000]),
        (RetryPolicy(max=4, interval_ms=1000, backoff=10.0, max_interval_ms=5000), [1000, 5000, 5000, 5000]),
    ],
)
def test_pauses_grow_to_their_cap_and_end(policy: RetryPolicy, pauses: list[int]) -> None:
    found = [retry_at(policy, attempts, 0, Random(1)) for attempts in range(1, len(pauses) + 2)]
    assert found == [*pauses, None]


def test_without_a_maximum_there_is_always_another_attempt() -> None:
    policy = RetryPolicy(max=None, interval_ms=1000, backoff=2.0)
    late = retry_at(policy, 10_000, 0, Random(1))
    assert late is not None
    assert late <= 10 * 366 * 86_400_000


def test_jitter_stays_within_its_share() -> None:
    policy = RetryPolicy(max=None, interval_ms=10_000, jitter=0.1)
    chance = Random(1)
    pauses = [retry_at(policy, 1, 0, chance) for _ in range(500)]
    assert all(pause is not None and 9_000 <= pause <= 11_000 for pause in pauses)
    assert len(set(pauses)) > 400


RETRYING = FailureStrategy.RETRY_ON_FAILURE
WHICH = [
    ("the job's", Job(id="j", schedule="@daily", retry=RetryPolicy(max=2)), Task(name="t"), 2),
    ("its own", Job(id="j", schedule="@daily", retry=RetryPolicy(max=2)), Task(name="t", retry=RetryPolicy(max=5)), 5),
    ("none", Job(id="j", schedule="@daily"), Task(name="t"), 0),
    ("none, to be retried", Job(id="j", schedule="@daily", failure=RETRYING), Task(name="t"), 3),
    ("none, this one to be retried", Job(id="j", schedule="@daily"), Task(name="t", on_failure=RETRYING), 3),
    ("its own, to be retried", Job(id="j", schedule="@daily", failure=RETRYING), Task(name="t", retry=RetryPolicy(max=1)), 1),
]  # fmt: skip


@pytest.mark.parametrize(("job", "task", "most"), [case[1:] for case in WHICH], ids=[case[0] for case in WHICH])
def test_which_policy_holds(job: Job, task: Task, most: int) -> None:
    assert job.retry_for(task).max == most
