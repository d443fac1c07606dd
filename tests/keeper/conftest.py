"""What the tests of keepers share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chronex.keeper.keepers import Keepers
from chronex.run import LogDirectory
from tests.keeper.schedulers import Schedulers
from tests.kit.waits import DEADLINE_S, POLL_S


@pytest.fixture
async def schedulers(tmp_path: Path) -> AsyncIterator[Schedulers]:
    (tmp_path / "store").mkdir()
    logs = LogDirectory(tmp_path / "logs")
    made = Schedulers(tmp_path, logs)
    yield made
    await made.end()
    sweeper = Keepers(tmp_path / "store", logs.path, "sweeper")

    async def is_swept() -> bool:
        """What nobody waits for is let go of by whoever looks next."""
        await sweeper.discover(lambda node: True)
        sweeper.tidy(lambda _attempt: False)
        return not made.directories()

    async with asyncio.timeout(DEADLINE_S):
        while not await is_swept():
            await asyncio.sleep(POLL_S)
    logs.close()
