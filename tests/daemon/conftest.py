"""A machine for each test; whatever it did, its journal must hold the formal model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chronex.daemon.embedded import EmbeddedEngine
from chronex_store import MemoryStore
from tests.cli.conftest import chronex
from tests.daemon.machine import Machine
from tests.kit.processes import end_all
from tests.verify.assertion import assert_verified

__all__ = ["chronex"]


@pytest.fixture(autouse=True)
def journals_are_verified(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of embedded engines; the machine's are below."""
    stores: list[MemoryStore | Path] = []
    real = EmbeddedEngine.__init__

    def noted(self: EmbeddedEngine, store: Any, **options: Any) -> None:
        if isinstance(store, MemoryStore | Path):
            stores.append(store)
        real(self, store, **options)

    monkeypatch.setattr(EmbeddedEngine, "__init__", noted)
    yield
    for store in stores:
        if isinstance(store, MemoryStore) or store.is_dir():
            assert_verified(store)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with watched(tmp_path) as found:
        yield found


@contextmanager
def watched(directory: Path) -> Iterator[Machine]:
    """A machine whose daemons and commands end with it, and whose journal is verified."""
    found = Machine(directory)
    try:
        yield found
    finally:
        for daemon in found.daemons:
            if daemon.poll() is None:
                daemon.kill()
            daemon.wait()
            if daemon.stderr is not None:
                daemon.stderr.close()
        end_all(directory / "store")
    if (directory / "store").exists():
        assert_verified(directory / "store")
