"""When tasks run: minutes, the first start, restarts, downtime, retries, and clock changes as they pass."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from chronex.declarative import ScheduledTaskState
from chronex.declarative.persistence import job_of
from chronex.declarative.registrations import check_registrations
from chronex.declarative.scheduler_errors import CronCalculationError
from chronex.timing.zones import host_zone
from tests.declarative.host import SimulatedHost, crash, failing


async def test_tasks_run_at_the_boundaries_of_matching_minutes() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("tens"), host.task("quarters", "*/15 * * * *")])
    await host.at("10:31")
    await scheduler.stop()
    later = sorted(time + " " + name for name, time in host.runs if time > "10:01")
    assert later == ["10:10 tens", "10:15 quarters", "10:20 tens", "10:30 quarters", "10:30 tens"]
    starts = [event.at for event in host.received if event.name == "TaskRunStarted"][2:]
    assert all((at.second, at.microsecond) == (0, 0) for at in starts)
    host.verify()


async def test_the_first_start_runs_only_what_matches_this_minute_exactly() -> None:
    host = SimulatedHost("2027-01-04T10:10:30")
    scheduler = host.scheduler()
    await scheduler.initialize(
        [host.task("now", "10 10 * * *"), host.task("before", "9 10 * * *"), host.task("after", "11 10 * * *")]
    )
    await host.settle()
    assert host.runs == [("now", "10:10")]
    await host.at("10:12")
    assert host.runs == [("now", "10:10"), ("after", "10:11")]
    await scheduler.stop()
    host.verify()


async def test_the_minute_of_the_start_is_not_run_again_after_a_quick_restart() -> None:
    host = SimulatedHost("2027-01-04T10:10:10")
    for time in ("10:10:20", "10:10:40"):
        scheduler = host.scheduler()
        await scheduler.initialize([host.task("a", "10 10 * * *")])
        await host.settle()
        await scheduler.stop()
        host.sleep_until(time)
    assert host.runs == [("a", "10:10")]
    host.verify()


async def test_six_missed_executions_are_one_run_on_resuming() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a"), host.task("b", "0 12 * * *")])
    await host.at("10:10")
    await scheduler.stop()
    host.runs.clear()
    host.sleep_until("11:15:20")
    again = host.scheduler()
    await again.initialize([host.task("a"), host.task("b", "0 12 * * *")])
    await host.settle()
    assert host.runs == [("a", "11:15")]
    await host.at("11:25")
    assert host.runs == [("a", "11:15"), ("a", "11:20")]
    await again.stop()
    host.verify()


async def test_a_restart_before_the_next_occurrence_runs_nothing() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a")])
    await host.at("10:10")
    await scheduler.stop()
    host.runs.clear()
    host.sleep_until("10:15")
    again = host.scheduler()
    await again.initialize([host.task("a")])
    await host.at("10:19")
    assert host.runs == []
    await again.stop()


async def test_a_failed_run_is_tried_again_after_its_delay_and_not_before() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10 * * * *", timedelta(minutes=5), failing(2))])
    await host.at("10:10:30")
    status = scheduler.tasks["a"]
    assert status.state is ScheduledTaskState.AWAITING_RETRY
    assert status.pending_retry_until is not None
    assert status.pending_retry_until.strftime("%H:%M:%S") == "10:15:00"
    await host.at("10:14")
    assert host.runs == [("a", "10:10")]
    await host.at("10:30")
    assert host.runs == [("a", "10:10"), ("a", "10:15"), ("a", "10:20")]
    assert host.events().count("TaskRetryStarted") == 2
    assert scheduler.tasks["a"].state is ScheduledTaskState.AWAITING_RUN
    await scheduler.stop()
    host.verify()


async def test_a_new_occurrence_takes_the_place_of_a_pending_retry() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10,12 * * * *", timedelta(minutes=5), failing(1))])
    await host.at("10:30")
    assert host.runs == [("a", "10:10"), ("a", "10:12")]
    first = host.events().index("TaskRetryPreempted")
    assert host.events()[first : first + 2] == ["TaskRetryPreempted", "TaskRunStarted"]
    assert scheduler.tasks["a"].pending_retry_until is None
    await scheduler.stop()
    host.verify()


async def test_a_pending_retry_outlives_a_restart() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10 * * * *", timedelta(minutes=5), failing(1))])
    await host.at("10:11")
    await scheduler.stop()
    host.sleep_until("10:13")
    again = host.scheduler()
    await again.initialize([host.task("a", "10 * * * *", timedelta(minutes=5))])
    await host.at("10:20")
    assert host.runs == [("a", "10:10"), ("a", "10:15")]
    await again.stop()
    host.verify()


async def test_timestamps_are_kept_through_success_and_failure() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    outcomes = iter([None, RuntimeError("no")])

    async def does() -> None:
        problem = next(outcomes, None)
        if problem is not None:
            raise problem

    await scheduler.initialize([host.task("a", "10,20 * * * *", timedelta(hours=1), does)])
    assert scheduler.tasks["a"][2:6] == (None, None, None, None)
    await host.at("10:25")
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
    host = SimulatedHost(start, zone)
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", cron)])
    await host.at(end)
    assert [time for _, time in host.runs] == runs
    await host.at(f"{host.moment.date()}T05:00")
    await scheduler.stop()
    host.verify()


async def test_the_zone_of_the_host_is_used_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    host = SimulatedHost("2027-01-04T00:00:30")  # 09:00:30 in Tokyo
    scheduler = host.scheduler()
    scheduler._zone = None
    await scheduler.initialize([host.task("a", "1 9 * * *")])
    await host.at("00:02")
    await scheduler.stop()
    assert host.runs == [("a", "00:01")]
    assert host_zone().zone.name == "Asia/Tokyo"


async def test_a_tz_variable_that_is_no_zone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "<+0530>-5:30")
    host = SimulatedHost()
    scheduler = host.scheduler()
    scheduler._zone = None
    with pytest.warns(RuntimeWarning, match=r"TZ='<\+0530>-5:30' is no zone name; tasks run in .*Europe/Berlin"):
        await scheduler.initialize([host.task("a", "1 9 * * *")])
    await scheduler.stop()


async def test_an_expression_that_never_matches_is_valid_and_never_runs() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("never", "0 0 30 2 *"), host.task("a")])
    await host.at("10:20")
    await scheduler.stop()
    assert {name for name, _ in host.runs} == {"a"}


async def test_a_calculation_that_fails_says_of_what(monkeypatch: pytest.MonkeyPatch) -> None:
    from chronex.declarative import persistence

    def broken(*_: object) -> None:
        raise OverflowError("beyond the calendar")

    host = SimulatedHost()
    scheduler = host.scheduler()
    monkeypatch.setattr(persistence, "next_plan_ms", broken)
    with pytest.raises(CronCalculationError) as failed:
        await scheduler.initialize([host.task("a", "5 4 * * *")])
    assert str(failed.value) == "Failed to calculate next occurrence: beyond the calendar"
    assert failed.value.details["expression"] == "5 4 * * *"
    assert failed.value.details["currentTime"] == "2027-01-04T10:00:30+00:00"
    assert isinstance(failed.value.details["cause"], OverflowError)


async def test_the_same_inputs_give_the_same_decisions() -> None:
    async def history() -> list[tuple[str, int, str, int | None]]:
        host = SimulatedHost()
        scheduler = host.scheduler()
        await scheduler.initialize([host.task("a"), host.task("b", "*/15 * * * *", does=failing(1)), host.task("c")])
        await host.at("10:31")
        await scheduler.stop()
        return [(e.name, e.at_ms, e.job, e.nominal_ms) for e in host.journal()]

    assert await history() == await history()


async def test_an_interrupted_run_is_started_again_within_the_minute() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10 * * * *", does=asyncio.Event().wait)])  # type: ignore[arg-type]
    await host.at("10:10")
    await crash(scheduler)
    host.sleep_until("10:30")
    again = host.scheduler()
    await again.initialize([host.task("a", "10 * * * *")])
    await host.settle()
    assert host.runs == [("a", "10:10"), ("a", "10:30")]
    await again.stop()
    host.verify()


def test_retry_delays_are_exact_to_the_millisecond() -> None:
    async def callback() -> None:
        return

    (one,) = check_registrations([("a", "* * * * *", callback, timedelta(seconds=1, microseconds=500))])
    assert job_of(one, "s", "UTC", 0).retry.interval_ms == 1001
