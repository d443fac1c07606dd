"""Metrics over a socket: what is answered to whom, in which format, and what a client may not do."""

from __future__ import annotations

import asyncio
import gzip
import json
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
from prometheus_client.parser import text_string_to_metric_families

from chronex.clock import SYSTEM_CLOCK
from chronex.daemon import metrics_server
from chronex.daemon.metrics import MetricsCollector
from chronex.daemon.metrics_server import HttpAnswer, MetricsServer
from chronex.errors import StoreError
from chronex.jobfile import JobFileError, read_job_file
from chronex.model.job import Task
from chronex_store import MemoryStore
from tests.daemon.machine import Machine
from tests.kit.waits import DEADLINE_S, until, until_async

ROOT = Path(__file__).parent.parent.parent
TASK = (Task(name="main", run=("true",)),)


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
    monkeypatch.setattr(metrics_server, "CLIENT_TIMEOUT_S", 0.2)

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
    monkeypatch.setattr(metrics_server, "CLIENT_TIMEOUT_S", 0.5)
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
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(metrics_server.MOST_CONNECTIONS)]
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
    hint = f"start one with chronex run --store {machine.store} --config {machine.directory / 'chronex.toml'}"
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
        "from chronex.daemon.metrics_server import MetricsServer\n"
        "from chronex.clock import SYSTEM_CLOCK\n"
        "from chronex_store import MemoryStore\n"
        f"if {is_on}: MetricsServer(MemoryStore(), SYSTEM_CLOCK)\n"
        "print('prometheus_client' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=DEADLINE_S, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(is_on)
