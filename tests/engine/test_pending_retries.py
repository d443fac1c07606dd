"""An occurrence that waits for a retry still runs: what the next one meets, and what `newest_wins` changes."""

from __future__ import annotations

import pytest

from chronex.engine.orders import Launch
from chronex.model.policies import OverlapPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.testing import MINUTE
from tests.kit.machine import FIRST, SteppedEngine, steady

NEXT = FIRST + MINUTE
P, S = OverlapPolicy, OccurrenceState


def waiting_for_retry(overlap: OverlapPolicy, *, newest_wins: bool = False, pause_ms: int = 90_000) -> SteppedEngine:
    """The first occurrence has failed once, and is tried again after the next one is due."""
    retry = steady(3, pause_ms, newest_wins=newest_wins)
    machine = SteppedEngine(overlap=overlap, retry=retry)
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 1)
    return machine


@pytest.mark.parametrize(
    ("overlap", "first", "following", "starts"),
    [
        (P.SKIP, S.RUNNING, S.SKIPPED, 0),
        (P.QUEUE, S.RUNNING, S.QUEUED, 0),
        (P.QUEUE_ONE, S.RUNNING, S.QUEUED, 0),
        (P.ALLOW, S.RUNNING, S.RUNNING, 1),
        (P.CANCEL_RUNNING, S.CANCELED, S.RUNNING, 1),
    ],
)
def test_the_next_occurrence_meets_the_overlap_policy(
    overlap: OverlapPolicy, first: OccurrenceState, following: OccurrenceState, starts: int
) -> None:
    machine = waiting_for_retry(overlap)
    assert len(machine.tick(NEXT)) == starts
    assert (machine.occurrence(FIRST).state, machine.occurrence(NEXT).state) == (first, following)
    assert "TaskRetryPreempted" not in machine.event_names()


@pytest.mark.parametrize("overlap", [P.SKIP, P.QUEUE, P.QUEUE_ONE])
def test_the_reason_names_the_occurrence_and_the_time_of_its_retry(overlap: OverlapPolicy) -> None:
    machine = waiting_for_retry(overlap)
    machine.tick(NEXT)
    reason = machine.occurrence(NEXT).reason
    assert reason.code is ReasonCode.RETRY_WAITS
    assert reason.detail == f"{machine.occurrence(FIRST).id} until 2027-01-01T00:02:30.001Z"
    assert str(reason).startswith("an earlier occurrence waits for its retry: occ_")


def test_what_was_queued_behind_a_retry_starts_after_the_last_attempt() -> None:
    machine = waiting_for_retry(P.QUEUE)
    machine.tick(NEXT)
    (again,) = machine.tick(FIRST + 90_001)
    assert (again.occurrence.nominal_ms, again.attempt.number) == (FIRST, 2)
    (following,) = machine.end(again, AttemptState.SUCCESS, FIRST + 90_500)
    assert isinstance(following, Launch)
    assert following.occurrence.nominal_ms == NEXT


@pytest.mark.parametrize("overlap", P)
def test_with_newest_wins_the_next_occurrence_pre_empts_the_retry(overlap: OverlapPolicy) -> None:
    machine = waiting_for_retry(overlap, newest_wins=True, pause_ms=3_600_000)
    (following,) = machine.tick(NEXT)
    assert following.occurrence.nominal_ms == NEXT
    assert "TaskRetryPreempted" in machine.event_names()
    assert machine.occurrence(FIRST).state is S.FAILED
    assert machine.occurrence(FIRST).reason.code is ReasonCode.PREEMPTED
    assert machine.run(FIRST).state is RunState.CANCELED
