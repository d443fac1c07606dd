from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor

from tests.tui.examples import make_store


@pytest.fixture
def example_store(tmp_path: Path) -> Path:
    """A store with one job in every situation, and a living daemon."""
    return make_store(tmp_path / "store")


@pytest.fixture(autouse=True)
def frames_are_painted_when_they_are_looked_at(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal Textual paints every update and throws it away, which was more than half of the time here.

    What a test looks at is painted whole. Where to live through the painting itself is the subject, `painted` is asked
    for.
    """
    if "painted" in request.fixturenames:
        return
    whole = Compositor.render_update

    def looked_at(self: Compositor, full: bool = False, **options: Any) -> Any:
        if full:
            return whole(self, full=True, **options)
        self._dirty_regions.clear()
        return None

    monkeypatch.setattr(Compositor, "render_update", looked_at)


@pytest.fixture
def painted() -> None:
    """Every update is painted, as on a terminal."""
