"""A few screens as pictures, for their colours; the text of all of them is in the goldens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from chronex_tui.app import StartOptions
from chronex_tui.launch import wait_until_idle
from tests.tui.driving import app_on

PICTURES = {
    "jobs-dark": (StartOptions(job="backup-db"), (120, 40)),
    "clock-light": (StartOptions(screen="clock", theme="light"), (120, 40)),
    "density-colorblind": (StartOptions(screen="density", theme="colorblind"), (80, 24)),
    "runs-ansi": (StartOptions(screen="runs", theme="ansi"), (80, 24)),
}


async def ready(pilot: Pilot[int]) -> None:
    await wait_until_idle(pilot.app)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PICTURES)
def test_colours_are_as_they_were(example_store: Path, name: str, snap_compare: Callable[..., Any]) -> None:
    options, size = PICTURES[name]
    assert snap_compare(app_on(example_store, options), terminal_size=size, run_before=ready)
