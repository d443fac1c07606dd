"""A directory with a job file, a store and daemons, driven as a user would: by the command line."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from chronex.failpoints import VARIABLE
from tests.kit.forked import ChronexProcess, run_chronex
from tests.kit.waits import DEADLINE_S, until

EVERY_SECOND = 'schedule = "* * * * * *"\n'


class _Logged(subprocess.Popen[str]):
    """A daemon whose log is read piece by piece: what follows the line that was waited for is still to be found."""

    unread = ""

    def until_logged(self, text: str, times: int = 1) -> None:
        """Read on until the log says `text`, so many times; a log that ends before that fails at once."""
        until(
            lambda: self.unread.count(text) >= times or self._read_on(text),
            lambda: f"{text!r} in the log of the daemon, but it was: {self.unread}",
        )
        for _ in range(times):
            self.unread = self.unread.partition(text)[2]

    def _read_on(self, text: str) -> bool:
        assert self.stderr is not None
        ready, _, _ = select.select([self.stderr], [], [], 0.5)
        if ready:
            chunk = os.read(self.stderr.fileno(), 65536)
            assert chunk, f"the daemon has ended without {text!r} in its log, which was: {self.unread}"
            self.unread += chunk.decode()
        return False

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        return self.wait(DEADLINE_S)

    def stopped(self) -> int:
        """Its exit code after SIGTERM."""
        self.terminate()
        return self.ended()


class LoggedDaemon(_Logged, ChronexProcess):
    """`chronex` with these arguments."""


class LoggedProgram(_Logged):
    """A command with all its words: the daemon of a frozen program."""


class Machine:
    """A directory with a job file and a store, and the daemons started in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = directory / "store"
        self.daemons: list[LoggedDaemon] = []
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "CHRONEX_STORE": str(self.store),
            "TZ": "UTC",
        }

    def write(self, text: str) -> None:
        (self.directory / "chronex.toml").write_text(text)

    def chronex(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_chronex(
            arguments, cwd=self.directory, env=self.env | environment, text=True, timeout=2 * DEADLINE_S
        )

    def start(
        self, *arguments: str, quiet: bool = False, fail_at: str = "", starts_whole: bool = False
    ) -> LoggedDaemon:
        """With `quiet` its log goes nowhere, else into a pipe that the test may read."""
        daemon = LoggedDaemon(
            ["run", "--headless", *arguments],
            cwd=self.directory, env={**self.env, **({VARIABLE: fail_at} if fail_at else {})}, text=True,
            stderr=subprocess.DEVNULL if quiet else subprocess.PIPE, starts_whole=starts_whole,
        )  # fmt: skip
        self.daemons.append(daemon)
        return daemon

    def history(self) -> list[dict[str, Any]]:
        done = self.chronex("history", "-n", "1000", "--format", "json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows
