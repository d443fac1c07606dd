"""A full store: nothing is claimed, what runs is recorded as soon as there is free space, and it goes on by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.clock import SystemClock, wall_ms
from chronex.daemon import loop, registration, store_writes
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.wakeups import LONGEST_BETWEEN_CHECKS_MS
from chronex.engine.update import apply_jobs
from chronex.errors import StoreFullError
from chronex.model.job import Call, Job, Task
from chronex.model.policies import OverlapPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.run.callables import TaskContext
from chronex.storage.ports import T, UpdateFn
from chronex.storage.records import Reading
from chronex.storage.scopes import WHOLE, Scope
from chronex_store import MemoryStore
from tests.daemon.test_embedded import begun
from tests.kit.waits import until_async


class Cramped(MemoryStore):
    """Is full while the test says so."""

    is_full = False
    refused = 0

    def update(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        if self.is_full:
            self.refused += 1
            raise StoreFullError
        return super().update(fn, use_reserve=use_reserve, scope=scope)

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        return self.update(fn, use_reserve=use_reserve, scope=scope)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writes, "FULL_PAUSE_S", 0.01)
    monkeypatch.setattr(loop, "FULL_PAUSE_S", 0.01)
    monkeypatch.setattr(registration, "_AGAIN_S", 0.01)


def job(schedule: str, **more: Any) -> Job:
    return Job(id="job", schedule=schedule, tasks=(Task(name="main", run=Call("work")),), **more)


async def refused(store: Cramped, times: int) -> None:
    """The store was asked so many times more, and was full."""
    before = store.refused
    await until_async(lambda: store.refused >= before + times, f"{times} updates that find it full")


class MovedClock(SystemClock):
    """The clock of this machine, ahead by as much as the test says."""

    ahead_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms

    def boottime_ms(self) -> int:
        return super().boottime_ms() + self.ahead_ms


async def test_nothing_is_claimed_until_there_is_room_and_it_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "chronex")
    store = Cramped()
    async with EmbeddedEngine(store, calls={"work": lambda _: None}) as engine:
        first = replace(
            job("@every 50ms {max:1}"), id="first"
        )  # it has run: the engine is at work, not about to begin
        engine.apply([first])
        await until_async(lambda: store.view(lambda tx: Reading(tx).finished()), "the end of the first run")
        engine.apply([first, job("@every 50ms {max:1}")])
        store.is_full = True
        await until_async(lambda: "StoreRoomLow" in caplog.messages, "the news that the store is full")
        await refused(store, 5)
        assert begun(store) == []
        store.is_full = False
        await until_async(lambda: OccurrenceState.COMPLETED in [o.state for o in begun(store)], "a completed run")
    assert (caplog.messages.count("StoreRoomLow"), caplog.messages.count("StoreRoomBack")) == (1, 1)


async def test_one_that_begins_while_the_store_is_full_waits_for_room(caplog: pytest.LogCaptureFixture) -> None:
    """It ended, and where no service manager starts it again nobody scheduled any more."""
    caplog.set_level("INFO", "chronex")
    store = Cramped()
    apply_jobs(store, [job("@every 50ms {max:1}")], wall_ms())
    store.is_full = True
    async with EmbeddedEngine(store, calls={"work": lambda _: None}):
        await refused(store, 5)
        assert begun(store) == []
        store.is_full = False
        await until_async(lambda: OccurrenceState.COMPLETED in [o.state for o in begun(store)], "a completed run")
    assert (caplog.messages.count("StoreRoomLow"), caplog.messages.count("StoreRoomBack")) == (1, 1)


async def test_an_end_that_finds_no_room_is_recorded_when_there_is_some() -> None:
    store = Cramped()
    ends: list[int] = []

    def work(_: TaskContext) -> None:
        store.is_full = True
        ends.append(1)

    async with EmbeddedEngine(store, calls={"work": work}) as engine:
        engine.apply([job("@every 50ms {max:1}")])
        await until_async(lambda: ends, "the end of the work")
        await refused(store, 5)
        assert [o.state for o in begun(store)] == [OccurrenceState.RUNNING]
        store.is_full = False
        await until_async(lambda: [o.state for o in begun(store)] == [OccurrenceState.COMPLETED], "its record")
    assert ends == [1]


async def test_a_store_that_was_full_for_long_counts_as_downtime(caplog: pytest.LogCaptureFixture) -> None:
    """Two minutes, in steps that are shorter than what would count as a stall."""
    store, clock = Cramped(), MovedClock()
    caplog.set_level("INFO", "chronex")
    async with EmbeddedEngine(store, calls={"work": lambda _: None}, clock=clock) as engine:
        engine.apply([job("@every 1s", overlap=OverlapPolicy.ALLOW)])
        await until_async(lambda: begun(store), "the first occurrence")
        store.is_full = True
        await until_async(lambda: "StoreRoomLow" in caplog.messages, "the news that the store is full")
        for _ in range(2):
            clock.ahead_ms += LONGEST_BETWEEN_CHECKS_MS * 2 // 3
            await refused(store, 5)  # some of them may be a heartbeat or an end, but not all
        store.is_full = False
        await until_async(lambda: any(o.recovery for o in begun(store)), "what is caught up")
    missed = [o for o in begun(store) if o.recovery]
    assert len(missed) > 100
    assert [o.reason.code for o in missed if o.state is OccurrenceState.MISSED] == [ReasonCode.SUPERSEDED] * (
        len(missed) - 1
    )


async def test_whoever_is_to_leave_does_not_wait_for_room_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    store = Cramped()

    def work(_: TaskContext) -> None:
        store.is_full = True

    engine = EmbeddedEngine(store, calls={"work": work})
    await engine.start()
    engine.apply([job("@every 50ms {max:1}")])
    await until_async(lambda: store.is_full, "the work")
    stopping = asyncio.ensure_future(engine.stop())
    await until_async(lambda: "the end could not be recorded" in caplog.messages, "the engine giving up")
    store.is_full = False
    await stopping
    assert [o.state for o in begun(store)] == [OccurrenceState.RUNNING]


class SetClock(SystemClock):
    """The clock of this machine, set by as much as the test says."""

    set_by_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.set_by_ms


async def test_a_clock_that_is_set_while_the_store_is_full_is_followed_when_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, clock = Cramped(), SetClock()
    caplog.set_level("INFO", "chronex")
    async with EmbeddedEngine(store, calls={"work": lambda _: None}, clock=clock) as engine:
        engine.apply([job("@every 1s")])
        await until_async(lambda: begun(store), "the first occurrence")
        store.is_full = True
        await until_async(lambda: "StoreRoomLow" in caplog.messages, "the news that the store is full")
        clock.set_by_ms = -86_400_000
        await refused(store, 5)
        store.is_full = False
        await until_async(lambda: "ClockStepped" in caplog.messages, "the news of the clock")
        seen = len(begun(store))
        await until_async(lambda: len(begun(store)) > seen, "the next occurrence, by the new time")
        assert engine.is_running
    assert caplog.messages.count("ClockStepped") == 1
