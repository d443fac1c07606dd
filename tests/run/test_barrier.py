"""No command begins before its start is on record; a barrier whose daemon dies lets nothing pass."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chronex.model import AttemptState
from chronex.model.job import Command
from chronex.run import EndReason, Hooks, RunContext, Started, identity_of, run_attempt, spawn
from tests.kit.waits import DEADLINE_S, until_async
from tests.run.requests import outcome, output, request

SOURCE = Path(spawn.__file__).with_name("barrier.S")


@pytest.fixture(params=["quick", "shell"])
def guarded(request: pytest.FixtureRequest, run_context: RunContext) -> RunContext:
    """RunContext with each of the two gates."""
    if request.param == "shell":
        return dataclasses.replace(run_context, barrier_program=spawn.ShellBarrier())
    if not isinstance(run_context.barrier_program, spawn.NativeBarrier):
        pytest.skip("this machine has only the shell's barrier")
    return run_context


@pytest.mark.parametrize("command", [("touch", "made"), "touch made"], ids=["argv", "sh"])
async def test_a_command_begins_when_its_start_is_recorded(
    guarded: RunContext, tmp_path: Path, command: Command
) -> None:
    made = tmp_path / "made"
    seen: list[Started] = []

    async def record(started: Started) -> None:
        seen.append(started)
        await asyncio.sleep(0.1)
        assert not made.exists(), "it ran before it was recorded"

    result = await run_attempt(request(command, directory=str(tmp_path)), Hooks(started=record), guarded)
    assert result.state is AttemptState.SUCCESS
    assert made.exists()
    assert seen[0].process == result.process, "becoming the command changes neither pid nor start time"


@pytest.mark.parametrize("command", [("touch", "made"), "touch made"], ids=["argv", "sh"])
async def test_a_command_that_could_not_be_recorded_never_runs(
    guarded: RunContext, tmp_path: Path, command: Command
) -> None:
    async def fail(_started: Started) -> None:
        raise OSError("the store is gone")

    with pytest.raises(OSError, match="the store is gone"):
        await run_attempt(request(command, directory=str(tmp_path)), Hooks(started=fail), guarded)
    await asyncio.sleep(0.1)
    assert not (tmp_path / "made").exists()


DAEMON = """
import asyncio, dataclasses, os, sys
from pathlib import Path
from chronex.run import *
from chronex.run.spawn import ShellBarrier
from tests.run.requests import request
async def die(started):
    print(started.process.pid, flush=True)
    os.kill(os.getpid(), 9)
run_context = RunContext.of_this_process(LogDirectory(Path(sys.argv[1])))
if sys.argv[2] == "shell":
    run_context = dataclasses.replace(run_context, barrier_program=ShellBarrier())
asyncio.run(run_attempt(request(("touch", sys.argv[3])), Hooks(started=die), run_context))
"""


@pytest.mark.parametrize("kind", ["quick", "shell"])
async def test_a_daemon_that_dies_before_the_record_leaves_nothing(tmp_path: Path, kind: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    made = tmp_path / "made"
    command = [sys.executable, "-c", DAEMON, str(tmp_path / "logs"), kind, str(made)]
    daemon = await asyncio.to_thread(
        subprocess.run, command, env=environment, stdout=subprocess.PIPE, check=False, timeout=DEADLINE_S
    )
    assert daemon.returncode == -signal.SIGKILL
    child = int(daemon.stdout)
    await until_async(lambda: identity_of(child) is None, "the end of the child at its barrier")
    assert not made.exists()


async def test_a_child_is_stopped_at_the_barrier(guarded: RunContext, tmp_path: Path) -> None:
    hooks = Hooks()

    async def cancel(_started: Started) -> None:
        hooks.cancellation.request("by alice")

    hooks = dataclasses.replace(hooks, started=cancel)
    result = await run_attempt(request(("touch", str(tmp_path / "made"))), hooks, guarded)
    assert (result.state, result.error, result.signal) == (AttemptState.CANCELED, "by alice", signal.SIGTERM)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("arguments", [("a b", "", "$(id)", "`id`", ";id", "-n", "é\n*"), ("x" * 100_000,)])
async def test_arguments_pass_unchanged(guarded: RunContext, arguments: tuple[str, ...]) -> None:
    show = 'for a in "$@"; do printf "%s|" "$a"; done'
    result = await outcome(guarded, ("/bin/sh", "-c", show, "sh", *arguments))
    assert output(guarded, result).decode() == "".join(f"{argument}|" for argument in arguments)


async def test_what_is_refused_behind_the_barrier_has_its_error_number(
    run_context: RunContext, tmp_path: Path
) -> None:
    """The program was there when it was looked for, and is not when its turn comes."""
    if not isinstance(run_context.barrier_program, spawn.NativeBarrier):
        pytest.skip("the shell's barrier tells by exit code and log")
    program, place = tmp_path / "program", tmp_path / "place"
    for vanish, number, told in (
        (program.unlink, errno.ENOENT, f"{program}: no such program (ENOENT)"),
        (place.rmdir, errno.ENOENT, f"working directory {place}: no such directory (ENOENT)"),
    ):
        place.mkdir(exist_ok=True)
        shutil.copy("/bin/true", program)

        async def before(_started: Started, vanish=vanish) -> None:  # type: ignore[no-untyped-def]
            vanish()

        result = await run_attempt(request((str(program),), directory=str(place)), Hooks(started=before), run_context)
        assert (result.state, result.reason, result.retryable) == (AttemptState.FAILED, EndReason.NOT_STARTED, True)
        assert (result.errno, result.error) == (number, told)


SHELL_TEXTS = {
    "echo one; echo two": (0, b"one\ntwo\n"),
    "# a comment first\necho two": (0, b"two\n"),
    'cat <<END\n$0 "$#"\nEND': (0, b'/bin/sh "0"\n'),
    'false || echo "$?"': (0, b"1\n"),
    'echo "$?"': (0, b"0\n"),
    "exit 125": (125, b""),
    "ls /proc/self/fd/3 2>/dev/null || echo none": (0, b"none\n"),
    "sh -c 'echo $$' | grep -c .": (0, b"1\n"),
}


@pytest.mark.parametrize("text", SHELL_TEXTS)
async def test_a_text_for_the_shell_means_what_it_means_without_a_barrier(guarded: RunContext, text: str) -> None:
    code, told = SHELL_TEXTS[text]
    result = await outcome(guarded, text)
    assert (result.exit_code, output(guarded, result)) == (code, told)


@pytest.mark.parametrize("text", ["echo a\nno-such-program-here", "echo b; done"])
async def test_a_shell_names_the_line_as_the_user_counts_them(guarded: RunContext, text: str) -> None:
    bare = subprocess.run(["/bin/sh", "-c", text], capture_output=True, check=False, env={"PATH": os.environ["PATH"]})
    result = await outcome(guarded, text)
    assert result.exit_code == bare.returncode
    assert output(guarded, result) == bare.stdout + bare.stderr


@pytest.mark.skipif(shutil.which("as") is None or os.uname().machine != "x86_64", reason="needs an assembler")
def test_the_program_is_what_its_source_says(tmp_path: Path) -> None:
    made, code = tmp_path / "gate.o", tmp_path / "code"
    subprocess.run(["as", "-o", made, SOURCE], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", made, code], check=True)
    assert code.read_bytes() == spawn._X86_64


def test_where_the_native_barrier_does_not_work_the_shell_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "memory files are no programs here")

    monkeypatch.setattr(os, "memfd_create", refuse)
    spawn.barrier_program.cache_clear()
    assert isinstance(spawn.barrier_program(), spawn.ShellBarrier)
    spawn.barrier_program.cache_clear()
