"""How the whole suite runs: what waits begins first, and the collector passes over what was only collected."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

# Real daemons and screens, which mostly wait: begun first, they wait while the other workers compute.
WAITING = ("torture", "daemon", "tui", "store", "run", "cli", "lsp")


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
