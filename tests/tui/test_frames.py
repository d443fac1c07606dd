"""Whole screens as text, at three sizes, from a fixed store and clock.

`CHRONEX_GOLDENS=write pytest tests/tui/test_frames.py` writes them anew; read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tui.driving import SIZES, app_on, driven

GOLDENS = Path(__file__).parent / "goldens"
SCREENS = {"1": "jobs", "2": "runs", "3": "timeline", "4": "clock", "5": "density"}


def compare(name: str, found: str) -> None:
    # Paths of the test's own directory differ from run to run.
    golden = GOLDENS / f"{name}.txt"
    if os.environ.get("CHRONEX_GOLDENS") == "write":
        GOLDENS.mkdir(exist_ok=True)
        golden.write_text(found + "\n", encoding="utf-8")
    assert found + "\n" == golden.read_text(encoding="utf-8"), f"{golden.name} differs"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_screen_is_drawn_as_it_was(example_store: Path, size: tuple[int, int]) -> None:
    async with driven(app_on(example_store), size) as driver:
        await driver.press("j")
        for key, screen in SCREENS.items():
            frame = await driver.press(key)
            compare(f"{screen}-{size[0]}x{size[1]}", frame)
            assert all(len(line) <= size[0] for line in frame.splitlines())


async def test_ascii_needs_nothing_beyond_ascii(example_store: Path) -> None:
    async with driven(app_on(example_store, is_ascii=True), (120, 40)) as driver:
        for key in (*SCREENS, "6"):
            assert (await driver.press(key)).isascii()
        compare("density-ascii-120x40", await driver.press("5"))


async def test_a_very_small_terminal_still_shows_the_jobs(example_store: Path) -> None:
    async with driven(app_on(example_store), (40, 12)) as driver:
        frame = driver.frame()
        compare("jobs-40x12", frame)
        assert "backup-db" in frame


@pytest.mark.parametrize("has_jobs", [False, True])
async def test_a_sentence_is_never_cut_off_at_forty_columns(
    example_store: Path, tmp_path: Path, has_jobs: bool
) -> None:
    """The screens of a store without jobs, and the week of one that has some."""
    place = example_store if has_jobs else tmp_path / "nothing"
    async with driven(app_on(place), (40, 30)) as driver:
        for key in "58" if has_jobs else "12345678":
            frame = await driver.press(key)
            assert "…" not in frame, frame
