"""What holds for the whole command line: the table, help with examples, plain text in pipes, start-up, bad usage."""

from __future__ import annotations

import os
import pkgutil
import pty
import re
import shlex
import subprocess
import sys
import zoneinfo
from functools import cache
from pathlib import Path

import pytest
import typer
from typer import Context
from typer.main import get_command

import chronex.cli.commands
from chronex.cli.app import COMMANDS as APP_COMMANDS
from chronex.cli.app import SECTIONS, app_for, whole_app
from chronex_store import LmdbStore
from tests.cli.conftest import Chronex
from tests.kit.command_tree import command_tree

EXPRESSION_COMMANDS = ["explain", "next", "lint", "fmt", "lsp", "version"]
STORE_COMMANDS = ["verify", "doctor", "backup", "restore"]  # in this order the examples build on each other
COMMANDS = [*EXPRESSION_COMMANDS, *STORE_COMMANDS]
COMMAND_MODULES = sorted(module.name for module in pkgutil.iter_modules(chronex.cli.commands.__path__))


def example_of(chronex: Chronex, command: str) -> list[str]:
    text = " ".join(chronex(command, "--help").out.split())
    example = re.search(r"Example: chronex (.*?) (?:Arguments|Options|$)", text + " $")
    assert example, text
    return shlex.split(example[1].removesuffix(" Options:"))


@pytest.mark.parametrize("command", EXPRESSION_COMMANDS)
def test_the_example_in_each_help_runs(chronex: Chronex, command: str) -> None:
    done = chronex(*example_of(chronex, command))
    assert done.code == 0, done.err


def test_the_examples_of_the_store_commands_run(
    chronex: Chronex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = [example_of(chronex, command) for command in STORE_COMMANDS]
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "store"
    LmdbStore.open(store).close()
    for example in examples:
        done = chronex(*example, CHRONEX_STORE=str(store), PYTHONPATH=os.pathsep.join(sys.path))
        assert done.code == 0, done.err


def test_a_store_that_is_not_there_is_one_sentence(chronex: Chronex, tmp_path: Path) -> None:
    done = chronex("doctor", "--store", str(tmp_path / "nowhere"))
    assert done.code == 2
    assert "no store at" in done.out
    assert not (tmp_path / "nowhere").exists()


def test_help_lists_every_command(chronex: Chronex) -> None:
    text = chronex("--help").out
    assert all(re.search(rf"^  {command}\b", text, re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("frobnicate", "no command 'frobnicate'; see chronex --help"),
        ("lst", "no command 'lst'; did you mean list or lsp? See chronex --help"),
        ("dlq lst", "no command 'lst'; did you mean list? See chronex dlq --help"),
        ("--nope", "no option --nope; see chronex --help"),
        ("explain", "EXPR is missing; see chronex explain --help"),
        ("fmt", "EXPR… is missing; see chronex fmt --help"),
        (
            "explain 0 9 * * MON",
            "unexpected argument '9 * * MON'; put the expression in quotes; see chronex explain --help",
        ),
        ("trigger a b", "unexpected argument 'b'; put what has spaces in quotes; see chronex trigger --help"),
        ("explain x --qqqq", "no option --qqqq; see chronex explain --help"),
        ("next x --form 1", "no option --form; did you mean --format or --from? See chronex next --help"),
        ("nodes --nope", "no option --nope; see chronex nodes --help"),
        ("history --stat x", "no option --stat; did you mean --state? See chronex history --help"),
        ("dlq list --store", "--store needs a value; see chronex dlq list --help"),
        (
            "torture postgresql://me:hidden@db/jobs",
            "unexpected argument; name a store with --store STORE; see chronex torture --help",
        ),
        ("next x -n none", "--count: 'none' is not a whole number; see chronex next --help"),
        ("next x -n 0", "--count: 0 is out of range: at least 1 and at most 1000000; see chronex next --help"),
        ("logs a -n -1", "--lines: -1 is out of range: at least 0; see chronex logs --help"),
        ("list --filter", "--filter needs a value; see chronex list --help"),
        ("apply --rollback a", "--rollback needs 2 values; see chronex apply --help"),
        ("run --headless=3", "--headless does not take a value; see chronex run --help"),
    ],
)
def test_bad_usage_is_one_sentence_with_a_hint(chronex: Chronex, typed: str, sentence: str) -> None:
    done = chronex(*typed.split())
    assert (done.code, done.out, done.err) == (2, "", f"chronex: {sentence}\n")


@pytest.mark.parametrize("arguments", [(), ("dlq",), ("state",)])
def test_a_command_that_was_given_nothing_shows_its_help(chronex: Chronex, arguments: tuple[str, ...]) -> None:
    done = chronex(*arguments)
    assert done.code == 2
    assert ("Commands:" if arguments else "Schedules:") in done.err


def test_the_help_lists_every_command_once_and_whole(chronex: Chronex) -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(APP_COMMANDS)
    shown = " ".join(chronex("--help").out.split())
    assert all(f"{name} {text}" in shown for name, (_, text) in APP_COMMANDS.items())


def test_every_help_names_values_in_words(chronex: Chronex) -> None:
    """JOB and N, not {what} and <int range>; and all of them by -h too."""
    for name in APP_COMMANDS:
        text = chronex(name, "-h").out
        assert text.startswith(f"Usage: chronex {name} "), name
        assert not re.search(r"[{}]|<[a-z]+[ >]", text.partition("Example:")[0] + text.partition("Options:")[2]), text


@pytest.mark.parametrize("hostile", ["\x1b]0;title\x07", "\x1b[2J", "a\nb", "\u202e", "x" * 5000, "💥", "\\x1b[31m"])
@pytest.mark.parametrize("command", ["explain", "next", "lint", "fmt"])
def test_no_control_character_of_the_input_reaches_the_terminal(chronex: Chronex, command: str, hostile: str) -> None:
    done = chronex(command, hostile)
    assert done.code in (1, 2)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", done.out + done.err)


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What the program writes when its standard output is a terminal."""
    ours, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", **environment}
    command = [sys.executable, "-m", "chronex", *arguments]
    subprocess.run(command, stdout=theirs, stderr=theirs, stdin=theirs, env=env, timeout=60, check=False)
    os.close(theirs)
    written = b""
    while chunk := _read(ours):
        written += chunk
    os.close(ours)
    return written.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def test_colour_on_a_terminal_only_and_never_with_no_color(chronex: Chronex) -> None:
    assert "\x1b[1m" in on_a_terminal("explain", "0 9 * * *", "-n", "1")
    assert "\x1b" not in on_a_terminal("explain", "0 9 * * *", "-n", "1", NO_COLOR="1")
    assert "\x1b" not in on_a_terminal("explain", "0 9 * * *", "-n", "1", TERM="dumb")
    assert "\x1b" not in chronex("explain", "0 9 * * *", "-n", "1").out


@pytest.mark.parametrize("typed", ["next '* * * * *' -n 100000", "version"])
def test_a_reader_that_goes_away_is_no_error(typed: str) -> None:
    command = f"set -o pipefail; {sys.executable} -m chronex {typed} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize("typed", ["next '* * * * *' -n 100000", "version", "explain '0 9 * * *' --format json"])
def test_output_that_cannot_be_written_is_a_failure_in_one_sentence(typed: str) -> None:
    command = f"{sys.executable} -m chronex {typed} > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    sentence = "chronex: cannot write: no space left on device; free some space, then try again\n"
    assert (done.returncode, done.stderr) == (1, sentence)


def test_closed_streams_are_no_defect() -> None:
    command = f"{sys.executable} -m chronex next '0 9 * * *' <&- >&- 2>&-"
    subprocess.run(["bash", "-c", command], timeout=60, check=True)


HEAVY = {"textual", "lmdb", "pygls", "rich", "pydantic", "msgspec", "asyncio"}
# Each of these costs a tenth of a millisecond to several, and these commands have no use for it.
NOT_FOR_A_PLAIN_SCHEDULE = {
    "argparse", "chronex.decision", "concurrent.futures", "dataclasses", "decimal", "fractions", "hashlib",
    "importlib.metadata", "importlib.resources", "json", "logging", "platformdirs", "random", "socket", "tempfile",
    "tomllib", "unicodedata",
}  # fmt: skip
NOT_FOR_NEXT = {"chronex.expr.describe", "chronex.timing.advice", "chronex.timing.clock_changes", "chronex.views"}


@cache
def _loaded_anyway() -> tuple[str, ...]:
    """What every command pays for; Python 3.14 loads dataclasses for it, and a system without zone data a reader of
    the package that has it."""
    has_zones = any(Path(place).is_dir() for place in zoneinfo.TZPATH)
    program = f"import sys, typer{'' if has_zones else ', importlib.resources'}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    return tuple(found.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], HEAVY | {"chronex.expr", "chronex.timing"}),
        (["explain", "0 9 * * *"], HEAVY | NOT_FOR_A_PLAIN_SCHEDULE),
        (["next", "0 9 * * *"], HEAVY | NOT_FOR_A_PLAIN_SCHEDULE | NOT_FOR_NEXT),
    ],
)
def test_start_up_imports_nothing_heavy(arguments: list[str], unwanted: set[str]) -> None:
    program = (
        "import sys, chronex.cli\n"
        f"sys.argv = ['chronex', *{arguments!r}]\n"
        "try: chronex.cli.main()\n"
        "except SystemExit: pass\n"
        f"heavy = {unwanted!r} & set(sys.modules) - set({_loaded_anyway()!r})\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, timeout=60)


def test_a_defect_of_ours_is_one_sentence(chronex: Chronex) -> None:
    program = (
        "import chronex.cli, chronex.cli.commands.fmt as command, sys\n"
        "command.run_fmt = lambda *a: 1 / 0\n"
        "sys.argv = ['chronex', 'fmt', '@daily']\n"
        "chronex.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("chronex: this should not have happened (ZeroDivisionError")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "typed",
    [
        ("apply", "jobs.toml"),
        ("at", "now + 1h", "--", "echo", "caf\udce9"),
        ("apply", "jobs.toml", "--store", "caf\udce9"),
        ("list", "--store", "caf\udce9"),
        ("service", "install", "--dry-run", "--config", "jobs.toml"),
    ],
)
def test_names_that_are_no_utf8_are_refused_in_one_sentence(
    chronex: Chronex, typed: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux allows any bytes, such as those of Latin-1; nothing is begun that could not be kept."""
    here = tmp_path / "old caf\udce9"
    here.mkdir()
    monkeypatch.chdir(here)
    Path("jobs.toml").write_text('[jobs.a]\nschedule = "@daily"\nrun = "true"\n')
    done = chronex(*typed, CHRONEX_STORE=str(tmp_path / "store"), HOME=str(tmp_path))
    assert done.code == 2
    assert "these are no letters of UTF-8" in done.err
    assert os.listdir(here) == ["jobs.toml"]


@pytest.mark.parametrize("name", APP_COMMANDS)
def test_the_table_leads_to_a_declaration(name: str) -> None:
    declared = APP_COMMANDS[name][0]()
    assert isinstance(declared, typer.Typer) or callable(declared)
    assert name in {command.name for command in command_tree().commands}


def test_the_help_lists_commands_as_their_declarations_do() -> None:
    """`chronex --help` loads no command: its lines stand in the table."""
    listed, declared = (get_command(app) for app in (app_for(["--help"]), whole_app()))
    assert listed.get_help(Context(listed)) == declared.get_help(Context(declared))


# Every command is declared in a process that has imported Typer and nothing else of it.
DECLARE_EACH_ALONE = """
import os, sys, typer
from importlib import import_module
for module in sys.argv[1:]:
    if os.fork() == 0:
        import_module(f"chronex.cli.commands.{module}")
        heavy = {"textual", "lmdb", "pygls", "rich", "pydantic", "msgspec", "asyncio"} & set(sys.modules)
        ours = ("chronex.engine", "chronex_store", "chronex_tui")
        print(module, *sorted(heavy | {name for name in sys.modules if name.startswith(ours)}), flush=True)
        os._exit(0)
    os.wait()
"""


def test_declaring_a_command_imports_nothing_heavy() -> None:
    program = [sys.executable, "-c", DECLARE_EACH_ALONE, *COMMAND_MODULES]
    done = subprocess.run(program, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == COMMAND_MODULES, "a name after a module is what it should not import"
