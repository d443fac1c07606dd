"""initialize and stop: states, events, order, concurrency, polling, and what goes wrong."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

import chronex
from chronex.declarative import PollingState, ScheduledTaskState, SchedulerEvent, SchedulerState
from chronex.declarative.scheduler_errors import ScheduleTaskError, StopSchedulerError
from chronex.declarative.scheduler_states import TRANSITIONS, change_state
from chronex.errors import IllegalTransitionError, StoreFullError
from chronex_store import LmdbStore
from tests.declarative.host import SimulatedHost, failing
from tests.kit.waits import DEADLINE_S
from tests.verify.assertion import assert_verified

STARTED = ["SchedulerInitializationStarted", "PollingStarted", "SchedulerInitializationCompleted"]
STOPPED = ["SchedulerStopRequested", "PollingStopRequested", "PollingStopped", "SchedulerStopped"]


async def test_a_life_from_beginning_to_end_with_all_its_events() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    assert (scheduler.state, scheduler.polling) == (SchedulerState.UNINITIALIZED, PollingState.INACTIVE)
    await scheduler.initialize([host.task("a", "10 * * * *", timedelta(minutes=2), failing(1))])
    assert (scheduler.state, scheduler.polling) == (SchedulerState.RUNNING, PollingState.ACTIVE)
    await host.at("10:15")
    await scheduler.stop()
    assert (scheduler.state, scheduler.polling) == (SchedulerState.STOPPED, PollingState.INACTIVE)
    runs = ["TaskRunStarted", "TaskRunFailed", "TaskRetryStarted", "TaskRunCompleted"]
    assert host.events() == [*STARTED, *runs, *STOPPED]
    named = [event.name for event in host.journal() if event.name in {*STARTED, *runs, *STOPPED}]
    assert [name for name in named if name in host.events()][:3] == STARTED
    host.verify()


async def test_callbacks_of_events_have_the_tasks_own_name_and_time() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("Räume auf!", "10 * * * *")])
    await host.at("10:11")
    await scheduler.stop()
    (started,) = (event for event in host.received if event.name == "TaskRunStarted")
    assert isinstance(started, SchedulerEvent)
    assert started.task == "Räume auf!"
    assert started.at.isoformat() == "2027-01-04T10:10:00+00:00"
    assert started.data["attempt"] == 1


async def test_a_listener_that_raises_harms_nobody() -> None:
    host = SimulatedHost()
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context["exception"]))
    scheduler = chronex.Scheduler(host.store, on_event=lambda _: 1 / 0, clock=host.clock, timezone="UTC")
    await scheduler.initialize([host.task("a")])
    await host.at("10:10")
    await scheduler.stop()
    assert ("a", "10:10") in host.runs
    assert {type(one) for one in complaints} == {ZeroDivisionError}


@pytest.mark.parametrize("kind", [SchedulerState, PollingState])
def test_every_state_change_is_in_the_table_or_refused(kind: type[SchedulerState] | type[PollingState]) -> None:
    for source in kind:
        for destination in kind:
            if (source, destination) in TRANSITIONS:
                assert change_state(source, destination) is destination  # type: ignore[type-var]
            else:
                with pytest.raises(IllegalTransitionError):
                    change_state(source, destination)  # type: ignore[type-var]


async def test_a_task_is_awaiting_running_or_awaiting_its_retry() -> None:
    host = SimulatedHost()
    gate = asyncio.Event()

    async def does() -> None:
        await gate.wait()
        raise RuntimeError("no")

    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10 * * * *", does=does)])
    seen = [scheduler.tasks["a"].state]
    await host.at("10:10")
    seen.append(scheduler.tasks["a"].state)
    gate.set()
    await host.settle()
    seen.append(scheduler.tasks["a"].state)
    assert seen == [ScheduledTaskState.AWAITING_RUN, ScheduledTaskState.RUNNING, ScheduledTaskState.AWAITING_RETRY]
    await host.at("10:14")
    await scheduler.stop()


# -- initialize again -----------------------------------------------------------------------------------------


async def test_the_same_registrations_again_have_no_effect() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    registrations = [host.task("a"), host.task("b", "*/15 * * * *")]
    await scheduler.initialize(registrations)
    await host.at("10:05")
    before, count = scheduler.tasks, len(host.journal())
    for _ in range(3):
        await scheduler.initialize(registrations)
    assert scheduler.state is SchedulerState.RUNNING
    assert scheduler.tasks == before
    assert {one.classification for one in scheduler.resolution} == {"preserved"}
    more = [event.name for event in host.journal()[count:]]
    assert more == ["SchedulerReinitializationStarted", "SchedulerInitializationCompleted"] * 3
    await host.at("10:10")
    await scheduler.stop()
    assert host.runs.count(("a", "10:10")) == 1
    host.verify()


async def test_many_calls_of_initialize_at_once() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await asyncio.gather(*(scheduler.initialize([host.task("a"), host.task(f"b{n % 2}")]) for n in range(6)))
    assert scheduler.state is SchedulerState.RUNNING
    assert sorted(scheduler.tasks) == ["a", "b1"]
    await host.at("10:10")
    await scheduler.stop()
    assert sorted(name for name, time in host.runs if time == "10:10") == ["a", "b1"]
    host.verify()


async def test_a_new_callback_takes_the_place_of_the_old_one() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    called: list[str] = []

    async def old() -> None:
        called.append("old")

    async def new() -> None:
        called.append("new")

    await scheduler.initialize([("a", "10,20 * * * *", old, timedelta(0))])
    await host.at("10:15")
    await scheduler.initialize([("a", "10,20 * * * *", new, timedelta(0))])
    await host.at("10:25")
    await scheduler.stop()
    assert called == ["old", "new"]


async def test_a_stopped_scheduler_may_be_initialized_again() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    for end in ("10:12", "10:22"):
        await scheduler.initialize([host.task("a", "10,20 * * * *")])
        await host.at(end)
        await scheduler.stop()
        await host.at(end + ":30")
    assert host.runs == [("a", "10:10"), ("a", "10:20")]
    host.verify()


# -- stop -----------------------------------------------------------------------------------------------------


async def test_stop_waits_for_running_callbacks_and_starts_nothing_more() -> None:
    host = SimulatedHost()
    gate = asyncio.Event()
    ended: list[str] = []

    async def does() -> None:
        await gate.wait()
        ended.append("a")

    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "10 * * * *", does=does), host.task("b", "11 * * * *")])
    await host.at("10:10")
    stopping = asyncio.ensure_future(scheduler.stop())
    await host.settle()
    assert (scheduler.state, scheduler.polling) == (SchedulerState.STOPPING, PollingState.STOPPING)
    await host.at("10:12")
    assert not stopping.done()
    gate.set()
    await stopping
    assert ended == ["a"]
    assert host.runs == [("a", "10:10")]
    assert scheduler.tasks["a"].last_success_at is not None
    host.verify()


async def test_stop_during_initialize_waits_for_it() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    starting = asyncio.ensure_future(scheduler.initialize([host.task("a")]))
    stopping = asyncio.ensure_future(scheduler.stop())
    await asyncio.gather(starting, stopping)
    assert scheduler.state is SchedulerState.STOPPED
    assert host.events() == [*STARTED, *STOPPED]
    host.verify()


async def test_stop_twice_or_without_an_initialization_is_nothing() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.stop()
    assert scheduler.state is SchedulerState.UNINITIALIZED
    await scheduler.initialize([host.task("a", "5 * * * *")])
    await asyncio.gather(scheduler.stop(), scheduler.stop())
    await scheduler.stop()
    assert host.events() == [*STARTED, *STOPPED]


async def test_a_stop_that_fails_says_so_and_polls_no_more() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a")])
    host.store.fail_next = StoreFullError()
    with pytest.raises(StopSchedulerError, match="Failed to stop scheduler: The store is full") as failed:
        await scheduler.stop()
    assert isinstance(failed.value.details["cause"], StoreFullError)
    assert failed.value.__cause__ is failed.value.details["cause"]
    assert (scheduler.state, scheduler.polling) == (SchedulerState.STOPPED, PollingState.INACTIVE)
    before = len(host.runs)
    await host.at("10:30")
    assert len(host.runs) == before


async def test_a_callback_cannot_wait_for_itself() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    caught: list[Exception] = []

    async def does() -> None:
        try:
            await scheduler.stop()
        except StopSchedulerError as problem:
            caught.append(problem)

    await scheduler.initialize([host.task("a", "10 * * * *", does=does)])
    await host.at("10:10")
    await scheduler.stop()
    assert "would wait for itself" in str(caught[0])


# -- side by side ---------------------------------------------------------------------------------------------


async def test_all_that_is_due_starts_and_runs_side_by_side() -> None:
    host = SimulatedHost()
    together = asyncio.Barrier(120)
    scheduler = host.scheduler()
    await scheduler.initialize([host.task(f"t{n}", "10 * * * *", does=together.wait) for n in range(120)])  # type: ignore[arg-type]
    await host.at("10:10")
    for _ in range(10):
        await host.settle()
    await scheduler.stop()
    assert len({name for name, _ in host.runs}) == 120
    assert host.events().count("TaskRunCompleted") == 120


async def test_one_task_never_runs_twice_at_once() -> None:
    host = SimulatedHost()
    gate = asyncio.Event()
    at_once = most = 0

    async def does() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await gate.wait()
        at_once -= 1

    scheduler = host.scheduler()
    await scheduler.initialize([host.task("a", "* * * * *", does=does)])
    await host.at("10:05")
    gate.set()
    await host.at("10:08")
    await scheduler.stop()
    assert most == 1
    assert [time for _, time in host.runs] == ["10:01", "10:06", "10:07", "10:08"]
    host.verify()


async def test_a_failure_leaves_others_alone() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize(
        [host.task("bad", "10,20 * * * *", does=failing(9)), host.task("good", "10,20 * * * *")]
    )
    await host.at("10:20")
    await scheduler.stop()
    assert [time for name, time in host.runs if name == "good"] == ["10:10", "10:20"]
    host.verify()


async def test_a_callback_that_failed_is_logged_with_its_name_and_its_error(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("no \x1b[31mroute")

    host = SimulatedHost()
    scheduler = host.scheduler()
    with caplog.at_level("WARNING", "chronex"):
        await scheduler.initialize([host.task("daily report", "10 * * * *", does=fail)])
        await host.at("10:10")
        await scheduler.stop()
    told = [record.getMessage() for record in caplog.records]
    assert told == ["task 'daily report' failed: ValueError: no \\u001b[31mroute"]


# -- polling --------------------------------------------------------------------------------------------------


async def test_nothing_is_polled_while_nothing_is_scheduled() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    await scheduler.initialize([])
    assert (scheduler.state, scheduler.polling) == (SchedulerState.RUNNING, PollingState.INACTIVE)
    assert scheduler._engine is None
    await scheduler.initialize([host.task("a")])
    assert scheduler.polling == "Active"
    await scheduler.initialize([])
    assert scheduler.polling == "Inactive"
    assert scheduler._engine is None
    await host.at("10:10")
    assert ("a", "10:10") not in host.runs
    await scheduler.initialize([host.task("a")])
    await host.at("10:20")
    assert ("a", "10:20") in host.runs
    await scheduler.stop()
    assert [name for name in host.events() if name.startswith("Polling")] == [
        "PollingStarted", "PollingStopped", "PollingStarted", "PollingStopRequested", "PollingStopped",
    ]  # fmt: skip
    host.verify()


async def test_a_callback_may_take_the_last_task_away() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()

    async def does() -> None:
        await scheduler.initialize([])

    await scheduler.initialize([host.task("a", "10 * * * *", does=does)])
    await host.at("10:10")
    await host.settle()
    assert scheduler.polling is PollingState.INACTIVE
    assert scheduler.tasks == {}
    await scheduler.stop()
    assert host.runs == [("a", "10:10")]
    host.verify()


# -- failures -------------------------------------------------------------------------------------------------


async def test_a_failed_initialization_ends_where_it_began() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    host.store.fail_next = StoreFullError()
    with pytest.raises(ScheduleTaskError) as failed:
        await scheduler.initialize([host.task("a", "5 4 * * *")])
    assert str(failed.value).startswith("Failed to schedule task 'a': The store is full")
    assert failed.value.details["name"] == "a"
    assert failed.value.details["cronExpression"] == "5 4 * * *"
    assert isinstance(failed.value.details["cause"], StoreFullError)
    assert failed.value.__cause__ is failed.value.details["cause"]
    assert (scheduler.state, scheduler.polling) == (SchedulerState.UNINITIALIZED, PollingState.INACTIVE)
    assert host.events() == ["SchedulerInitializationFailed"]
    await scheduler.initialize([host.task("a", "5 4 * * *")])
    assert scheduler.state is SchedulerState.RUNNING
    await scheduler.stop()
    host.verify()


async def test_a_cancelled_initialization_is_no_half_of_one() -> None:
    host = SimulatedHost()
    scheduler = host.scheduler()
    gate = asyncio.Event()
    await scheduler.initialize([host.task("a", "10 * * * *", does=gate.wait)])  # type: ignore[arg-type]
    await host.at("10:10")
    await scheduler.initialize([])  # the engine drains until the gate opens
    waiting = asyncio.ensure_future(scheduler.initialize([host.task("b")]))
    await host.settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert scheduler.state is SchedulerState.UNINITIALIZED
    gate.set()
    await host.settle()
    host.verify()


async def test_lmdb_by_default_in_a_directory(tmp_path: Path) -> None:
    host = SimulatedHost()
    for store in (str(tmp_path / "store"), tmp_path / "store"):
        scheduler = chronex.Scheduler(store, on_event=host.received.append, clock=host.clock, timezone="UTC")
        await scheduler.initialize([host.task("a", "0 10 * * *")])
        while not scheduler.tasks["a"].last_success_at:
            await asyncio.sleep(0)
        await asyncio.wait_for(scheduler.stop(), DEADLINE_S)
        assert host.events()[-4:] == STOPPED
    assert host.runs == [("a", "10:00")]
    with LmdbStore.open(tmp_path / "store", create=False) as opened:
        assert_verified(opened)


def test_the_default_store_is_one_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert chronex.Scheduler()._store_or_path == tmp_path / "chronex" / "declarative"
