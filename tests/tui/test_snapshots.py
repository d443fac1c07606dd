"""A few screens as pictures, for their colours; the text of all of them is in the goldens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from chronex_tui.app import Wishes
from chronex_tui.launch import settle
from tests.tui.driving import app_on

PICTURES = {
    "jobs-dark": (Wishes(job="backup-db"), (120, 40)),
    "clock-light": (Wishes(screen="clock", theme="light"), (120, 40)),
    "density-colorblind": (Wishes(screen="density", theme="colorblind"), (80, 24)),
    "runs-ansi": (Wishes(screen="runs", theme="ansi"), (80, 24)),
}


async def ready(pilot: Pilot[int]) -> None:
    await settle(pilot.app)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PICTURES)
def test_colours_are_as_they_were(world: Path, name: str, snap_compare: Callable[..., Any]) -> None:
    wishes, size = PICTURES[name]
    assert snap_compare(app_on(world, wishes), terminal_size=size, run_before=ready)
