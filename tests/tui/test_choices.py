"""Lists to choose from: what stands beside each other stands in columns, and nothing is cut off that has room."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex_tui.model.layout import line_width, plain
from chronex_tui.screens.dialogs import Choice, cells_of_keys, choice_lines
from tests.tui.driving import app_on, driven

LETTER = Choice("t", "trigger", "Run the job now.", "$ chronex trigger a")
WORD = Choice("enter", "open", "Open what is selected.")


def shown(*choices: Choice, width: int = 72, highlighted: int = 0) -> list[str]:
    cells = cells_of_keys(choices)
    lines = [
        line
        for number, choice in enumerate(choices)
        for line in choice_lines(choice, width, cells, is_highlighted=number == highlighted)
    ]
    assert all(line_width(line) <= width for line in lines)
    return [line.rstrip() for line in plain(lines).splitlines()]


def test_keys_of_any_length_leave_the_sentences_in_one_column() -> None:
    assert shown(WORD, LETTER) == [
        " > enter  Open what is selected.",
        "       t  Run the job now.",
        "          $ chronex trigger a",
    ]
    assert shown(LETTER, highlighted=1) == ["   t  Run the job now.", "      $ chronex trigger a"]


def test_a_sentence_that_is_too_long_goes_on_below_itself() -> None:
    assert shown(Choice("a", "", "one two three four"), width=20) == [" > a  one two three", "      four"]


@pytest.mark.parametrize("key", [":", "a"], ids=["palette", "menu"])
async def test_what_can_be_done_uses_the_whole_width(example_store: Path, key: str) -> None:
    async with driven(app_on(example_store), (80, 24)) as driver:
        frame = await driver.press(key)
        (line,) = (line for line in frame.splitlines() if "enter " in line and "pen what is selected" in line)
        assert "…" not in line
        assert "a job's runs, a run's output." in line
