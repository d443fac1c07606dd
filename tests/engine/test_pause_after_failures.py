"""Counters and streaks of a job: the pause that a streak brings, and what survives while a job is not in its file."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.engine.commands import Actor, pause, resume
from chronex.engine.update import apply_jobs
from chronex.model.job import PAUSED_BY_FAILURES, Job, Task
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading, Records
from chronex.testing import HOUR, ProcessOutcome, SimulatedMachine
from chronex.verify import verify_store

ANN = Actor("ann", "cli", "desk")


def job(**more: object) -> Job:
    return Job(id="job", schedule="0 * * * *", tasks=(Task(name="t", run=("true",)),), **more)  # type: ignore[arg-type]


def stored(machine: SimulatedMachine) -> Job:
    found = machine.store.view(lambda tx: Reading(tx).job("job"))
    assert found is not None
    return found


def fails(_launch: object) -> ProcessOutcome:
    return ProcessOutcome(exit_code=1)


def states(machine: SimulatedMachine) -> list[str]:
    return [
        f"{one.state}{' ' + one.reason.by if one.reason.code is ReasonCode.PAUSED else ''}"
        for one in machine.occurrences("job")
    ]


def test_a_job_that_fails_too_often_in_a_row_is_paused_until_somebody_resumes_it() -> None:
    machine = SimulatedMachine([job(pause_after_failures=3)], outcome=fails)
    machine.advance(hours=6.5)
    assert sorted(states(machine)) == sorted([*["failed"] * 3, *[f"skipped {PAUSED_BY_FAILURES}"] * 3])
    (event,) = machine.events("JobPaused")
    assert (event.actor, event.data) == (PAUSED_BY_FAILURES, {"failures": 3})
    machine.store.update(lambda tx: resume(Records(tx, machine.now), "job", ANN))
    machine.advance(hours=3)  # the first one fails too: it is paused again at once
    assert len(machine.events("JobPaused")) == 2
    assert stored(machine).progress.counters.failures_in_a_row == 4
    machine.store.update(lambda tx: resume(Records(tx, machine.now), "job", ANN))
    machine.outcome = lambda _: ProcessOutcome()
    machine.advance(hours=3)
    assert stored(machine).progress.counters.failures_in_a_row == 0
    assert not stored(machine).progress.paused
    assert verify_store(machine.store).violated() == []


def test_a_success_between_failures_begins_the_streak_anew() -> None:
    ends = iter([1, 1, 0] * 10)
    machine = SimulatedMachine([job(pause_after_failures=3)], outcome=lambda _: ProcessOutcome(exit_code=next(ends)))
    machine.advance(hours=20)
    assert machine.events("JobPaused") == []
    assert {one.state for one in machine.occurrences("job")} == {OccurrenceState.FAILED, OccurrenceState.COMPLETED}


def test_a_job_that_comes_back_to_its_file_finds_its_pause_its_counters_and_its_streak() -> None:
    machine = SimulatedMachine([job()], outcome=fails)
    machine.advance(hours=3.5)
    machine.store.update(lambda tx: pause(Records(tx, machine.now), "job", ANN, until_ms=machine.now + 10 * HOUR))
    before = stored(machine).progress
    assert before.counters.failures_in_a_row == 3
    apply_jobs(machine.store, [], machine.now)
    machine.advance(hours=2)
    apply_jobs(machine.store, [replace(job(), description="back again")], machine.now)
    after = stored(machine).progress
    for name in (
        "paused",
        "paused_by",
        "paused_until_ms",
        "paused_from_ms",
        "counters",
        "fence",
        "last_run_ms",
        "last_success_ms",
    ):
        assert getattr(after, name) == getattr(before, name), name
    machine.advance(hours=2)
    assert [one.reason.code for one in machine.occurrences("job")][-2:] == [ReasonCode.PAUSED] * 2
    assert stored(machine).progress.fence == before.fence  # the next attempt gets a number that none had before


def test_one_that_had_used_up_its_executions_does_not_begin_anew() -> None:
    limited = replace(job(), schedule="0 * * * * {max:2}")
    machine = SimulatedMachine([limited])
    machine.advance(hours=4)
    apply_jobs(machine.store, [], machine.now)
    apply_jobs(machine.store, [limited], machine.now)
    machine.advance(hours=4)
    assert len(machine.starts("job")) == 2
