"""What is kept between lives: the four classes of a task, all or nothing, who looks after it, and damaged records."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.declarative import ScheduledTaskState, SchedulerState
from chronex.declarative.persistence import job_id
from chronex.declarative.scheduler_errors import (
    ScheduleTaskError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskListMismatchError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)
from chronex.engine.update import apply_jobs
from chronex.engine.update.apply import write_steps
from chronex.engine.update.diff import Change
from chronex.errors import StoreFullError
from chronex.model.records import Call, Job, Task
from chronex.storage.records import Ledger, Reading
from tests.declarative.world import World, crash, failing

HOUR = timedelta(hours=1)


def jobs(world: World) -> dict[str, Job]:
    return {job.id: job for job in world.store.view(lambda tx: Reading(tx).jobs())}


def edit(world: World, name: str, **changes: Any) -> None:
    job = jobs(world)[job_id(name)]
    world.store.update(lambda tx: Ledger(tx, 0).put(replace(job, **changes)))


async def live(world: World, *registrations: Any, until: str | None = None) -> dict[str, str]:
    """One scheduler from initialize to stop; how it classified each task."""
    scheduler = world.scheduler()
    await scheduler.initialize(list(registrations))
    found = {one.task: one.classification.value for one in scheduler.resolution}
    if until is not None:
        await world.at(until)
    await scheduler.stop()
    return found


# -- classification -------------------------------------------------------------------------------------------


async def test_tasks_are_new_preserved_overridden_or_orphaned() -> None:
    world = World()
    assert await live(world, world.task("a"), world.task("b"), world.task("c")) == dict.fromkeys("abc", "new")
    second = await live(world, world.task("a"), world.task("b", "5 4 * * *"), world.task("d"))
    assert second == {"a": "preserved", "b": "overridden", "c": "orphaned", "d": "new"}
    assert sorted(jobs(world)) == ["a", "b", "d"]
    assert {Change(value) for value in (*second.values(), "new")} == set(Change)
    world.verify()


@pytest.mark.parametrize(
    ("cron", "delay", "expected"),
    [
        ("0 5 * * *", HOUR, "preserved"),
        ("00 5 * * *", HOUR, "overridden"),  # the same minutes, another text
        ("0  5 * * *", HOUR, "overridden"),
        ("0 6 * * *", HOUR, "overridden"),
        ("0 5 * * *", HOUR + timedelta(milliseconds=1), "overridden"),
        ("0 5 * * *", timedelta(minutes=60), "preserved"),
    ],
)
async def test_identical_means_name_text_and_delay(cron: str, delay: timedelta, expected: str) -> None:
    world = World()
    await live(world, world.task("a", "0 5 * * *", HOUR))
    assert await live(world, world.task("a", cron, delay)) == {"a": expected}


async def test_another_name_is_another_task() -> None:
    world = World()
    await live(world, world.task("a", "0 5 * * *"))
    assert await live(world, world.task("A", "0 5 * * *")) == {"A": "new", "a": "orphaned"}


async def test_an_override_resets_timestamps_and_the_pending_retry() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", "10 * * * *", HOUR, failing(5))])
    await world.at("10:12")
    assert scheduler.tasks["a"].state is ScheduledTaskState.AWAITING_RETRY
    await scheduler.initialize([world.task("a", "20 * * * *", HOUR)])
    status = scheduler.tasks["a"]
    assert status[1:6] == (ScheduledTaskState.AWAITING_RUN, None, None, None, None)
    await world.at("11:15")
    await scheduler.stop()
    assert world.runs == [("a", "10:10"), ("a", "10:20")]
    world.verify()


async def test_an_override_in_the_minute_of_a_run_does_not_run_it_twice() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", "10,20 * * * *", HOUR)])
    await world.at("10:10:20")
    await scheduler.initialize([world.task("a", "10,20 * * * *", 2 * HOUR)])
    await world.at("10:22")
    await scheduler.stop()
    assert world.runs == [("a", "10:10"), ("a", "10:20")]
    world.verify()


async def test_an_orphan_is_removed_and_its_retry_is_cancelled() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", "10 * * * *", timedelta(minutes=5), failing(1)), world.task("b")])
    await world.at("10:11")
    await scheduler.initialize([world.task("b")])
    await world.at("10:20")
    assert list(scheduler.tasks) == ["b"]
    await scheduler.stop()
    assert [time for name, time in world.runs if name == "a"] == ["10:10"]
    world.verify()


async def test_a_task_that_is_removed_while_it_runs_ends_and_is_not_tried_again() -> None:
    world = World()
    gate = asyncio.Event()

    async def does() -> None:
        await gate.wait()
        raise RuntimeError("no")

    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", "10 * * * *", timedelta(minutes=1), does), world.task("b")])
    await world.at("10:10")
    await scheduler.initialize([world.task("b")])
    gate.set()
    await world.at("10:15")
    await scheduler.stop()
    assert [time for name, time in world.runs if name == "a"] == ["10:10"]
    assert "TaskRunFailed" in world.events()
    world.verify()


async def test_any_name_will_do() -> None:
    world = World()
    names = ["plain", "with space", "Ü/ö", "x" * 900, "task-" + "0" * 32, "\x1b[2J", "a\nb"]
    scheduler = world.scheduler()
    await scheduler.initialize([world.task(name, "10 * * * *") for name in names])
    await world.at("10:10")
    await scheduler.stop()
    assert sorted(scheduler.tasks) == sorted(names)
    assert sorted(name for name, _ in world.runs) == sorted(names)
    assert len({job_id(name) for name in names}) == len(names)


# -- the identifier -------------------------------------------------------------------------------------------


async def test_every_record_has_the_identifier_of_its_scheduler() -> None:
    world = World()
    first = world.scheduler()
    await first.initialize([world.task("a"), world.task("b")])
    assert first.identifier
    assert {job.metadata["scheduler"] for job in jobs(world).values()} == {first.identifier}
    identifier = first.identifier
    await first.initialize([world.task("a"), world.task("c")])
    assert first.identifier == identifier
    await first.stop()
    second = world.scheduler()
    await second.initialize([world.task("a")])
    assert second.identifier != identifier
    assert {job.metadata["scheduler"] for job in jobs(world).values()} == {second.identifier}
    assert {one.task: (one.classification.value, one.scheduler) for one in second.resolution} == {
        "a": ("preserved", identifier),
        "c": ("orphaned", identifier),
    }
    await second.stop()


async def test_other_jobs_of_the_store_are_left_alone() -> None:
    world = World()
    apply_jobs(world.store, [Job(id="theirs", schedule="@daily", tasks=(Task(name="main", run=("true",)),))], 0)
    await live(world, world.task("a"))
    await live(world)
    assert list(jobs(world)) == ["theirs"]
    scheduler = world.scheduler()
    with pytest.raises(ScheduleTaskError, match="Failed to schedule task 'theirs': the store has a job"):
        await scheduler.initialize([world.task("theirs")])
    assert jobs(world)["theirs"].schedule == "@daily"


# -- all or nothing -------------------------------------------------------------------------------------------


async def test_a_failing_override_restores_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    from chronex.declarative import persistence

    world = World()
    await live(world, world.task("a"), world.task("b"), world.task("c"))
    before, rows = jobs(world), world.store.view(lambda tx: tx.scan(b"O", None, 100))
    real = write_steps

    def failing_at_the_third(ledger: Ledger, steps: Any, actor: str) -> Any:
        if steps[0].job_id == "b":
            raise RuntimeError("disk on fire")
        return real(ledger, steps, actor)

    monkeypatch.setattr(persistence, "write_steps", failing_at_the_third)
    scheduler = world.scheduler()
    with pytest.raises(ScheduleTaskError) as failed:
        await scheduler.initialize([world.task("new"), world.task("a", "1 1 * * *"), world.task("b", "1 1 * * *")])
    assert str(failed.value) == "Failed to schedule task 'b': disk on fire"
    assert failed.value.details["name"] == "b"
    assert failed.value.details["cronExpression"] == "1 1 * * *"
    assert isinstance(failed.value.details["cause"], RuntimeError)
    assert jobs(world) == before
    assert world.store.view(lambda tx: tx.scan(b"O", None, 100)) == rows
    assert scheduler.state is SchedulerState.UNINITIALIZED


async def test_a_failing_reinitialization_leaves_the_store_and_stops() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a")])
    await world.at("10:05")
    before = jobs(world)
    original = world.store.update
    count = 0

    def second_fails(fn: Any, *, essential: bool = False) -> Any:
        nonlocal count
        count += 1
        if count == 2:  # the first is the event that it began, the second the override
            raise StoreFullError
        return original(fn, essential=essential)

    world.store.update = second_fails  # type: ignore[method-assign]
    with pytest.raises(ScheduleTaskError):
        await scheduler.initialize([world.task("a", "1 1 * * *")])
    assert scheduler.state is SchedulerState.UNINITIALIZED
    assert jobs(world)["a"].schedule == before["a"].schedule
    await world.settle()
    runs = len(world.runs)
    await world.at("10:12")
    assert len(world.runs) == runs
    await scheduler.initialize([world.task("a")])
    await world.at("10:20")
    assert ("a", "10:20") in world.runs
    await scheduler.stop()
    world.verify()


async def test_writing_the_same_state_again_changes_nothing() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a")])
    before = jobs(world)
    for _ in range(3):
        await scheduler.initialize([world.task("a")])
        assert jobs(world) == before
    await scheduler.stop()


async def test_a_crash_leaves_a_state_that_the_next_life_goes_on_with() -> None:
    world = World()
    scheduler = world.scheduler()
    blocked = asyncio.Event()
    await scheduler.initialize([world.task("a", "10,40 * * * *", does=blocked.wait), world.task("b", "12 * * * *")])  # type: ignore[arg-type]
    await world.at("10:10")
    await crash(scheduler)
    world.sleep_until("10:30:10")
    world.runs.clear()
    again = world.scheduler()
    await again.initialize([world.task("a", "10,40 * * * *"), world.task("b", "12 * * * *")])
    await world.settle()
    assert sorted(world.runs) == [("a", "10:30"), ("b", "10:30")]
    await world.at("10:45")
    assert sorted(world.runs) == [("a", "10:30"), ("a", "10:40"), ("b", "10:30")]
    await again.stop()
    names = [event.name for event in world.journal()]
    assert "SchedulerCrashed" in names
    world.verify()


# -- damaged records ------------------------------------------------------------------------------------------

GOOD = {"name": "a", "retryDelayMs": "300000", "scheduler": "s", "since_ms": "0"}


def without(field: str) -> dict[str, str]:
    return {key: value for key, value in GOOD.items() if key != field}


DAMAGED: list[tuple[dict[str, Any], type[TaskTryDeserializeError], str, dict[str, Any]]] = [
    ({"metadata": without("name")}, TaskMissingFieldError, "Missing required field: name", {"field": "name"}),
    ({"metadata": without("scheduler")}, TaskMissingFieldError, "Missing required field: scheduler", {"field": "scheduler"}),
    (
        {"metadata": {**GOOD, "retryDelayMs": "soon"}}, TaskInvalidTypeError,
        "Invalid type for field 'retryDelayMs': expected number, got string",
        {"field": "retryDelayMs", "value": "soon", "expectedType": "number", "actualType": "string"},
    ),
    (
        {"metadata": {**GOOD, "retryDelayMs": "-5"}}, TaskInvalidValueError,
        "Invalid value for field 'retryDelayMs': must not be negative",
        {"field": "retryDelayMs", "value": "-5", "reason": "must not be negative"},
    ),
    (
        {"metadata": {**GOOD, "name": "z"}}, TaskInvalidValueError,
        "Invalid value for field 'name': it does not belong to the record a",
        {"field": "name", "value": "z", "reason": "it does not belong to the record a"},
    ),
    ({"schedule": "@daily"}, TaskInvalidValueError, "Invalid value for field 'cronExpression': Invalid cron", {"field": "cronExpression"}),
    (
        {"tasks": (Task(name="main", run=Call("other")),)}, TaskInvalidStructureError,
        "the record a does not call the task's function", {"value": (Task(name="main", run=Call("other")),)},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "kind", "message", "details"), DAMAGED)
async def test_a_damaged_record_is_named_and_nothing_is_touched(
    changes: dict[str, Any], kind: type[TaskTryDeserializeError], message: str, details: dict[str, Any]
) -> None:
    world = World()
    await live(world, world.task("a"), world.task("b"))
    edit(world, "a", **changes)
    before = jobs(world)
    scheduler = world.scheduler()
    with pytest.raises(kind) as refused:
        await scheduler.initialize([world.task("a"), world.task("c")])
    assert str(refused.value).startswith(message)
    assert details.items() <= refused.value.details.items()
    assert isinstance(refused.value, TaskTryDeserializeError)
    assert jobs(world) == before
    assert scheduler.state is SchedulerState.UNINITIALIZED


async def test_tasks_that_are_not_what_was_asked_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from chronex.declarative import persistence

    world = World()
    await live(world, world.task("a"))
    monkeypatch.setattr(persistence, "write_steps", lambda *_: [])  # a store that loses a write
    scheduler = world.scheduler()
    with pytest.raises(TaskListMismatchError) as refused:
        await scheduler.initialize([world.task("a"), world.task("b")])
    assert refused.value.details == {"expected": ["a", "b"], "actual": ["a"]}
    assert list(jobs(world)) == ["a"]


async def test_a_moved_host_keeps_its_tasks_and_reads_them_in_its_new_zone() -> None:
    world = World()
    await live(world, world.task("a", "10 11 * * *"))
    scheduler = world.scheduler()
    scheduler._zone = "Europe/Berlin"  # one hour ahead
    await scheduler.initialize([world.task("a", "10 11 * * *")])
    assert {one.classification.value for one in scheduler.resolution} == {"preserved"}
    await world.at("10:12")
    await scheduler.stop()
    assert world.runs == [("a", "10:10")]
    world.verify()
