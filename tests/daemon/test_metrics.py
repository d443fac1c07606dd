"""Metrics as a scraper sees them: judged by the parser of Prometheus' own client, and by a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chronex.clock import SYSTEM_CLOCK
from chronex.daemon import metrics_server
from chronex.daemon.metrics import HELP, MOST_JOBS, Tally, exposition, gauges, sample
from chronex.daemon.metrics_server import Metrics, MetricsServer
from chronex.jobfile import JobFileError, read_job_file
from chronex.model.records import Event, Job, Task
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append
from chronex.storage.records import Reading
from chronex_store import MemoryStore
from tests.engine.simulation import DAY, HOUR, START, Simulation

TASK = (Task(name="main", run=("true",)),)


def scraped(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (found.name, tuple(sorted(found.labels.items()))): found.value
        for family in text_string_to_metric_families(text)
        for found in family.samples
    }


def page_of(world: Simulation) -> str:
    def read(reading: Reading) -> str:
        tally = Tally()
        while tally.advance(reading):
            pass
        return exposition(tally, gauges(reading, world.now))

    return world.store.view(lambda tx: read(Reading(tx)))


def test_what_is_counted_is_what_happened() -> None:
    world = Simulation(
        3, [Job(id="a", schedule="*/10 * * * *", tasks=TASK), Job(id="b", schedule="0 * * * *", tasks=TASK)]
    )
    world.run_until(START + DAY // 2)
    world.crash()
    world.now += 3 * HOUR
    world.boot()
    world.run_until(START + DAY)
    found = scraped(page_of(world))
    for job in ("a", "b"):
        history = world.occurrences(job)
        for state in (OccurrenceState.COMPLETED, OccurrenceState.FAILED, OccurrenceState.MISSED):
            counted = found.get(("scheduler_job_occurrences_total", (("job", job), ("status", state.value))), 0)
            assert counted == sum(o.state is state for o in history)
        attempts = [
            v for (n, labels), v in found.items() if n == "scheduler_task_attempts_total" and ("job", job) in labels
        ]
        assert sum(attempts) == sum(1 for p in world.processes if p.job == job and p.attempt_id not in world.live)
        took = sum(o.finished_ms - o.started_ms for o in history if o.finished_ms and o.started_ms) / 1000
        assert found["scheduler_job_execution_duration_seconds_sum", (("job", job),)] == pytest.approx(took)
        assert found["scheduler_job_start_lag_seconds_count", (("job", job),)] == sum(
            o.started_ms is not None for o in history
        )
        labels = (("job", job), ("strategy", "execute_last"))
        assert found["scheduler_recovery_runs_total", labels] == sum(
            o.recovery and o.started_ms is not None for o in history
        )


def test_the_page_has_every_family_with_help_and_type() -> None:
    families = {f.name: f for f in text_string_to_metric_families(page_of(Simulation(1, [])))}
    for name, (kind, words) in HELP.items():
        family = families[name.removesuffix("_total") if kind == "counter" else name]
        assert (family.type, family.documentation) == (kind, words)


def test_jobs_beyond_the_limit_are_counted_as_other() -> None:
    store = MemoryStore()
    many = [Event(name="OccurrenceCompleted", at_ms=1, job=f"job-{n}", nominal_ms=n) for n in range(MOST_JOBS + 50)]
    many += [
        Event(name="TaskRunFailed", at_ms=1, job="job-9999", task=f"t{n}", nominal_ms=1, attempt=1) for n in range(9)
    ]
    store.update(lambda tx: append(tx, *many))
    tally = Tally()
    store.view(lambda tx: tally.advance(Reading(tx)))
    series = tally.counters["scheduler_job_occurrences_total"]
    assert len(series) == MOST_JOBS + 1
    assert series[("job", "other"), ("status", "completed")] == 50
    assert tally.counters["scheduler_task_attempts_total"] == {
        (("job", "other"), ("task", "other"), ("status", "failure")): 9
    }


@pytest.mark.parametrize("hostile", ['a"} 1\nevil_metric 1', "\\", 'x"y', "a\nb", "\\n"])
def test_no_label_leaves_its_quotes(hostile: str) -> None:
    [family] = text_string_to_metric_families(sample("m", (("job", hostile),), 1) + "\n")
    [found] = family.samples
    assert found.labels == {"job": hostile}


@pytest.mark.parametrize(
    ("address", "public", "is_fine"),
    [
        ("127.0.0.1:1", False, True), ("[::1]:1", False, True), ("localhost:1", False, True), ("0.0.0.0:1", False, False),
        ("192.0.2.1:1", False, False), ("example.org:1", False, False), ("0.0.0.0:1", True, True),
    ],
)  # fmt: skip
def test_other_machines_only_where_it_is_said(address: str, public: bool, is_fine: bool) -> None:
    text = f'[scheduler]\nmetrics = "{address}"\n' + ("metrics_public = true\n" if public else "")
    if is_fine:
        assert read_job_file(text.encode(), "f", "UTC").settings.metrics is not None
        return
    with pytest.raises(JobFileError, match="metrics_public = true"):
        read_job_file(text.encode(), "f", "UTC")


def served(fn: Callable[[int], Awaitable[None]]) -> None:
    async def main() -> None:
        server = MetricsServer(Metrics(MemoryStore(), SYSTEM_CLOCK))
        port = await server.open("127.0.0.1", 0)
        try:
            await fn(port)
        finally:
            await server.close()

    asyncio.run(asyncio.wait_for(main(), 60))


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", b"200"),
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
    ],
)
def test_two_pages_by_get_and_nothing_else(request_: bytes, status: bytes) -> None:
    async def ask(port: int) -> None:
        assert (await exchange(port, request_)).split(b" ")[1] == status

    served(ask)


def test_slow_clients_are_cut_and_talkative_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "PATIENCE_S", 0.2)

    async def ask(port: int) -> None:
        assert await exchange(port, b"GET /metrics HT") == b""
        assert await exchange(port, b"GET /" + b"x" * 20_000) == b""
        assert b" 200 " in await exchange(port, b"GET /healthz HTTP/1.1\r\n\r\n")

    served(ask)


def test_connections_are_bounded() -> None:
    async def ask(port: int) -> None:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(metrics_server.MOST_CONNECTIONS)]
        await asyncio.sleep(0)
        # Told so, or cut before the telling arrived: what was sent is not read.
        with suppress(ConnectionResetError):
            assert b" 503 " in await exchange(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        for _, writer in idle:
            writer.close()

    served(ask)
