"""A stranger's path from the README to a migrated crontab, typed into a real terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.waits import until

ROOT = Path(__file__).parent.parent.parent
TMUX = shutil.which("tmux")
CRONTAB = """# nightly dump
30 2 * * * echo dumped the database
0 1-5 * * * echo reported
@reboot echo started
"""


class Terminal:
    """A shell in tmux: what is typed into it, and what it shows."""

    def __init__(self, directory: Path, size: tuple[int, int]) -> None:
        self._socket = directory / "tmux"
        commands = directory / "bin"
        commands.mkdir()
        program = commands / "chronex"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m chronex "$@"\n')
        program.chmod(0o755)
        self._environment = {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "HOME": str(directory),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "store"))),
            "CHRONEX_STORE": str(directory / "store"),
            "TZ": "Europe/Berlin",
            "LC_ALL": "C.UTF-8",
        }
        width, height = size
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(directory), "sh"
        )
        self._typed = 0
        self.press("-l", "PS1='ready $typed> '; clear")
        self.press("Enter")
        self.until(lambda frame: frame.startswith("ready >"), "the shell")

    def _tmux(self, *arguments: str) -> str:
        assert TMUX is not None
        done = subprocess.run(
            [TMUX, "-S", str(self._socket), *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def frame(self) -> str:
        return self._tmux("capture-pane", "-p")

    def shows(self, *texts: str) -> str:
        return self.until(lambda frame: all(text in frame for text in texts), f"{texts}")

    def until(self, holds: Callable[[str], bool], what: str) -> str:
        def frame_if_so() -> str:
            frame = self.frame()
            return frame if holds(frame) else ""

        return until(frame_if_so, lambda: f"{what} in\n{self.frame()}")

    def types(self, command: str) -> str:
        """The screen after the command, when the shell is ready again."""
        self.begins(command)
        return self.is_ready(f"{command} to end")

    def begins(self, command: str) -> None:
        self._typed += 1
        self.press("-l", f"typed={self._typed}; clear; {command}")
        self.press("Enter")

    def is_ready(self, what: str) -> str:
        """The prompt is numbered: the one before the command is on the screen until the shell comes to read it."""
        return self.until(lambda frame: frame.rstrip().endswith(f"ready {self._typed}>"), what)

    def end(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    one = Terminal(tmp_path, (100, 30))
    try:
        yield one
    finally:
        one.end()


@pytest.mark.skipif(TMUX is None, reason="tmux is not installed, so nobody takes a stranger's first steps")
def test_a_stranger_moves_a_crontab_and_sees_it_run(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "crontab.txt").write_text(CRONTAB)
    told = terminal.types("chronex import crontab crontab.txt -o chronex.toml --tz Europe/Berlin")
    assert "3 jobs: 3 the same; nothing lost; the times of 2 proven" in told
    assert "new" in terminal.types("chronex apply --dry-run")
    told = terminal.types("chronex apply")
    assert "start one with: chronex run" in told

    terminal.begins("chronex run")
    frame = terminal.shows("1 Jobs", "never ran", "daemon")
    name = next(line.split()[2] for line in frame.splitlines() if "never ran" in line)
    # Typed fast, as by a hand that knows the keys: the filter gets its letters, the question its answer.
    terminal.press("-l", f"/{name}")
    terminal.press("Enter")
    terminal.shows(f"filter: {name}")
    terminal.press("t")
    terminal.shows("Run", "now?")
    # In one burst: Esc closes the question, and Enter opens the runs of the job.
    terminal.press("Escape", "Enter")
    terminal.shows("No run matches")
    terminal.press("1", "t")
    terminal.shows("Run", "now?")
    terminal.press("y")
    terminal.shows(f"● {name}", "output")
    terminal.press("w")
    terminal.shows(f"Why: {name}", "triggered by")
    terminal.press("q")
    terminal.until(lambda found: "Why:" not in found, "the answer to close")
    terminal.press("q")
    terminal.shows("Quit?")
    terminal.press("y")
    terminal.is_ready("the dashboard and the daemon to end")

    told = terminal.types(f"chronex history {name}")
    assert "completed" in told
    assert "echo" not in terminal.types(f"chronex logs {name}")


@pytest.mark.skipif(TMUX is None, reason="tmux is not installed, so there is no shell with job control")
def test_ctrl_z_goes_back_to_the_shell_and_fg_to_the_dashboard(terminal: Terminal) -> None:
    terminal.types("chronex init && chronex apply")
    terminal.begins("chronex tui")
    terminal.shows("1 Jobs", "hello")
    terminal.press("t")
    terminal.shows("Run hello now?")
    terminal.press("C-z")
    terminal.is_ready("the shell")
    terminal.begins("fg")
    terminal.shows("Run hello now?")
    terminal.press("n")
    terminal.until(lambda frame: "Run hello now?" not in frame, "the question to close")
    terminal.press("q")
    terminal.is_ready("the dashboard to end")
