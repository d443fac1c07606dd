"""Keys of the user's own: read from the job file, pressed on the board, shown by footer and help."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.cli.commands.tui import _own_keys
from chronex.cli.options import UsageError
from chronex.jobfile import JobFileError, read_job_file, read_keys
from chronex.jobfile.keymap import ACTIONS, KEYS
from chronex_tui.app import StartOptions
from tests.tui.driving import app_on, driven


def problems(text: str) -> list[tuple[str, str]]:
    with pytest.raises(JobFileError) as caught:
        read_job_file(f"[tui.keys]\n{text}", "chronex.toml", "UTC")
    return [(problem.code, f"{problem.line}:{problem.column}: {problem.message}; {problem.hint}")
            for problem in caught.value.problems]  # fmt: skip


def test_a_job_file_names_exactly_the_actions_that_there_are() -> None:
    assert list(KEYS) == [action.id for action in ACTIONS]
    assert len(set(KEYS)) == len(ACTIONS)


async def test_an_action_has_the_key_that_was_given_and_no_longer_its_own(example_store: Path) -> None:
    keys = {"trigger": "r", "screen-density": "f5", "copy": "ctrl+y"}
    async with driven(app_on(example_store, StartOptions(job="vacuum", keys=keys)), (120, 140)) as driver:
        assert "r trigger" in driver.frame().splitlines()[-1]
        assert "ctrl+y copies" in driver.frame()
        assert "Run vacuum now?" not in await driver.press("t")
        assert "Run vacuum now?" in await driver.press("r")
        await driver.press("escape")
        frame = await driver.press("question_mark")
        assert "r        Run the job now" in frame
        await driver.press("escape", "f5")
        await driver.until(lambda frame: "In this hour" in frame)


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        ('triger = "t"', "J010", "2:1: unknown key 'triger'; did you mean trigger?"),
        (
            'trigger = "p"',
            "J024",
            "2:11: the key p stands for trigger and pause on jobs; give one of them another key",
        ),
        ('trigger = "r"\npause = "r"', "J024", "3:9: the key r stands for trigger and pause on jobs"),
        ('menu = "t"', "J024", "2:8: the key t stands for menu and trigger on jobs"),
        ('dead = "P"\npast = "u"\nlog = "]"\nzone = "0"\ntheme = "["', "J024", "the key [ stands for change-before"),
        ('trigger = "shift"', "J013", "trigger cannot be 'shift', which is not a key; write one character"),
        ('trigger = ","', "J013", "which is not a key"),
        ('trigger = "j"', "J024", "2:11: the key j already moves, opens or leaves"),
        ("trigger = 1", "J011", "trigger takes text, not a whole number"),
    ],
)
def test_a_mistake_is_reported_with_its_position(text: str, code: str, sentence: str) -> None:
    ((found, message),) = problems(text)
    assert found == code
    assert sentence in message


def test_one_key_may_mean_two_things_on_two_screens() -> None:
    text = '[tui.keys]\npast = "d"\nopen = "enter"\n'
    assert read_keys(text, "chronex.toml") == {"past": "d", "open": "enter"}
    assert read_job_file(text, "chronex.toml", "UTC").warnings == ()


def test_the_dashboard_takes_its_keys_from_the_job_file_and_nothing_else_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chronex.toml"
    assert _own_keys(str(file)) == {}
    file.write_text('[jobs.a]\nschedule = "no schedule"\n\n[tui.keys]\ntrigger = "r"\n')
    assert _own_keys(str(file)) == {"trigger": "r"}
    monkeypatch.setenv("CHRONEX_CONFIG", str(file))
    assert _own_keys(None) == {"trigger": "r"}
    file.write_text("[tui.keys\n")
    assert _own_keys(None) == {}
    file.write_text('[tui.keys]\ntrigger = "p"\n')
    with pytest.raises(UsageError, match="the key p stands for trigger and pause on jobs"):
        _own_keys(None)
