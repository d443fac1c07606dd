"""Every command that the dashboard shows works when it is copied into another shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from chronex.cli.output import with_store_options
from chronex.jobfile.keymap import SCREENS
from chronex.model.job import Job
from chronex.storage import journal
from chronex_store import LmdbStore
from chronex_tui.app import StartOptions
from chronex_tui.model.available_actions import daemon_command, shell_command
from chronex_tui.model.snapshot import RunKey
from tests.kit.forked import run_chronex
from tests.tui.driving import Driver, app_on, driven
from tests.tui.examples import JOBS, MINUTE, NOW, job, make_store
from tests.tui.test_trouble import write

# A job in every state that changes what is shown: it runs, it failed, it is paused, its dialect is another. And names
# that programs and older versions have written: those that a command line takes for options, and one of a node's job.
SELECTED = ("etl-orders", "sync-s3", "newsletter", "posix-job", "--all", "backup:web-1.example.net")
FEW = (SELECTED[0], SELECTED[4])
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


def refused(commands: set[str], home: Path) -> list[tuple[str, int, str]]:
    """Those that another shell does not understand, in another directory and with no variable of this one."""
    plain = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    wrong = []
    for command in sorted(commands):
        program, *words = shlex.split(command)
        assert program == "chronex"
        end = words.index("--") if "--" in words else len(words)
        words[end:end] = WITHOUT_A_TERMINAL.get(words[0], [])
        done = run_chronex(tuple(words), "y\n", env=plain, text=True, cwd=home)
        if done.returncode not in (0, 1) and not any(known in done.stderr for known in AS_THINGS_STAND):
            wrong.append((command, done.returncode, done.stderr))
    return wrong


def paused_jobs(path: Path) -> set[str]:
    with LmdbStore.open(path, create=False) as store:
        lines = store.view(journal.tail)
    return {event.job for _, event in lines if event.name == "JobPaused"}


@pytest.mark.parametrize(
    ("store", "selected"), [("store", SELECTED), ("it's a $tore, with blanks", FEW)], ids=["plain", "quoted"]
)
async def test_every_command_that_is_shown_works_elsewhere(
    tmp_path: Path, store: str, selected: tuple[str, ...]
) -> None:
    path = make_store(tmp_path / store)
    write(path, Job(id="posix-job", schedule="5 * * * *", dialect="posix", progress=JOBS[0].progress))
    write(path, *(job(odd, "5 * * * *") for odd in SELECTED[4:]))
    option = f"--store {shlex.quote(str(path))}"
    commands: set[str] = set()
    async with driven(app_on(path, StartOptions(store_option=option)), (80, 24)) as driver:
        for screen in SCREENS:
            await driver.press(str(SCREENS.index(screen) + 1))
            for name in selected if screen in ("jobs", "runs") else FEW:
                driver.app.state.job = name
                driver.app.state.run = RunKey(name, NOW - 12 * MINUTE) if screen == "runs" else None
                item = next((one for one in driver.app.state.runs if one.key.job == name), None)
                driver.app.state.run = item.key if item is not None and screen == "runs" else None
                commands |= await shown(driver)
    assert len(commands) > 30
    wrong = refused(commands, tmp_path)
    assert not wrong, "\n".join(str(one) for one in wrong)
    assert paused_jobs(path) <= {*SELECTED, "vacuum"}, "a job of the name --all is one job"


async def test_a_command_in_a_message_of_the_store_names_the_store(example_store: Path) -> None:
    option = f"--store {example_store}"
    options = StartOptions(store_option=option, hinted=lambda text: with_store_options(text, option, ""))
    async with driven(app_on(example_store, options), (300, 60)) as driver:
        example_store.rename(example_store.with_name("aside"))
        await driver.until(lambda frame: f"`chronex apply {option}` makes one" in frame.splitlines()[1])


def test_a_store_on_a_server_is_named_without_its_password(tmp_path: Path, postgres_url: str) -> None:
    """Whoever copies the command has the password elsewhere, as libpq looks for it: a file, or a variable."""
    url = postgres_url.replace("chronex@", "chronex:s3cret@", 1)
    (tmp_path / "chronex.toml").write_text('[jobs.hello]\nschedule = "0 4 * * *"\nrun = ["true"]\n')
    plain = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def chronex(*words: str) -> str:
        done = run_chronex((*words, "--store", url), env=plain, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "s3cret" not in done.stdout + done.stderr
        return str(done.stdout)

    chronex("apply")
    commands = set()
    for screen in SCREENS:
        frame = chronex("tui", "--print", "--size", "300x60", "--screen", screen, "--job", "hello")
        commands |= {
            line[3:].removesuffix("y copies").strip() for line in frame.splitlines() if line.startswith(" $ ")
        }
    assert len(commands) > 5
    assert all("--store" in one for one in commands)
    wrong = refused(commands, tmp_path)
    assert not wrong, "\n".join(str(one) for one in wrong)
