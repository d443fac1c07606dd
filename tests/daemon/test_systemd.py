"""The service under a real systemd: whatever it does to the daemon, the commands go on and their ends are recorded.

A user manager is started for the test, in a mount namespace in which /run/systemd/system exists, without which systemd
takes the machine for one that it has not booted. That needs root; elsewhere the test is skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.machine import Machine
from tests.kit.processes import end_all
from tests.kit.waits import DEADLINE_S, until

SYSTEMD = next((path for path in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if Path(path).exists()), "")
IN_NAMESPACE = f"""
mount --make-rprivate / && mkdir -p /run/systemd && mount -t tmpfs none /run/systemd && mkdir -p /run/systemd/system &&
exec {SYSTEMD} --user --log-target=console --log-level=warning
"""
# The same unit with shorter times.
SOONER = "[Service]\nRestartSec=100ms\nWatchdogSec=2s\nTimeoutAbortSec=500ms\nStartLimitIntervalSec=0\n"
JOB = """
[jobs.slow]
schedule = "@once +1s"
directory = "PLACE"
run = "echo $$ >> ran; while [ ! -e release ]; do sleep 0.02; done; echo after; exit 3"
retry = { max = 0 }
"""


class UserManager:
    """A systemd of the test's own, with nothing but what the test gives it."""

    def __init__(self, place: Path) -> None:
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "DBUS_"))},
            "XDG_RUNTIME_DIR": str(place / "run"),
            "XDG_CONFIG_HOME": str(place / "config"),
            "HOME": str(place),
        }
        (place / "run").mkdir(mode=0o700)
        (place / "config").mkdir()
        self.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", IN_NAMESPACE], env=self.environ, stderr=subprocess.PIPE, text=True
        )

    def tell(self, *words: str) -> str:
        done = subprocess.run(
            ["systemctl", "--user", *words], env=self.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_there(self) -> bool:
        if self.process.poll() is not None:
            assert self.process.stderr is not None
            pytest.skip(f"no systemd can be started here: {self.process.stderr.read().strip()[-200:]}")
        asked = ["systemctl", "--user", "show-environment"]
        return subprocess.run(asked, env=self.environ, capture_output=True, check=False).returncode == 0

    def main_pid(self) -> int:
        return int(self.tell("show", "-p", "MainPID", "--value", "chronex"))

    def state(self) -> str:
        return self.tell("show", "-p", "ActiveState", "--value", "chronex").strip()

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(DEADLINE_S)
        finally:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[UserManager]:
    if not SYSTEMD or shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("a systemd of its own needs root, systemd and unshare")
    (tmp_path / "m").mkdir()
    made = UserManager(tmp_path / "m")
    try:
        until(made.is_there, "systemd")
        yield made
    finally:
        made.end()
        end_all(tmp_path / "store")


def installed(manager: UserManager, machine: Machine, times: str) -> None:
    """The service runs the slow command."""
    machine.write(JOB.replace("PLACE", str(machine.directory)))
    machine.env |= manager.environ
    drop_in = Path(manager.environ["XDG_CONFIG_HOME"]) / "systemd" / "user" / "chronex.service.d" / "sooner.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text(times)
    done = machine.chronex("service", "install", "--config", "chronex.toml", "--store", str(machine.store))
    assert done.returncode == 0, done.stdout + done.stderr
    until((machine.directory / "ran").exists, "the command")


def test_commands_outlive_whatever_a_real_systemd_does_to_the_daemon(manager: UserManager, machine: Machine) -> None:
    installed(manager, machine, SOONER)
    ran = machine.directory / "ran"
    pid = int(ran.read_text())

    def replaced(old: int) -> int:
        until(lambda: manager.main_pid() not in (0, old), "a daemon in the place of the one that was ended")
        until(lambda: manager.state() == "active", "that daemon to be ready")
        return manager.main_pid()

    first = manager.main_pid()
    manager.tell("restart", "chronex")
    second = replaced(first)
    manager.tell("kill", "--kill-who=main", "-s", "KILL", "chronex")
    third = replaced(second)
    os.kill(third, signal.SIGSTOP)  # its watchdog is not fed any more
    replaced(third)
    manager.tell("stop", "chronex")
    assert Path(f"/proc/{pid}").exists(), "the command was ended with its daemon"
    manager.tell("start", "chronex")
    (machine.directory / "release").touch()
    (row,) = until(lambda: [one for one in machine.history() if one["state"] != "running"], "its end")
    assert (row["state"], row["reason"], ran.read_text()) == ("failed", "main: exit code 3", f"{pid}\n")
    assert machine.chronex("logs", "slow").stdout == "after\n"
    done = machine.chronex("service", "uninstall")
    assert done.returncode == 0, done.stderr


# A daemon that takes longer to stop than so is killed, and begun anew as after a failure.
IMPATIENT = "[Service]\nRestartSec=100ms\nWatchdogSec=15s\nTimeoutStopSec=2s\nStartLimitIntervalSec=0\n"


def test_a_real_systemd_lets_the_daemon_be_replaced_and_drain(manager: UserManager, machine: Machine) -> None:
    """Neither is a service that hangs in its stop: it is not killed for that, however long it takes."""
    installed(manager, machine, IMPATIENT)
    pid = manager.main_pid()
    assert machine.chronex("restart").returncode == 0
    until(lambda: manager.state() == "active", "the service to be told as active again")
    began_s = time.monotonic()
    until(lambda: time.monotonic() > began_s + 3, "the time after which it would be killed")
    assert (manager.main_pid(), manager.state()) == (pid, "active")
    draining = subprocess.Popen(
        [sys.executable, "-m", "chronex", "stop", "--drain"], cwd=machine.directory, env=machine.env
    )
    until(lambda: "SchedulerStopRequested" in machine.chronex("events", "-n", "3").stdout, "the drain")
    began_s = time.monotonic()
    until(lambda: time.monotonic() > began_s + 3, "the time after which it would be killed")
    assert manager.main_pid() == pid, "a daemon that drains was killed"
    (machine.directory / "release").touch()
    assert draining.wait(DEADLINE_S) == 0
    until(lambda: manager.state() == "inactive", "the end of the service")
    assert machine.history()[0]["reason"] == "main: exit code 3"
