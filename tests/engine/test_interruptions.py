"""Stops, kills, edits, pauses and cancels between each other: what history says is whole, and nothing waits for ever."""

from __future__ import annotations

from collections import Counter

import pytest

from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy
from chronex.model.states import OccurrenceState
from chronex.testing import SECOND, ProcessOutcome, SimulatedMachine
from tests.engine.simulator.checker import check
from tests.engine.simulator.interruptions import interrupted

AT_ONCE = 5


def test_a_scheduler_that_was_stopped_for_seconds_leaves_no_instant_of_cancel_running_waiting() -> None:
    """It was stopped for 14 s, and from then on 14 instants waited in the queue for ever."""
    job = Job(id="job", schedule="* * * * * *", tasks=(Task(name="a"),), overlap=OverlapPolicy.CANCEL_RUNNING)
    machine = SimulatedMachine([job], outcome=lambda _launch: ProcessOutcome(60 * SECOND))
    machine.run_for(5 * SECOND)
    machine.clock.advance(14 * SECOND)
    machine.run_for(20 * SECOND)
    states = Counter(one.state for one in machine.occurrences("job"))
    assert states == {OccurrenceState.CANCELED: 23, OccurrenceState.SKIPPED: 14, OccurrenceState.RUNNING: 1}


def run(seed: int) -> None:
    findings = check(interrupted(seed))
    assert not findings, f"seed {seed}: {findings[:5]}"


@pytest.mark.parametrize("first", range(0, 5, AT_ONCE))
def test_minutes_of_interruptions_keep_every_promise(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        run(seed)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(100, 2_100, 50))
def test_minutes_of_interruptions_keep_every_promise_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        run(seed)
