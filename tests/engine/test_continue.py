"""`continue`: the task stops no other one, no other one stops it, and its failure is an error of what completed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.engine.commands import cancel
from chronex.engine.orders import Cancel, Launch
from chronex.model.policies import FailureStrategy, NotifyPolicy, TaskMode
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Notice
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage import keys
from tests.kit.machine import FIRST, ONE, THREE, TWO, SteppedEngine

CONTINUE, FAIL_FAST = FailureStrategy.CONTINUE, FailureStrategy.FAIL_FAST
GOOD, BAD = AttemptState.SUCCESS, AttemptState.FAILED


def play(machine: SteppedEngine, ends: dict[str, AttemptState]) -> list[str]:
    """Run one occurrence: each task that is started ends as `ends` says. The tasks that ran, in their order."""
    waiting, ran = list(machine.tick(FIRST)), []
    while waiting:
        launch = waiting.pop(0)
        ran.append(launch.task.name)
        reason = Reason(ReasonCode.EXIT_CODE, "exit code 3") if ends[launch.task.name] is BAD else Reason()
        waiting += machine.launches_after(launch, ends[launch.task.name], FIRST + len(ran), reason=reason)
    return ran


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "inherited"])
def test_in_a_sequential_job_it_runs_after_a_failure(is_written: bool) -> None:
    """The cleanup runs although the dump failed; the task between them does not."""
    fast = [replace(task, on_failure=FAIL_FAST) for task in (ONE, TWO)]
    last = replace(THREE, on_failure=CONTINUE) if is_written else THREE
    machine = SteppedEngine(tasks=(*fast, last), failure=FAIL_FAST if is_written else CONTINUE)
    assert play(machine, {"one": BAD, "three": GOOD}) == ["one", "three"]
    assert machine.occurrence(FIRST).state is OccurrenceState.FAILED
    assert str(machine.occurrence(FIRST).reason) == "one: exit code 3"
    assert machine.run(FIRST, "two").state is RunState.CANCELED
    assert machine.run(FIRST, "three").state is RunState.SUCCESS


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "inherited"])
def test_in_a_parallel_job_no_peer_cancels_it(is_written: bool) -> None:
    steady = replace(TWO, on_failure=CONTINUE) if is_written else TWO
    tasks = (replace(ONE, on_failure=FAIL_FAST), steady, replace(THREE, on_failure=FAIL_FAST))
    machine = SteppedEngine(tasks=tasks, mode=TaskMode.PARALLEL, failure=FAIL_FAST if is_written else CONTINUE)
    launches = {launch.task.name: launch for launch in machine.tick(FIRST)}
    orders = machine.end(launches["one"], BAD, FIRST + 1)
    assert [order.attempt.task for order in orders if isinstance(order, Cancel)] == ["three"]


@pytest.mark.parametrize(
    ("ends", "state", "errors"),
    [
        ({"one": BAD, "two": GOOD, "three": GOOD}, OccurrenceState.COMPLETED, 1),
        ({"one": BAD, "two": GOOD, "three": BAD}, OccurrenceState.COMPLETED, 2),
        ({"one": GOOD, "two": GOOD, "three": GOOD}, OccurrenceState.COMPLETED, 0),
        ({"one": GOOD, "two": BAD, "three": BAD}, OccurrenceState.FAILED, 0),
    ],
)
def test_a_job_whose_failing_tasks_all_continue_completes_with_errors(
    ends: dict[str, AttemptState], state: OccurrenceState, errors: int
) -> None:
    tasks = (replace(ONE, on_failure=CONTINUE), TWO, replace(THREE, on_failure=CONTINUE))
    machine = SteppedEngine(tasks=tasks)
    assert play(machine, ends) == ["one", "two", "three"]
    occurrence, counters = machine.occurrence(FIRST), machine.stored().progress.counters
    assert (occurrence.state, occurrence.errors) == (state, errors)
    assert (counters.completed, counters.completed_with_errors) == (
        int(state is OccurrenceState.COMPLETED),
        int(errors > 0),
    )
    assert counters.failures_in_a_row == int(state is OccurrenceState.FAILED)
    assert str(occurrence.reason) == {0: "two: exit code 3" if counters.failed else ""}.get(
        errors, "one: exit code 3"
    )


def test_what_a_person_cancels_does_not_go_on_with_its_cleanup() -> None:
    machine = SteppedEngine(tasks=(ONE, replace(TWO, on_failure=CONTINUE)))
    (launch,) = machine.tick(FIRST)
    machine.ask(cancel, launch.occurrence, at=FIRST + 1)
    (order,) = machine.canceled(FIRST + 2)
    assert machine.end(launch, AttemptState.CANCELED, FIRST + 3, reason=order.reason) == ()
    assert machine.occurrence(FIRST).state is OccurrenceState.CANCELED


@pytest.mark.parametrize(("on_errors", "kinds"), [(True, ["completed_with_errors"]), (False, [])])
def test_notify_can_ask_for_errors(on_errors: bool, kinds: list[str]) -> None:
    notify = NotifyPolicy(("true",), on_errors=on_errors)
    machine = SteppedEngine(tasks=(replace(ONE, on_failure=CONTINUE), TWO), notify=notify)
    play(machine, {"one": BAD, "two": GOOD})
    notices = machine.read(lambda reading: reading.scan(keys.NOTICE, Notice))
    assert [notice.kind for notice in notices] == kinds


def test_a_cleanup_that_is_tried_again_is_not_stopped_by_the_failure_before_it() -> None:
    machine = SteppedEngine(tasks=(ONE, replace(TWO, on_failure=CONTINUE)))
    (first,) = machine.tick(FIRST)
    (cleanup,) = machine.end(first, BAD, FIRST + 1)
    assert isinstance(cleanup, Launch)
    assert machine.end(cleanup, BAD, FIRST + 2) == ()
    assert machine.occurrence(FIRST).state is OccurrenceState.FAILED
