"""The reaper: a living node looks after its neighbours, as often as the settings say."""

from __future__ import annotations

import asyncio
import subprocess

import pytest
from msgspec.structs import replace

from chronex.daemon import periodic_tasks, registration
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.registration import Registration
from chronex.engine.commands import trigger
from chronex.engine.engine import Engine
from chronex.engine.membership import LEASE_MS, RENEW_MS, SLACK_MS, STEADY_MS
from chronex.jobfile import SchedulerSettings
from chronex.model.event import Event
from chronex.model.job import Call, Job, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import CrashPolicy, OverlapPolicy
from chronex.model.records import Node
from chronex.run import identity_of
from chronex.storage import journal
from chronex.storage.ports import T, Transaction, UpdateFn
from chronex.storage.records import Records
from chronex.storage.scopes import WHOLE, Scope
from chronex.testing import FakeClock
from chronex_store import MemoryStore
from tests.kit.machine import ANN, START
from tests.kit.waits import DEADLINE_S, until_async


def killed_process() -> ProcessIdentity:
    with subprocess.Popen(["sleep", "600"]) as process:
        identity = identity_of(process.pid)
        process.kill()
    assert identity is not None
    return identity


async def test_a_neighbour_that_died_is_found_within_the_interval_of_the_settings() -> None:
    store = MemoryStore()
    async with EmbeddedEngine(store, settings=SchedulerSettings(reaper_interval_ms=50)) as engine:
        neighbour = Node(id="neighbour", process=killed_process())
        store.update(lambda tx: Records(tx, store.now()).put(neighbour))

        def crashed() -> list[object]:
            events = engine.store.view(journal.tail)
            return [event.data["node"] for _, event in events if event.name == "SchedulerCrashed"]

        assert await until_async(crashed, "the news of the crash") == ["neighbour"]


@pytest.mark.parametrize(
    ("left_ms", "is_heard", "pause_ms", "is_told"),
    [
        (RENEW_MS + 1, False, None, False),
        (1_000, False, 1_001, True),
        (1_000, True, 1_001, False),
        (-1, False, 0, True),
    ],
    ids=["another heartbeat comes first", "between two heartbeats", "it is heard at last", "already silent"],
)
async def test_a_silent_node_is_given_up_when_its_time_is_over_and_not_with_the_next_heartbeat(
    left_ms: int, is_heard: bool, pause_ms: int | None, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, store, told, pauses = FakeClock(START), MemoryStore(), [], []
    here = Node(
        id="here", process=ProcessIdentity(1, "boot", 1), host_id="here", lease_ms=LEASE_MS, seen_ms=START,
        steady_since_ms=START - STEADY_MS,
    )  # fmt: skip
    other = replace(here, id="other", host_id="there", seen_ms=START - LEASE_MS - SLACK_MS + left_ms)
    store.update(lambda tx: Records(tx, START).put(other))

    async def sleep(seconds: float) -> None:
        pauses.append(round(seconds * 1000))
        clock.advance(pauses[-1])
        if is_heard:
            store.update(lambda tx: Records(tx, START).put(replace(other, seen_ms=clock.wall_ms())))

    monkeypatch.setattr(asyncio, "sleep", sleep)
    found = Registration(store, here, clock, lambda node: node)
    found.on_silence = lambda: told.append(clock.wall_ms())
    await found.renew(here)
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
    turn_ms = registration._turn_ms("here")
    assert pauses == ([] if pause_ms is None else [pause_ms + turn_ms])
    assert bool(told) is is_told


class SlowToAnswer(MemoryStore):
    """It records what it is asked at once; a takeover that found something hears of it when `answers` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.found, self.answers = asyncio.Event(), asyncio.Event()

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        result = self.update(fn, use_reserve=use_reserve, scope=scope)
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], list) and any(result):
            self.found.set()
            await self.answers.wait()
        return result


async def test_what_a_reaper_that_was_given_up_has_claimed_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes half a minute: the claim was on record, and nobody began it until the daemon was restarted."""
    monkeypatch.setattr(periodic_tasks, "LONGEST_RUN_S", 0.02)
    store, ran = SlowToAnswer(), asyncio.Event()
    settings = SchedulerSettings(reaper_interval_ms=50)
    job = Job(
        id="job", schedule="0 0 1 1 *", overlap=OverlapPolicy.QUEUE, on_crash=CrashPolicy.FAIL,
        tasks=(Task(name="main", run=Call("work")),),
    )  # fmt: skip
    async with EmbeddedEngine(store, calls={"work": lambda context: ran.set()}, settings=settings) as engine:
        engine.apply([job])
        await until_async(lambda: "SchedulerStarted" in names(store), "the start")

        def claim_and_die(tx: Transaction) -> None:
            """Of two runs the neighbour has begun one, and the other one waits for that."""
            records = Records(tx, store.now())
            records.put(Node(id="neighbour", process=killed_process()))
            journal.append(tx, Event(name="SchedulerStarted", at_ms=store.now(), data={"node": "neighbour"}))
            for key in ("first", "second"):
                trigger(records, "job", ANN, idempotency_key=key)
                Engine(store, "neighbour", 5).tick_update(store.now(), store.now(), 10)(tx)
            (attempt,) = records.active_attempts()
            records.put(replace(attempt, started_ms=store.now()))

        store.update(claim_and_die)
        await asyncio.wait_for(store.found.wait(), DEADLINE_S)
        await until_async(lambda: "reaper" in failing(store), "the reaper that was given up")
        assert not ran.is_set()
        store.answers.set()
        await asyncio.wait_for(ran.wait(), DEADLINE_S)


def failing(store: MemoryStore) -> list[object]:
    return [event.data["chore"] for _, event in store.view(journal.tail) if event.name == "ChoreFailed"]


def names(store: MemoryStore) -> list[str]:
    return [event.name for _, event in store.view(journal.tail)]
