"""When tasks run: minutes, the first start, restarts, downtime, retries, and clock changes as they pass."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from chronex.declarative import ScheduledTaskState
from chronex.declarative.persistence import job_of
from chronex.declarative.registrations import check_registrations
from chronex.declarative.scheduler_errors import CronCalculationError
from chronex.timing.host_zone import host_zone
from tests.declarative.world import World, crash, failing


async def test_tasks_run_at_the_boundaries_of_matching_minutes() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("tens"), world.task("quarters", "*/15 * * * *")])
    await world.at("10:31")
    await scheduler.stop()
    later = sorted(time + " " + name for name, time in world.runs if time > "10:01")
    assert later == ["10:10 tens", "10:15 quarters", "10:20 tens", "10:30 quarters", "10:30 tens"]
    starts = [event.at for event in world.told if event.name == "TaskRunStarted"][2:]
    assert all((at.second, at.microsecond) == (0, 0) for at in starts)
    world.verify()


async def test_the_first_start_runs_only_what_matches_this_minute_exactly() -> None:
    world = World("2027-01-04T10:10:30")
    scheduler = world.scheduler()
    await scheduler.initialize(
        [world.task("now", "10 10 * * *"), world.task("before", "9 10 * * *"), world.task("after", "11 10 * * *")]
    )
    await world.settle()
    assert world.runs == [("now", "10:10")]
    await world.at("10:12")
    assert world.runs == [("now", "10:10"), ("after", "10:11")]
    await scheduler.stop()
    world.verify()


async def test_the_minute_of_the_start_is_not_run_again_after_a_quick_restart() -> None:
    world = World("2027-01-04T10:10:10")
    for time in ("10:10:20", "10:10:40"):
        scheduler = world.scheduler()
        await scheduler.initialize([world.task("a", "10 10 * * *")])
        await world.settle()
        await scheduler.stop()
        world.sleep_until(time)
    assert world.runs == [("a", "10:10")]
    world.verify()


async def test_six_missed_executions_are_one_run_on_resuming() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a"), world.task("b", "0 12 * * *")])
    await world.at("10:10")
    await scheduler.stop()
    world.runs.clear()
    world.sleep_until("11:15:20")
    again = world.scheduler()
    await again.initialize([world.task("a"), world.task("b", "0 12 * * *")])
    await world.settle()
    assert world.runs == [("a", "11:15")]
    await world.at("11:25")
    assert world.runs == [("a", "11:15"), ("a", "11:20")]
    await again.stop()
    world.verify()


async def test_a_restart_before_the_next_occurrence_runs_nothing() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a")])
    await world.at("10:10")
    await scheduler.stop()
    world.runs.clear()
    world.sleep_until("10:15")
    again = world.scheduler()
    await again.initialize([world.task("a")])
    await world.at("10:19")
    assert world.runs == []
    await again.stop()


async def test_a_failed_run_is_tried_again_after_its_delay_and_not_before() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", "10 * * * *", timedelta(minutes=5), failing(2))])
    await world.at("10:10:30")
    status = scheduler.tasks["a"]
    assert status.state is ScheduledTaskState.AWAITING_RETRY
    assert status.pending_retry_until is not None
    assert status.pending_retry_until.strftime("%H:%M:%S") == "10:15:00"
    await world.at("10:14")
    assert world.runs == [("a", "10:10")]
    await world.at("10:30")
    assert world.runs == [("a", "10:10"), ("a", "10:15"), ("a", "10:20")]
    assert world.events().count("TaskRetryStarted") == 2
    assert scheduler.tasks["a"].state is ScheduledTaskState.AWAITING_RUN
    await scheduler.stop()
    world.verify()


async def test_a_new_occurrence_takes_the_place_of_a_pending_retry() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", "10,12 * * * *", timedelta(minutes=5), failing(1))])
    await world.at("10:30")
    assert world.runs == [("a", "10:10"), ("a", "10:12")]
    first = world.events().index("TaskRetryPreempted")
    assert world.events()[first : first + 2] == ["TaskRetryPreempted", "TaskRunStarted"]
    assert scheduler.tasks["a"].pending_retry_until is None
    await scheduler.stop()
    world.verify()


async def test_a_pending_retry_outlives_a_restart() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", "10 * * * *", timedelta(minutes=5), failing(1))])
    await world.at("10:11")
    await scheduler.stop()
    world.sleep_until("10:13")
    again = world.scheduler()
    await again.initialize([world.task("a", "10 * * * *", timedelta(minutes=5))])
    await world.at("10:20")
    assert world.runs == [("a", "10:10"), ("a", "10:15")]
    await again.stop()
    world.verify()


async def test_timestamps_are_kept_through_success_and_failure() -> None:
    world = World()
    scheduler = world.scheduler()
    outcomes = iter([None, RuntimeError("no")])

    async def does() -> None:
        problem = next(outcomes, None)
        if problem is not None:
            raise problem

    await scheduler.initialize([world.task("a", "10,20 * * * *", timedelta(hours=1), does)])
    assert scheduler.tasks["a"][2:6] == (None, None, None, None)
    await world.at("10:25")
    status = scheduler.tasks["a"]
    shown = [None if at is None else at.strftime("%H:%M") for at in status[2:6]]
    assert shown == ["10:20", "10:10", "10:20", "11:20"]
    await scheduler.stop()
    assert scheduler.tasks["a"] == status


@pytest.mark.parametrize(
    ("zone", "cron", "start", "end", "runs"),
    [
        ("America/New_York", "30 1,2,3 * * *", "2027-03-14T01:00:30", "04:00", ["01:30", "03:30"]),
        ("America/New_York", "30 1,2 * * *", "2027-11-07T00:50:30", "03:00", ["01:30", "02:30"]),
        ("Europe/Berlin", "15,45 2 * * *", "2027-03-28T01:50:30", "04:00", []),
        (
            "Australia/Lord_Howe",
            "0,45 1,2 * * *",
            "2027-04-04T00:50:30",
            "03:00",
            ["01:00", "01:45", "02:00", "02:45"],
        ),
    ],
)
async def test_a_clock_change_passes_without_a_restart(
    zone: str, cron: str, start: str, end: str, runs: list[str]
) -> None:
    world = World(start, zone)
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", cron)])
    await world.at(end)
    assert [time for _, time in world.runs] == runs
    await world.at(f"{world.clock.moment.date()}T05:00")
    await scheduler.stop()
    world.verify()


async def test_the_zone_of_the_host_is_used_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    world = World("2027-01-04T00:00:30")  # 09:00:30 in Tokyo
    scheduler = world.scheduler()
    scheduler._zone = None
    await scheduler.initialize([world.task("a", "1 9 * * *")])
    await world.at("00:02")
    await scheduler.stop()
    assert world.runs == [("a", "00:01")]
    assert host_zone().zone.name == "Asia/Tokyo"


async def test_an_expression_that_never_matches_is_valid_and_never_runs() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("never", "0 0 30 2 *"), world.task("a")])
    await world.at("10:20")
    await scheduler.stop()
    assert {name for name, _ in world.runs} == {"a"}


async def test_a_calculation_that_fails_says_of_what(monkeypatch: pytest.MonkeyPatch) -> None:
    from chronex.declarative import persistence

    def broken(*_: object) -> None:
        raise OverflowError("beyond the calendar")

    world = World()
    scheduler = world.scheduler()
    monkeypatch.setattr(persistence, "next_look", broken)
    with pytest.raises(CronCalculationError) as failed:
        await scheduler.initialize([world.task("a", "5 4 * * *")])
    assert str(failed.value) == "Failed to calculate next occurrence: beyond the calendar"
    assert failed.value.details["expression"] == "5 4 * * *"
    assert failed.value.details["currentTime"] == "2027-01-04T10:00:30+00:00"
    assert isinstance(failed.value.details["cause"], OverflowError)


async def test_the_same_inputs_give_the_same_decisions() -> None:
    async def life() -> list[tuple[str, int, str, int | None]]:
        world = World()
        scheduler = world.scheduler()
        await scheduler.initialize(
            [world.task("a"), world.task("b", "*/15 * * * *", does=failing(1)), world.task("c")]
        )
        await world.at("10:31")
        await scheduler.stop()
        return [(e.name, e.at_ms, e.job, e.nominal_ms) for e in world.journal()]

    assert await life() == await life()


async def test_an_interrupted_run_is_started_again_within_the_minute() -> None:
    world = World()
    scheduler = world.scheduler()
    await scheduler.initialize([world.task("a", "10 * * * *", does=asyncio.Event().wait)])  # type: ignore[arg-type]
    await world.at("10:10")
    await crash(scheduler)
    world.sleep_until("10:30")
    again = world.scheduler()
    await again.initialize([world.task("a", "10 * * * *")])
    await world.settle()
    assert world.runs == [("a", "10:10"), ("a", "10:30")]
    await again.stop()
    world.verify()


def test_retry_delays_are_exact_to_the_millisecond() -> None:
    async def callback() -> None:
        return

    (one,) = check_registrations([("a", "* * * * *", callback, timedelta(seconds=1, microseconds=500))])
    assert job_of(one, "s", "UTC", 0).retry.interval_ms == 1001
