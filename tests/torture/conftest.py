"""The machine of the daemon's tests, on a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.conftest import machine

__all__ = ["machine", "tmp_path"]


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    return on_disk
