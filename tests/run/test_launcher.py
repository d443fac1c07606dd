"""As whom a command runs and within what: what it finds itself to be, and what is said when it cannot be that."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronex.model import AttemptState
from chronex.model.policies import ProcessSettings, ResourceLimits
from chronex.run import EndReason, LogDirectory, RunContext, launcher
from chronex.run.accounts import needs_root as what_needs_root
from tests.kit.users import OtherUser, needs_root, two_users
from tests.run.requests import outcome, output

WHO = """
import json, os, resource
status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines())
umask = os.umask(0)
print(json.dumps({
    'uids': os.getresuid(), 'gids': os.getresgid(), 'groups': sorted(os.getgroups()), 'umask': umask,
    'nice': os.getpriority(os.PRIO_PROCESS, 0), 'cwd': os.getcwd(), 'session': os.getsid(0) == os.getpid(),
    'capabilities': [int(status[name], 16) for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')],
    'descriptors': sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{n}')),
    'blocked': int(status['SigBlk'], 16), 'environment': dict(os.environ),
    'files': resource.getrlimit(resource.RLIMIT_NOFILE), 'data': resource.getrlimit(resource.RLIMIT_DATA),
}))
"""
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


@pytest.fixture(scope="module")
def users() -> Iterator[tuple[OtherUser, OtherUser]]:
    with two_users() as found:
        yield found


async def who(run_context: RunContext, settings: ProcessSettings, **changes: Any) -> dict[str, Any]:
    result = await outcome(run_context, (PYTHON, "-I", "-S", "-c", WHO), settings=settings, **changes)
    assert result.state is AttemptState.SUCCESS, (result.error, output(run_context, result))
    found: dict[str, Any] = json.loads(output(run_context, result))
    return found


@needs_root
async def test_a_command_is_that_user_and_nothing_of_root(
    logs: LogDirectory, users: tuple[OtherUser, OtherUser]
) -> None:
    """Whatever the scheduler has: groups, a umask, variables of its own."""
    daemon = {
        "PATH": "/var/root/bin:/usr/bin", "HOME": "/var/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/var/rootsh",
        "XDG_RUNTIME_DIR": "/run/user/0", "TMPDIR": "/var/root/tmp", "LD_LIBRARY_PATH": "/var/root/lib", "LANG": "C.UTF-8",
        "LC_TIME": "C", "TZ": "Asia/Seoul", "SSH_AUTH_SOCK": "/var/root/agent",
    }  # fmt: skip
    first, second = users
    before = os.getgroups()
    os.setgroups([0, 4, 27])
    try:
        seen = await who(RunContext.of_this_process(logs, environ=daemon), ProcessSettings(user=first.name))
    finally:
        os.setgroups(before)
    assert (seen["uids"], seen["gids"]) == ([first.uid] * 3, [first.gid] * 3)
    assert seen["groups"] == sorted((first.gid, second.gid))
    assert seen["capabilities"] == [0, 0, 0, 0]
    assert (seen["session"], seen["descriptors"], seen["blocked"]) == (True, [0, 1, 2], 0)
    given = {name: value for name, value in seen["environment"].items() if not name.startswith("CHRONEX_")}
    assert given.pop("TRACEPARENT").startswith("00-")
    assert given == {
        "HOME": first.home, "SHELL": "/bin/sh", "USER": first.name, "LOGNAME": first.name,
        "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "Asia/Seoul",
    }  # fmt: skip
    assert seen["cwd"] == "/"  # a home that is not there


@needs_root
async def test_the_job_may_say_home_and_path_but_not_who_it_is(
    run_context: RunContext, users: tuple[OtherUser, OtherUser], tmp_path: Path
) -> None:
    wanted = {"HOME": "/srv", "PATH": "/usr/bin:/bin", "SHELL": "/bin/bash", "USER": "root", "LOGNAME": "root"}
    seen = (await who(run_context, ProcessSettings(user=users[0].name), env=wanted))["environment"]
    assert {name: seen[name] for name in wanted} == {**wanted, "USER": users[0].name, "LOGNAME": users[0].name}


@needs_root
async def test_a_group_of_its_own(run_context: RunContext, users: tuple[OtherUser, OtherUser]) -> None:
    first, second = users
    seen = await who(run_context, ProcessSettings(user=second.name, group=first.name))
    assert (seen["uids"], seen["gids"], seen["groups"]) == (
        [second.uid] * 3,
        [first.gid] * 3,
        sorted({first.gid}),
    )
    seen = await who(run_context, ProcessSettings(user=str(first.uid), group=str(second.gid)))
    assert (seen["uids"], seen["gids"], seen["groups"]) == ([first.uid] * 3, [second.gid] * 3, [second.gid])
    seen = await who(run_context, ProcessSettings(group=first.name))
    assert (seen["uids"], seen["gids"], seen["groups"]) == ([0] * 3, [first.gid] * 3, [first.gid])


@needs_root
async def test_everything_at_once(run_context: RunContext, users: tuple[OtherUser, OtherUser]) -> None:
    """Also where the interpreter is installed in a directory that the user cannot enter."""
    limits = ResourceLimits(memory=2**28, cpu=100, tasks=50, open_files=32)
    settings = ProcessSettings(user=users[0].name, umask="077", nice=7, limits=limits)
    seen = await who(run_context, settings)
    assert (seen["uids"], seen["umask"], seen["nice"]) == ([users[0].uid] * 3, 0o077, 7)
    assert (seen["files"], seen["data"][0]) == ([32, 32], 2**29)


async def test_a_fault_of_the_launcher_is_no_end_of_the_command(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = launcher._source().replace(
        b"def wait_at_barrier() -> None:", b"def wait_at_barrier() -> None:\n    1 / 0"
    )
    monkeypatch.setattr(launcher, "_source", lambda: broken)
    ran = tmp_path / "ran"
    result = await outcome(run_context, f"touch {ran}", settings=ProcessSettings(umask="022"))
    assert result.reason is EndReason.NOT_STARTED
    assert result.error == "its launcher had a fault, and it was not run: ZeroDivisionError: division by zero"
    assert not ran.exists()


async def test_a_program_without_an_interpreter_starts_nothing_in_its_place(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/sbin/nginx")
    result = await outcome(run_context, "true", settings=ProcessSettings(umask="022"))
    assert result.reason is EndReason.NOT_STARTED
    assert result.error == "no way to say how it is to be started: /usr/sbin/nginx is no Python interpreter"


@needs_root
async def test_its_output_can_be_opened_by_name(run_context: RunContext, users: tuple[OtherUser, OtherUser]) -> None:
    """The pipe is root's, and another user may write to a pipe that it holds, but not open it again."""
    settings = ProcessSettings(user=users[0].name)
    result = await outcome(run_context, "echo one > /dev/stdout; echo two > /dev/stderr", settings=settings)
    assert output(run_context, result) == b"one\ntwo\n"


async def test_umask_nice_and_open_files_need_no_root(run_context: RunContext, tmp_path: Path) -> None:
    here = os.getpriority(os.PRIO_PROCESS, 0)
    settings = ProcessSettings(umask="027", nice=min(19, here + 3), limits=ResourceLimits(open_files=64))
    seen = await who(run_context, settings, directory=str(tmp_path))
    assert (seen["umask"], seen["nice"], seen["files"]) == (0o027, min(19, here + 3), [64, 64])
    assert (seen["cwd"], seen["environment"]["HOME"]) == (str(tmp_path), os.environ["HOME"])


async def test_what_an_interpreter_ignores_is_not_passed_on(run_context: RunContext) -> None:
    command = "grep SigIgn /proc/self/status; kill -PIPE $$; echo not reached"
    result = await outcome(run_context, command, settings=ProcessSettings(umask="077"))
    assert (result.reason, result.signal) == (EndReason.SIGNAL, signal.SIGPIPE)
    assert int(output(run_context, result).split()[1], 16) & ~(0b11 << 31) == 0


async def test_arguments_and_variables_arrive_as_they_are(run_context: RunContext) -> None:
    values = {"EMPTY": "", "LINES": "a\nb", "EQUAL": "a=b", "BYTES": "\udcff", "PYTHONHOME": "/x", "LD_BIND_NOW": ""}
    command = (PYTHON, "-I", "-S", "-c", "import os,sys; print(sys.argv[1:], [os.environ[n] for n in sys.argv[3:]])",
               "", "a b", *values)  # fmt: skip
    result = await outcome(run_context, command, settings=ProcessSettings(umask="022"), env=values)
    assert output(run_context, result).decode() == f"{['', 'a b', *values]} {list(values.values())}\n"


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "no such user": ({"settings": ProcessSettings(user="no-such-user")}, "no user 'no-such-user' on this machine"),
    "no such number": ({"settings": ProcessSettings(user="4000000001")}, "no user '4000000001' on this machine"),
    "a number too large": ({"settings": ProcessSettings(user="9999999999")}, "no user '9999999999' on this machine"),
    "no such group": ({"settings": ProcessSettings(group="no-such-group")}, "no group 'no-such-group'"),
    "no such program": ({"command": ("no-such-program",)}, "no-such-program: no such program in PATH (ENOENT)"),
    "no such path": ({"command": ("/no/such",)}, "/no/such: no such program (ENOENT)"),
    "not a program": ({"command": ("/etc/passwd",)}, "/etc/passwd: permission denied; is it executable? (EACCES)"),
    "no directory": ({"directory": "/no/such"}, "working directory /no/such: no such directory (ENOENT)"),
    "a file for a directory": ({"directory": "/etc/hostname"}, "working directory /etc/hostname: not a directory"),
    "an empty command": ({"command": ()}, "the command is empty"),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_what_cannot_be_started_is_told(run_context: RunContext, case: str) -> None:
    changes, expected = REFUSALS[case]
    wanted = {"command": ("true",), "settings": ProcessSettings(umask="022"), **changes}
    result = await outcome(run_context, wanted.pop("command"), **wanted)
    assert (result.state, result.reason) == (AttemptState.FAILED, EndReason.NOT_STARTED)
    assert result.error.startswith(expected)


@needs_root
async def test_rights_are_those_of_the_user(
    run_context: RunContext, users: tuple[OtherUser, OtherUser], tmp_path: Path
) -> None:
    """Root can enter and run everything, so it is not root who looks."""
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    program = closed / "hello"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    settings = ProcessSettings(user=users[0].name)
    result = await outcome(run_context, ("true",), settings=settings, directory=str(closed))
    assert result.error == f"working directory {closed}: permission denied (EACCES)"
    for command in ((str(program),), ("hello",)):
        result = await outcome(run_context, command, settings=settings, env={"PATH": str(closed)})
        assert result.error == f"{program}: permission denied; is it executable? (EACCES)"


def test_what_only_root_can_do_is_known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65_534)
    monkeypatch.setattr(os, "getegid", lambda: 65_534)
    assert what_needs_root(None) is None
    assert (
        what_needs_root(ProcessSettings(user="nobody", umask="077", nice=19, limits=ResourceLimits(tasks=3))) is None
    )
    for settings, key in (
        (ProcessSettings(user="root"), "user = 'root'"),
        (ProcessSettings(user="no-such-user"), "user = 'no-such-user'"),
        (ProcessSettings(group="root"), "group = 'root'"),
        (ProcessSettings(nice=-20), "nice = -20"),
    ):
        assert what_needs_root(settings) == f"{key} needs a scheduler that runs as root"
