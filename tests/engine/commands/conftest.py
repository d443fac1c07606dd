"""Whatever a test of the commands did to its worlds, the formal model finds nothing in their journals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.commands.world import World
from tests.verify.assertion import assert_verified


@pytest.fixture(autouse=True)
def worlds_are_verified(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: list[World] = []
    real = World.__init__

    def noted(self: World, *arguments: object, **policy: object) -> None:
        real(self, *arguments, **policy)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(World, "__init__", noted)
    yield
    for world in made:
        assert_verified(world.store, has_daemon=False)
