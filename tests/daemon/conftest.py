"""A machine for each test; whatever it did, its journal must hold the formal model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.machine import Machine
from tests.verify.assertion import assert_verified


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    yield found
    for daemon in found.daemons:
        if daemon.poll() is None:
            daemon.kill()
        daemon.wait()
        if daemon.stderr is not None:
            daemon.stderr.close()
    if (tmp_path / "store").exists():
        assert_verified(tmp_path / "store")
