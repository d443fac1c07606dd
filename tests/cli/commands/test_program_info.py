"""Completions and the manual say what the program can do, no more and no less."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chronex.cli.app import COMMANDS
from chronex.cli.reference import SHELLS, CommandInfo, completion_script, manual
from tests.cli.conftest import Chronex
from tests.kit.command_tree import command_tree

PROGRAM = command_tree()
# What a script asks the program itself: names of the store, and what is too long to be in the script.
NAMES = """#!/bin/sh
case "$*" in
  "names jobs") echo backup ;;
  "names tags") echo nightly ;;
  "names nodes") echo node-1 ;;
  "names zones") echo Europe/Berlin; echo Asia/Seoul ;;
  "names rules") echo E001; echo W111 ;;
  *) exit 2 ;;
esac
"""


def every_command(command: CommandInfo) -> list[CommandInfo]:
    return [command, *(below for each in command.commands for below in every_command(each))]


def test_the_tree_has_every_command_in_the_order_of_the_help() -> None:
    assert [command.name for command in PROGRAM.commands] == list(COMMANDS)


@pytest.mark.parametrize("command", every_command(PROGRAM)[1:], ids=lambda c: c.name)
def test_every_command_and_option_has_words(command: CommandInfo) -> None:
    assert command.help
    assert command.example.startswith("chronex ") or command.commands
    assert all(option.help for option in command.options)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_names_every_command_and_option(shell: str) -> None:
    script = completion_script(shell, PROGRAM)
    for command in every_command(PROGRAM)[1:]:
        assert command.name in script
        for option in command.options:
            assert all(name.lstrip("-") in script for name in option.names)


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_accepts_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(completion_script(shell, PROGRAM))
    subprocess.run([shell, "-n", script], check=True)


TYPED: list[tuple[list[str], list[str]]] = [
    (["chronex", "expl"], ["explain"]),
    (["chronex", "explain", "--spr"], ["--spread"]),
    (["chronex", "list", "--format", "j"], ["json"]),
    (["chronex", "tui", "--screen", "n"], ["nodes"]),
    (["chronex", "tui", "--theme", "l"], ["light"]),
    (["chronex", "history", "--state", "fai"], ["failed", "failed_stale"]),
    (["chronex", "completion", "z"], ["zsh"]),
    (["chronex", "import", "cront"], ["crontab"]),
    (["chronex", "nodes", "und"], ["undrain"]),
    (["chronex", "pause", "--tag", "ni"], ["nightly"]),
    (["chronex", "trigger", "back"], ["backup"]),
    (["chronex", "trigger", "--job", "script"], []),
    (["chronex", "cancel", "scr"], []),
    (["chronex", "nodes", "drain", "node"], ["node-1"]),
    (["chronex", "service", "inst"], ["install"]),
    (["chronex", "service", "install", "--no-s"], ["--no-start"]),
    (["chronex", "lint", "--format", "s"], ["sarif"]),
    (["chronex", "lint", "--format", "g"], ["gcc", "github", "gitlab"]),
    (["chronex", "list", "--format", "n"], ["names"]),
    (["chronex", "status", "--format", "n"], []),
    (["chronex", "lint", "--as", "cron"], ["crontab", "cron.d"]),
    (["chronex", "import", "--as", "u"], ["user"]),
    (["chronex", "explain", "--as", "k"], ["kubernetes"]),
    (["chronex", "lint", "--cron", "b"], ["bsd", "busybox", "bcron"]),
    (["chronex", "next", "--tz", "Eu"], ["Europe/Berlin"]),
    (["chronex", "lint", "--select", "W1"], ["W111"]),
    (["chronex", "rule", "E"], ["E001"]),
    (["chronex", "logs", "ba"], ["backup"]),
    (["chronex", "logs", "scr"], []),
    (["chronex", "dlq", "scr"], []),
    (["chronex", "service", "scr"], []),
    (["chronex", "version", "scr"], []),
    (["chronex", "lint", "scr"], ["script"]),
    (["chronex", "import", "crontab", "scr"], ["script"]),
    (["chronex", "tui", "--screenshot", "scr"], ["script"]),
]


def test_bash_completes_what_is_typed(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = tmp_path / "script"
    script.write_text(completion_script("bash", PROGRAM))
    (tmp_path / "chronex").write_text(NAMES)
    (tmp_path / "chronex").chmod(0o755)
    asked = [f"PATH={tmp_path}:$PATH; . {script}"]
    for typed, _ in TYPED:
        words = " ".join(f"'{word}'" for word in typed)
        asked.append(f'COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _chronex; echo "${{COMPREPLY[@]}}"')
    done = subprocess.run(["bash", "-c", "\n".join(asked)], capture_output=True, text=True, check=True, cwd=tmp_path)
    answers = zip(TYPED, done.stdout.splitlines(), strict=True)
    assert [(typed, found.split()) for (typed, _), found in answers] == TYPED, done.stderr


def test_the_manual_has_what_manuals_have_and_the_defaults() -> None:
    text = manual(PROGRAM)
    assert re.findall(r"^\.SH (.*)", text, re.MULTILINE) == [
        "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO",
    ]  # fmt: skip
    assert "How many runs. (default: 10)" in text


def test_the_manual_is_read_without_complaint(tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    page = tmp_path / "chronex.1"
    page.write_text(manual(PROGRAM))
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "explain" in done.stdout


def test_an_unknown_shell_is_told_the_known_ones(chronex: Chronex) -> None:
    done = chronex("completion", "tcsh")
    assert done.code == 2
    assert "bash, zsh or fish" in done.err


@pytest.mark.binary
def test_the_version_in_json(chronex: Chronex) -> None:
    found = json.loads(chronex("version", "--format", "json").out)
    assert f"chronex {found['version']}\n" == chronex("version").out == chronex("--version").out


@pytest.mark.parametrize(
    ("kind", "names"), [("jobs", ["backup", "report"]), ("tags", ["db", "nightly"]), ("nodes", [])]
)
def test_names_of_the_store_are_printed_for_completion(
    chronex: Chronex, tmp_path: Path, kind: str, names: list[str]
) -> None:
    file, store = tmp_path / "chronex.toml", str(tmp_path / "store")
    file.write_text(
        '[jobs.backup]\nschedule = "@daily"\nrun = "true"\ntags = ["nightly", "db"]\n'
        '[jobs.report]\nschedule = "@daily"\nrun = "true"\n'
    )
    chronex("apply", str(file), "--store", store)
    assert chronex("names", kind, "--store", store).out.split() == names


def test_zones_and_rules_need_no_store_for_completion(chronex: Chronex, tmp_path: Path) -> None:
    nowhere = ("--store", str(tmp_path / "none"))
    assert "Europe/Berlin" in chronex("names", "zones", *nowhere).out.split()
    assert chronex("names", "rules", *nowhere).out.split()[0] == "E001"
