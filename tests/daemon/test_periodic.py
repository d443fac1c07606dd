"""Periodic tasks run when they are due, one of a kind at a time, and whatever becomes of them scheduling goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.loop import Daemon
from chronex.daemon.periodic_tasks import LONGEST_RUN_S, PeriodicTask, PeriodicTasks
from chronex.daemon.retention import free_space_task
from chronex.engine.engine import Tick
from chronex_store import MemoryStore
from tests.daemon.test_wakeups import Hands
from tests.kit.loop_time import LoopTime
from tests.kit.waits import until_async


class Book:
    """What was reported, and what was done."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, dict[str, Any]]] = []
        self.done = 0
        self.problem: Exception | None = None

    def report(self, name: str, data: dict[str, Any]) -> None:
        self.reported.append((name, data))

    async def do(self) -> None:
        self.done += 1
        if self.problem is not None:
            raise self.problem


async def turn() -> None:
    for _ in range(16):
        await asyncio.sleep(0)


async def test_a_periodic_task_is_done_once_in_each_interval() -> None:
    hands, recorder = Hands(), Book()
    periodic = PeriodicTasks([PeriodicTask("beat", 10, recorder.do)], hands, recorder.report)
    for seconds, done in ((5, 0), (5, 1), (9, 1), (1, 2), (35, 3)):
        hands.pass_time(seconds * 1000)
        periodic.start_due()
        await turn()
        assert recorder.done == done
    assert periodic.seconds_until_next(at_most=30) == 10
    assert periodic.seconds_until_next(at_most=3) == 3
    assert recorder.reported == []


async def test_a_failure_is_told_when_it_begins_changes_and_ends() -> None:
    hands, recorder = Hands(), Book()
    periodic = PeriodicTasks([PeriodicTask("beat", 1, recorder.do)], hands, recorder.report)
    for problem in (None, OSError("no room"), OSError("no room"), ValueError("other"), None, None):
        recorder.problem = problem
        hands.pass_time(1000)
        periodic.start_due()
        await turn()
    assert [(name, data["reason"]) for name, data in recorder.reported] == [
        ("ChoreFailed", "OSError: no room"),
        ("ChoreFailed", "ValueError: other"),
        ("ChoreRecovered", "ValueError: other"),
    ]


async def test_a_periodic_task_that_hangs_never_runs_twice_at_once_and_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hands, recorder = Hands(), Book()

    async def hang() -> None:
        recorder.done += 1
        await asyncio.Event().wait()

    time = LoopTime(monkeypatch)
    periodic = PeriodicTasks([PeriodicTask("slow", 1, hang)], hands, recorder.report)
    for _ in range(3):
        hands.pass_time(1000)
        periodic.start_due()
        await turn()
    assert recorder.done == 1
    assert periodic.seconds_until_next(at_most=30) == 1, "tried again after its interval, not at once"
    time.ahead += LONGEST_RUN_S
    await turn()
    assert recorder.reported == [("ChoreFailed", {"chore": "slow", "reason": "it took longer than 30 s"})]
    hands.pass_time(1000)
    periodic.start_due()
    await turn()
    assert recorder.done == 2
    await periodic.stop()
    assert periodic.seconds_until_next(at_most=30) <= 1


async def test_the_room_of_the_store_is_told_at_each_mark() -> None:
    class Store:
        ratio = 0.0

        def space(self) -> Store:
            return self

    store, recorder = Store(), Book()
    task = free_space_task(store, recorder.report)
    for ratio in (0.1, 0.69, 0.7, 0.8, 0.93, 0.95, 0.8, 0.5, 0.4):
        store.ratio = ratio
        await task.do()
    assert recorder.reported == [
        ("StoreRoomLow", {"used": "70%"}),
        ("StoreRoomLow", {"used": "93%"}),
        ("StoreRoomBack", {"used": "50%"}),
    ]


async def test_what_is_left_out_of_a_stop_goes_on_and_nothing_else_begins() -> None:
    hands, beats, others = Hands(), Book(), Book()
    tasks = [PeriodicTask("beat", 1, beats.do), PeriodicTask("other", 1, others.do)]
    periodic = PeriodicTasks(tasks, hands, beats.report)
    await periodic.stop(but="beat")
    hands.pass_time(1000)
    periodic.start_due()
    await turn()
    assert (beats.done, others.done) == (1, 0)


async def test_one_that_is_hurried_is_done_at_once_and_not_twice() -> None:
    hands, beats = Hands(), Book()
    periodic = PeriodicTasks([PeriodicTask("beat", 10, beats.do)], hands, beats.report)
    periodic.hurry("beat")
    periodic.hurry("beat")
    await turn()
    assert beats.done == 1


async def test_a_backlog_holds_up_no_periodic_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats are among them: a node that is busy for long would be given up by the others."""

    async def always_more(_self: Daemon, _detector: object, _most: int) -> Tick:
        await asyncio.sleep(0)
        return Tick((), None, has_more=True)

    monkeypatch.setattr(Daemon, "_tick", always_more)
    beats = Book()
    async with EmbeddedEngine(MemoryStore()) as engine:
        assert engine._daemon is not None
        engine._daemon.periodic.add(PeriodicTask("beat", 0.001, beats.do))
        await until_async(lambda: beats.done >= 2, "two beats")
