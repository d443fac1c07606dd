"""A store without room: nothing is claimed, what runs is recorded as soon as there is room, and it goes on by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chronex.daemon import executor, loop
from chronex.daemon.embedded import EmbeddedEngine
from chronex.errors import StoreFullError
from chronex.model.policies import OverlapPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.records import Call, Job, Occurrence, Task
from chronex.model.states import OccurrenceState
from chronex.run import TaskContext
from chronex.storage.ports import T, UpdateFn
from chronex.storage.records import Reading
from chronex_store import MemoryStore


class Cramped(MemoryStore):
    """Has no room while the test says so."""

    is_full = False

    def update(self, fn: UpdateFn[T], *, essential: bool = False) -> T:
        if self.is_full:
            raise StoreFullError
        return super().update(fn, essential=essential)

    async def update_async(self, fn: UpdateFn[T], *, essential: bool = False) -> T:
        return self.update(fn, essential=essential)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "FULL_PAUSE_S", 0.01)
    monkeypatch.setattr(loop, "FULL_PAUSE_S", 0.01)


def job(schedule: str, **more: Any) -> Job:
    return Job(id="job", schedule=schedule, tasks=(Task(name="main", run=Call("work")),), **more)


def occurrences(store: MemoryStore) -> list[Occurrence]:
    return store.view(lambda tx: Reading(tx).occurrences("job", limit=10_000))


async def until(condition: Any) -> None:
    for _ in range(2_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never held")


async def test_nothing_is_claimed_until_there_is_room_and_it_is_told_once() -> None:
    told: list[str] = []
    store = Cramped()
    async with EmbeddedEngine(
        store, calls={"work": lambda _: None}, tell=lambda what, _: told.append(what)
    ) as engine:
        await until(lambda: "SchedulerStarted" in told)
        engine.apply([job("@every 50ms {max:1}")])
        store.is_full = True
        await until(lambda: "StoreRoomLow" in told)
        await asyncio.sleep(0.1)
        assert occurrences(store) == []
        store.is_full = False
        await until(lambda: OccurrenceState.COMPLETED in [o.state for o in occurrences(store)])
    assert (told.count("StoreRoomLow"), told.count("StoreRoomBack")) == (1, 1)


async def test_an_end_that_finds_no_room_is_recorded_when_there_is_some() -> None:
    store = Cramped()
    ends: list[int] = []

    def work(_: TaskContext) -> None:
        store.is_full = True
        ends.append(1)

    async with EmbeddedEngine(store, calls={"work": work}) as engine:
        engine.apply([job("@every 50ms {max:1}")])
        await until(lambda: ends)
        await asyncio.sleep(0.1)
        assert [o.state for o in occurrences(store)] == [OccurrenceState.RUNNING]
        store.is_full = False
        await until(lambda: [o.state for o in occurrences(store)] == [OccurrenceState.COMPLETED])
    assert ends == [1]


async def test_a_store_that_was_full_for_long_counts_as_downtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LONGEST_BETWEEN_LOOKS_MS", 50)
    store = Cramped()
    async with EmbeddedEngine(store, calls={"work": lambda _: None}) as engine:
        engine.apply([job("@every 20ms", overlap=OverlapPolicy.ALLOW)])
        await until(lambda: occurrences(store))
        store.is_full = True
        await asyncio.sleep(0.5)
        store.is_full = False
        await until(lambda: any(o.recovery for o in occurrences(store)))
    missed = [o for o in occurrences(store) if o.recovery]
    assert len(missed) > 5
    assert [o.reason.code for o in missed if o.state is OccurrenceState.MISSED] == [ReasonCode.SUPERSEDED] * (
        len(missed) - 1
    )


async def test_whoever_is_to_leave_does_not_wait_for_room_for_ever() -> None:
    store = Cramped()
    told: list[str] = []

    def work(_: TaskContext) -> None:
        store.is_full = True

    engine = EmbeddedEngine(store, calls={"work": work}, tell=lambda what, _: told.append(what))
    await engine.start()
    engine.apply([job("@every 50ms {max:1}")])
    await until(lambda: store.is_full)
    stopping = asyncio.ensure_future(engine.stop())
    await until(lambda: "the end could not be recorded" in told)
    store.is_full = False
    await stopping
    assert [o.state for o in occurrences(store)] == [OccurrenceState.RUNNING]
