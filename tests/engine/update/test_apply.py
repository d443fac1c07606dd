"""apply: what is kept, what goes, which version runs, and who may write."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.commands import trigger
from chronex.engine.update import Change, Policy, apply_jobs, kept_versions, roll_back
from chronex.engine.update.diff import MOST_VERSIONS
from chronex.errors import NotPossibleError, StaleUpdateError, UnknownJobError
from chronex.jobfile import read_job_file
from chronex.model.job import Job
from chronex.model.policies import OverlapPolicy, SpreadPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage import journal
from chronex.storage.records import Reading
from chronex.testing import DAY, HOUR, MINUTE, MemoryStore
from chronex.timing.job_schedule import absolute_schedule
from tests.kit.machine import FIRST, ONE, START, THREE, TWO, SteppedEngine, steady

NOON = START + 12 * HOUR
EARLY, LATE = "0 3 * * *", "0 5 * * *"


def edited(machine: SteppedEngine, at: int, policy: Policy = Policy.IMMEDIATE, **changes: Any) -> Change:
    machine.job = replace(machine.job, **changes)
    (changed,) = apply_jobs(machine.store, [machine.job], at, "test", policy=policy)
    return changed.change


def starts(machine: SteppedEngine, until: int, since: int = NOON) -> list[tuple[int, str]]:
    """When each occurrence started after `since`, as hours after START, and with which task it began."""
    found: list[tuple[int, str]] = []
    now = since
    while now <= until:
        for launch in machine.tick(now, awake_since=START):
            found.append(((now - START) // HOUR, launch.task.name))
            machine.end(launch, "success", now)
        now += HOUR
    return found


def everything(machine: SteppedEngine) -> list[tuple[bytes, bytes]]:
    return machine.store.view(lambda tx: tx.scan(b"", None, 100_000))


@pytest.mark.parametrize("policy", Policy)
def test_applying_twice_is_applying_once(policy: Policy) -> None:
    machine = SteppedEngine(EARLY)
    assert edited(machine, NOON, policy, schedule=LATE, tasks=(TWO,)) is Change.CHANGED
    before = everything(machine)
    assert edited(machine, NOON + 1, policy) is Change.UNCHANGED
    assert everything(machine) == before


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy.IMMEDIATE, [29, 53, 77]),
        # The next day's run still happens at the old time, and from the day after it uses the new time.
        (Policy.GRACEFUL, [27, 53, 77]),
        (Policy.WINDOWED, [29, 53, 77]),
    ],
)
def test_when_an_edited_schedule_takes_effect(policy: Policy, expected: list[int]) -> None:
    machine = SteppedEngine(EARLY)
    starts(machine, NOON, since=START)
    edited(machine, NOON, policy, schedule=LATE)
    assert [hour for hour, _ in starts(machine, START + 4 * DAY - 1)] == expected


def test_graceful_runs_the_last_old_occurrence_with_the_old_definition() -> None:
    machine = SteppedEngine(EARLY)
    edited(machine, NOON, Policy.GRACEFUL, schedule=LATE, tasks=(TWO,))
    assert starts(machine, START + 3 * DAY) == [(27, "one"), (53, "two")]


def test_graceful_again_before_the_switch_keeps_the_one_that_waits() -> None:
    machine = SteppedEngine(EARLY)
    edited(machine, NOON, Policy.GRACEFUL, schedule=LATE)
    edited(machine, NOON + HOUR, Policy.GRACEFUL, schedule="0 7 * * *")
    assert [hour for hour, _ in starts(machine, START + 3 * DAY)] == [27, 55]


def test_an_edit_never_fires_at_once_and_what_was_skipped_is_recorded() -> None:
    machine = SteppedEngine("*/10 * * * *")
    edited(machine, NOON, schedule="*/20 * * * *")  # no daemon ran since START
    assert machine.tick(NOON, awake_since=NOON) == []
    event = next(event for event in machine.events() if event.name == "OccurrencesMissed")
    assert event.reason == Reason(ReasonCode.REPLACED, "2")
    assert event.data == {"from_ms": START + 10 * MINUTE, "to_ms": NOON}


def test_switching_a_job_off_and_on_does_not_catch_up_on_the_time_between() -> None:
    machine = SteppedEngine("* * * * *")
    edited(machine, FIRST + 1, enabled=False)
    edited(machine, FIRST + DAY, enabled=True)
    assert machine.tick(FIRST + DAY + 1, awake_since=FIRST + DAY + 1) == []
    assert len(machine.tick(FIRST + DAY + MINUTE)) == 1


@pytest.mark.parametrize("after", [(), ("parent",)], ids=["its own job", "a parent"])
def test_what_waits_for_its_turn_does_not_run_when_its_job_is_switched_off(after: tuple[str, ...]) -> None:
    """A hundred runs may wait, and a job that is switched off never runs; what a person asked for does."""
    machine = SteppedEngine("* * * * *", overlap=OverlapPolicy.QUEUE)
    parents = [Job(id=name, schedule="* * * * *", tasks=(ONE,)) for name in after]
    child = replace(machine.job, after=after)
    apply_jobs(machine.store, [child, *parents], START)
    (running,) = machine.tick(FIRST)
    machine.tick(FIRST + MINUTE)
    waiting = FIRST if after else FIRST + MINUTE
    asked = machine.ask(trigger, "job", at=FIRST + MINUTE + 1).occurrence
    assert machine.occurrence(waiting).state is OccurrenceState.QUEUED
    apply_jobs(machine.store, [replace(child, enabled=False), *parents], FIRST + MINUTE + 2)
    withdrawn = machine.occurrence(waiting)
    assert (withdrawn.state, withdrawn.reason.code) == (OccurrenceState.CANCELED, ReasonCode.REPLACED)
    begun = machine.launches_after(running, "success", FIRST + MINUTE + 3) + machine.tick(FIRST + MINUTE + 4)
    assert [launch.occurrence.id for launch in begun if launch.job.id == "job"] == [asked.id]


# -- what waits ------------------------------------------------------------------------------------------

BEFORE = SpreadPolicy(mode="before", duration_ms=2 * HOUR)


def planned(machine: SteppedEngine) -> int:
    """The nominal time of an occurrence that is decided and not due yet: a spread before 03:00 of the next day."""
    nominal = START + DAY + 3 * HOUR
    for launch in machine.tick(nominal - 2 * HOUR):
        machine.end(launch, "success", nominal - 2 * HOUR)
    assert machine.occurrence(nominal).state is OccurrenceState.PENDING
    return nominal


def test_what_waits_and_is_no_longer_wanted_is_withdrawn_with_the_version_that_did_it() -> None:
    machine = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(machine)
    edited(machine, nominal - 2 * HOUR + 1, schedule=LATE)
    withdrawn = machine.occurrence(nominal)
    assert (withdrawn.state, withdrawn.reason) == (OccurrenceState.CANCELED, Reason(ReasonCode.REPLACED, "2"))


def test_an_edit_and_its_undoing_leave_the_occurrence_that_was_withdrawn_to_run() -> None:
    machine = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(machine)
    edited(machine, nominal - 2 * HOUR + 1, schedule=LATE)
    assert machine.stored().progress.counters.canceled == 1
    edited(machine, nominal - 2 * HOUR + 2, schedule=EARLY)
    assert machine.stored().progress.counters.canceled == 0, "history has none either"
    assert [launch.occurrence.nominal_ms for launch in machine.tick(nominal)] == [nominal]


def test_removing_a_job_and_bringing_it_back_leaves_what_was_withdrawn_to_run() -> None:
    machine = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(machine)
    apply_jobs(machine.store, [], nominal - 2 * HOUR + 1)
    assert machine.occurrence(nominal).state is OccurrenceState.CANCELED
    apply_jobs(machine.store, [machine.job], nominal - 2 * HOUR + 2)
    assert [launch.occurrence.nominal_ms for launch in machine.tick(nominal)] == [nominal]


def test_what_waits_and_is_still_wanted_gets_the_new_definition_and_its_new_due_time() -> None:
    machine = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(machine)
    edited(machine, nominal - 2 * HOUR + 1, tasks=(TWO,), spread=SpreadPolicy(mode="after", duration_ms=HOUR))
    moved = machine.occurrence(nominal)
    assert (moved.state, moved.version) == (OccurrenceState.PENDING, 2)
    assert nominal <= moved.due_ms <= nominal + HOUR
    assert [launch.task.name for launch in machine.tick(moved.due_ms)] == ["two"]


def test_windowed_leaves_what_waits_beyond_its_window() -> None:
    machine = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(machine)
    machine.job = replace(machine.job, schedule=LATE)
    apply_jobs(machine.store, [machine.job], nominal - 2 * HOUR + 1, policy=Policy.WINDOWED, window_ms=HOUR)
    assert machine.occurrence(nominal).state is OccurrenceState.PENDING


def test_what_is_queued_stays_and_gets_the_new_definition() -> None:
    machine = SteppedEngine("0 0 1 1 *", overlap=OverlapPolicy.QUEUE)
    machine.ask(trigger, "job", at=START + 1)
    (running,) = machine.tick(START + 2)
    machine.ask(trigger, "job", at=START + 3)
    edited(machine, START + 4, tasks=(TWO,))
    assert [launch.task.name for launch in machine.launches_after(running, "success", START + 5)] == ["two"]


# -- tasks and running occurrences -----------------------------------------------------------------------


def test_a_running_occurrence_keeps_its_version_to_the_end() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO))
    (first,) = machine.tick(FIRST)
    edited(machine, FIRST + 1, tasks=(THREE,))
    (second,) = machine.launches_after(first, "success", FIRST + 2)
    assert second.task.name == "two"
    machine.end(second, "success", FIRST + 3)
    assert [launch.task.name for launch in machine.tick(FIRST + MINUTE)] == ["three"]


def test_a_removed_jobs_running_occurrence_goes_on_with_its_tasks_and_its_retries() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO), retry=steady(1, 1000))
    (first,) = machine.tick(FIRST)
    assert apply_jobs(machine.store, [], FIRST + 1)[0].change is Change.REMOVED
    (second,) = machine.launches_after(first, "success", FIRST + 2)
    machine.end(second, "failed", FIRST + 3)
    (again,) = machine.tick(FIRST + 1003)
    assert again.attempt.number == 2
    machine.end(again, "success", FIRST + 1004)
    assert machine.occurrence(FIRST).state is OccurrenceState.COMPLETED
    assert machine.tick(FIRST + MINUTE) == []


def test_a_removed_jobs_waiting_occurrences_are_canceled_with_events() -> None:
    machine = SteppedEngine("0 0 1 1 *", overlap=OverlapPolicy.QUEUE)
    machine.ask(trigger, "job", at=START + 1)
    apply_jobs(machine.store, [], START + 2)
    assert [(e.name, e.reason) for e in machine.events()][-2:] == [
        ("JobOrphaned", NO_REASON),
        ("OccurrenceCanceled", Reason(ReasonCode.JOB_REMOVED)),
    ]


def test_a_job_that_comes_back_goes_on_counting_its_versions() -> None:
    machine = SteppedEngine()
    apply_jobs(machine.store, [], START + 1)
    (changed,) = apply_jobs(machine.store, [machine.job], START + 2)
    assert (changed.change, changed.version) == (Change.NEW, 2)


# -- who may write ---------------------------------------------------------------------------------------


def test_a_stale_writer_is_refused_with_who_changed_what_and_nothing_is_written() -> None:
    machine = SteppedEngine()
    basis = machine.store.view(journal.head)
    edited(machine, START + 1, tasks=(TWO,))
    before = everything(machine)
    with pytest.raises(StaleUpdateError, match="job overridden by test at 2027-01-01T00:00:00Z"):
        apply_jobs(machine.store, [replace(machine.job, tasks=(THREE,))], START + 2, basis=basis)
    assert everything(machine) == before


def test_a_stale_writer_who_wants_what_is_there_already_is_right() -> None:
    machine = SteppedEngine()
    basis = machine.store.view(journal.head)
    edited(machine, START + 1, tasks=(TWO,))
    (changed,) = apply_jobs(machine.store, [machine.job], START + 2, basis=basis)
    assert changed.change is Change.UNCHANGED


def test_ticks_and_triggers_in_between_make_no_writer_stale() -> None:
    machine = SteppedEngine()
    basis = machine.store.view(journal.head)
    machine.tick(FIRST)
    machine.ask(trigger, "job")
    assert apply_jobs(machine.store, [replace(machine.job, tasks=(TWO,))], FIRST + 2, basis=basis)


def test_trigger_files_and_job_files_leave_each_others_jobs_alone() -> None:
    machine = SteppedEngine()
    mine = Job(id="mine", schedule="@daily", source="/t/mine.json", tasks=(ONE,))
    apply_jobs(machine.store, [mine], START + 1, owns=lambda job: job.source == mine.source)
    apply_jobs(machine.store, [machine.job], START + 2)
    assert machine.read(lambda reading: [job.id for job in reading.jobs()]) == ["job", "mine"]
    apply_jobs(machine.store, [], START + 3, owns=lambda job: job.source == mine.source)
    assert machine.read(lambda reading: [job.id for job in reading.jobs()]) == ["job"]


# -- versions --------------------------------------------------------------------------------------------


def test_rolling_back_gives_an_earlier_definition_as_a_new_version() -> None:
    machine = SteppedEngine()
    edited(machine, START + 1, tasks=(TWO,))
    changed = roll_back(machine.store, "job", 1, START + 2, "test")
    assert (changed.change, changed.version) == (Change.CHANGED, 3)
    assert machine.stored().tasks == (ONE,)
    assert [job.version for job in machine.read(lambda reading: kept_versions(reading, "job"))] == [3, 2, 1]
    assert machine.events()[-1].data["rolled_back_to"] == 1


def test_a_removed_job_can_be_rolled_back_into_being() -> None:
    machine = SteppedEngine()
    apply_jobs(machine.store, [], START + 1)
    assert roll_back(machine.store, "job", 1, START + 2).change is Change.NEW
    assert machine.stored().tasks == (ONE,)


def test_a_version_or_job_that_is_not_kept_is_refused() -> None:
    machine = SteppedEngine()
    with pytest.raises(NotPossibleError, match="version 7 of job is not kept; there are 1"):
        roll_back(machine.store, "job", 7, START + 1)
    with pytest.raises(UnknownJobError, match="did you mean job"):
        roll_back(machine.store, "jobb", 1, START + 1)


def test_versions_are_bounded_but_none_that_is_in_use_goes() -> None:
    machine = SteppedEngine("0 0 1 1 *")
    machine.ask(trigger, "job", at=START + 1)
    (running,) = machine.tick(START + 2)
    for n in range(MOST_VERSIONS + 20):
        edited(machine, START + 10 + n, description=f"edit {n}")
    kept = [job.version for job in machine.read(lambda reading: kept_versions(reading, "job"))]
    assert len(kept) <= MOST_VERSIONS + 2
    assert kept[-1] == 1, "the running occurrence began with it"
    assert machine.launches_after(running, "success", START + 1000) == []


FILE = """
[defaults]
retry = {{ max = {retries} }}
task_timeout = "{timeout}"

[jobs.heir]
schedule = "{schedule}"
run = "true"

[jobs.own]
schedule = "0 3 * * *"
retry = 7
task_timeout = "1h"
run = "true"
"""


def test_a_change_of_the_defaults_reaches_the_jobs_that_inherit_it_when_the_file_is_applied() -> None:
    store = MemoryStore()

    def applied(at: int, retries: int, timeout: str) -> dict[str, Change]:
        file = read_job_file(FILE.format(retries=retries, timeout=timeout, schedule=EARLY), "chronex.toml", "UTC")
        return {one.job: one.change for one in apply_jobs(store, file.jobs, at)}

    applied(START, 1, "5m")
    before = store.view(lambda tx: Reading(tx).job("heir"))
    assert applied(NOON, 4, "9m") == {"heir": Change.CHANGED, "own": Change.UNCHANGED}
    after = store.view(lambda tx: Reading(tx).job("heir"))
    assert before is not None
    assert after is not None
    assert (before.retry.max, before.task_timeout_ms) == (1, 5 * MINUTE)
    assert (after.retry.max, after.task_timeout_ms, after.version) == (4, 9 * MINUTE, 2)
    assert after.progress.next_ms == before.progress.next_ms, "the schedule goes on as it was"


def test_once_counts_from_the_apply_and_not_from_the_reading_of_the_file() -> None:
    """A second between the two, on a busy machine, and its moment would have passed before anybody knew of it."""
    store = MemoryStore()
    read_before = absolute_schedule(Job(id="job", schedule="@once +1s", tasks=(ONE,)), START - 5_000)
    apply_jobs(store, [read_before], START)
    found = store.view(lambda tx: Reading(tx).job("job"))
    assert found is not None
    assert found.progress.next_ms == START + 1_000
    apply_jobs(store, [read_before], START + 500)
    again = store.view(lambda tx: Reading(tx).job("job"))
    assert again is not None
    assert again.progress.next_ms == START + 1_000, "applying it again does not put it off"
