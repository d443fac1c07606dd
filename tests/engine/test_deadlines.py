"""The execution timeout holds while a retry is awaited, while the owner hangs, and counts from the first start."""

from __future__ import annotations

from random import Random

import pytest

from chronex.engine.engine import Engine
from chronex.engine.orders import Launch, Order, StopProcess
from chronex.engine.takeover import STALE_AFTER_MS
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import FailureStrategy
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Node
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage.records import Records
from tests.kit.machine import FIRST, ONE, TWO, SteppedEngine, steady

TIMEOUT = 4_000
CHILD = ProcessIdentity(7, "boot", 5)


@pytest.mark.parametrize(
    ("pause_ms", "state", "attempts"),
    [
        (600_000, OccurrenceState.FAILED, 1),
        (TIMEOUT - 1, OccurrenceState.FAILED, 1),  # at the deadline to the millisecond
        (TIMEOUT - 2, OccurrenceState.RUNNING, 1),
    ],
)
def test_a_retry_that_would_come_after_the_deadline_is_not_awaited(
    pause_ms: int, state: OccurrenceState, attempts: int
) -> None:
    machine = SteppedEngine(execution_timeout_ms=TIMEOUT, retry=steady(3, pause_ms))
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 1, exit_code=1)
    occurrence, run = machine.occurrence(FIRST), machine.run(FIRST)
    assert (occurrence.state, run.attempts) == (state, attempts)
    if state is OccurrenceState.FAILED:
        assert (run.state, run.reason.code, run.exit_code) == (RunState.DLQ, ReasonCode.EXECUTION_TIMEOUT, 1)
        assert occurrence.reason.code is ReasonCode.EXECUTION_TIMEOUT
        assert "TaskDeadLettered" in machine.event_names()


def test_no_task_begins_after_the_deadline_also_not_one_that_continues() -> None:
    """A command that is started only to be stopped at once may have done half of its work."""
    machine = SteppedEngine(tasks=(ONE, TWO), execution_timeout_ms=TIMEOUT, failure=FailureStrategy.CONTINUE)
    (launch,) = machine.tick(FIRST)
    reason = Reason(ReasonCode.EXECUTION_TIMEOUT)
    assert machine.launches_after(launch, AttemptState.TIMEOUT, FIRST + TIMEOUT, reason=reason, retryable=False) == []
    assert [(run.state, run.reason) for run in (machine.run(FIRST), machine.run(FIRST, "two"))] == [
        (RunState.DLQ, reason),
        (RunState.CANCELED, reason),
    ]
    assert (machine.occurrence(FIRST).state, machine.occurrence(FIRST).reason.code) == (
        OccurrenceState.FAILED,
        reason.code,
    )


def waiting_past_its_deadline() -> SteppedEngine:
    """A run that waits for a retry after its deadline, as an older version or a set clock may leave it."""
    machine = SteppedEngine(execution_timeout_ms=TIMEOUT, retry=steady(3, 1_000))
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 1, exit_code=1)
    return machine


def test_a_retry_that_comes_due_after_the_deadline_ends_its_run() -> None:
    machine = waiting_past_its_deadline()
    assert machine.tick(FIRST + TIMEOUT) == []
    assert machine.occurrence(FIRST).state is OccurrenceState.FAILED
    assert (machine.run(FIRST).state, machine.run(FIRST).next_attempt_ms) == (RunState.DLQ, None)


def test_the_reaper_ends_a_wait_at_the_deadline_without_a_grace() -> None:
    machine = waiting_past_its_deadline()
    machine.engine.take_over(lambda process: True, FIRST + TIMEOUT)
    assert machine.occurrence(FIRST).state is OccurrenceState.FAILED
    assert machine.run(FIRST).state is RunState.DLQ


def hanging_owner() -> tuple[SteppedEngine, Engine, Launch]:
    """Node 1 owns a living command and does nothing any more; node 2 reaps."""
    machine = SteppedEngine(execution_timeout_ms=TIMEOUT)
    (launch,) = machine.tick(FIRST)
    machine.store.update(machine.engine.started(launch.attempt, CHILD, "", FIRST))
    other = Node(id="node-2", process=ProcessIdentity(2, "boot", 1))
    machine.store.update(lambda tx: Records(tx, FIRST).put(other))
    return machine, Engine(machine.store, "node-2", 10, Random(1)), launch


def test_the_process_of_a_hanging_node_is_stopped_and_then_its_run_is_stale_and_a_dead_letter() -> None:
    machine, other, launch = hanging_owner()
    late = FIRST + TIMEOUT + STALE_AFTER_MS + 1
    orders, adopted = other.take_over(lambda process: True, late)
    (stop,) = orders
    assert isinstance(stop, StopProcess)
    assert (stop.process, stop.attempt.id, adopted) == (CHILD, launch.attempt.id, [])
    assert machine.occurrence(FIRST).state is OccurrenceState.RUNNING
    other.take_over(lambda process: process != CHILD, late + 1_000)
    assert machine.occurrence(FIRST).state is OccurrenceState.FAILED_STALE
    assert (machine.run(FIRST).state, machine.run(FIRST).reason.code) == (RunState.DLQ, ReasonCode.EXECUTION_TIMEOUT)
    assert machine.end(launch, AttemptState.SUCCESS, late + 2_000) == (), "the owner wakes up, and comes too late"
    assert machine.occurrence(FIRST).state is OccurrenceState.FAILED_STALE


def test_a_living_owner_has_its_time_to_stop_what_is_overdue() -> None:
    _, other, _ = hanging_owner()
    no_orders: tuple[Order, ...] = ()
    assert other.take_over(lambda process: True, FIRST + TIMEOUT + STALE_AFTER_MS) == (no_orders, [])


@pytest.mark.parametrize(("after_ms", "moved_ms"), [(1_000, 0), (30_000, 30_000)])
def test_the_deadline_counts_from_a_start_that_came_long_after_its_claim(after_ms: int, moved_ms: int) -> None:
    """The disk was full between the claim and the start."""
    machine = SteppedEngine(execution_timeout_ms=TIMEOUT)
    (launch,) = machine.tick(FIRST)
    machine.store.update(machine.engine.started(launch.attempt, CHILD, "", FIRST + after_ms))
    assert machine.occurrence(FIRST).deadline_ms == FIRST + TIMEOUT + moved_ms
