"""When a failed run is tried again."""

from __future__ import annotations

from random import Random

import pytest

from chronex.engine.retries import retry_at
from chronex.model.job import Job, Task
from chronex.model.policies import FailureStrategy, RetryPolicy
from tests.kit.machine import FIRST, SteppedEngine

HOUR = 3_600_000
# What a policy means that names only its maximum and these; without jitter, so that it can be written out.
PAUSES = {
    "none": (RetryPolicy(max=0), []),
    "only a number": (RetryPolicy(max=6, jitter=0), [30_000, 60_000, 120_000, 240_000, 480_000, 600_000]),
    "constant": (RetryPolicy(max=3, interval_ms=5_000, backoff=1, jitter=0), [5_000, 5_000, 5_000]),
    "its own factor": (RetryPolicy(max=3, interval_ms=60_000, backoff=3, jitter=0), [60_000, 180_000, 540_000]),
    "its own cap": (RetryPolicy(max=3, interval_ms=1000, max_interval_ms=5000, backoff=10, jitter=0), [1000, 5000, 5000]),
    "an interval beyond the usual cap": (RetryPolicy(max=2, interval_ms=HOUR, jitter=0), [HOUR, HOUR]),
    "a cap below the interval": (RetryPolicy(max=2, interval_ms=HOUR, max_interval_ms=5_000, jitter=0), [5_000, 5_000]),
    "nothing": (RetryPolicy(max=3, interval_ms=0, backoff=1, jitter=0), [1000, 1000, 1000]),
    "nothing, and grows": (RetryPolicy(max=3, interval_ms=0, jitter=0), [1000, 2000, 4000]),
    "short, and grows": (RetryPolicy(max=4, interval_ms=400, jitter=0), [1000, 2000, 4000, 8000]),
    "a cap of nothing": (RetryPolicy(max=2, interval_ms=HOUR, max_interval_ms=1, jitter=0), [1000, 1000]),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "pauses"), PAUSES.values(), ids=PAUSES)
def test_pauses_grow_to_their_cap_and_end(policy: RetryPolicy, pauses: list[int]) -> None:
    found = [retry_at(policy, attempts, 0, Random(1)) for attempts in range(1, len(pauses) + 2)]
    assert found == [*pauses, None]


def test_without_a_maximum_there_is_always_another_attempt() -> None:
    policy = RetryPolicy(max=None, interval_ms=1000, backoff=2.0)
    late = retry_at(policy, 10_000, 0, Random(1))
    assert late is not None
    assert late <= 10 * 366 * 86_400_000


def test_jitter_stays_within_its_share() -> None:
    policy = RetryPolicy(max=None, interval_ms=10_000)
    chance = Random(1)
    pauses = [retry_at(policy, 1, 0, chance) for _ in range(500)]
    assert all(pause is not None and 9_000 <= pause <= 11_000 for pause in pauses)
    assert len(set(pauses)) > 400


@pytest.mark.parametrize("jitter", [0.1, 1.0])
def test_jitter_never_goes_below_the_shortest_pause(jitter: float) -> None:
    chance = Random(1)
    policy = RetryPolicy(max=None, interval_ms=0, jitter=jitter)
    pauses = [retry_at(policy, 1, 0, chance) or 0 for _ in range(500)]
    assert min(pauses) == 1_000 < max(pauses)


def test_a_failing_run_is_tried_once_a_second_at_most() -> None:
    machine = SteppedEngine("1 0 * * *", retry=RetryPolicy(max=None, interval_ms=0, backoff=1, jitter=0))
    running, starts = machine.tick(FIRST), list[int]()
    for now in range(FIRST, FIRST + 3_000, 10):
        for launch in running:
            machine.end(launch, "failed", now, exit_code=1)
        running = machine.tick(now)
        starts += [now - FIRST] * len(running)
    assert starts == [1_000, 2_010]


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
