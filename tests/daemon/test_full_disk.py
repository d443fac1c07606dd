"""A daemon that is started on a disk that is full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.conftest import watched
from tests.daemon.machine import EVERY_SECOND, Machine
from tests.kit.waits import until
from tests.store.test_free_space import eat_all_room, tiny_disk

__all__ = ["tiny_disk"]


@pytest.fixture
def small(tiny_disk: Path) -> Iterator[Machine]:
    with watched(tiny_disk) as machine:
        yield machine


@pytest.mark.parametrize("is_first", [True, False], ids=["no store yet", "a store"])
def test_it_waits_for_space_and_says_so(small: Machine, is_first: bool) -> None:
    small.write(f'[jobs.one]\n{EVERY_SECOND}run = "true"\n')
    if not is_first:
        assert small.chronex("apply").returncode == 0
    output = small.directory / "output-of-another"
    eat_all_room(output)
    daemon = small.start()
    daemon.until_logged("no runs start until there is free space")
    os.unlink(output)
    daemon.until_logged("attempt ended")
    assert daemon.stopped() == 0
    until(lambda: any(row["state"] == "completed" for row in small.history()), "a run on record")
