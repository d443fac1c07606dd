"""Metrics as a scraper sees them: parsed by Prometheus' own client, asked for through a socket and of a daemon."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from chronex.clock import SYSTEM_CLOCK
from chronex.daemon import metrics
from chronex.daemon.metrics import (
    BOUNDS_S,
    MOST_JOBS,
    MOST_TASKS,
    HttpAnswer,
    MetricsCollector,
    MetricsServer,
    MetricsTally,
    PageWriter,
)
from chronex.engine.orders import Launch
from chronex.errors import StoreError
from chronex.jobfile import JobFileError, read_job_file
from chronex.model.event import Event
from chronex.model.groups import GroupSettings
from chronex.model.job import Job, JobProgress, Task
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append
from chronex.storage.records import Reading
from chronex.testing import DAY, HOUR, MINUTE, RandomOutcomes, SimulatedMachine
from chronex.testing.machine import ProcessOutcome
from chronex_store import MemoryStore
from tests.daemon.machine import Machine
from tests.kit.cluster import Cluster
from tests.kit.machine import AT_ONCE, START
from tests.kit.waits import DEADLINE_S, until, until_async
from tests.kit.work import assert_cheap
from tests.tui.examples import FixedClock

ROOT = Path(__file__).parent.parent.parent
TASK = (Task(name="main", run=("true",)),)


def scraped(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (found.name, tuple(sorted(found.labels.items()))): found.value
        for family in text_string_to_metric_families(text)
        for found in family.samples
    }


def registry_of(machine: SimulatedMachine) -> CollectorRegistry:
    collector = MetricsCollector(machine.store, FixedClock(machine.now), MetricsTally())
    while collector.advance():
        pass
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def page_of(machine: SimulatedMachine) -> str:
    return generate_latest(registry_of(machine)).decode()


@pytest.mark.parametrize("encode", [generate_latest, generate_openmetrics])
def test_a_page_is_what_the_library_writes_also_when_only_values_are_new(
    encode: Callable[[Collector], bytes],
) -> None:
    machine = SimulatedMachine([Job(id="a", schedule="*/10 * * * *", tasks=TASK)], outcome=RandomOutcomes(3))
    machine.store.update(lambda tx: append(tx, Event(name="OccurrenceMissed", at_ms=1, job='x"\\\n\u2028 1')))
    collector = MetricsCollector(machine.store, FixedClock(machine.now), MetricsTally())
    registry = CollectorRegistry()
    registry.register(collector)
    writer = PageWriter(encode)
    for hours in (0, 1, 2, 30):
        machine.run_until(START + hours * HOUR)
        page = writer.page(collector.values())
        assert page == encode(registry)
        assert scraped(generate_latest(registry).decode())
    parse = parse_openmetrics if encode is generate_openmetrics else text_string_to_metric_families
    assert [sample for family in parse(page.decode()) for sample in family.samples if sample.labels.get("job") == "a"]


def test_a_page_with_known_series_is_cheap() -> None:
    """The largest page: names and labels of 24,000 lines are not written again."""
    tally = MetricsTally()
    for number in range(MOST_TASKS):
        job, task = f"job-{number % MOST_JOBS}", f"task-{number}"
        tally.histograms["scheduler_task_execution_duration_seconds"][job, task].observe(number)
        for status in ("success", "failure", "timeout"):
            tally.counters["scheduler_task_attempts_total"][job, task, status] += 1
    collector = MetricsCollector(MemoryStore(), SYSTEM_CLOCK, tally)
    writer = PageWriter(generate_latest)
    writer.page(collector.values())
    assert_cheap(lambda: writer.page(collector.values()), 80, "a page of known series")


def test_what_is_counted_is_what_happened() -> None:
    machine = SimulatedMachine(
        [Job(id="a", schedule="*/10 * * * *", tasks=TASK), Job(id="b", schedule="0 * * * *", tasks=TASK)],
        outcome=RandomOutcomes(3),
    )
    machine.run_until(START + DAY // 2)
    machine.crash()
    machine.pass_time(3 * HOUR)
    machine.boot()
    machine.run_until(START + DAY)
    found = scraped(page_of(machine))
    for job in ("a", "b"):
        history = machine.occurrences(job)
        for state in (OccurrenceState.COMPLETED, OccurrenceState.FAILED, OccurrenceState.MISSED):
            counted = found.get(("scheduler_job_occurrences_total", (("job", job), ("status", state.value))), 0)
            assert counted == sum(o.state is state for o in history)
        attempts = [
            v for (n, labels), v in found.items() if n == "scheduler_task_attempts_total" and ("job", job) in labels
        ]
        assert sum(attempts) == sum(1 for p in machine.processes if p.job == job and p.attempt_id not in machine.live)
        took = sum(o.finished_ms - o.started_ms for o in history if o.finished_ms and o.started_ms) / 1000
        assert found["scheduler_job_execution_duration_seconds_sum", (("job", job),)] == pytest.approx(took)
        assert found["scheduler_job_start_lag_seconds_count", (("job", job),)] == sum(
            o.started_ms is not None for o in history
        )
        labels = (("job", job), ("strategy", "execute_last"))
        assert found["scheduler_recovery_runs_total", labels] == sum(
            o.recovery and o.started_ms is not None for o in history
        )


@pytest.mark.parametrize(
    ("strategy", "runs", "missed"),
    [
        (RecoveryStrategy.EXECUTE_ALL, 1_000, 6_200),
        (RecoveryStrategy.EXECUTE_LAST, 1, 7_199),
        (RecoveryStrategy.MARK_MISSED, 7_200, 7_200),  # those that it left out
        (RecoveryStrategy.COMPRESSED, 1, 7_199),
    ],
)
def test_recovery_is_counted_by_strategy_and_what_was_too_much_for_records_too(
    strategy: RecoveryStrategy, runs: int, missed: int
) -> None:
    """Two hours of a job of every second: most of the missed ones are a span of the journal."""
    job = Job(id="a", schedule="* * * * * *", tasks=TASK, recovery=RecoveryPolicy(strategy))
    machine = SimulatedMachine([job], outcome=lambda _launch: ProcessOutcome(duration_ms=1))
    machine.run_for(MINUTE)
    machine.pace = AT_ONCE
    machine.go_down(2 * HOUR)
    machine.run_for(MINUTE)
    found = scraped(page_of(machine))
    assert found["scheduler_recovery_runs_total", (("job", "a"), ("strategy", strategy.value))] == runs
    assert found["scheduler_job_occurrences_total", (("job", "a"), ("status", "missed"))] == missed


FAMILIES = {
    "scheduler_jobs_running": "gauge",
    "scheduler_jobs_running_total": "untyped",
    "scheduler_jobs_in_queue": "gauge",
    "scheduler_jobs_in_queue_total": "untyped",
    "scheduler_jobs_paused": "gauge",
    "scheduler_jobs_paused_total": "untyped",
    "scheduler_dead_letters": "gauge",
    "scheduler_dead_letters_total": "untyped",
    "scheduler_job_last_success_timestamp_seconds": "gauge",
    "scheduler_job_last_start_timestamp_seconds": "gauge",
    "scheduler_job_next_run_timestamp_seconds": "gauge",
    "scheduler_job_execution_duration_seconds": "histogram",
    "scheduler_task_execution_duration_seconds": "histogram",
    "scheduler_job_start_lag_seconds": "histogram",
    "scheduler_task_attempts_total": "counter",
    "scheduler_job_occurrences_total": "counter",
    "scheduler_recovery_runs_total": "counter",
    "scheduler_journal_events_total": "counter",
}


def test_the_page_has_every_family_with_help_and_type() -> None:
    lines = page_of(SimulatedMachine()).splitlines()
    assert [line.split()[2:] for line in lines if line.startswith("# TYPE")] == [[*row] for row in FAMILIES.items()]
    helped = [line.split(maxsplit=3)[2:] for line in lines if line.startswith("# HELP")]
    assert [name for name, words in helped if words.endswith(".")] == list(FAMILIES)
    documented = (ROOT / "docs" / "operating.md").read_text()
    assert not [name for name in FAMILIES if f"`{name}`" not in documented]


def test_both_formats_say_the_same() -> None:
    machine = SimulatedMachine([Job(id="a", schedule="*/10 * * * *", tasks=TASK)], outcome=RandomOutcomes(3))
    machine.run_until(START + DAY // 8)
    registry = registry_of(machine)
    text = generate_openmetrics(registry).decode()
    families = list(parse_openmetrics(text))
    assert scraped(page_of(machine)) == {
        (found.name, tuple(sorted(found.labels.items()))): found.value
        for family in families
        for found in family.samples
    }
    bounds = [
        s.labels["le"] for f in families for s in f.samples if s.name == "scheduler_job_start_lag_seconds_bucket"
    ]
    assert bounds == [*map(str, BOUNDS_S), "+Inf"]


def test_a_gauge_has_the_same_value_under_both_names() -> None:
    machine = SimulatedMachine(
        [Job(id="a", schedule="@daily", tasks=TASK, progress=JobProgress(paused=True))], outcome=RandomOutcomes(1)
    )
    found = scraped(page_of(machine))
    assert found["scheduler_jobs_paused", ()] == found["scheduler_jobs_paused_total", ()] == 1


def test_a_job_tells_when_it_last_succeeded_last_started_and_will_run_next() -> None:
    """`never` fails at 00:30 and has succeeded never; `off` is paused without an end and has no next run."""
    jobs = [
        Job(id="a", schedule="0 * * * *", tasks=TASK),
        Job(id="never", schedule="30 0 * * *", tasks=TASK),
        Job(id="off", schedule="@daily", tasks=TASK, progress=JobProgress(paused=True)),
    ]

    def outcome(launch: Launch) -> ProcessOutcome:
        return ProcessOutcome(2_000, exit_code=int(launch.attempt.job == "never"))

    machine = SimulatedMachine(jobs, outcome=outcome)
    machine.run_until(START + HOUR + 10 * MINUTE)
    found = scraped(page_of(machine))
    second = START // 1000

    def told(name: str) -> dict[str, float]:
        full = f"scheduler_job_{name}_timestamp_seconds"
        return {labels[0][1]: value - second for (metric, labels), value in found.items() if metric == full}

    assert told("last_success") == {"a": 3_602}
    assert told("last_start") == {"a": 3_600, "never": 1_800}
    assert told("next_run") == {"a": 7_200, "never": 86_400 + 1_800}


def test_times_of_jobs_are_told_of_the_first_jobs_alone() -> None:
    jobs = [Job(id=f"job-{number:03}", schedule="@daily", tasks=TASK) for number in range(MOST_JOBS + 3)]
    found = scraped(page_of(SimulatedMachine(jobs)))
    names = [labels[0][1] for metric, labels in found if metric == "scheduler_job_next_run_timestamp_seconds"]
    assert names == [f"job-{number:03}" for number in range(MOST_JOBS)]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (apt install prometheus)")
def test_promtool_finds_nothing_to_say() -> None:
    """Of a page on which every family has a series."""
    jobs = [Job(id=name, schedule="*/10 * * * *", tasks=TASK, groups={"database": 1}) for name in "ab"]
    machine = SimulatedMachine(jobs, outcome=RandomOutcomes(3))
    machine.apply(jobs, groups=[GroupSettings("database", limit=1)])
    machine.run_until(START + 3 * HOUR)
    machine.go_down(2 * HOUR)
    machine.run_for(MINUTE)
    page = page_of(machine)
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (checked.stdout + checked.stderr, checked.returncode) == ("", 0)
    told = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name, _ in scraped(page)}
    assert told >= set(FAMILIES)


def test_jobs_beyond_the_limit_are_counted_as_other() -> None:
    store = MemoryStore()
    many = [Event(name="OccurrenceCompleted", at_ms=1, job=f"job-{n}", nominal_ms=n) for n in range(MOST_JOBS + 50)]
    many += [
        Event(name="TaskRunFailed", at_ms=1, job="job-9999", task=f"t{n}", nominal_ms=1, attempt=1) for n in range(9)
    ]
    store.update(lambda tx: append(tx, *many))
    tally = MetricsTally()
    store.view(lambda tx: tally.advance(Reading(tx)))
    series = tally.counters["scheduler_job_occurrences_total"]
    assert len(series) == MOST_JOBS + 1
    assert series["other", "completed"] == 50
    assert tally.counters["scheduler_task_attempts_total"] == {("other", "other", "failure"): 9}


def test_tasks_beyond_the_limit_are_counted_as_other() -> None:
    store = MemoryStore()
    many = [
        Event(name="TaskRunFailed", at_ms=1, job="a", task=f"t{n}", nominal_ms=1, attempt=1)
        for n in range(MOST_TASKS + 9)
    ]
    store.update(lambda tx: append(tx, *many))
    tally = MetricsTally()
    store.view(lambda tx: tally.advance(Reading(tx)))
    assert tally.counters["scheduler_task_attempts_total"]["a", "other", "failure"] == 9


@pytest.mark.parametrize("hostile", ['a"} 1\nevil_metric 1', "\\", 'x"y', "a\nb", "\\n"])
def test_no_label_leaves_its_quotes(hostile: str) -> None:
    store = MemoryStore()
    store.update(lambda tx: append(tx, Event(name="OccurrenceMissed", at_ms=1, job=hostile)))
    registry = CollectorRegistry()
    registry.register(MetricsCollector(store, SYSTEM_CLOCK, MetricsTally()))
    found = scraped(generate_latest(registry).decode())
    assert found["scheduler_job_occurrences_total", (("job", hostile), ("status", "missed"))] == 1
    assert not [name for name, _ in found if "evil" in name]


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
        server = MetricsServer(MemoryStore(), SYSTEM_CLOCK)
        port = await server.open("127.0.0.1", 0)
        try:
            await fn(port)
        finally:
            await server.close()

    asyncio.run(asyncio.wait_for(main(), DEADLINE_S))


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", b"200"),
        (b"GET /metrics HTTP/1.1\r\nHost: [::1]:9464\r\n\r\n", b"200"),
        (b"GET /metrics HTTP/1.1\r\nHost: LocalHost.\r\n\r\n", b"200"),
        (b"GET /metrics HTTP/1.1\r\nHost: page.example:9464\r\n\r\n", b"403"),
        (b"GET /healthz HTTP/1.1\r\nhost: localhost.page.example\r\n\r\n", b"403"),
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


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain; version="),
        ("text/plain", "text/plain; version="),
        ("text/plain;version=abc", "text/plain; version="),
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
            "application/openmetrics-text",
        ),
    ],
)
def test_the_format_is_negotiated(accept: str, kind: str) -> None:
    async def ask(port: int) -> None:
        answer = await exchange(port, f"GET /metrics HTTP/1.1\r\nAccept: {accept}\r\n\r\n".encode())
        head, _, body = answer.partition(b"\r\n\r\n")
        assert f"Content-Type: {kind}".encode() in head
        assert body.endswith(b"# EOF\n") == ("openmetrics" in kind)
        assert f"Content-Length: {len(body)}\r\n".encode() in head

    served(ask)


def test_a_page_is_compressed_for_clients_that_ask_for_it() -> None:
    async def ask(port: int) -> None:
        answer = await exchange(port, b"GET /metrics HTTP/1.1\r\naccept-encoding: gzip\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"Content-Encoding: gzip" in head
        assert b"scheduler_jobs_running 0.0" in gzip.decompress(body)

    served(ask)


def test_a_client_that_sends_slowly_or_too_much_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "CLIENT_TIMEOUT_S", 0.2)

    async def ask(port: int) -> None:
        assert await exchange(port, b"GET /metrics HT") == b""
        with suppress(ConnectionResetError):  # what it sent after the limit was not read
            assert await exchange(port, b"GET /" + b"x" * 20_000) == b""
        monkeypatch.undo()
        assert b" 200 " in await exchange(port, b"GET /healthz HTTP/1.1\r\n\r\n")

    served(ask)


def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 64 << 20
    ended: list[None] = []
    exchange_of = MetricsServer._exchange

    async def noted(server: MetricsServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await exchange_of(server, reader, writer)
        ended.append(None)

    monkeypatch.setattr(MetricsServer, "_exchange", noted)
    monkeypatch.setattr(metrics, "CLIENT_TIMEOUT_S", 0.5)
    monkeypatch.setattr(MetricsServer, "_render", lambda *_: HttpAnswer("200 OK", b"x" * size))

    async def ask(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            await until_async(lambda: ended, "the end of the exchange")
            client.settimeout(DEADLINE_S)
            got = 0
            with suppress(ConnectionResetError):
                while piece := await asyncio.to_thread(client.recv, 1 << 20):
                    got += len(piece)
            assert got < size, "the rest was dropped, not kept for it"

    served(ask)


def test_a_store_that_cannot_be_read_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: MetricsCollector) -> bool:
        raise StoreError("gone")

    monkeypatch.setattr(MetricsCollector, "advance", fail)

    async def ask(port: int) -> None:
        assert b" 503 " in await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n")

    served(ask)


def test_a_scrape_that_is_under_way_ends_before_the_store_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    closing = threading.Event()
    real_close = MetricsServer.close

    def slow(_: MetricsCollector) -> bool:
        events.append("reading")
        closing.wait(DEADLINE_S)
        sleep(0.05)  # a close that does not wait for this read would be done first
        events.append("read")
        return False

    async def close(server: MetricsServer) -> None:
        closing.set()
        await real_close(server)
        events.append("closed")

    monkeypatch.setattr(MetricsCollector, "advance", slow)
    monkeypatch.setattr(MetricsServer, "close", close)

    async def ask(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        await until_async(lambda: events, "the start of the scrape")
        writer.close()

    served(ask)
    assert events == ["reading", "read", "closed"]


def test_connections_are_bounded() -> None:
    async def ask(port: int) -> None:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(metrics.MOST_CONNECTIONS)]
        await asyncio.sleep(0)
        # The answer may be lost, because what was sent is not read.
        with suppress(ConnectionResetError):
            assert b" 503 " in await exchange(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        for _, writer in idle:
            writer.close()

    served(ask)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def scrape(port: int) -> dict[str, float]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    return {f"{s.name} {sorted(s.labels.items())}": s.value for s in samples}


def test_a_running_daemon_is_scraped_reports_failures_and_has_a_status(machine: Machine) -> None:
    port = free_port()
    notice = machine.directory / "notice"
    machine.write(
        f'[scheduler]\nmetrics = "127.0.0.1:{port}"\n'
        f'[jobs.bad]\nschedule = "* * * * * *"\nrun = "exit 3"\n'
        f'notify = {{ run = "cat > {notice}.part && mv {notice}.part {notice}", after_failures = 2 }}\n'
    )
    daemon = machine.start()
    failed = "scheduler_job_occurrences_total [('job', 'bad'), ('status', 'failed')]"
    until(lambda: scrape(port).get(failed, 0) >= 2, "two failed runs in the metrics")
    until(notice.exists, "the notice of the failures")
    report = json.loads(notice.read_text())
    assert (report["kind"], report["job"], report["failures_in_a_row"]) == ("failing", "bad", 2)
    found = json.loads(machine.chronex("status", "--format", "json").stdout)
    assert found["daemon"]["pid"] == daemon.pid
    assert [row["job"] for row in found["failing"]] == ["bad"]
    assert machine.chronex("status", "--check").returncode == 1
    assert daemon.stopped() == 0
    after = json.loads(machine.chronex("status", "--format", "json").stdout)
    assert after["daemon"] is None
    assert set(after) == {
        "at", "at_ms", "daemon", "nodes", "given_up", "left", "groups", "channels", "troubles", "jobs", "counts", "running", "queued", "next", "failing", "with_errors", "retrying",
        "late", "unserved", "calendars",
        "dead_letters", "notices", "hooks", "outage", "store", "attention",
    }  # fmt: skip
    text = machine.chronex("status").stdout
    assert "scheduler  not running" in text
    hint = f"start one with chronex run --store {machine.store}"
    assert f"needs attention: no scheduler runs: {hint}\n" in text, "in a pipe nothing is cut"
    assert "needs attention: bad failed " in text


def test_an_address_that_is_taken_is_logged_and_the_daemon_runs_all_the_same(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        machine.write(
            f'[scheduler]\nmetrics = "127.0.0.1:{port}"\n[jobs.ok]\nschedule = "* * * * * *"\nrun = "true"\n'
        )
        daemon = machine.start()
        daemon.until_logged("MetricsUnavailable")
        daemon.until_logged("address already in use")
        daemon.until_logged("attempt ended")
        assert daemon.stopped() == 0


@pytest.mark.parametrize("is_on", [False, True])
def test_the_client_library_is_loaded_only_when_metrics_are_on(is_on: bool) -> None:
    program = (
        "import sys, chronex.daemon.headless\n"
        "from chronex.daemon.metrics import MetricsServer\n"
        "from chronex.clock import SYSTEM_CLOCK\n"
        "from chronex_store import MemoryStore\n"
        f"if {is_on}: MetricsServer(MemoryStore(), SYSTEM_CLOCK)\n"
        "print('prometheus_client' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=DEADLINE_S, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(is_on)


def test_on_a_shared_store_each_node_counts_its_own_and_the_sums_are_those_of_the_store() -> None:
    job = Job(id="job", schedule="@every 20s", tasks=(Task(name="main", run=("true",)),))
    cluster = Cluster([job], 3, 11, START, {"job": 1_000})
    cluster.run(20 * 60_000)
    nodes = cluster.store.view(lambda tx: Reading(tx).nodes())
    clock = FixedClock(cluster.now)
    pages = {
        node.name: {
            one.name: one for one in MetricsCollector(cluster.store, clock, MetricsTally(0, node.id), node).values()
        }
        for node in nodes
    }
    counted = {
        name: sum(
            values[0] for labels, values in page["scheduler_job_occurrences_total"].series if "completed" in labels
        )
        for name, page in pages.items()
    }
    assert sum(counted.values()) == sum(one.ended_ms is not None for one in cluster.begun)
    for name, count in counted.items():
        assert count == sum(one.host == name and one.ended_ms is not None for one in cluster.begun)
        assert {labels[-1] for _, one in pages[name].items() for labels, _ in one.series} == {name}
    gauges = [name for name, page in pages.items() if any(one.kind == "gauge" for one in page.values())]
    assert len(gauges) == 1, "what the store is like is told by one of them"
