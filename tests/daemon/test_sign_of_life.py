"""The heartbeat of a scheduler: an address that is asked while it can start what is due, and only then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.loop import Daemon
from chronex.daemon.sign_of_life import heartbeat_task
from chronex.jobfile import SchedulerSettings
from chronex.jobfile.notify_table import HeartbeatSettings
from chronex.model.reasons import TroubleCode
from chronex_store import MemoryStore
from tests.kit.servers import Behaviour, http_answer, refusing_port, web_server


@pytest.fixture
async def daemon() -> AsyncIterator[Daemon]:
    """One that works, with an hour between its own beats: the tests beat themselves."""
    settings = SchedulerSettings(heartbeat=HeartbeatSettings("http://127.0.0.1:1/", 3_600_000))
    async with EmbeddedEngine(MemoryStore(), settings=settings) as engine:
        assert engine._daemon is not None
        yield engine._daemon


def troubles(daemon: Daemon) -> list[str]:
    return [one.detail for one in daemon.troubles.found if one.code is TroubleCode.HEARTBEAT_FAILS]


async def test_an_address_is_asked_once_for_each_beat(daemon: Daemon) -> None:
    with web_server() as server:
        task = heartbeat_task(daemon, HeartbeatSettings(f"{server.url}/ping/1", 60_000))
        assert task.every_s == 60
        await task.do()
        await task.do()
    assert [(one.method, one.path) for one in server.requests] == [("GET", "/ping/1")] * 2
    assert troubles(daemon) == []


async def test_a_scheduler_that_can_start_nothing_keeps_silent(daemon: Daemon) -> None:
    """While its store is full, for example: whoever listens must hear that nothing runs."""
    with web_server() as server:
        task = heartbeat_task(daemon, HeartbeatSettings(server.url))
        daemon.away.since_ms = daemon.clock.monotonic_ms()
        await task.do()
        assert server.requests == []
        daemon.away.since_ms = None
        await task.do()
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (Behaviour(http_answer(500)), "500"),
        (Behaviour(http_answer(404)), "404"),
        (Behaviour(breaks_off=True), ""),
    ],
    ids=["500", "404", "breaks off"],
)
async def test_an_address_that_does_not_take_it_is_a_trouble_until_it_does(
    daemon: Daemon, bad: Behaviour, said: str
) -> None:
    with web_server(bad) as server:
        task = heartbeat_task(daemon, HeartbeatSettings(server.url))
        await task.do()
        (told,) = troubles(daemon)
        assert said in told
        server.behaviours[:] = [Behaviour()]
        await task.do()
    assert troubles(daemon) == []


async def test_nobody_at_the_address_is_a_trouble_too(daemon: Daemon) -> None:
    await heartbeat_task(daemon, HeartbeatSettings(f"http://127.0.0.1:{refusing_port()}/")).do()
    assert len(troubles(daemon)) == 1


async def test_the_address_is_read_from_its_file_for_each_beat(daemon: Daemon, tmp_path: Path) -> None:
    kept = tmp_path / "address"
    task = heartbeat_task(daemon, HeartbeatSettings(f"file:{kept}"))
    await task.do()
    assert "address" in troubles(daemon)[0]
    with web_server() as server:
        kept.write_text(f"{server.url}/secret\n")
        kept.chmod(0o600)
        await task.do()
    assert [one.path for one in server.requests] == ["/secret"]
    assert troubles(daemon) == []


async def test_a_heartbeat_is_one_of_the_tasks_of_a_scheduler_that_has_one(daemon: Daemon) -> None:
    assert [task.every_s for task in daemon.periodic._due_ms if task.name == "heartbeat address"] == [3_600]
