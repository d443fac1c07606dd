"""A directory with a job file, a store and daemons, driven as a user would: by the command line."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from chronex.failpoints import VARIABLE

EVERY_SECOND = 'schedule = "* * * * * *"\n'


class Machine:
    """A directory with a job file and a store, and the daemons started in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.daemons: list[subprocess.Popen[str]] = []
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "CHRONEX_STORE": str(directory / "store"),
            "TZ": "UTC",
        }

    def write(self, text: str) -> None:
        (self.directory / "chronex.toml").write_text(text)

    def chronex(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "chronex", *arguments],
            cwd=self.directory, env=self.env | environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def start(self, *arguments: str, quiet: bool = False, fail_at: str = "") -> subprocess.Popen[str]:
        """With `quiet` its log goes nowhere, else into a pipe that the test may read."""
        daemon = subprocess.Popen(
            [sys.executable, "-m", "chronex", "run", "--headless", *arguments],
            cwd=self.directory, env={**self.env, **({VARIABLE: fail_at} if fail_at else {})}, text=True,
            stderr=subprocess.DEVNULL if quiet else subprocess.PIPE,
        )  # fmt: skip
        self.daemons.append(daemon)
        return daemon

    def history(self) -> list[dict[str, Any]]:
        done = self.chronex("history", "-n", "1000", "--format", "json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows


def until_told(daemon: subprocess.Popen[str], text: str, times: int = 1) -> None:
    """Read the daemon's log until it tells `text`."""
    assert daemon.stderr is not None
    end, told = time.monotonic() + 15.0, ""
    while told.count(text) < times:
        ready, _, _ = select.select([daemon.stderr], [], [], max(end - time.monotonic(), 0))
        chunk = os.read(daemon.stderr.fileno(), 65536) if ready else b""
        assert chunk, f"the daemon never told {text!r}, but: {told}"
        told += chunk.decode()


def until(condition: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
