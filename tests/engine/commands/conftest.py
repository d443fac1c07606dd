"""After every test of the commands the formal model finds nothing in the journals of its engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.machine import SteppedEngine
from tests.verify.assertion import assert_verified


@pytest.fixture(autouse=True)
def journals_are_verified(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: list[SteppedEngine] = []
    real = SteppedEngine.__init__

    def remembered(self: SteppedEngine, *arguments: object, **policy: object) -> None:
        real(self, *arguments, **policy)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(SteppedEngine, "__init__", remembered)
    yield
    for machine in made:
        assert_verified(machine.store, has_daemon=False)
