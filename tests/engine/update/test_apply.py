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
from tests.kit.machine import FIRST, ONE, START, THREE, TWO, SteppedEngine, steady

NOON = START + 12 * HOUR
EARLY, LATE = "0 3 * * *", "0 5 * * *"


def edited(world: SteppedEngine, at: int, policy: Policy = Policy.IMMEDIATE, **changes: Any) -> Change:
    world.job = replace(world.job, **changes)
    (changed,) = apply_jobs(world.store, [world.job], at, "test", policy=policy)
    return changed.change


def starts(world: SteppedEngine, until: int, since: int = NOON) -> list[tuple[int, str]]:
    """When each occurrence started after `since`, as hours after START, and with which task it began."""
    found: list[tuple[int, str]] = []
    now = since
    while now <= until:
        for launch in world.tick(now, awake_since=START):
            found.append(((now - START) // HOUR, launch.task.name))
            world.end(launch, "success", now)
        now += HOUR
    return found


def everything(world: SteppedEngine) -> list[tuple[bytes, bytes]]:
    return world.store.view(lambda tx: tx.scan(b"", None, 100_000))


@pytest.mark.parametrize("policy", Policy)
def test_applying_twice_is_applying_once(policy: Policy) -> None:
    world = SteppedEngine(EARLY)
    assert edited(world, NOON, policy, schedule=LATE, tasks=(TWO,)) is Change.CHANGED
    before = everything(world)
    assert edited(world, NOON + 1, policy) is Change.UNCHANGED
    assert everything(world) == before


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
    world = SteppedEngine(EARLY)
    starts(world, NOON, since=START)
    edited(world, NOON, policy, schedule=LATE)
    assert [hour for hour, _ in starts(world, START + 4 * DAY - 1)] == expected


def test_graceful_runs_the_last_old_occurrence_with_the_old_definition() -> None:
    world = SteppedEngine(EARLY)
    edited(world, NOON, Policy.GRACEFUL, schedule=LATE, tasks=(TWO,))
    assert starts(world, START + 3 * DAY) == [(27, "one"), (53, "two")]


def test_graceful_again_before_the_switch_keeps_the_one_that_waits() -> None:
    world = SteppedEngine(EARLY)
    edited(world, NOON, Policy.GRACEFUL, schedule=LATE)
    edited(world, NOON + HOUR, Policy.GRACEFUL, schedule="0 7 * * *")
    assert [hour for hour, _ in starts(world, START + 3 * DAY)] == [27, 55]


def test_an_edit_never_fires_at_once_and_what_was_skipped_is_recorded() -> None:
    world = SteppedEngine("*/10 * * * *")
    edited(world, NOON, schedule="*/20 * * * *")  # no daemon ran since START
    assert world.tick(NOON, awake_since=NOON) == []
    event = next(event for event in world.events() if event.name == "OccurrencesMissed")
    assert event.reason == Reason(ReasonCode.REPLACED, "2")
    assert event.data == {"from_ms": START + 10 * MINUTE, "to_ms": NOON}


def test_switching_a_job_off_and_on_does_not_catch_up_on_the_time_between() -> None:
    world = SteppedEngine("* * * * *")
    edited(world, FIRST + 1, enabled=False)
    edited(world, FIRST + DAY, enabled=True)
    assert world.tick(FIRST + DAY + 1, awake_since=FIRST + DAY + 1) == []
    assert len(world.tick(FIRST + DAY + MINUTE)) == 1


# -- what waits ------------------------------------------------------------------------------------------

BEFORE = SpreadPolicy(mode="before", duration_ms=2 * HOUR)


def planned(world: SteppedEngine) -> int:
    """The nominal time of an occurrence that is decided and not due yet: a spread before 03:00 of the next day."""
    nominal = START + DAY + 3 * HOUR
    for launch in world.tick(nominal - 2 * HOUR):
        world.end(launch, "success", nominal - 2 * HOUR)
    assert world.occurrence(nominal).state is OccurrenceState.PENDING
    return nominal


def test_what_waits_and_is_no_longer_wanted_is_withdrawn_with_the_version_that_did_it() -> None:
    world = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(world)
    edited(world, nominal - 2 * HOUR + 1, schedule=LATE)
    withdrawn = world.occurrence(nominal)
    assert (withdrawn.state, withdrawn.reason) == (OccurrenceState.CANCELED, Reason(ReasonCode.REPLACED, "2"))


def test_an_edit_and_its_undoing_leave_the_occurrence_that_was_withdrawn_to_run() -> None:
    world = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(world)
    edited(world, nominal - 2 * HOUR + 1, schedule=LATE)
    assert world.stored().progress.counters.canceled == 1
    edited(world, nominal - 2 * HOUR + 2, schedule=EARLY)
    assert world.stored().progress.counters.canceled == 0, "history has none either"
    assert [launch.occurrence.nominal_ms for launch in world.tick(nominal)] == [nominal]


def test_removing_a_job_and_bringing_it_back_leaves_what_was_withdrawn_to_run() -> None:
    world = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(world)
    apply_jobs(world.store, [], nominal - 2 * HOUR + 1)
    assert world.occurrence(nominal).state is OccurrenceState.CANCELED
    apply_jobs(world.store, [world.job], nominal - 2 * HOUR + 2)
    assert [launch.occurrence.nominal_ms for launch in world.tick(nominal)] == [nominal]


def test_what_waits_and_is_still_wanted_gets_the_new_definition_and_its_new_due_time() -> None:
    world = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(world)
    edited(world, nominal - 2 * HOUR + 1, tasks=(TWO,), spread=SpreadPolicy(mode="after", duration_ms=HOUR))
    moved = world.occurrence(nominal)
    assert (moved.state, moved.version) == (OccurrenceState.PENDING, 2)
    assert nominal <= moved.due_ms <= nominal + HOUR
    assert [launch.task.name for launch in world.tick(moved.due_ms)] == ["two"]


def test_windowed_leaves_what_waits_beyond_its_window() -> None:
    world = SteppedEngine(EARLY, spread=BEFORE)
    nominal = planned(world)
    world.job = replace(world.job, schedule=LATE)
    apply_jobs(world.store, [world.job], nominal - 2 * HOUR + 1, policy=Policy.WINDOWED, window_ms=HOUR)
    assert world.occurrence(nominal).state is OccurrenceState.PENDING


def test_what_is_queued_stays_and_gets_the_new_definition() -> None:
    world = SteppedEngine("0 0 1 1 *", overlap=OverlapPolicy.QUEUE)
    world.ask(trigger, "job", at=START + 1)
    (running,) = world.tick(START + 2)
    world.ask(trigger, "job", at=START + 3)
    edited(world, START + 4, tasks=(TWO,))
    assert [launch.task.name for launch in world.launches_after(running, "success", START + 5)] == ["two"]


# -- tasks and running occurrences -----------------------------------------------------------------------


def test_a_running_occurrence_keeps_its_version_to_the_end() -> None:
    world = SteppedEngine(tasks=(ONE, TWO))
    (first,) = world.tick(FIRST)
    edited(world, FIRST + 1, tasks=(THREE,))
    (second,) = world.launches_after(first, "success", FIRST + 2)
    assert second.task.name == "two"
    world.end(second, "success", FIRST + 3)
    assert [launch.task.name for launch in world.tick(FIRST + MINUTE)] == ["three"]


def test_a_removed_jobs_running_occurrence_goes_on_with_its_tasks_and_its_retries() -> None:
    world = SteppedEngine(tasks=(ONE, TWO), retry=steady(1, 1000))
    (first,) = world.tick(FIRST)
    assert apply_jobs(world.store, [], FIRST + 1)[0].change is Change.REMOVED
    (second,) = world.launches_after(first, "success", FIRST + 2)
    world.end(second, "failed", FIRST + 3)
    (again,) = world.tick(FIRST + 1003)
    assert again.attempt.number == 2
    world.end(again, "success", FIRST + 1004)
    assert world.occurrence(FIRST).state is OccurrenceState.COMPLETED
    assert world.tick(FIRST + MINUTE) == []


def test_a_removed_jobs_waiting_occurrences_are_canceled_with_events() -> None:
    world = SteppedEngine("0 0 1 1 *", overlap=OverlapPolicy.QUEUE)
    world.ask(trigger, "job", at=START + 1)
    apply_jobs(world.store, [], START + 2)
    assert [(e.name, e.reason) for e in world.events()][-2:] == [
        ("JobOrphaned", NO_REASON),
        ("OccurrenceCanceled", Reason(ReasonCode.JOB_REMOVED)),
    ]


def test_a_job_that_comes_back_goes_on_counting_its_versions() -> None:
    world = SteppedEngine()
    apply_jobs(world.store, [], START + 1)
    (changed,) = apply_jobs(world.store, [world.job], START + 2)
    assert (changed.change, changed.version) == (Change.NEW, 2)


# -- who may write ---------------------------------------------------------------------------------------


def test_a_stale_writer_is_refused_with_who_changed_what_and_nothing_is_written() -> None:
    world = SteppedEngine()
    basis = world.store.view(journal.head)
    edited(world, START + 1, tasks=(TWO,))
    before = everything(world)
    with pytest.raises(StaleUpdateError, match="job overridden by test at 2027-01-01T00:00:00Z"):
        apply_jobs(world.store, [replace(world.job, tasks=(THREE,))], START + 2, basis=basis)
    assert everything(world) == before


def test_a_stale_writer_who_wants_what_is_there_already_is_right() -> None:
    world = SteppedEngine()
    basis = world.store.view(journal.head)
    edited(world, START + 1, tasks=(TWO,))
    (changed,) = apply_jobs(world.store, [world.job], START + 2, basis=basis)
    assert changed.change is Change.UNCHANGED


def test_ticks_and_triggers_in_between_make_no_writer_stale() -> None:
    world = SteppedEngine()
    basis = world.store.view(journal.head)
    world.tick(FIRST)
    world.ask(trigger, "job")
    assert apply_jobs(world.store, [replace(world.job, tasks=(TWO,))], FIRST + 2, basis=basis)


def test_trigger_files_and_job_files_leave_each_others_jobs_alone() -> None:
    world = SteppedEngine()
    mine = Job(id="mine", schedule="@daily", source="/t/mine.json", tasks=(ONE,))
    apply_jobs(world.store, [mine], START + 1, owns=lambda job: job.source == mine.source)
    apply_jobs(world.store, [world.job], START + 2)
    assert world.read(lambda reading: [job.id for job in reading.jobs()]) == ["job", "mine"]
    apply_jobs(world.store, [], START + 3, owns=lambda job: job.source == mine.source)
    assert world.read(lambda reading: [job.id for job in reading.jobs()]) == ["job"]


# -- versions --------------------------------------------------------------------------------------------


def test_rolling_back_gives_an_earlier_definition_as_a_new_version() -> None:
    world = SteppedEngine()
    edited(world, START + 1, tasks=(TWO,))
    changed = roll_back(world.store, "job", 1, START + 2, "test")
    assert (changed.change, changed.version) == (Change.CHANGED, 3)
    assert world.stored().tasks == (ONE,)
    assert [job.version for job in world.read(lambda reading: kept_versions(reading, "job"))] == [3, 2, 1]
    assert world.events()[-1].data["rolled_back_to"] == 1


def test_a_removed_job_can_be_rolled_back_into_being() -> None:
    world = SteppedEngine()
    apply_jobs(world.store, [], START + 1)
    assert roll_back(world.store, "job", 1, START + 2).change is Change.NEW
    assert world.stored().tasks == (ONE,)


def test_a_version_or_job_that_is_not_kept_is_refused() -> None:
    world = SteppedEngine()
    with pytest.raises(NotPossibleError, match="version 7 of job is not kept; there are 1"):
        roll_back(world.store, "job", 7, START + 1)
    with pytest.raises(UnknownJobError, match="did you mean job"):
        roll_back(world.store, "jobb", 1, START + 1)


def test_versions_are_bounded_but_none_that_is_in_use_goes() -> None:
    world = SteppedEngine("0 0 1 1 *")
    world.ask(trigger, "job", at=START + 1)
    (running,) = world.tick(START + 2)
    for n in range(MOST_VERSIONS + 20):
        edited(world, START + 10 + n, description=f"edit {n}")
    kept = [job.version for job in world.read(lambda reading: kept_versions(reading, "job"))]
    assert len(kept) <= MOST_VERSIONS + 2
    assert kept[-1] == 1, "the running occurrence began with it"
    assert world.launches_after(running, "success", START + 1000) == []


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
