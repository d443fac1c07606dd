"""A place for logs, and the run_context of a small daemon."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.run import LogDirectory, RunContext
from tests.kit.forked import begin_to_fork
from tests.kit.waits import until
from tests.run.requests import children

# The loop's own watcher goes with its loop, which ends after the test; the barrier program stays as long as the process.
LASTING = {"anon_inode:[eventpoll]", "/memfd:chronex-barrier (deleted)"}


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDirectory]:
    directory = LogDirectory(tmp_path / "logs")
    yield directory
    directory.close()


@pytest.fixture
def run_context(logs: LogDirectory) -> RunContext:
    return RunContext.of_this_process(logs)


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> Iterator[None]:
    """Every test ends with the descriptors it began with, and without a child, living or dead.

    A start whose loop has ended closes its pipe on its own thread, which may have its turn after the test.
    """
    begin_to_fork()
    before, others = descriptors(), children()
    yield
    until(lambda: descriptors() - before <= LASTING, lambda: f"the end of {descriptors() - before - LASTING}")
    assert children() <= others  # the test runner may have children of its own


def descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return found


def forbid_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the processes of the machine, or of its service, are used up."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
