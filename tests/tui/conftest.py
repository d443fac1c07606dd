from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.examples import make_store


@pytest.fixture
def example_store(tmp_path: Path) -> Path:
    """A store with one job in every situation, and a living daemon."""
    return make_store(tmp_path / "store")
