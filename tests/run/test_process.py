"""A process is known for sure, or it is left alone; and one epoll for a loop, gone with the loop."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from chronex.clock import SYSTEM_CLOCK
from chronex.model import ProcessIdentity
from chronex.run import boot_id, identity_of, is_alive, process, signal_group
from chronex.run.process import signal_group_of, status_from_ps, status_of, usage_from, watcher_of
from tests.kit.waits import until


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def known(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    found = identity_of(process.pid)
    assert found is not None
    return found


def test_an_identity_is_boot_pid_and_start(stranger: subprocess.Popen[bytes]) -> None:
    found = known(stranger)
    assert (found.pid, found.boot_id, found.group) == (stranger.pid, boot_id(), stranger.pid)
    assert found == identity_of(stranger.pid)
    assert is_alive(found)


def test_a_zombie_is_known_but_not_alive() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    found = known(process)
    assert not is_alive(found)
    assert not signal_group(found, signal.SIGTERM)
    process.wait()
    assert identity_of(process.pid) is None
    assert not is_alive(found)


def test_a_name_full_of_parentheses_is_read_right() -> None:
    code = "import time; open('/proc/self/comm', 'w').write(') R 1 2 3 ('); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = status_of(process.pid)
        assert found is not None
        assert (found.group, found.session, found.dead) == (os.getpgrp(), os.getsid(0), False)
        process.kill()


@pytest.mark.parametrize("old_kernel", [False, True])
def test_a_signal_reaches_the_whole_group(monkeypatch: pytest.MonkeyPatch, old_kernel: bool) -> None:
    if old_kernel:
        monkeypatch.setattr(process, "_TO_THE_GROUP", 1 << 30)
    script = "sleep 60 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE) as leader:
        assert leader.stdout is not None
        member = identity_of(int(leader.stdout.readline()))
        assert member is not None
        assert signal_group(known(leader), signal.SIGKILL)
        assert leader.wait() == -signal.SIGKILL
        leader.stdout.read()  # its end: the member is about to be gone as well
        until(lambda: not is_alive(member), "the end of the member of the group")


FORGED = (
    [{"start_time": offset} for offset in (-10_000, -2, -1, 1, 2, 10_000, 2**40)]
    + [{"boot_id": other} for other in ("", "other", "00000000-0000-0000-0000-000000000000")]
    + [{"pid": pid} for pid in (0, -1, 1, 2**22, 2**31 - 1)]
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, 0])
@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_a_process_that_is_not_the_recorded_one_is_never_signalled(
    stranger: subprocess.Popen[bytes], forged: dict[str, int | str], number: int
) -> None:
    real = known(stranger)
    changes = dict(forged)
    if "start_time" in changes:
        changes["start_time"] = real.start_time + int(changes["start_time"])
    wrong = replace(real, **changes)
    assert not is_alive(wrong)
    assert not signal_group(wrong, number)
    assert stranger.poll() is None
    status = status_of(stranger.pid)
    assert status is not None
    assert is_alive(real)


def test_without_pidfds_the_same_questions_are_asked(
    stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    real = known(stranger)
    assert not signal_group(replace(real, start_time=real.start_time + 1), signal.SIGKILL)
    assert signal_group(real, signal.SIGKILL)
    assert stranger.wait() == -signal.SIGKILL


def test_a_group_is_still_known_after_its_leader_is_reaped() -> None:
    if not process.groups_outlive_their_leader():
        pytest.skip("needs Linux 6.9")
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo"], start_new_session=True, stdout=subprocess.PIPE) as leader:
        pidfd = os.pidfd_open(leader.pid)
        leader.wait()
        assert signal_group_of(pidfd, leader.pid, signal.SIGKILL)
        assert leader.stdout is not None
        leader.stdout.read()
        os.close(pidfd)


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_where_there_is_no_proc_ps_answers(stranger: subprocess.Popen[bytes]) -> None:
    status = status_from_ps(stranger.pid)
    assert status is not None
    assert status == status_from_ps(stranger.pid)
    assert (status.group, status.dead) == (stranger.pid, False)
    assert status_from_ps(2**22 + 1) is None


def test_the_boot_clock_tells_a_childs_start_time_as_the_system_does() -> None:
    for _ in range(40):
        before_ms = SYSTEM_CLOCK.boottime_ms()
        pid = os.posix_spawn("/bin/sleep", ["sleep", "30"], {}, setpgroup=0)
        after_ms = SYSTEM_CLOCK.boottime_ms()
        try:
            assert process.identity_of_child(pid, before_ms, after_ms) == identity_of(pid)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_where_the_readings_disagree_the_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(process, "identity_of", asked.append)
    process.identity_of_child(77, 1_009, 1_010)
    monkeypatch.setattr(process, "_start_times_are_boot_time", lambda: False)
    process.identity_of_child(78, 1_000, 1_001)
    assert asked == [77, 78]


@pytest.mark.parametrize("epoll", [True, False])
def test_a_callback_comes_as_long_as_there_is_something_to_read(epoll: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not epoll:
        monkeypatch.delattr(select, "epoll")

    async def main() -> list[bytes]:
        ours, theirs = os.pipe()
        seen: list[bytes] = []
        watcher = watcher_of(asyncio.get_running_loop())
        watcher.add(ours, lambda: seen.append(os.read(ours, 1)))
        os.write(theirs, b"ab")
        while len(seen) < 2:
            await asyncio.sleep(0)
        watcher.remove(ours)
        watcher.remove(ours)
        os.write(theirs, b"c")
        await asyncio.sleep(0)
        os.close(ours)
        os.close(theirs)
        return seen

    selector = asyncio.SelectorEventLoop if epoll else _loop_without_epoll
    with asyncio.Runner(loop_factory=selector) as runner:
        assert runner.run(main()) == [b"a", b"b"]
    gc.collect()


def _loop_without_epoll() -> asyncio.AbstractEventLoop:
    import selectors

    return asyncio.SelectorEventLoop(selectors.PollSelector())


def test_a_failing_callback_is_told_and_the_others_go_on() -> None:
    async def main() -> list[str]:
        reported: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(repr(context["exception"])))
        ours, theirs = os.pipe()
        os.write(theirs, b"x")

        def fail() -> None:
            watcher_of(loop).remove(ours)
            raise ValueError("no")

        watcher_of(loop).add(ours, fail)
        while not reported:
            await asyncio.sleep(0)
        os.close(ours)
        os.close(theirs)
        return reported

    assert asyncio.run(main()) == ["ValueError('no')"]


def test_the_system_is_asked_for_our_own_peak_only_where_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside threads that start processes the question waits for them, and the whole loop with it."""
    asked: list[int] = []
    ask = resource.getrusage

    def counted(who: int) -> resource.struct_rusage:
        asked.append(who)
        return ask(who)

    monkeypatch.setattr(resource, "getrusage", counted)
    ours = ask(resource.RUSAGE_SELF).ru_maxrss

    def peak_of(size: int) -> int | None:
        return usage_from(resource.struct_rusage((0.0, 0.0, size, *[0] * 13))).peak_kib

    assert peak_of(8 * ours) is not None
    known = len(asked)
    assert [peak_of(ours // 2), peak_of(ours // 3)] == [None, None]
    assert len(asked) == known
    assert peak_of(8 * ours) is not None, "we may have grown since"
    assert len(asked) == known + 1
