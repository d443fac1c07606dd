"""What can be clicked: rows, the names of the screens, the keys of the last line, and the answers to a question."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from chronex.storage.records import Reading
from chronex_tui.app import StartOptions
from chronex_tui.screens.dialogs import ChoiceDialog
from chronex_tui.widgets import Bar
from tests.tui.driving import app_on, driven


async def test_the_mouse_selects_a_row(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        await driver.pilot.click("#jobs", offset=(6, 4))
        assert driver.app.state.job == "sync-s3"


def cell_of(bar: Bar, text: str) -> tuple[int, int]:
    """Where the text stands in the first line of the bar."""
    return bar.render_line(0).text.index(text), 0


async def test_the_mouse_opens_a_screen_by_its_name_and_does_what_a_key_of_the_last_line_does(
    example_store: Path,
) -> None:
    async with driven(app_on(example_store)) as driver:
        top, keys = (driver.app.board.query_one(f"#{name}", Bar) for name in ("top", "keys"))
        await driver.pilot.click("#top", offset=cell_of(top, "Timeline"))
        assert driver.app.state.screen == "timeline"
        await driver.pilot.click("#top", offset=cell_of(top, "1 Jobs"))
        assert driver.app.state.screen == "jobs"
        await driver.pilot.click("#keys", offset=cell_of(keys, "filter"))
        assert driver.app.board.query_one("#filter", Input).has_focus
        await driver.pilot.click("#top", offset=cell_of(top, "Timeline"))
        assert driver.app.state.screen == "jobs", "every key is a letter of the filter now"


@pytest.mark.parametrize(("answer", "is_run"), [("n", False), ("y", True)])
async def test_the_mouse_gives_an_answer_and_not_the_question(example_store: Path, answer: str, is_run: bool) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await driver.press("t")
        await driver.until(lambda frame: "Run vacuum now?" in frame)
        shown: object = driver.app.screen
        assert isinstance(shown, ChoiceDialog)
        dialog: ChoiceDialog = shown
        await driver.pilot.click("#dialog-lines", offset=(5, 0))
        assert driver.app.screen is shown
        number = next(i for i, choice in enumerate(dialog.choices) if choice.key == answer)
        await driver.pilot.click("#dialog-lines", offset=(8, dialog._first_lines[number]))
        await driver.until(lambda frame: "Run vacuum now?" not in frame)
        store = driver.app.live.store
        assert store is not None
        newest = store.view(lambda tx: Reading(tx).occurrences("vacuum"))[0]
        assert newest.manual is is_run
