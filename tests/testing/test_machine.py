"""The simulated machine: what its engine does on a fake clock is what the daemon would do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import chronex.testing
from chronex.model.job import Job, Task
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.testing import HOUR, MINUTE, KillPoint, ProcessOutcome, RandomOutcomes, SimulatedMachine
from tests.kit.source_trees import syntax_of
from tests.verify.assertion import assert_verified

TASK = (Task(name="main", run=("true",)),)
HOURLY = Job(id="hourly", schedule="0 * * * *", tasks=TASK)


def states(machine: SimulatedMachine) -> list[OccurrenceState]:
    return [occurrence.state for occurrence in machine.occurrences("hourly")]


def test_every_instant_runs_once_and_on_time() -> None:
    machine = SimulatedMachine([HOURLY])
    machine.run_for(timedelta(hours=5, minutes=1))
    assert [start.hour for start in machine.starts("hourly")] == [1, 2, 3, 4, 5]
    assert states(machine) == [OccurrenceState.COMPLETED] * 5
    assert_verified(machine.store)


def test_a_failure_is_tried_again_as_the_policy_says() -> None:
    job = Job(id="hourly", schedule="0 * * * *", tasks=TASK, retry=RetryPolicy(max=2, interval_ms=10_000, jitter=0))
    machine = SimulatedMachine([job], outcome=lambda _launch: ProcessOutcome(1_000, exit_code=3))
    machine.run_for(HOUR + MINUTE)
    assert [(start.minute, start.second) for start in machine.starts("hourly")] == [(0, 0), (0, 11), (0, 32)]
    assert states(machine) == [OccurrenceState.FAILED]


@pytest.mark.parametrize(
    ("outage", "event"),
    [
        (lambda machine: machine.sleep(6 * HOUR), "MachineSlept"),
        (lambda machine: machine.set_clock(6 * HOUR), "ClockStepped"),
        (lambda machine: machine.go_down(6 * HOUR), "SchedulerStarted"),
    ],
)
def test_what_an_outage_missed_is_recovered_by_the_policy(
    outage: Callable[[SimulatedMachine], None], event: str
) -> None:
    policy = RecoveryPolicy(RecoveryStrategy.MARK_MISSED)
    machine = SimulatedMachine([Job(id="hourly", schedule="0 * * * *", tasks=TASK, recovery=policy)])
    machine.run_for(6 * HOUR + 30 * MINUTE)  # older than the step: what that jumps over is missed
    outage(machine)
    machine.run_for(MINUTE)
    assert states(machine) == [OccurrenceState.COMPLETED] * 6 + [OccurrenceState.MISSED] * 6
    assert machine.events(event)
    assert_verified(machine.store)


def test_a_clock_that_is_set_back_silences_no_job() -> None:
    machine = SimulatedMachine([HOURLY])
    machine.run_for(MINUTE)
    machine.set_clock(-240 * HOUR)
    machine.run_for(3 * HOUR)
    assert states(machine) == [OccurrenceState.COMPLETED] * 3


@pytest.mark.parametrize("point", KillPoint)
def test_a_scheduler_that_is_killed_anywhere_loses_and_doubles_nothing(point: KillPoint) -> None:
    machine = SimulatedMachine([HOURLY])
    machine.kill_at(point)
    machine.run_for(3 * HOUR + MINUTE)
    assert machine.boots == 2
    assert states(machine) == [OccurrenceState.COMPLETED] * 3
    assert_verified(machine.store)


@pytest.mark.parametrize("orphans_survive", [True, False])
def test_an_orphan_is_adopted_or_tried_again(orphans_survive: bool) -> None:
    """How one ends whose keeper died too cannot be known: it is tried again then."""
    machine = SimulatedMachine([HOURLY], outcome=lambda _launch: ProcessOutcome(20 * MINUTE))
    machine.run_for(HOUR + MINUTE)
    machine.go_down(MINUTE, orphans_survive=orphans_survive)
    machine.run_for(50 * MINUTE)
    assert [start.minute for start in machine.starts("hourly")] == [0, 20 if orphans_survive else 2]
    (occurrence,) = machine.occurrences("hourly")
    attempts = machine.read(lambda reading: reading.attempts("hourly", occurrence.nominal_ms))
    reasons = [ReasonCode.UNKNOWN_EXIT if orphans_survive else ReasonCode.OWNER_DIED, ReasonCode.NONE]
    assert [(one.state, one.reason.code) for one in attempts] == list(
        zip(["crashed", "success"], reasons, strict=True)
    )
    assert states(machine) == [OccurrenceState.COMPLETED]


@pytest.mark.parametrize("down", [MINUTE, 30 * MINUTE], ids=["it still runs", "it has ended"])
@pytest.mark.parametrize(("code", "state"), [(0, "success"), (3, "failed")])
def test_a_keeper_knows_how_it_ended(down: int, code: int, state: str) -> None:
    job = Job(id="hourly", schedule="0 * * * *", tasks=TASK, retry=RetryPolicy(max=0))
    machine = SimulatedMachine([job], outcome=lambda _launch: ProcessOutcome(20 * MINUTE, code))
    machine.run_for(HOUR + MINUTE)
    machine.go_down(down, orphans_survive=True, keeper_survives=True)
    machine.run_for(28 * MINUTE)
    (occurrence,) = machine.occurrences("hourly")
    (attempt,) = machine.read(lambda reading: reading.attempts("hourly", occurrence.nominal_ms))
    assert (attempt.state, attempt.exit_code) == (state, code)
    assert_verified(machine.store)


def test_a_stop_cancels_what_runs_and_at_a_deadline_it_times_out() -> None:
    """What the records say is what the daemon would write."""
    job = Job(id="hourly", schedule="0 * * * *", tasks=TASK, execution_timeout_ms=5 * MINUTE)
    machine = SimulatedMachine([job], outcome=lambda _launch: ProcessOutcome(2 * HOUR))
    machine.run_for(2 * HOUR + MINUTE)
    assert [process.state for process in machine.processes] == ["timeout", "success"]
    assert states(machine) == [OccurrenceState.FAILED, OccurrenceState.RUNNING]
    machine.stop()
    assert [process.state for process in machine.processes] == ["timeout", "canceled"]
    assert machine.live == {}
    assert machine.events("SchedulerStopped")


def test_what_a_tick_has_let_go_starts_at_once_as_under_a_daemon_that_its_own_write_wakes() -> None:
    """The parent, which is decided last, has no further instant: its child waited there until something else was due."""
    parent = Job(id="parent", schedule="0 * * * * {max:1}", tasks=TASK)
    child = Job(id="child", schedule="0 * * * *", after=("parent",), priority=7, tasks=TASK)
    machine = SimulatedMachine([parent, child], slots=1)
    machine.run_for(timedelta(hours=2, minutes=30))
    assert [(start.hour, start.minute) for start in machine.starts("child")] == [(1, 0), (2, 0)]


def test_the_same_script_gives_the_same_history() -> None:
    def history() -> list[str]:
        machine = SimulatedMachine([HOURLY], seed=3, outcome=RandomOutcomes(3, longest_ms=90 * MINUTE))
        machine.run_for(timedelta(days=2))
        return [str(event) for event in machine.events()]

    assert history() == history()


def test_no_test_framework_is_imported() -> None:
    for path in Path(chronex.testing.__path__[0]).glob("*.py"):
        for node in ast.walk(syntax_of(path)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(module.split(".")[0] in {"pytest", "unittest", "tests"} for module in modules)
