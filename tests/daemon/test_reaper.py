"""The reaper: a living node looks after its neighbours, as often as the settings say."""

from __future__ import annotations

import subprocess

from chronex.daemon.embedded import EmbeddedEngine
from chronex.jobfile import SchedulerSettings
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.run import identity_of
from chronex.storage import journal
from chronex.storage.records import Records
from chronex_store import MemoryStore
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
