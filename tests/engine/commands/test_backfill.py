"""backfill: which scheduled times are meant, and that each of them runs once."""

from __future__ import annotations

import pytest

from chronex.engine.commands import Actor
from chronex.engine.commands.backfill import MOST_INSTANTS, BackfillScope, fill, plan_backfill
from chronex.errors import NotPossibleError, UnknownJobError
from chronex.model.calendars import CalendarRules, JobCalendar, OnExcluded
from chronex.model.job import Job, Task
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, ProcessOutcome, SimulatedMachine
from chronex.verify import verify_store

ANN = Actor("ann", "cli", "desk")


def machine_of(**more: object) -> SimulatedMachine:
    """Hours 1 to 3 complete, 4 and 5 fail, 6 to 8 are missed, 9 completes."""
    policy = RecoveryPolicy(RecoveryStrategy.MARK_MISSED)
    job = Job(id="job", schedule="0 * * * *", recovery=policy, tasks=(Task(name="t", run=("true",)),), **more)  # type: ignore[arg-type]
    machine = SimulatedMachine([job])
    machine.outcome = lambda launch: ProcessOutcome(
        exit_code=int(hour(machine, launch.occurrence.nominal_ms) in (4, 5))
    )
    machine.advance(hours=5.5)
    machine.go_down(3 * HOUR)
    machine.advance(hours=1)
    return machine


def hour(machine: SimulatedMachine, ms: int) -> int:
    return (ms - machine.start_ms) // HOUR


def planned(machine: SimulatedMachine, first: int, last: int, scope: str = "missing") -> list[int]:
    begin, end = machine.start_ms + first * HOUR, machine.start_ms + last * HOUR
    plan = machine.store.view(
        lambda tx: plan_backfill(Reading(tx), "job", begin, end, BackfillScope(scope), machine.now)
    )
    assert plan.left_out + len(plan.instants) == last - first
    return [hour(machine, instant) for instant in plan.instants]


def run(machine: SimulatedMachine, hours: list[int]) -> None:
    times = [machine.start_ms + one * HOUR for one in hours]
    machine.store.update(lambda tx: [fill(Records(tx, machine.now), "job", at, ANN, "gap") for at in times])
    machine.advance(minutes=5)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("missing", [-2, -1, 0, 6, 7, 8]), ("failed", [4, 5]), ("all", list(range(-2, 10)))],
)
def test_which_times_are_meant(scope: str, expected: list[int]) -> None:
    assert planned(machine_of(), -2, 10, scope) == expected


def test_each_runs_once_at_its_scheduled_time_and_what_is_done_is_left_out() -> None:
    """The machine of the command may die at any moment: asked again it finds what is left."""
    machine = machine_of()
    todo = planned(machine, -2, 10)
    run(machine, todo[:2])
    assert planned(machine, -2, 10) == todo[2:]
    run(machine, todo[2:])
    assert planned(machine, -2, 10) == []
    filled = [one for one in machine.occurrences("job") if one.replay_of]
    assert sorted(hour(machine, one.scheduled_ms) for one in filled) == todo
    assert {one.state for one in filled} == {OccurrenceState.COMPLETED}
    starts = sorted(one.started_ms or 0 for one in filled)
    assert len(set(starts)) == len(starts)  # the job may not overlap, so each waited for its turn
    assert verify_store(machine.store).violated() == []


def test_what_runs_or_waits_is_left_out() -> None:
    machine = machine_of()
    at = machine.start_ms + 6 * HOUR
    machine.store.update(lambda tx: fill(Records(tx, machine.now), "job", at, ANN, "gap"))
    assert planned(machine, 6, 9) == [7, 8]


def test_a_moved_run_is_known_by_the_time_it_stands_for() -> None:
    today = SimulatedMachine().start_ms // DAY  # a Friday
    rules = CalendarRules(
        excluded=(JobCalendar(name="off", days=(today, today)),), on_excluded=OnExcluded.NEXT_WORKDAY
    )
    missed = RecoveryPolicy(RecoveryStrategy.MARK_MISSED)
    job = Job(
        id="job", schedule="0 6 1 * *", calendars=rules, recovery=missed, tasks=(Task(name="t", run=("true",)),)
    )
    machine = SimulatedMachine([job])
    machine.go_down(5 * DAY)
    machine.advance(minutes=1)
    begin, end = machine.start_ms, machine.start_ms + 5 * DAY
    plan = machine.store.view(
        lambda tx: plan_backfill(Reading(tx), "job", begin, end, BackfillScope.MISSING, machine.now)
    )
    assert [hour(machine, one) for one in plan.instants] == [6]


def test_what_is_to_come_is_left_to_the_schedule() -> None:
    """A backfill until tomorrow ran tomorrow's runs at once, and the schedule ran them again."""
    machine = machine_of()
    begin = machine.start_ms
    plan = machine.store.view(
        lambda tx: plan_backfill(Reading(tx), "job", begin, machine.now + DAY, BackfillScope.ALL, machine.now)
    )
    assert [hour(machine, one) for one in plan.instants] == list(range(10))
    assert plan.is_cut
    with pytest.raises(NotPossibleError, match="still to come"):
        machine.store.view(
            lambda tx: plan_backfill(
                Reading(tx), "job", machine.now + 1, machine.now + DAY, BackfillScope.ALL, machine.now
            )
        )


def test_what_is_due_and_not_decided_yet_is_left_to_the_schedule() -> None:
    """A scheduler that is busy for a moment, or away: it would run those once more."""
    machine = machine_of()
    machine.go_down(2 * HOUR)
    begin, now = machine.start_ms + 6 * HOUR, machine.now + 2 * HOUR
    plan = machine.store.view(lambda tx: plan_backfill(Reading(tx), "job", begin, now, BackfillScope("missing"), now))
    assert ([hour(machine, one) for one in plan.instants], plan.is_cut) == ([6, 7, 8], True)


def test_what_cannot_be_done_is_told() -> None:
    machine = machine_of()
    begin = machine.start_ms
    with pytest.raises(NotPossibleError, match=f"more than {MOST_INSTANTS}"):
        machine.store.view(lambda tx: plan_backfill(Reading(tx), "job", 0, begin, BackfillScope.ALL, begin))
    with pytest.raises(UnknownJobError):
        machine.store.view(lambda tx: plan_backfill(Reading(tx), "jobb", 0, begin, BackfillScope.ALL, begin))
