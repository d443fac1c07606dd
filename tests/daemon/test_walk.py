"""How many files a reader meets on the way of one command: the walk is measured, and must not grow.

The sequence diagrams of docs/architecture.md are held to what is called, in the order in which it is called.
"""

from __future__ import annotations

import asyncio
import re
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
from chronex.clock import wall_ms
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.executor import Executor
from chronex.daemon.loop import Daemon
from chronex.daemon.periodic_tasks import PeriodicTasks
from chronex.engine.engine import Engine, Tick
from chronex.engine.update import apply_jobs
from chronex.model.event import Event
from chronex.model.job import Job, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage import journal
from chronex.storage.records import Records
from chronex_store import LmdbStore
from tests.kit.waits import DEADLINE_S

# Files that are entered on the way and are no step of it.
BESIDE = {
    "clock.py": "the clock is read, and slept on",
    "daemon/attempt_records.py": "records as values for whoever runs them, and back; it decides nothing",
    "daemon/fault_log.py": "every task is begun through it, so that its faults are told",
    "daemon/embedded.py": "the task of the program that awaits the daemon",
    "daemon/log_handlers.py": "the log lines",
    "daemon/periodic_tasks.py": "how long the loop may sleep without being late for one",
    "daemon/registration.py": "whether others still believe that this node lives is asked before each tick",
    "daemon/store_away.py": "whether the store takes anything is asked before each tick",
    "daemon/store_retry.py": "the port through which starts and ends are written; it passes everything on",
    "daemon/wakeups.py": "whether the machine slept is asked before each tick",
    "chronex_store/lmdb_environment.py": "whether its files were replaced, or are nearly full, is asked before each commit",
    "model/placement.py": "whether the job may run on this node, where it chooses any",
    "run/command_runner.py": "the port through which commands are run; it passes everything on",
    "run/command_start.py": "prepared before the instant, in the tick only where the machine is too slow for that",
    "run/environment.py": "made before the instant, in the tick only where the machine is too slow for that",
    "run/spawn.py": "the program is looked up, and held at its barrier, before the instant too",
    "run/supervise.py": "the same",
    "storage/ports.py": "what kind of transaction it is",
    "storage/scopes.py": "what an update locks, where machines share the store; one machine locks nothing",
    "text/instants.py": "the times in that environment",
    "failpoints.py": "a test hook, which does nothing unless the environment arms it",
}
# In the scheduler; the keeper, another process, has the files of the command itself.
MOST_FILES_OF_A_TICK = 26
MOST_FILES_OF_ONE_RUN = 97
ROOTS = (Path(chronex.__file__).parent, Path(chronex_store.__file__).parent)


class Walk:
    """The code objects of this project that were entered while `is_recording`, on any thread."""

    def __init__(self) -> None:
        self.is_recording = False
        self._entered: dict[CodeType, None] = {}  # in the order of the first calls

    def enter(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and self.is_recording and frame.f_code not in self._entered and not _is_imported(frame):
            self._entered[frame.f_code] = None

    def begin(self) -> None:
        self._entered.clear()
        self.is_recording = True

    def end(self) -> None:
        self.is_recording = False

    def files(self) -> list[str]:
        """Files whose functions ran; the body of a module that is imported on the way is no step of the walk."""
        return sorted({name for code in self._entered for name in _names(code)})

    def steps(self) -> list[tuple[str, str]]:
        """File and function of every first call, in order."""
        return [(name, code.co_name) for code in list(self._entered) for name in _names(code)]


def _is_imported(frame: FrameType | None) -> bool:
    """Whether a module's body runs it: which modules are loaded by now depends on the tests that ran before."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and any(_names(frame.f_code)):
            return True
        frame = frame.f_back
    return False


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


async def walk_of_a_tick(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Walk:
    """From the tick that finds a command due to its recorded end, in an engine whose keeper is there already."""
    walk = Walk()
    is_warm, ended = asyncio.Event(), asyncio.Event()
    real_tick, real_ended = Daemon._tick, Executor._ended

    async def tick(daemon: Daemon, *arguments: Any) -> Tick:
        if walk.is_recording or ended.is_set() or not is_warm.is_set():  # another tick, before or after the one
            return await real_tick(daemon, *arguments)
        walk.begin()
        found = await real_tick(daemon, *arguments)
        if not found.orders:
            walk.end()
        return found

    async def record_end(executor: Executor, *arguments: Any) -> None:
        await real_ended(executor, *arguments)
        walk.end()
        (ended if is_warm.is_set() else is_warm).set()

    # A slow machine would meet periodic tasks on the way, which are no step of it.
    monkeypatch.setattr(PeriodicTasks, "start_due", lambda _tasks: None)
    monkeypatch.setattr(Daemon, "_tick", tick)
    monkeypatch.setattr(Executor, "_ended", record_end)
    first = Job(id="first", schedule="@once +1ms", tasks=(Task(name="main", run=("true",)),))
    job = Job(id="job", schedule="@every 300ms {max:1}", tasks=(Task(name="main", run=("true",)),))
    with profiled(walk):
        async with EmbeddedEngine(directory / "store") as engine:
            engine.apply([first])
            await asyncio.wait_for(is_warm.wait(), DEADLINE_S)
            engine.apply([first, job])
            await asyncio.wait_for(ended.wait(), DEADLINE_S)
    return walk


async def test_the_walk_of_a_tick_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = await walk_of_a_tick(tmp_path, monkeypatch)
    files = [name for name in walk.files() if name not in BESIDE]
    assert len(files) <= MOST_FILES_OF_A_TICK, "\n".join([f"{len(files)} files:", *files])


def test_the_walk_of_run_once_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`chronex run --once` with one command that is due, from the command line's function to the exit code."""
    (tmp_path / "chronex.toml").write_text(
        f'[jobs.job]\nschedule = "@once +1ms"\nrun = ["touch", "{tmp_path}/ran"]\n'
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


# -- the diagrams ------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()


def drawn(section: str) -> list[tuple[str, str]]:
    """File and function of every arrow of the section's sequence diagram."""
    diagram = PAGE.partition(f"\n## {section}\n")[2].partition("```mermaid\n")[2].partition("```")[0]
    files = dict(re.findall(r"participant (\w+) as (\S+)", diagram))
    arrows = re.findall(r"^ +(\w+)->>(\w+): (\w+)$", diagram, re.MULTILINE)
    assert arrows
    assert all(caller in files for caller, _, _ in arrows)
    return [(files[callee], function) for _, callee, function in arrows]


def assert_called_in_this_order(wanted: list[tuple[str, str]], walk: Walk) -> None:
    steps = walk.steps()
    assert [step for step in wanted if step not in steps] == [], "drawn and never called"
    assert sorted(wanted, key=steps.index) == wanted, [step for step in steps if step in wanted]


async def test_the_diagram_of_a_tick_is_what_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_tick = Daemon._tick
    walk = await walk_of_a_tick(tmp_path, monkeypatch)
    wanted = drawn("One tick")
    assert wanted.pop(0) == ("daemon/loop.py", real_tick.__name__), "where the recording begins"
    assert_called_in_this_order(wanted, walk)


async def test_the_diagram_of_a_takeover_is_what_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(id="job", schedule="* * * * * * {max:1}", tasks=(Task(name="main", run=("true",)),))
    gone = Node(id="node-9", process=ProcessIdentity(2**22 + 1, "another-boot", 1))
    with LmdbStore.open(tmp_path / "store") as store:
        now_ms = wall_ms()
        apply_jobs(store, [job], now_ms - 2_000)
        store.update(lambda tx: Records(tx, now_ms).put(gone))
        begun = Event(name="SchedulerStarted", at_ms=now_ms, data={"node": gone.id})
        store.update(lambda tx: journal.append(tx, begun))
        assert len(Engine(store, gone.id, 5).tick(now_ms, now_ms - 2_000).orders) == 1, "claimed, and never started"
    walk, ended = Walk(), asyncio.Event()
    real_ended = Executor._ended

    async def record_end(executor: Executor, *arguments: Any) -> None:
        await real_ended(executor, *arguments)
        walk.end()
        ended.set()

    monkeypatch.setattr(Executor, "_ended", record_end)
    with profiled(walk):
        walk.begin()
        async with EmbeddedEngine(tmp_path / "store"):
            await asyncio.wait_for(ended.wait(), DEADLINE_S)
    assert_called_in_this_order(drawn("A takeover"), walk)
