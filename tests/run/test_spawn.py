"""How a child starts, what is said when it cannot, and that nothing begins before its start is on record."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.model import AttemptState
from chronex.model.job import Command
from chronex.run import EndReason, Hooks, RunContext, Started, identity_of, run_attempt, spawn
from tests.kit.forked import run_python
from tests.kit.waits import until_async
from tests.run.requests import outcome, output, python, request

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
        spawn._needs_session.cache_clear()
        seen = json.loads(output(run_context, await outcome(run_context, python(PROCESS))))
        assert (seen["group"], seen["session"]) == (True, terminal)
    monkeypatch.undo()
    spawn._needs_session.cache_clear()


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


@pytest.mark.parametrize(("make", "number", "message"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING])
async def test_what_is_missing_is_named(
    run_context: RunContext,
    tmp_path: Path,
    make: Callable[[Path], tuple[Command, str | None]],
    number: int,
    message: str,
) -> None:
    command, directory = make(tmp_path)
    result = await outcome(run_context, command, directory=directory)
    assert (result.state, result.reason, result.retryable) == (AttemptState.FAILED, EndReason.NOT_STARTED, True)
    assert result.errno == number
    assert message in result.error
    assert errno.errorcode[number] in result.error
    assert result.process is None


@pytest.mark.parametrize("command", [(), "", ("",), ("echo", "a\0b"), "echo \0", ("echo", "\ud800")])
async def test_an_impossible_command_is_refused_for_good(run_context: RunContext, command: Command) -> None:
    result = await outcome(run_context, command)
    assert (result.state, result.reason, result.retryable) == (AttemptState.FAILED, EndReason.NOT_STARTED, False)


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
    command = ["-c", DAEMON, str(tmp_path / "logs"), kind, str(made)]
    daemon = await asyncio.to_thread(run_python, command, env=environment)
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
    """The program was there when it was searched for, and is not when its turn comes."""
    if not isinstance(run_context.barrier_program, spawn.NativeBarrier):
        pytest.skip("the shell's barrier reports by exit code and log")
    program, place = tmp_path / "program", tmp_path / "place"
    for vanish, number, message in (
        (program.unlink, errno.ENOENT, f"{program}: no such program (ENOENT)"),
        (place.rmdir, errno.ENOENT, f"working directory {place}: no such directory (ENOENT)"),
    ):
        place.mkdir(exist_ok=True)
        shutil.copy("/bin/true", program)

        async def before(_started: Started, vanish=vanish) -> None:  # type: ignore[no-untyped-def]
            vanish()

        result = await run_attempt(request((str(program),), directory=str(place)), Hooks(started=before), run_context)
        assert (result.state, result.reason, result.retryable) == (AttemptState.FAILED, EndReason.NOT_STARTED, True)
        assert (result.errno, result.error) == (number, message)


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
    code, printed = SHELL_TEXTS[text]
    result = await outcome(guarded, text)
    assert (result.exit_code, output(guarded, result)) == (code, printed)


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


FORKED = """
import asyncio, os, sys
from pathlib import Path
from chronex.run import *
from tests.run.requests import request
run_context = RunContext.of_this_process(LogDirectory(Path(sys.argv[1])))
before = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == before:
    pass
result = asyncio.run(run_attempt(request(("true",)), Hooks(), run_context))
print(result.state, result.error)
"""


async def test_a_process_that_was_forked_off_does_not_look_for_the_barrier_in_the_one_before(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    forked = await asyncio.to_thread(run_python, ["-c", FORKED, str(tmp_path / "logs")], env=environment)
    assert forked.stdout.split() == [b"success"], forked.stderr


async def test_where_only_a_process_itself_may_look_into_it_the_barrier_is_found_all_the_same(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `hidepid`, or in a program that has changed its user since: of another number there is nothing."""
    if not isinstance(run_context.barrier_program, spawn.NativeBarrier):
        pytest.skip("this machine has only the shell's barrier")
    monkeypatch.setattr(os, "readlink", lambda _path: "999999999")
    spawn.barrier_program.cache_clear()
    found = spawn.barrier_program()
    spawn.barrier_program.cache_clear()
    assert isinstance(found, spawn.NativeBarrier)
    assert found.path.startswith(b"/proc/self/")
    result = await outcome(dataclasses.replace(run_context, barrier_program=found), ("echo", "done"))
    assert result.state is AttemptState.SUCCESS


async def test_a_program_that_others_may_not_look_into_any_more_starts_commands(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has changed its user, or holds keys and told the system so, after its scheduler was made."""
    barrier = run_context.barrier_program
    if not isinstance(barrier, spawn.NativeBarrier):
        pytest.skip("this machine has only the shell's barrier")
    monkeypatch.setattr(spawn, "is_dumpable", lambda: False)
    assert barrier.path.startswith(b"/proc/self/")
    assert (await outcome(run_context, ("echo", "done"))).state is AttemptState.SUCCESS


def test_a_process_says_whether_others_may_look_into_it() -> None:
    tell = "import ctypes; from chronex.run.posix_spawn import is_dumpable; print(is_dumpable()); "
    done = run_python(["-c", tell + "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(is_dumpable())"])
    assert done.stdout.split() == [b"True", b"False"]
