"""How the whole suite runs: in memory instead of on a disk, waiting while others compute, and the collector spared."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from types import FunctionType
from uuid import uuid4

import pytest
from hypothesis import settings

from tests.kit.forked import fork_our_keepers
from tests.kit.postgres import WHY_MISSING, PostgresServer, begin_server, end_server, find_programs
from tests.kit.tables import folded

MEMORY = Path("/dev/shm")
# Real daemons, terminals and editors are mostly waited for; the longest first.
WAITING = ("torture", "test_readme.py", "daemon", "lsp", "tui", "store", "run")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--folded", action="store_true",
        help="try all rows of a parametrised test as one test, where each needs its row alone: half as many to collect",
    )  # fmt: skip


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> pytest.Item | None:
    """With `--folded`; what is left to pytest is None."""
    if (
        not collector.config.option.folded
        or not isinstance(obj, FunctionType)
        or not collector.istestfunction(obj, name)
    ):
        return None
    made = folded(obj)
    return None if made is None else pytest.Function.from_parent(collector, name=name, callobj=made)


def pytest_configure(config: pytest.Config) -> None:
    """Thousands of commits wait for the disk and say nothing about it: stores are made in memory where there is room."""
    # What is generated is the same in every run of the suite: a change is not blamed for what luck has found elsewhere.
    # Campaigns draw anew each time.
    settings.register_profile("suite", derandomize=True, deadline=None)
    settings.load_profile("default" if config.option.markexpr == "torture" else "suite")
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 1 << 30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    # A shell without job control lets what it starts in the background ignore Ctrl-C, and so would every program that
    # the tests start and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart() -> None:
    fork_our_keepers()


@pytest.fixture
def whole_keepers(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that is about the start of the keeper itself."""
    monkeypatch.setattr("chronex.keeper.keepers.subprocess", subprocess)


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Where `tmp_path` may be in memory: a directory for what is about crashes and disks."""
    with tempfile.TemporaryDirectory(prefix="chronex-", ignore_cleanup_errors=True) as place:
        yield Path(place)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real server, begun by the first test that asks for one."""
    if find_programs() is None:
        pytest.skip(WHY_MISSING)
    server = begin_server()
    yield server
    end_server(server)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The address of a store that nobody has made yet."""
    return postgres_server.url(schema=f"s{uuid4().hex}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not tried for want of a program is said where it is seen."""
    reasons = Counter(_reason(one) for one in terminalreporter.stats.get("skipped", []))
    for why, number in reasons.most_common():
        told = f"{number} test{'s' if number > 1 else ''}"
        terminalreporter.write_line(f"NOT TRIED: {told}, because {why}", yellow=True, bold=True)


def _reason(skipped: pytest.TestReport) -> str:
    """Without the place where it was said."""
    told = skipped.longrepr[2] if isinstance(skipped.longrepr, tuple) else str(skipped.longrepr)
    return told.removeprefix("Skipped: ").removeprefix("NOT TRIED: ")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand collected tests stay to the end: the collector need not visit them again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Between several workers, one that waits among some that compute; none that waits is among the last."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    waiting = sorted((item for item in items if place(item) in WAITING), key=lambda item: WAITING.index(place(item)))
    computing = [item for item in items if place(item) not in WAITING]
    mixed = [(number * 0.8 / len(waiting), item) for number, item in enumerate(waiting)]
    mixed += [(number / len(computing), item) for number, item in enumerate(computing)]
    items[:] = [item for _, item in sorted(mixed, key=itemgetter(0))]


def place(item: pytest.Item) -> str:
    """The directory or the file below `tests`."""
    return item.nodeid.partition("::")[0].split("/")[1]
