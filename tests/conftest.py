"""How the whole suite runs: in memory instead of on a disk, what waits first, and the collector spared."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
# Real daemons and screens, which mostly wait: begun first, they wait while the other workers compute.
WAITING = ("torture", "daemon", "tui", "run", "store", "cli", "lsp")


def pytest_configure() -> None:
    """Thousands of commits wait for the disk and say nothing about it: stores are made in memory where there is room."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 1 << 30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Where `tmp_path` may be in memory: a directory for what is about crashes and disks."""
    with tempfile.TemporaryDirectory(prefix="chronex-", ignore_cleanup_errors=True) as place:
        yield Path(place)


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
    items.sort(key=_rank)  # stable: within a directory the order stays


def _rank(item: pytest.Item) -> int:
    place = item.nodeid.split("/")[1]
    return WAITING.index(place) if place in WAITING else len(WAITING)
