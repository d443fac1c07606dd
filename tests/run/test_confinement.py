"""Limits: what holds them, who is killed for them, and what is said then."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronex.model import AttemptState, LeftoverPolicy
from chronex.model.job import Command
from chronex.model.occurrence import Usage
from chronex.model.policies import ProcessSettings, ResourceLimits
from chronex.run import EndReason, RunContext
from chronex.run.confinement import Confinement, memory_of
from chronex.run.control_groups import ControlGroup, ControlGroups, delegated_parent
from chronex.run.request import CommandRules, ExitVerdict
from chronex.run.supervise import unknown_exit
from tests.kit.users import OtherUser, needs_root, two_users
from tests.kit.waits import until
from tests.run.requests import outcome, output, python

MIB = 2**20
SLOWLY = """
import time
taken = []
for _ in range(4000):
    taken.append(bytearray(b"x" * 2**18))
    time.sleep(0.002)
"""
IN_CHILDREN = f"for i in 1 2 3 4; do {sys.executable} -I -S -c 'import time; x = b\"x\" * (20 * 2**20); time.sleep(100)' & done; wait"


def limited(**limits: Any) -> ProcessSettings:
    return ProcessSettings(limits=ResourceLimits(**limits))


# -- without a control group ----------------------------------------------------------------------------------------

TOO_MUCH: dict[str, tuple[Command, int, str]] = {
    "little by little": (python(SLOWLY), 48 * MIB, "killed: it wanted more than its 48MiB of memory"),
    "in its children": (IN_CHILDREN, 64 * MIB, "killed: it wanted more than its 64MiB of memory"),
}


@pytest.mark.parametrize("case", TOO_MUCH)
async def test_who_wants_too_much_memory_is_ended_alone_and_told_so(run_context: RunContext, case: str) -> None:
    command, limit, expected = TOO_MUCH[case]
    beside = asyncio.create_task(outcome(run_context, "read _ < /dev/null; sleep 0.3; echo well"))
    result = await outcome(run_context, command, settings=limited(memory=limit), leftovers=LeftoverPolicy.KILL)
    assert (result.state, result.reason) == (AttemptState.FAILED, EndReason.MEMORY_LIMIT), (
        result, output(run_context, result))  # fmt: skip
    assert result.error == expected
    assert result.retryable
    assert (await beside).state is AttemptState.SUCCESS


async def test_who_stays_below_is_left_alone(run_context: RunContext) -> None:
    result = await outcome(run_context, python("x = b'x' * (8 * 2**20)"), settings=limited(memory=64 * MIB))
    assert result.state is AttemptState.SUCCESS
    assert result.usage is not None
    assert result.usage.limits_by == "process"


async def test_a_failure_below_the_limit_is_a_failure(run_context: RunContext) -> None:
    result = await outcome(run_context, "exit 3", settings=limited(memory=64 * MIB))
    assert (result.reason, result.exit_code) == (EndReason.EXIT_CODE, 3)


async def test_a_command_without_limits_says_nothing_of_them(run_context: RunContext) -> None:
    result = await outcome(run_context, "true", settings=ProcessSettings(umask="022"))
    assert result.usage is not None
    assert result.usage.limits_by == ""


FORKING = """
import os, time
children = []
try:
    while len(children) < 300:
        pid = os.fork()
        if not pid:
            time.sleep(20)
            os._exit(0)
        children.append(pid)
except OSError as problem:
    print(len(children), problem.errno, flush=True)
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
"""


@pytest.fixture(scope="module")
def users() -> Iterator[tuple[OtherUser, OtherUser]]:
    with two_users() as found:
        yield found


@needs_root
async def test_who_forks_without_end_is_refused_more(
    run_context: RunContext, users: tuple[OtherUser, OtherUser]
) -> None:
    """Another job of the same user, with as many processes as it may have, takes none of them away."""
    settings = ProcessSettings(user=users[0].name, limits=ResourceLimits(tasks=20))
    python3 = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    for _ in range(2):
        result = await outcome(run_context, (python3, "-I", "-S", "-c", FORKING), settings=settings)
        count, _, number = output(run_context, result).decode().strip().partition(" ")
        assert (number, 15 <= int(count) <= 20) == ("11", True), count


def test_memory_counts_children(run_context: RunContext) -> None:
    code = "import sys, time; x = b'x' * (30 * 2**20); print(1, flush=True); sys.stdin.read()"
    shell = f'{sys.executable} -I -S -c "{code}"; true'
    with subprocess.Popen(["/bin/sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert 30 * MIB <= memory_of(process.pid) <= 60 * MIB
        process.communicate(b"")
    assert memory_of(process.pid) == 0


# -- with a control group, of files that a test has written ---------------------------------------------------------

ALL = frozenset({"memory", "cpu", "pids", "io"})


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which what the kernel would have made is made by the first write."""

    def write(path: Path, text: str) -> None:
        if path.name == "cgroup.subtree_control":
            text = f"{path.read_text()} {text[1:]}" if path.exists() else text[1:]
        path.write_text(text)

    monkeypatch.setattr("chronex.run.control_groups._write", write)
    return tmp_path


def test_a_group_is_given_every_limit(parent: Path) -> None:
    groups = ControlGroups(parent)
    assert groups.controllers == ALL
    limits = ResourceLimits(memory=2_000_000_000, cpu=150, tasks=100, open_files=64)
    group = groups.make("attempt_1", limits)
    assert group is not None
    group.join(4711)
    written = {path.name: path.read_text() for path in (parent / "attempt_1.scope").iterdir()}
    assert written == {
        "memory.max": "2000000000",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "100",
        "cpu.max": "150000 100000",
        "cgroup.procs": "4711",
    }
    assert group.left_over(limits) == ResourceLimits()
    assert Confinement(limits, group).held_by == "cgroup, process"  # open files are a matter of each process
    assert Confinement(ResourceLimits(tasks=3), group).held_by == "cgroup"


def test_what_no_controller_holds_is_left_to_the_process(tmp_path: Path) -> None:
    group = ControlGroup(tmp_path, frozenset({"cpu"}))
    limits = ResourceLimits(memory=64 * MIB, cpu=50, tasks=9)
    assert group.left_over(limits) == ResourceLimits(memory=64 * MIB, tasks=9)
    confinement = Confinement(limits, group)
    assert confinement.held_by == "cgroup, process"
    assert confinement.of_process == ResourceLimits(memory=128 * MIB, tasks=9)


def test_what_a_group_took_is_what_all_of_it_took(tmp_path: Path) -> None:
    group, of_main = ControlGroup(tmp_path, ALL), Usage(5, 100, 1, 2)
    assert group.usage(of_main) == of_main  # the kernel tells nothing
    (tmp_path / "cpu.stat").write_text("usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n")
    assert group.usage(of_main) == Usage(1234, 100, 1, 2)
    assert group.usage(None) == Usage(1234)
    (tmp_path / "memory.peak").write_text("1048576\n")
    (tmp_path / "io.stat").write_text("8:0 rbytes=1024 wbytes=512 rios=1 wios=1\n8:16 rbytes=512 wbytes=0\n")
    assert group.usage(of_main) == Usage(1234, 1024, 3, 1)


KILLED = ExitVerdict(AttemptState.FAILED, EndReason.SIGNAL, True, "ended by SIGKILL", None, 9)


@pytest.mark.parametrize(
    ("events", "expected"), [("oom 1\noom_kill 1\n", "memory_limit"), ("oom_kill 0\n", "signal")]
)
def test_a_kill_by_the_group_is_told_as_such(tmp_path: Path, events: str, expected: str) -> None:
    """A command that somebody else kills has not hit its limit, however much it had."""
    (tmp_path / "memory.events").write_text(events)
    confinement = Confinement(ResourceLimits(memory=MIB), ControlGroup(tmp_path, ALL))
    found = confinement.verdict(KILLED, Usage(1, 5000), CommandRules(attempt_id="a"))
    assert found.reason == expected


@pytest.mark.parametrize(
    ("seen", "codes", "expected"),
    [
        (KILLED, (75,), (AttemptState.FAILED, EndReason.MEMORY_LIMIT, False)),
        (KILLED, (137,), (AttemptState.FAILED, EndReason.MEMORY_LIMIT, True)),
        # Its keeper had died, but its group was killed whole: that is no unknown end.
        (unknown_exit("gone"), None, (AttemptState.FAILED, EndReason.MEMORY_LIMIT, True)),
        (unknown_exit("gone"), (75,), (AttemptState.FAILED, EndReason.MEMORY_LIMIT, False)),
    ],
)
def test_it_is_tried_again_where_a_kill_is_a_reason_to(
    tmp_path: Path, seen: ExitVerdict, codes: tuple[int, ...] | None, expected: tuple[object, ...]
) -> None:
    (tmp_path / "memory.events").write_text("oom_kill 1\n")
    confinement = Confinement(ResourceLimits(memory=MIB), ControlGroup(tmp_path, ALL))
    found = confinement.verdict(seen, None, CommandRules(attempt_id="a", retry_codes=codes))
    assert found[:3] == expected
    assert (found.signal, found.error) == (9, "killed: it wanted more than its 1MiB of memory")


ENDED = ExitVerdict(AttemptState.FAILED, EndReason.EXIT_CODE, True, "exit code 1", 1)
WELL = ExitVerdict(AttemptState.SUCCESS, EndReason.EXITED, False, "", 0)
STOPPED = ExitVerdict(AttemptState.TIMEOUT, EndReason.TIMEOUT, True, "still running", None, 9)
PEAKS = {
    "above": (ENDED, Usage(1, 65 * 1024), "it wanted more than its 64MiB of memory"),
    "above, and killed by the system": (
        KILLED,
        Usage(1, 65 * 1024),
        "killed: it wanted more than its 64MiB of memory",
    ),
    "below": (ENDED, Usage(1, 63 * 1024), "exit code 1"),
    "not known": (ENDED, Usage(1), "exit code 1"),
    "nothing known": (ENDED, None, "exit code 1"),
    "above, and well": (WELL, Usage(1, 65 * 1024), ""),
    "above, and stopped": (STOPPED, Usage(1, 65 * 1024), "still running"),
}


@pytest.mark.parametrize("case", PEAKS)
def test_who_was_quicker_than_the_watch_is_known_by_its_peak(case: str) -> None:
    """A process that asks for far more than it may have is refused by the system, before anybody has looked."""
    verdict, usage, expected = PEAKS[case]
    confinement = Confinement(ResourceLimits(memory=64 * MIB), None)
    found = confinement.verdict(verdict, usage, CommandRules(attempt_id="a"))
    assert found.error == expected
    assert (found.reason is EndReason.MEMORY_LIMIT) == ("wanted" in expected)


DELEGATED: dict[str, tuple[dict[str, str], bytes | None, bool]] = {
    "delegated": ({"cgroup.type": "domain", "cgroup.procs": ""}, b"1", True),
    "not delegated": ({"cgroup.type": "domain", "cgroup.procs": ""}, None, False),
    "delegated no longer": ({"cgroup.type": "domain", "cgroup.procs": ""}, b"0", False),
    "with processes of its own": ({"cgroup.type": "domain", "cgroup.procs": "1\n"}, b"1", False),
    "the group of the machine": ({"cgroup.procs": ""}, b"1", False),
}


@pytest.mark.parametrize("case", DELEGATED)
def test_only_a_delegated_group_is_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """The scheduler itself is in a part of it, as systemd does it with DelegateSubgroup."""
    files, mark, expected = DELEGATED[case]
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def getxattr(path: Path, name: str) -> bytes:
        if mark is None or name != "user.delegate":
            raise OSError
        return mark

    monkeypatch.setattr(os, "getxattr", getxattr)
    assert delegated_parent(tmp_path / "scheduler") == (tmp_path if expected else None)
    assert delegated_parent(None) is None


# -- with a control group of the kernel -----------------------------------------------------------------------------

REAL = Path("/sys/fs/cgroup/unified" if Path("/sys/fs/cgroup/unified/cgroup.procs").exists() else "/sys/fs/cgroup")
IN_A_GROUP = """
import asyncio, json, os, sys
from pathlib import Path
from chronex.model.policies import ProcessSettings, ResourceLimits
from chronex.model import LeftoverPolicy
from chronex.run import LogDirectory, RunContext
from chronex.run.control_groups import control_groups
from tests.run.requests import outcome, output

parent = Path(sys.argv[1])
os.setxattr(parent, "trusted.delegate", b"1")
(parent / "scheduler" / "cgroup.procs").write_text(str(os.getpid()))
run_context = RunContext.of_this_process(LogDirectory(Path(sys.argv[2])))
settings = ProcessSettings(limits=ResourceLimits(tasks=50))
command = "grep ^0:: /proc/self/cgroup; setsid sh -c 'x=0; while [ $x -lt 20000 ]; do x=$((x+1)); done'"
result = asyncio.run(outcome(run_context, command, settings=settings))
stray = "grep ^0:: /proc/self/cgroup; env -i setsid sleep 100 > /dev/null 2>&1 & sleep 0.2"
killed = asyncio.run(outcome(run_context, stray, settings=settings, leftovers=LeftoverPolicy.KILL))
print(json.dumps({
    "where": output(run_context, result).decode().split("0::")[1].strip(), "attempt": result.state,
    "by": result.usage.limits_by, "cpu": result.usage.cpu_ms, "left": sorted(p.name for p in parent.glob("*.scope")),
    "killed": killed.state,
}))
"""


@needs_root
@pytest.mark.skipif(
    not os.access(REAL / "cgroup.procs", os.W_OK), reason="no control groups here: they are not tried"
)
def test_a_command_is_in_a_group_of_its_own_and_nothing_escapes_it(tmp_path: Path) -> None:
    """A process that left session, environment and parent is killed with the rest, and the group is gone."""
    parent = REAL / f"chronex-test-{os.getpid()}"
    try:
        (parent / "scheduler").mkdir(parents=True)
        done = subprocess.run(
            [sys.executable, "-c", IN_A_GROUP, str(parent), str(tmp_path / "logs")],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert seen["where"].startswith(f"/{parent.name}/attempt_")
        assert (seen["attempt"], seen["killed"]) == ("success", "success")
        assert seen["by"].startswith("cgroup")
        assert seen["cpu"] > 0
        assert len(seen["left"]) <= 1  # the last one may still be dying
        until(lambda: not (parent / "cgroup.events").read_text().startswith("populated 1"), "a group is left")
    finally:
        for group in (*parent.glob("*.scope"), parent / "scheduler", parent):
            if group.exists():
                group.rmdir()


LEFT = """
import asyncio, json, os, sys
from pathlib import Path
from chronex.model.policies import ProcessSettings, ResourceLimits
from chronex.run import LogDirectory, RunContext
from chronex.run.adopt import adopt_attempt
from chronex.run.control_groups import ControlGroups
from chronex.run.process import identity_of_child
from chronex.run.supervise import Hooks
from tests.run.requests import request

parent = Path(sys.argv[1])
os.setxattr(parent, "trusted.delegate", b"1")
(parent / "scheduler" / "cgroup.procs").write_text(str(os.getpid()))
run_context = RunContext.of_this_process(LogDirectory(Path(sys.argv[2])))
asked = request("sleep 100", settings=ProcessSettings(limits=ResourceLimits(tasks=50)))
groups = ControlGroups(parent)
sizes = []
for name in (asked.attempt_id, "never-joined", "stale"):
    groups.make(name, ResourceLimits(tasks=50))
pid = os.posix_spawn("/bin/sleep", ["sleep", "100"], {})
identity = identity_of_child(pid, 0, 1 << 60)
groups.find(asked.attempt_id).join(pid)
for now_ms in (0, 59_000, 60_000):
    groups.sweep(now_ms)
    sizes.append(len(list(parent.glob("*.scope"))))
os.kill(pid, 9)
os.waitpid(pid, 0)
result = asyncio.run(adopt_attempt(asked, identity, 1, "no.log", Hooks(), run_context))
print(json.dumps({
    "state": result.state, "by": result.usage and result.usage.limits_by, "sizes": sizes,
    "left": [path.name for path in parent.glob("*.scope")],
}))
"""


@needs_root
@pytest.mark.skipif(
    not os.access(REAL / "cgroup.procs", os.W_OK), reason="no control groups here: they are not tried"
)
def test_the_groups_that_a_killed_keeper_leaves_are_read_and_removed(tmp_path: Path) -> None:
    """By whoever adopts the attempt; and what nobody adopts, once it was empty for a minute."""
    parent = REAL / f"chronex-test-left-{os.getpid()}"
    try:
        (parent / "scheduler").mkdir(parents=True)
        done = subprocess.run(
            [sys.executable, "-c", LEFT, str(parent), str(tmp_path / "logs")],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert seen["sizes"] == [3, 3, 1], "the one with a process stays"
        assert (seen["state"], seen["by"], seen["left"]) == ("crashed", "cgroup, process", [])
    finally:
        for group in (*parent.glob("*.scope"), parent / "scheduler", parent):
            if group.exists():
                group.rmdir()
