"""A running daemon, watched from outside: scraped, asked for its status, and heard when it tells of failures."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.daemon.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    for daemon in machine.daemons:
        if daemon.poll() is None:
            daemon.terminate()
        daemon.communicate(timeout=30)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def eventually(is_so: Callable[[], bool]) -> None:
    end = monotonic() + 45
    while not is_so():
        assert monotonic() < end
        sleep(0.1)


def scrape(port: int) -> dict[str, float]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    return {f"{s.name} {sorted(s.labels.items())}": s.value for s in samples}


def test_scraped_told_and_asked(machine: Machine) -> None:
    port, told = free_port(), machine.directory / "told"
    machine.write(
        f'[scheduler]\nmetrics = "127.0.0.1:{port}"\n'
        f'[jobs.bad]\nschedule = "* * * * * *"\nrun = "exit 3"\n'
        f'notify = {{ run = "cat > {told}.part && mv {told}.part {told}", after_failures = 2 }}\n'
    )
    daemon = machine.start()
    failed = "scheduler_job_occurrences_total [('job', 'bad'), ('status', 'failed')]"
    eventually(lambda: scrape(port).get(failed, 0) >= 2)
    eventually(told.exists)
    report = json.loads(told.read_text())
    assert (report["kind"], report["job"], report["failures_in_a_row"]) == ("failing", "bad", 2)
    found = json.loads(machine.chronex("status", "--format", "json").stdout)
    assert found["daemon"]["pid"] == daemon.pid
    assert [row["job"] for row in found["failing"]] == ["bad"]
    assert machine.chronex("status", "--check").returncode == 1
    daemon.terminate()
    assert daemon.wait(30) == 0
    after = json.loads(machine.chronex("status", "--format", "json").stdout)
    assert after["daemon"] is None
    assert set(after) == {
        "at", "at_ms", "daemon", "jobs", "counts", "running", "queued", "next", "failing", "retrying", "late", "dead_letters",
        "notices", "outage", "store", "attention",
    }  # fmt: skip
    text = machine.chronex("status").stdout
    assert "scheduler  not running" in text
    assert "needs attention: no scheduler runs: start one with chronex run\n" in text, "in a pipe nothing is cut"
    assert "needs attention: bad failed " in text


def test_an_address_that_is_taken_is_told_and_the_daemon_runs_all_the_same(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        machine.write(f'[scheduler]\nmetrics = "127.0.0.1:{port}"\n[jobs.ok]\nschedule = "@daily"\nrun = "true"\n')
        done = machine.chronex("run", "--headless", "--for", "300ms")
    assert done.returncode == 0
    assert "MetricsUnavailable" in done.stderr
