"""The reaper: a living node looks after its neighbours, as often as the settings say."""

from __future__ import annotations

import asyncio
import subprocess

import pytest
from msgspec.structs import replace

from chronex.daemon import registration
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.registration import Registration
from chronex.engine.membership import LEASE_MS, RENEW_MS, SLACK_MS, STEADY_MS
from chronex.jobfile import SchedulerSettings
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.run import identity_of
from chronex.storage import journal
from chronex.storage.records import Records
from chronex.testing import FakeClock
from chronex_store import MemoryStore
from tests.kit.machine import START
from tests.kit.waits import until_async


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
