"""How a child starts, and what is said when it cannot."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.model import AttemptState
from chronex.model.job import Command
from chronex.run import EndReason, RunContext, spawn
from tests.run.requests import outcome, output, python

PROCESS = """
import json, os, signal
status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines())
print(json.dumps({
    'descriptors': sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{n}')),
    'input': os.readlink('/proc/self/fd/0'),
    'blocked': int(status['SigBlk'], 16), 'ignored': int(status['SigIgn'], 16),
    'group': os.getpgrp() == os.getpid(), 'session': os.getsid(0) == os.getpid(),
}))
"""


async def test_a_child_starts_clean(run_context: RunContext) -> None:
    """Whatever the daemon ignores, blocks or holds open."""
    inherited = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    spawn.seal_descriptors()
    before = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM)
    }
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGINT})
    try:
        # Python ignores SIGPIPE and SIGXFSZ for itself; so the shell's view is taken, not Python's.
        shell = await outcome(run_context, "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd")
        child = await outcome(run_context, python(PROCESS))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2, signal.SIGINT})
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(inherited)
    lines = output(run_context, shell).split()
    assert lines[0:2] == [b"SigBlk:", b"0" * 16]
    assert int(lines[3], 16) & ~0b11 << 31 == 0  # 32 and 33 are the C library's own: no program can set them
    assert lines[4:] == [b"0", b"1", b"2", b"3"]  # 3 is the listing itself
    seen = json.loads(output(run_context, child))
    assert seen["descriptors"] == [0, 1, 2]
    assert (seen["input"], seen["blocked"], seen["group"]) == ("/dev/null", 0, True)


async def test_a_terminal_of_the_daemon_is_kept_away_by_a_session(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    for terminal in (True, False):
        monkeypatch.setattr(spawn, "_has_terminal", lambda terminal=terminal: terminal)
        spawn._apart.cache_clear()
        seen = json.loads(output(run_context, await outcome(run_context, python(PROCESS))))
        assert (seen["group"], seen["session"]) == (True, terminal)
    monkeypatch.undo()
    spawn._apart.cache_clear()


def test_a_daemon_without_standard_descriptors_starts_children_all_the_same(tmp_path: Path) -> None:
    """Then the pipe's own descriptors are 0, 1 and 2."""
    code = f"""
import asyncio, os
from pathlib import Path
from chronex.run import *
from tests.run.requests import outcome
for descriptor in (0, 1, 2):
    os.close(descriptor)
logs = LogDirectory(Path({str(tmp_path / "logs")!r}))
asyncio.run(outcome(RunContext.of_this_process(logs), "cat; echo out; echo err >&2"))
"""
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert [path.read_text() for path in (tmp_path / "logs").iterdir()] == ["out\nerr\n"]


async def test_a_list_is_argv_and_a_string_is_for_the_shell(run_context: RunContext) -> None:
    assert output(run_context, await outcome(run_context, ("echo", "$HOME", "a  b"))) == b"$HOME a  b\n"
    assert output(run_context, await outcome(run_context, "x=1; echo $((x + 1)) | cat")) == b"2\n"


@pytest.mark.parametrize("name", ["plain", "with space", "-", "--", "$(id)", "quote'\"", "new\nline", "é"])
@pytest.mark.parametrize("command", [("pwd",), "pwd"], ids=["argv", "sh"])
async def test_a_command_runs_in_its_directory(
    run_context: RunContext, tmp_path: Path, name: str, command: Command
) -> None:
    place = tmp_path / name
    place.mkdir()
    result = await outcome(run_context, command, directory=str(place), env={"CDPATH": "/"})
    assert output(run_context, result) == os.fsencode(place) + b"\n"


async def test_a_relative_program_is_found_from_its_directory(run_context: RunContext, tmp_path: Path) -> None:
    script = tmp_path / "hello"
    script.write_text("#!/bin/sh\necho hello $#\n")
    script.chmod(0o700)
    for program in ("./hello", str(script)):
        result = await outcome(run_context, (program, "a b", ""), directory=str(tmp_path))
        assert output(run_context, result) == b"hello 2\n"
    result = await outcome(run_context, ("hello",), env={"PATH": str(tmp_path)})
    assert output(run_context, result) == b"hello 0\n"


def a_file(path: Path, mode: int = 0o600, text: str = "echo hi\n") -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


MISSING: list[tuple[str, Callable[[Path], tuple[Command, str | None]], int, str]] = [
    ("missing program", lambda p: (("no-such-program",), None), errno.ENOENT, "no-such-program: no such program in PATH"),
    ("missing path", lambda p: ((f"{p}/gone",), None), errno.ENOENT, "/gone: no such program"),
    ("not executable", lambda p: ((a_file(p / "x"),), None), errno.EACCES, "is it executable?"),
    ("no interpreter line", lambda p: ((a_file(p / "x", 0o700),), None), errno.ENOEXEC, "begins with #!"),
    ("missing interpreter", lambda p: ((a_file(p / "x", 0o700, "#!/no/such\n"),), None), errno.ENOENT, "its interpreter does not exist"),
    ("a directory", lambda p: ((str(p),), None), errno.EACCES, "is it executable?"),
    ("missing directory", lambda p: (("true",), f"{p}/gone"), errno.ENOENT, "/gone: no such directory"),
    ("directory is a file", lambda p: (("true",), a_file(p / "x")), errno.ENOTDIR, "/x: not a directory"),
    ("missing program in a directory", lambda p: (("./gone",), str(p)), errno.ENOENT, "gone: no such program"),
    ("not executable in a directory", lambda p: (("./x",), a_file(p / "x") and str(p)), errno.EACCES, "is it executable?"),
    ("name too long", lambda p: (("/" + "x" * 5000,), None), errno.ENAMETOOLONG, "File name too long"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "number", "told"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING])
async def test_what_is_missing_is_named(
    run_context: RunContext,
    tmp_path: Path,
    make: Callable[[Path], tuple[Command, str | None]],
    number: int,
    told: str,
) -> None:
    command, directory = make(tmp_path)
    result = await outcome(run_context, command, directory=directory)
    assert (result.state, result.reason, result.retryable) == (AttemptState.FAILED, EndReason.NOT_STARTED, True)
    assert result.errno == number
    assert told in result.error
    assert errno.errorcode[number] in result.error
    assert result.process is None


@pytest.mark.parametrize("command", [(), "", ("",), ("echo", "a\0b"), "echo \0", ("echo", "\ud800")])
async def test_an_impossible_command_is_refused_for_good(run_context: RunContext, command: Command) -> None:
    result = await outcome(run_context, command)
    assert (result.state, result.reason, result.retryable) == (AttemptState.FAILED, EndReason.NOT_STARTED, False)
