"""How many files a reader meets on the way of one command: the walk is measured, and must not grow."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import chronex
import chronex_store
from chronex.cli.commands.run import run_daemon
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.executor import Executor
from chronex.daemon.loop import Daemon
from chronex.engine.engine import Tick
from chronex.model.job import Job, Task
from tests.kit.waits import DEADLINE_S

# Files that are entered on the way and are no step of it.
BESIDE = {
    "clock.py": "the clock is read, and slept on",
    "daemon/embedded.py": "the task of the program that awaits the daemon",
    "daemon/log_handlers.py": "the log lines",
    "daemon/wakeups.py": "whether the machine slept is asked before each tick",
    "run/command_runner.py": "the port through which commands are run; it passes everything on",
    "failpoints.py": "a test hook, which does nothing unless the environment arms it",
}
MOST_FILES_OF_A_TICK = 25
MOST_FILES_OF_ONE_RUN = 90  # 84 when this was written
ROOTS = (Path(chronex.__file__).parent, Path(chronex_store.__file__).parent)


class Walk:
    """The code objects of this project that were entered while `is_recording`, on any thread."""

    def __init__(self) -> None:
        self.is_recording = False
        self._entered: set[CodeType] = set()

    def enter(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and self.is_recording:
            self._entered.add(frame.f_code)

    def begin(self) -> None:
        self._entered.clear()
        self.is_recording = True

    def end(self) -> None:
        self.is_recording = False

    def files(self) -> list[str]:
        """Files whose functions ran; the body of a module that is imported on the way is no step of the walk."""
        return sorted({name for code in self._entered if code.co_name != "<module>" for name in _names(code)})


def _names(code: CodeType) -> Iterator[str]:
    path = Path(code.co_filename)
    for root in ROOTS:
        if path.is_relative_to(root):
            yield path.relative_to(root if root.name == "chronex" else root.parent).as_posix()


@contextmanager
def profiled(walk: Walk) -> Iterator[None]:
    before = sys.getprofile()
    threading.setprofile(walk.enter)
    sys.setprofile(walk.enter)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


async def test_the_walk_of_a_tick_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the tick that finds a command due to its recorded end."""
    walk = Walk()
    ended = asyncio.Event()
    real_tick, real_ended = Daemon._tick, Executor._ended

    async def tick(daemon: Daemon, *arguments: Any) -> Tick:
        if walk.is_recording:  # another tick while the command runs
            return await real_tick(daemon, *arguments)
        walk.begin()
        found = await real_tick(daemon, *arguments)
        if not found.orders:
            walk.end()
        return found

    async def record_end(executor: Executor, *arguments: Any) -> None:
        await real_ended(executor, *arguments)
        walk.end()
        ended.set()

    monkeypatch.setattr(Daemon, "_tick", tick)
    monkeypatch.setattr(Executor, "_ended", record_end)
    job = Job(id="job", schedule="@every 300ms {max:1}", tasks=(Task(name="main", run=("true",)),))
    with profiled(walk):
        async with EmbeddedEngine(tmp_path / "store") as engine:
            engine.apply([job])
            await asyncio.wait_for(ended.wait(), DEADLINE_S)
    files = [name for name in walk.files() if name not in BESIDE]
    assert len(files) <= MOST_FILES_OF_A_TICK, "\n".join([f"{len(files)} files:", *files])


def test_the_walk_of_run_once_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`chronex run --once` with one command that is due, from the command line's function to the exit code."""
    (tmp_path / "chronex.toml").write_text(
        f'[jobs.job]\nschedule = "@every 1ms {{max:1}}"\nrun = ["touch", "{tmp_path}/ran"]\n'
    )
    monkeypatch.chdir(tmp_path)
    walk = Walk()
    with profiled(walk):
        walk.begin()
        code = run_daemon("chronex.toml", "store", once=True, duration=None, log_format="text")
        walk.end()
    files = walk.files()
    assert code == 0
    assert (tmp_path / "ran").exists()
    assert len(files) <= MOST_FILES_OF_ONE_RUN, "\n".join([f"{len(files)} files:", *files])
