"""What the engine really does is never refused: short random histories, and many more of them in torture."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.testing import MINUTE, ProcessOutcome, RandomOutcomes, SimulatedMachine
from chronex.verify import TITLES, verify_store
from tests.kit.machine import steady
from tests.verify.assertion import assert_verified
from tests.verify.random_histories import random_history
from tests.verify.traces import complaints

PER_BATCH = 250


def test_random_histories_are_never_refused() -> None:
    for seed in range(PER_BATCH):
        assert_verified(random_history(seed).store)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1, 801, 20))
def test_many_more_random_histories_are_never_refused(first: int) -> None:
    for seed in range(first * PER_BATCH, (first + 20) * PER_BATCH):
        assert_verified(random_history(seed).store)


def test_the_random_histories_put_every_property_to_the_test() -> None:
    checked = dict.fromkeys([*TITLES, "R1"], 0)
    for seed in range(60):
        for result in verify_store(random_history(seed).store).properties:
            checked[result.property] += result.checked
    assert all(checked.values()), checked


def test_a_run_is_tried_again_by_the_version_that_it_began_with() -> None:
    job = Job(id="job", schedule="* * * * *", tasks=(Task(name="one", run=("false",)),), retry=steady(1, 5_000))
    machine = SimulatedMachine([job], outcome=lambda _launch: ProcessOutcome(1_000, exit_code=1))
    machine.run_until(machine.now + MINUTE + 1)
    assert machine.live, "the first attempt runs while the job is edited"
    apply_jobs(machine.store, [replace(job, retry=steady(1, 45_000))], machine.now)
    machine.run_until(machine.now + MINUTE // 2)
    assert len(machine.starts("job")) == 2
    assert_verified(machine.store)


def test_a_node_that_starts_the_next_task_while_it_stops_is_caught() -> None:
    """A defect that the engine once had, brought back."""
    task = Task(name="one", run=("true",)), Task(name="two", run=("true",))
    machine = SimulatedMachine(
        [Job(id="job", schedule="* * * * *", tasks=task)], outcome=RandomOutcomes(1, fail_share=0.0)
    )
    machine.run_until(machine.now + MINUTE + 1)
    (process,) = machine.live.values()
    machine.journal("SchedulerStopRequested", node=machine.engine.node)
    machine.clock.advance(process.stops_at - machine.clock.monotonic)
    machine.report_ends()
    assert [name for name, _ in complaints(verify_store(machine.store))] == ["S3"]
