"""Retention, notices, metrics and free space in a program, as in the daemon; one node of several does it."""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.daemon import retention
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.loop import HEARTBEAT_S
from chronex.daemon.maintenance import is_maintainer
from chronex.daemon.registration import this_node
from chronex.declarative import Scheduler
from chronex.jobfile import SchedulerSettings
from chronex.jobfile.settings import Address, HistorySettings, LogSettings
from chronex.model.job import Call, Job, Task
from chronex.model.policies import NotifyPolicy, OverlapPolicy
from chronex.model.records import Node
from chronex.model.states import is_final
from chronex.run.callables import TaskContext
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore, MemoryStore
from tests.kit.waits import until_async

KEEPS_FIVE = SchedulerSettings(history=HistorySettings(max_count=5), logs=LogSettings(max_count=5))


def note(context: TaskContext) -> None:
    context.log("done")


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "RETENTION_EVERY_S", 0.05)
    monkeypatch.setattr(retention, "PASS_EVERY_MS", 50)


@pytest.mark.usefixtures("hurried")
async def test_an_embedded_engine_keeps_its_store_within_the_limits(tmp_path: Path) -> None:
    tasks = (Task(name="main", run=Call("note")),)
    many = Job(id="many", schedule="@every 20ms {max:30}", tasks=tasks, overlap=OverlapPolicy.QUEUE)
    async with EmbeddedEngine(tmp_path / "store", calls={"note": note}, settings=KEEPS_FIVE) as engine:
        engine.apply([many])
        await until_async(lambda: engine.row("many").job.progress.counters.completed == 30, "thirty runs")

        def kept() -> tuple[int, int]:
            history = engine.store.view(lambda tx: Reading(tx).occurrences("many", limit=1_000))
            return len(history), len(os.listdir(tmp_path / "store" / "logs"))

        def is_within_limits() -> bool:  # an instant that was skipped counts in the history, and has no log
            occurrences, logs = kept()
            return occurrences == 5 and logs <= 5

        await until_async(is_within_limits, lambda: f"five of each, but there were {kept()}")


@pytest.mark.usefixtures("hurried")
async def test_a_scheduler_keeps_its_store_within_the_limits(tmp_path: Path) -> None:
    """Its limits come as settings; a task every minute would take long, so its records are those of a program.

    Nothing may be left in a queue: on a busy machine what has no end by then would stay, and rightly so.
    """
    store = LmdbStore.open(tmp_path / "store")
    tasks = (Task(name="main", run=Call("note")),)
    many = Job(id="many", schedule="@every 20ms {max:30}", tasks=tasks, overlap=OverlapPolicy.SKIP)
    async with EmbeddedEngine(store, calls={"note": note}) as engine:
        engine.apply([many])

        def is_over() -> bool:  # on a busy machine some of the thirty are skipped, and have ended too
            ended = [
                is_final(one.state) for one in store.view(lambda tx: Reading(tx).occurrences("many", limit=1_000))
            ]
            return engine.row("many").job.progress.next_ms is None and len(ended) > 5 and all(ended)

        await until_async(is_over, "the end of thirty instants")

    async def nothing() -> None:
        return None

    scheduler = Scheduler(store, settings=KEEPS_FIVE)
    await scheduler.initialize([("yearly", "0 0 1 1 *", nothing, timedelta(minutes=1))])

    def left() -> list[str]:
        return [one.state for one in store.view(lambda tx: Reading(tx).occurrences("many", limit=1_000))]

    await until_async(lambda: len(left()) == 5, lambda: f"five occurrences, but there were {left()}")
    await scheduler.stop()
    store.close()


async def test_a_notice_is_sent_from_a_program(tmp_path: Path) -> None:
    told = tmp_path / "told"
    policy = NotifyPolicy(("sh", "-c", f"cat > {told}.new; mv {told}.new {told}"), after_failures=1)
    failing = Job(id="bad", schedule="@every 50ms {max:1}", tasks=(Task(name="main", run=("false",)),), notify=policy)
    async with EmbeddedEngine(tmp_path / "store") as engine:
        engine.apply([failing])
        await until_async(told.exists, "the notice")
    assert '"kind":"failing"' in told.read_text()


async def test_metrics_are_served_from_a_program(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = SchedulerSettings(metrics=Address("127.0.0.1", port))
    async with EmbeddedEngine(tmp_path / "store", settings=settings):
        await until_async(lambda: _answers(port), "the metrics server")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert b"scheduler_dead_letters 0" in answer


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


NOW = 1_800_000_000_000
OWN = replace(this_node(1), id="node-own", started_ms=NOW - 1_000, seen_ms=NOW)
OLDER = replace(OWN, id="node-older", started_ms=NOW - 2_000)
DEAD = replace(OLDER, process=replace(OLDER.process, start_time=OLDER.process.start_time + 1))


@pytest.mark.parametrize(
    ("other", "does_it"),
    [
        (None, True),
        (OLDER, False),
        (replace(OLDER, started_ms=NOW), True),
        (replace(OLDER, started_ms=OWN.started_ms, id="node-a"), False),
        (replace(OLDER, stopped_ms=NOW), True),
        (DEAD, True),
        (replace(OLDER, seen_ms=NOW - round(HEARTBEAT_S * 3_000)), True),
    ],
    ids=["alone", "older", "younger", "same age", "stopped", "dead", "silent"],
)
def test_the_node_that_has_worked_the_longest_does_it_for_all(other: Node | None, does_it: bool) -> None:
    store = MemoryStore()
    nodes = [OWN] if other is None else [OWN, other]

    def write(tx: Transaction) -> None:
        for node in nodes:
            Records(tx, NOW).put(node)

    store.update(write)
    assert store.view(lambda tx: is_maintainer(Reading(tx).nodes(), OWN.id, NOW)) is does_it
