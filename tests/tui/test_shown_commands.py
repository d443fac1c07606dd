"""Every command that the dashboard shows works when it is copied into another shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from chronex.jobfile.keymap import SCREENS
from chronex.model.job import Job
from chronex_tui.app import StartOptions
from chronex_tui.model.available_actions import daemon_command, shell_command
from chronex_tui.model.snapshot import RunKey
from tests.kit.forked import run_chronex
from tests.tui.driving import Driver, app_on, driven
from tests.tui.examples import JOBS, MINUTE, NOW
from tests.tui.test_trouble import write

# A job in every state that changes what is shown: it runs, it failed, it is paused, its dialect is another.
SELECTED = ("etl-orders", "sync-s3", "newsletter", "posix-job")
# What needs a terminal prints a frame instead, and what would not end by itself ends.
WITHOUT_A_TERMINAL = {"tui": ["--print"], "run": ["--for", "10ms"]}

# Exit 1 says that the command was understood and refused or skipped as things stand; so do these sentences.
AS_THINGS_STAND = ("has not run yet", "say --yes to do this without being asked", "has its store to itself")


async def shown(driver: Driver) -> set[str]:
    """All commands of the screen: by key, in the line above the footer, and in the notice."""
    context = driver.app.context()
    found = {shell_command(action, context) for action in context.actions if context.screen in action.screens}
    rows, store = driver.app.state.snapshot.rows, driver.app.state.store_option
    return {one for one in {*found, driver.app.current_command(), daemon_command(rows, store)} if one}


async def test_every_command_that_is_shown_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example_store: Path
) -> None:
    write(example_store, Job(id="posix-job", schedule="5 * * * *", dialect="posix", progress=JOBS[0].progress))
    option = f"--store {shlex.quote(str(example_store))}"
    commands: set[str] = set()
    async with driven(app_on(example_store, StartOptions(store_option=option)), (80, 24)) as driver:
        for screen in SCREENS:
            await driver.press(str(SCREENS.index(screen) + 1))
            for name in SELECTED if screen in ("jobs", "runs") else SELECTED[:1]:
                driver.app.state.job = name
                driver.app.state.run = RunKey(name, NOW - 12 * MINUTE) if screen == "runs" else None
                item = next((one for one in driver.app.state.runs if one.key.job == name), None)
                driver.app.state.run = item.key if item is not None and screen == "runs" else None
                commands |= await shown(driver)
    monkeypatch.chdir(tmp_path)
    assert len(commands) > 20
    plain = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    wrong = []
    for command in sorted(commands):
        program, *words = shlex.split(command)
        assert program == "chronex"
        done = run_chronex((*words, *WITHOUT_A_TERMINAL.get(words[0], ())), "y\n", env=plain, text=True)
        if done.returncode not in (0, 1) and not any(words in done.stderr for words in AS_THINGS_STAND):
            wrong.append((command, done.returncode, done.stderr))
    assert not wrong, "\n".join(str(one) for one in wrong)
