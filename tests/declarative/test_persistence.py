"""What is kept between processes: the four classes of a task, all or nothing, its scheduler, and damaged records."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.declarative import ScheduledTaskState, SchedulerState
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
from chronex.engine.update.apply import write_changes
from chronex.engine.update.diff import Change
from chronex.errors import StoreFullError
from chronex.model.job import Call, Job, Task, task_job_id
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import WHOLE, Scope
from chronex_store.history_retention import RetentionPolicy, trim
from tests.declarative.host import SimulatedHost, crash, failing

HOUR = timedelta(hours=1)


def jobs(host: SimulatedHost) -> dict[str, Job]:
    return {job.id: job for job in host.store.view(lambda tx: Reading(tx).jobs())}


def edit(host: SimulatedHost, name: str, **changes: Any) -> None:
    job = jobs(host)[task_job_id(name)]
    host.store.update(lambda tx: Records(tx, 0).put(replace(job, **changes)))


async def live(host: SimulatedHost, *registrations: Any, until: str | None = None) -> dict[str, str]:
    """One scheduler from initialize to stop; how it classified each task."""
    scheduler = host.scheduler()
    await scheduler.initialize(list(registrations))
    found = {one.task: one.classification.value for one in scheduler.resolution}
    if until is not None:
        await host.at(until)
    await scheduler.stop()
    return found


async def test_the_last_success_is_known_longer_than_its_record_is_kept() -> None:
    host, is_broken = SimulatedHost(), False

    async def does() -> None:
        if is_broken:
            raise ValueError("broken")

    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", does=does)])
    await host.at("10:10")
    succeeded = scheduler.tasks["a"].last_success_at
    is_broken = True
    await host.at("10:50")
    trim(host.store, RetentionPolicy(max_count=1, max_age_ms=None), host.clock.wall_ms())
    assert succeeded is not None
    assert scheduler.tasks["a"].last_success_at == succeeded
    await scheduler.stop()
    assert scheduler.tasks["a"].last_success_at == succeeded


async def test_schedulers_of_two_programs_leave_each_others_tasks_alone() -> None:
    host = SimulatedHost()
    first, second = host.scheduler("backups"), host.scheduler("reports")
    await first.initialize([host.task("backup")])
    await second.initialize([host.task("report")])
    await host.at("10:20")
    # The first is that of the minute in which they were initialized.
    assert set(host.runs) == {(name, at) for name in ("backup", "report") for at in ("10:01", "10:10", "10:20")}
    assert (set(first.tasks), set(second.tasks)) == ({"backup"}, {"report"})
    with pytest.raises(ScheduleTaskError, match="belongs to declarative backups"):
        await second.initialize([host.task("backup")])
    await first.stop()
    host.verify()


async def test_a_task_that_is_taken_from_a_living_scheduler_of_the_same_name_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = SimulatedHost()
    first, second = host.scheduler("backups"), host.scheduler("backups")
    await first.initialize([host.task("daily backup"), host.task("prune")])
    await first.initialize([host.task("daily backup")])
    assert not caplog.records, "its own tasks are its own to remove"
    await second.initialize([host.task("report")])
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("task 'daily backup' was removed, though a scheduler that lives has it (pid ")
    await first.stop()
    await second.stop()
    caplog.clear()
    third = host.scheduler("backups")
    await third.initialize([])
    assert not caplog.records, "of one that has stopped there is nothing to tell"
    await third.stop()


async def test_tasks_from_before_programs_had_names_go_on_where_they_were() -> None:
    host = SimulatedHost()
    await live(host, host.task("a"), until="10:10")
    edit(host, "a", source="declarative")
    assert await live(host, host.task("a"), until="10:15") == {"a": "preserved"}
    assert host.runs == [("a", "10:01"), ("a", "10:10")]


# -- classification -------------------------------------------------------------------------------------------


async def test_tasks_are_new_preserved_overridden_or_orphaned() -> None:
    host = SimulatedHost()
    assert await live(host, host.task("a"), host.task("b"), host.task("c")) == dict.fromkeys("abc", "new")
    second = await live(host, host.task("a"), host.task("b", "5 4 * * *"), host.task("d"))
    assert second == {"a": "preserved", "b": "overridden", "c": "orphaned", "d": "new"}
    assert sorted(jobs(host)) == ["a", "b", "d"]
    assert {Change(value) for value in (*second.values(), "new")} == set(Change)
    host.verify()


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
    host = SimulatedHost()
    await live(host, host.task("a", "0 5 * * *", HOUR))
    assert await live(host, host.task("a", cron, delay)) == {"a": expected}


async def test_another_name_is_another_task() -> None:
    host = SimulatedHost()
    await live(host, host.task("a", "0 5 * * *"))
    assert await live(host, host.task("A", "0 5 * * *")) == {"A": "new", "a": "orphaned"}


async def test_an_override_resets_timestamps_and_the_pending_retry() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10 * * * *", HOUR, failing(5))])
    await host.at("10:12")
    assert scheduler.tasks["a"].state is ScheduledTaskState.AWAITING_RETRY
    await scheduler.initialize([host.task("a", "20 * * * *", HOUR)])
    status = scheduler.tasks["a"]
    assert status[1:6] == (ScheduledTaskState.AWAITING_RUN, None, None, None, None)
    await host.at("11:15")
    await scheduler.stop()
    assert host.runs == [("a", "10:10"), ("a", "10:20")]
    host.verify()


async def test_an_override_in_the_minute_of_a_run_does_not_run_it_twice() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10,20 * * * *", HOUR)])
    await host.at("10:10:20")
    await scheduler.initialize([host.task("a", "10,20 * * * *", 2 * HOUR)])
    await host.at("10:22")
    await scheduler.stop()
    assert host.runs == [("a", "10:10"), ("a", "10:20")]
    host.verify()


async def test_an_orphan_is_removed_and_its_retry_is_cancelled() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10 * * * *", timedelta(minutes=5), failing(1)), host.task("b")])
    await host.at("10:11")
    await scheduler.initialize([host.task("b")])
    await host.at("10:20")
    assert list(scheduler.tasks) == ["b"]
    await scheduler.stop()
    assert [time for name, time in host.runs if name == "a"] == ["10:10"]
    host.verify()


async def test_a_task_that_is_removed_while_it_runs_ends_and_is_not_tried_again() -> None:
    host = SimulatedHost()
    gate = asyncio.Event()

    async def does() -> None:
        await gate.wait()
        raise RuntimeError("no")

    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10 * * * *", timedelta(minutes=1), does), host.task("b")])
    await host.at("10:10")
    await scheduler.initialize([host.task("b")])
    gate.set()
    await host.at("10:15")
    await scheduler.stop()
    assert [time for name, time in host.runs if name == "a"] == ["10:10"]
    assert "TaskRunFailed" in host.events()
    host.verify()


async def test_any_name_will_do() -> None:
    host = SimulatedHost()
    names = ["plain", "with space", "Ü/ö", "x" * 900, "task-" + "0" * 32, "\x1b[2J", "a\nb"]
    scheduler = host.scheduler()
    await scheduler.initialize([host.task(name, "10 * * * *") for name in names])
    await host.at("10:10")
    await scheduler.stop()
    assert sorted(scheduler.tasks) == sorted(names)
    assert sorted(name for name, _ in host.runs) == sorted(names)
    assert len({task_job_id(name) for name in names}) == len(names)


# -- the identifier -------------------------------------------------------------------------------------------


async def test_every_record_has_the_identifier_of_its_scheduler() -> None:
    host = SimulatedHost()
    first = host.scheduler()
    await first.initialize([host.task("a"), host.task("b")])
    assert first.identifier
    assert {job.metadata["scheduler"] for job in jobs(host).values()} == {first.identifier}
    identifier = first.identifier
    await first.initialize([host.task("a"), host.task("c")])
    assert first.identifier == identifier
    await first.stop()
    second = host.scheduler()
    await second.initialize([host.task("a")])
    assert second.identifier != identifier
    assert {job.metadata["scheduler"] for job in jobs(host).values()} == {second.identifier}
    assert {one.task: (one.classification.value, one.scheduler) for one in second.resolution} == {
        "a": ("preserved", identifier),
        "c": ("orphaned", identifier),
    }
    await second.stop()


async def test_other_jobs_of_the_store_are_left_alone() -> None:
    host = SimulatedHost()
    apply_jobs(host.store, [Job(id="theirs", schedule="@daily", tasks=(Task(name="main", run=("true",)),))], 0)
    await live(host, host.task("a"))
    await live(host)
    assert list(jobs(host)) == ["theirs"]
    scheduler = host.scheduler()
    with pytest.raises(ScheduleTaskError, match="Failed to schedule task 'theirs': the store has a job"):
        await scheduler.initialize([host.task("theirs")])
    assert jobs(host)["theirs"].schedule == "@daily"


# -- all or nothing -------------------------------------------------------------------------------------------


async def test_a_failing_override_restores_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    from chronex.declarative import persistence

    host = SimulatedHost()
    await live(host, host.task("a"), host.task("b"), host.task("c"))
    before, rows = jobs(host), host.store.view(lambda tx: tx.scan(b"O", None, 100))
    real = write_changes

    def failing_at_the_third(records: Records, steps: Any, actor: str) -> Any:
        if steps[0].job_id == "b":
            raise RuntimeError("disk on fire")
        return real(records, steps, actor)

    monkeypatch.setattr(persistence, "write_changes", failing_at_the_third)
    scheduler = host.scheduler()
    with pytest.raises(ScheduleTaskError) as failed:
        await scheduler.initialize([host.task("new"), host.task("a", "1 1 * * *"), host.task("b", "1 1 * * *")])
    assert str(failed.value) == "Failed to schedule task 'b': disk on fire"
    assert failed.value.details["name"] == "b"
    assert failed.value.details["cronExpression"] == "1 1 * * *"
    assert isinstance(failed.value.details["cause"], RuntimeError)
    assert jobs(host) == before
    assert host.store.view(lambda tx: tx.scan(b"O", None, 100)) == rows
    assert scheduler.state is SchedulerState.UNINITIALIZED


async def test_a_failing_reinitialization_leaves_the_store_and_stops() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a")])
    await host.at("10:05")
    before = jobs(host)
    original = host.store.update
    count = 0

    def second_fails(fn: Any, *, use_reserve: bool = False, scope: Scope = WHOLE) -> Any:
        nonlocal count
        count += 1
        if count == 2:  # the first is the event that it began, the second the override
            raise StoreFullError
        return original(fn, use_reserve=use_reserve, scope=scope)

    host.store.update = second_fails  # type: ignore[method-assign]
    with pytest.raises(ScheduleTaskError):
        await scheduler.initialize([host.task("a", "1 1 * * *")])
    assert scheduler.state is SchedulerState.UNINITIALIZED
    assert jobs(host)["a"].schedule == before["a"].schedule
    await host.settle()
    runs = len(host.runs)
    await host.at("10:12")
    assert len(host.runs) == runs
    await scheduler.initialize([host.task("a")])
    await host.at("10:20")
    assert ("a", "10:20") in host.runs
    await scheduler.stop()
    host.verify()


async def test_writing_the_same_state_again_changes_nothing() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a")])
    before = jobs(host)
    for _ in range(3):
        await scheduler.initialize([host.task("a")])
        assert jobs(host) == before
    await scheduler.stop()


async def test_a_crash_leaves_a_state_that_the_next_life_goes_on_with() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    blocked = asyncio.Event()
    await scheduler.initialize([host.task("a", "10,40 * * * *", does=blocked.wait), host.task("b", "12 * * * *")])  # type: ignore[arg-type]
    await host.at("10:10")
    await crash(scheduler)
    host.sleep_until("10:30:10")
    host.runs.clear()
    again = host.scheduler()
    await again.initialize([host.task("a", "10,40 * * * *"), host.task("b", "12 * * * *")])
    await host.settle()
    assert sorted(host.runs) == [("a", "10:30"), ("b", "10:30")]
    await host.at("10:45")
    assert sorted(host.runs) == [("a", "10:30"), ("a", "10:40"), ("b", "10:30")]
    await again.stop()
    names = [event.name for event in host.journal()]
    assert "SchedulerCrashed" in names
    host.verify()


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
    host = SimulatedHost()
    await live(host, host.task("a"), host.task("b"))
    edit(host, "a", **changes)
    before = jobs(host)
    scheduler = host.scheduler()
    with pytest.raises(kind) as refused:
        await scheduler.initialize([host.task("a"), host.task("c")])
    assert str(refused.value).startswith(message)
    named = refused.value.details["taskName"]
    assert named in ("a", "z"), "the name that stands in the record, or the record's own"
    assert str(refused.value).endswith(f" (task '{named}')")
    assert details.items() <= refused.value.details.items()
    assert isinstance(refused.value, TaskTryDeserializeError)
    assert jobs(host) == before
    assert scheduler.state is SchedulerState.UNINITIALIZED


async def test_tasks_that_are_not_what_was_asked_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from chronex.declarative import persistence

    host = SimulatedHost()
    await live(host, host.task("a"))
    monkeypatch.setattr(persistence, "write_changes", lambda *_: [])  # a store that loses a write
    scheduler = host.scheduler()
    with pytest.raises(TaskListMismatchError) as refused:
        await scheduler.initialize([host.task("a"), host.task("b")])
    assert refused.value.details == {"expected": ["a", "b"], "actual": ["a"]}
    assert list(jobs(host)) == ["a"]


async def test_a_moved_host_keeps_its_tasks_and_reads_them_in_its_new_zone() -> None:
    host = SimulatedHost()
    await live(host, host.task("a", "10 11 * * *"))
    scheduler = host.scheduler()
    scheduler._zone = "Europe/Berlin"  # one hour ahead
    await scheduler.initialize([host.task("a", "10 11 * * *")])
    assert {one.classification.value for one in scheduler.resolution} == {"preserved"}
    await host.at("10:12")
    await scheduler.stop()
    assert host.runs == [("a", "10:10")]
    host.verify()


async def test_a_task_made_by_a_clock_that_was_behind_makes_up_for_nothing_from_before_it() -> None:
    host = SimulatedHost("2027-01-04T10:00:30")
    await live(host, host.task("a"))
    host.clock.step(timedelta(days=-1))
    await live(host, host.task("a"), host.task("b", "0 * * * *"))
    host.clock.step(timedelta(days=1))
    host.sleep_until("10:05:30")
    await live(host, host.task("a"), host.task("b", "0 * * * *"), until="11:00:30")
    assert [run for run in host.runs if run[0] == "b"] == [("b", "11:00")]
