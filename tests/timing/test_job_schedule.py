"""Schedules that a program brings itself, and that none of them can stop the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chronex.engine.update import apply_jobs
from chronex.errors import ChronexError, CustomScheduleError
from chronex.model.job import Job
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage.records import Reading
from chronex.testing import MINUTE
from chronex.timing.job_schedule import Schedule, custom_schedule, forget_schedule, register_schedule
from chronex.views.jobs import Situation, rows_of
from tests.kit.machine import FIRST, ONE, START, SteppedEngine


class Minutely:
    """Every full minute; `fault` is asked first, and may raise or answer itself."""

    def __init__(self, fault: Callable[[], Any] = lambda: None) -> None:
        self.fault = fault

    def next(self, after_ms: int) -> int | None:
        answer = self.fault()
        return (after_ms // MINUTE + 1) * MINUTE if answer is None else answer

    def previous(self, before_ms: int) -> int | None:
        return -(-before_ms // MINUTE) * MINUTE - MINUTE

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        while (found := self.next(after_ms)) is not None and found <= until_ms:
            yield found
            after_ms = found


@pytest.fixture
def registered() -> Iterator[Callable[[Schedule], None]]:
    yield lambda schedule: register_schedule("mine", schedule)
    forget_schedule("mine")


def test_its_instants_are_planned_and_those_it_slept_through_recovered(
    registered: Callable[[Schedule], None],
) -> None:
    registered(Minutely())
    machine = SteppedEngine("mine", dialect="custom")
    (launch,) = machine.tick(FIRST)
    assert launch.occurrence.nominal_ms == FIRST
    machine.end(launch, AttemptState.SUCCESS, FIRST + 1)
    later = FIRST + 10 * MINUTE
    (launch,) = machine.tick(later + 1, awake_since=later + 1)
    assert launch.occurrence.nominal_ms == later
    assert machine.occurrence(later - MINUTE).state is OccurrenceState.MISSED


def test_a_node_without_the_schedule_leaves_the_job_alone_and_looks_on() -> None:
    register_schedule("mine", Minutely())
    machine = SteppedEngine("mine", dialect="custom")
    forget_schedule("mine")
    apply_jobs(machine.store, [machine.job, Job(id="other", schedule="* * * * *", tasks=(ONE,))], START)
    assert [launch.job.id for launch in machine.tick(FIRST)] == ["other"]
    rows = machine.store.view(lambda tx: rows_of(Reading(tx), FIRST))
    assert [(row.job.id, row.situation) for row in rows] == [("job", Situation.WAITING), ("other", Situation.RUNNING)]
    assert machine.engine.tick(FIRST, START).has_more is False
    try:
        register_schedule("mine", Minutely())
        assert [launch.job.id for launch in machine.tick(FIRST + 5)] == ["job"]
    finally:
        forget_schedule("mine")


def raising() -> None:
    raise ZeroDivisionError("division by zero")


FAULTS: list[tuple[Callable[[], Any], str]] = [
    (raising, "it raised ZeroDivisionError: division by zero"),
    (lambda: START, "which is not later|gave"),
    (lambda: "soon", "it gave str where an instant is a whole number"),
]


@pytest.mark.parametrize(("fault", "expected"), FAULTS)
def test_a_fault_is_told_and_troubles_no_other_job(
    registered: Callable[[Schedule], None], fault: Callable[[], Any], expected: str
) -> None:
    schedule = Minutely()
    registered(schedule)
    machine = SteppedEngine("mine", dialect="custom")
    apply_jobs(machine.store, [machine.job, Job(id="other", schedule="* * * * *", tasks=(ONE,))], START)
    schedule.fault = fault
    assert [launch.job.id for launch in machine.tick(FIRST)] == ["other"]
    assert "ScheduleFailed" in machine.event_names()
    with pytest.raises(CustomScheduleError, match=expected):
        custom_schedule("mine").next(FIRST)
    schedule.fault = lambda: None
    assert [launch.job.id for launch in machine.tick(FIRST + MINUTE)][:1] == ["job"], "every instant is found again"


def test_one_name_means_one_schedule(registered: Callable[[Schedule], None]) -> None:
    one = Minutely()
    registered(one)
    registered(one)
    with pytest.raises(ChronexError, match="another schedule is registered as 'mine'"):
        registered(Minutely())
    with pytest.raises(ChronexError, match="cannot name a schedule"):
        register_schedule("not a name", one)


def test_an_interval_without_a_start_counts_from_its_apply_and_ends_after_its_repetitions() -> None:
    machine = SteppedEngine("R2/PT1M")
    due = [START + MINUTE, START + 2 * MINUTE]
    for at in due:
        assert machine.tick(at - 1) == []
        (launch,) = machine.tick(at)
        assert launch.occurrence.nominal_ms == at
        machine.end(launch, AttemptState.SUCCESS, at + 1)
        apply_jobs(machine.store, [machine.job], at + 2)  # the same text keeps its anchor
    assert machine.tick(START + 3 * MINUTE) == []
    (row,) = machine.store.view(lambda tx: rows_of(Reading(tx), START + 3 * MINUTE))
    assert row.situation is Situation.DONE
