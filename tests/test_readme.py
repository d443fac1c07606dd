"""Every command and every program in the README runs, and prints what the README shows.

CHRONEX_UPDATE_README=1 rewrites the shown output instead of comparing it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.forked import run_python, stand_in

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "HOME": "/nowhere",
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "store")]),  # this tree, whichever is installed
}


def run(command: str, directory: Path) -> str:
    path = f"{Path(stand_in()).parent}:{ENVIRONMENT['PATH']}"
    # The default store, as a reader has it: messages name any other.
    env = {**ENVIRONMENT, "PATH": path, "XDG_STATE_HOME": str(directory / "state")}
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, env=env, cwd=directory, timeout=60, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def executed(block: str, directory: Path) -> str:
    """The block with each command followed by what it really prints."""
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{run(command, directory)}" for command in commands)


def test_every_console_block_shows_what_its_commands_print(tmp_path: Path) -> None:
    text = README.read_text()
    blocks = CONSOLE.findall(text)
    assert len(blocks) >= 5
    fresh = CONSOLE.sub(lambda match: f"```console\n{executed(match[1], tmp_path)}```", text)
    if os.environ.get("CHRONEX_UPDATE_README"):
        README.write_text(fresh)
    assert README.read_text() == fresh


@pytest.mark.parametrize("program", re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL))
def test_every_program_prints_what_its_comments_say(program: str, tmp_path: Path) -> None:
    done = run_python(["-c", program], text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    promised = [
        line.partition("  # ")[2].strip() for line in program.splitlines() if line.lstrip().startswith("print")
    ]
    assert len(printed) == len(promised)
    for shown, comment in zip(printed, promised, strict=True):
        assert not comment or comment.startswith(shown), (shown, comment)


SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("line", SHELL.findall(README.read_text())[0].splitlines())
def test_the_two_commands_are_targets_of_the_makefile(line: str) -> None:
    target = line.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_other_command_runs_in_its_order(tmp_path: Path) -> None:
    """What runs until it is stopped is stopped after a second, as a reader would."""
    run("chronex init && chronex apply && chronex trigger hello && chronex run --headless --once", tmp_path)
    lines = [line for block in SHELL.findall(README.read_text())[1:] for line in block.splitlines()]
    assert len(lines) >= 15
    for line in lines:
        command = line.partition("  #")[0].strip()
        run(f"{command} --headless --for 1s" if command == "chronex run" else command, tmp_path)


def test_the_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert target.startswith("http") or (ROOT / target).exists(), target
