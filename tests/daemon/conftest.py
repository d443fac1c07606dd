"""Every journal that a test of the daemon leaves behind is held against the formal model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronex.daemon.embedded import EmbeddedEngine
from chronex_store import MemoryStore
from tests.verify.assertion import assert_verified


@pytest.fixture(autouse=True)
def journals_are_verified(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """First of all fixtures to come, so the last to go: by then every daemon is gone."""
    directory: Path | None = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    stores: list[MemoryStore] = []
    real = EmbeddedEngine.__init__

    def noted(self: EmbeddedEngine, store: Any, **options: Any) -> None:
        if isinstance(store, MemoryStore):
            stores.append(store)
        real(self, store, **options)

    monkeypatch.setattr(EmbeddedEngine, "__init__", noted)
    yield
    for store in stores:
        assert_verified(store)
    if directory is not None and (directory / "store").is_dir():
        assert_verified(directory / "store")
