"""The frozen program as a stranger meets it: no Python, no zone data, no home to write to, an odd locale."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.machine import LoggedProgram
from tests.kit.waits import DEADLINE_S

BINARY = os.environ.get("CHRONEX_BINARY", "")
pytestmark = [
    pytest.mark.binary,
    pytest.mark.skipif(not BINARY, reason="`make binary` builds the program and names it in CHRONEX_BINARY"),
]

# Nothing can be written under a home that lies inside a file, not even by root.
BARE = {"HOME": "/dev/null/home", "PYTHONTZPATH": "", "LC_ALL": "xx_YY.odd", "PATH": "/nowhere"}
JOBS = """
[jobs.report]
schedule = "* * * * * *"
run = ["/usr/bin/env"]
"""


SLOW = """
[scheduler]
on_stop = "cancel"

[jobs.slow]
schedule = "@once +1s"
run = "trap 'sleep 1; exit 0' TERM; while :; do sleep 0.1; done"
"""


def chronex(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [os.path.abspath(BINARY), *arguments],
        env={**BARE, **environment}, cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def run_until_an_attempt_has_ended(place: Path, **environment: str) -> None:
    """A daemon until its log says so, however long this machine takes to start it; then it is asked to stop."""
    daemon = LoggedProgram(
        [os.path.abspath(BINARY), "run", "--headless"],
        env={**BARE, **environment}, cwd=place, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with daemon:
        try:
            daemon.until_logged("attempt ended")
            assert daemon.stopped() == 0, daemon.unread
        finally:
            daemon.kill()


def test_explain_knows_every_zone_without_the_machines_help() -> None:
    done = chronex("explain", "TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>", "-n", "2")
    assert done.returncode == 0, done.stderr
    assert "+09:00" in done.stdout


def test_next_and_lint_answer() -> None:
    done = chronex("next", "TZ=Europe/Berlin 30 2 * * *", "--from", "2027-03-27T12:00:00Z")
    assert done.stdout == "2027-03-28T03:00:00+02:00\n", done.stderr
    assert chronex("lint", "0 0 30 2 *").returncode == 1


def test_every_zone_of_the_archive_can_be_read() -> None:
    for zone in ("America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Argentina/Buenos_Aires"):
        assert chronex("next", f"TZ={zone} 0 9 * * *").returncode == 0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "chronex.toml").write_text(JOBS)
    return tmp_path


def test_apply_run_and_doctor_with_a_real_job(place: Path) -> None:
    store = {"CHRONEX_STORE": str(place / "store")}
    assert "new" in chronex("apply", cwd=place, **store).stdout
    run_until_an_attempt_has_ended(place, **store)
    history = json.loads(chronex("history", "report", "--format", "json", cwd=place, **store).stdout)
    assert any(row["state"] == "completed" for row in history)
    doctor = chronex("doctor", "--store", str(place / "store"), cwd=place)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert doctor.stderr == ""


def test_a_daemon_finds_new_zones_after_its_temporary_folder_was_cleaned(place: Path) -> None:
    """A cleaner of /tmp may remove what the one-file program was unpacked into, ten days later."""
    folder = place / "unpacked"
    folder.mkdir()
    environment = {**BARE, "CHRONEX_STORE": str(place / "store"), "TMPDIR": str(folder)}
    daemon = LoggedProgram(
        [os.path.abspath(BINARY), "run", "--headless"],
        env=environment, cwd=place, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with daemon:
        try:
            daemon.until_logged("attempt ended")
            for unpacked in folder.iterdir():
                shutil.rmtree(unpacked)
            (place / "chronex.toml").write_text(JOBS.replace("run =", 'timezone = "Asia/Seoul"\nrun ='))
            daemon.send_signal(signal.SIGHUP)
            daemon.until_logged("ConfigurationApplied")
            daemon.until_logged("attempt ended")
        finally:
            daemon.kill()


def test_metrics_and_ignored_files_have_the_libraries_they_need(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (place / "chronex.toml").write_text(f'[scheduler]\nmetrics = "127.0.0.1:{port}"\n{JOBS}')
    (place / ".gitignore").write_text("ignored/\n")
    (place / "ignored").mkdir()
    (place / "ignored" / "crontab").write_text("no schedule\n")
    assert chronex("lint", str(place)).returncode == 0
    daemon = LoggedProgram(
        [os.path.abspath(BINARY), "run", "--headless"],
        cwd=place, env={**BARE, "CHRONEX_STORE": str(place / "store")}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        daemon.until_logged("metrics served")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as answer:
            assert b"\nscheduler_jobs_running " in answer.read()
    finally:
        daemon.terminate()
        daemon.communicate()


def test_a_job_finds_nothing_of_the_bundle_in_its_environment(place: Path) -> None:
    store = {"CHRONEX_STORE": str(place / "store"), "LD_LIBRARY_PATH": "/mine"}
    run_until_an_attempt_has_ended(place, **store)
    logs = [file for file in place.rglob("*.log") if file.stat().st_size] or list(
        (place / "store").rglob("attempt_*")
    )
    text = logs[0].read_text()
    assert "CHRONEX_JOB=report" in text
    assert "_MEI" not in text
    assert "_PYI" not in text
    assert [line for line in text.splitlines() if line.startswith("LD_LIBRARY_PATH")] == ["LD_LIBRARY_PATH=/mine"]


def test_the_dashboard_prints_a_frame(place: Path) -> None:
    store = {"CHRONEX_STORE": str(place / "store")}
    chronex("apply", cwd=place, **store)
    done = chronex("tui", "--print", "--size", "80x24", cwd=place, LC_ALL="C.UTF-8", TERM="xterm", **store)
    assert done.returncode == 0, done.stderr
    assert "report" in done.stdout


def test_the_language_server_shakes_hands() -> None:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"processId": None, "rootUri": None, "capabilities": {}},
    }
    body = json.dumps(request).encode()
    exchange = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    server = subprocess.Popen(
        [os.path.abspath(BINARY), "lsp"],
        env=BARE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        server.stdin.write(exchange)
        server.stdin.flush()
        assert select.select([server.stdout], [], [], DEADLINE_S)[0], "no answer"
        assert server.stdout.readline().startswith(b"Content-Length")
    finally:
        server.kill()
        server.communicate()


class OnTerminal:
    """A daemon on a terminal of its own, with a job that takes its time to end."""

    def __init__(self, place: Path) -> None:
        (place / "chronex.toml").write_text(SLOW)
        self.ours, theirs = pty.openpty()
        environment = {**BARE, "PATH": os.environ["PATH"], "CHRONEX_STORE": str(place / "store")}
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", os.path.abspath(BINARY), "run", "--headless"],
            cwd=place, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.fixture
def terminal(place: Path) -> Iterator[OnTerminal]:
    found = OnTerminal(place)
    yield found
    found.close()


def test_control_c_ends_gracefully_though_a_one_file_program_is_two_processes(
    terminal: OnTerminal, place: Path
) -> None:
    seen = read_until(terminal.ours, b"attempt started", DEADLINE_S)
    assert b"attempt started" in seen, seen
    os.write(terminal.ours, b"\x03")
    seen = read_until(terminal.ours, b"SchedulerStopped", DEADLINE_S)
    assert terminal.process.wait(DEADLINE_S) == 0, seen
    rows = json.loads(chronex("history", "--format", "json", CHRONEX_STORE=str(place / "store")).stdout)
    assert [row["state"] for row in rows] == ["canceled"]


def read_until(descriptor: int, words: bytes, seconds: float) -> bytes:
    seen, deadline = b"", time.monotonic() + seconds
    while words not in seen and time.monotonic() < deadline:
        if select.select([descriptor], [], [], 0.5)[0]:
            try:
                seen += os.read(descriptor, 65536)
            except OSError:
                break
    return seen
