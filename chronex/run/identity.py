"""Which process is it really? Pids are reused; boot, pid and start time together are not.

Linux answers from /proc. Elsewhere (macOS) `ps` and `sysctl` answer: the start time is then known to the second,
so a pid that is reused within the second of its start cannot be distinguished, and each question costs a process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import threading
import zlib
from functools import lru_cache
from typing import NamedTuple

from chronex.clock import SYSTEM_CLOCK
from chronex.model import ProcessIdentity

_HAS_PROC = os.path.exists("/proc/self/stat")
_TICK_MS = max(1, 1000 // os.sysconf("SC_CLK_TCK"))
# signal.pidfd_send_signal hands its flags to the kernel. This one (Linux 6.9) means "the group that this process
# leads", and keeps meaning that group after its leader has been reaped, when a number could already be a stranger's.
_TO_THE_GROUP = 1 << 2
_DEAD_STATES = b"ZXx"


class ProcessStatus(NamedTuple):
    """What the system says of a pid at this moment."""

    dead: bool
    group: int
    session: int
    start_time: int


@lru_cache(maxsize=1)
def boot_id() -> str:
    """One value for as long as the machine is up."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            return source.read().strip()
    except OSError:
        return _ask("sysctl", "-n", "kern.bootsessionuuid") or "unknown-boot"


def identity_of(pid: int) -> ProcessIdentity | None:
    """The identity of the process that has this pid now (also of a zombie); None where there is none."""
    status = status_of(pid)
    if status is None:
        return None
    return ProcessIdentity(pid=pid, boot_id=boot_id(), start_time=status.start_time, group=status.group)


def identity_of_child(pid: int, before_ms: int, after_ms: int) -> ProcessIdentity | None:
    """The identity of a child that leads its group and was started between two readings of the boot clock.

    The system counts start times in ticks of that clock, hundredths of a second. Mostly both readings fall into one
    tick, which then is the start time; reading it from /proc costs as much as a third of the start.
    """
    tick = before_ms // _TICK_MS
    if tick != after_ms // _TICK_MS or not _start_times_are_boot_time():
        return identity_of(pid)
    return ProcessIdentity(pid=pid, boot_id=boot_id(), start_time=tick, group=pid)


@lru_cache(maxsize=1)
def _start_times_are_boot_time() -> bool:
    """Asked of a thread, which has a start time as well; a clock that libfaketime moves is not the system's."""
    if not _HAS_PROC or 1000 % os.sysconf("SC_CLK_TCK"):
        return False
    for _ in range(5):
        before_ms = SYSTEM_CLOCK.boottime_ms()
        seen = _start_time_of_a_thread()
        if before_ms // _TICK_MS == SYSTEM_CLOCK.boottime_ms() // _TICK_MS:
            return seen == before_ms // _TICK_MS
    return False


def _start_time_of_a_thread() -> int | None:
    seen: list[ProcessStatus | None] = []
    path = "/proc/thread-self/stat"
    thread = threading.Thread(target=lambda: seen.append(_status_from(path)))
    thread.start()
    thread.join()
    return seen[0].start_time if seen[0] is not None else None


def is_alive(identity: ProcessIdentity) -> bool:
    """The very process still runs: same boot, same pid, same start, and not a zombie."""
    status = _status_if_same(identity)
    return status is not None and not status.dead


def signal_group(identity: ProcessIdentity, number: int) -> bool:
    """Signal the group that this process leads; False, and no process is signalled, where it is not that process.

    A process that does not lead its group is signalled alone. The pidfd is opened before the identity is
    compared: what the pidfd names cannot change any more, so what was compared is what is signalled.
    """
    return _signal_same(identity, number, to_the_group=identity.group == identity.pid)


def signal_process(identity: ProcessIdentity, number: int) -> bool:
    """Signal this process alone; False, and no process is signalled, where it is not that process."""
    return _signal_same(identity, number, to_the_group=False)


def _signal_same(identity: ProcessIdentity, number: int, *, to_the_group: bool) -> bool:
    # 0 and -1 would mean "my own group" and "everybody" to kill(2), and 1 is the init process.
    if identity.pid <= 1:
        return False
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):
        return _signal_without_pidfd(identity, number, to_the_group=to_the_group)
    try:
        status = _status_if_same(identity)
        if status is None or status.dead:
            return False
        if to_the_group and status.group == identity.pid:
            return signal_group_of(pidfd, identity.pid, number)
        signal.pidfd_send_signal(pidfd, number)
        return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(pidfd)


def signal_group_of(pidfd: int, pid: int, number: int) -> bool:
    """Signal the group led by the process behind `pidfd`; False where the group is empty.

    Kernels before 6.9 know groups by number only, so the caller must know that `pid` is not reaped yet.
    """
    try:
        signal.pidfd_send_signal(pidfd, number, None, _TO_THE_GROUP)
        return True
    except ProcessLookupError:
        return False
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            return False
    return kill_group(pid, number)


@lru_cache(maxsize=1)
def groups_outlive_their_leader() -> bool:
    """The kernel can signal a group through its leader's pidfd, also once the leader is reaped."""
    try:
        pidfd = os.pidfd_open(os.getpgrp())
    except (AttributeError, OSError):
        return False
    try:
        signal.pidfd_send_signal(pidfd, 0, None, _TO_THE_GROUP)
    except OSError as problem:
        return problem.errno != errno.EINVAL
    finally:
        os.close(pidfd)
    return True


def kill_group(pid: int, number: int) -> bool:
    """killpg for a leader that is known not to be reaped; False where there was no such group."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal_without_pidfd(identity: ProcessIdentity, number: int, *, to_the_group: bool) -> bool:
    """The race between check and signal stays open here, as far as a pid can be reused within microseconds."""
    if not is_alive(identity):
        return False
    if to_the_group:
        return kill_group(identity.pid, number)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(identity.pid, number)
        return True
    return False


def _status_if_same(identity: ProcessIdentity) -> ProcessStatus | None:
    if identity.boot_id != boot_id():
        return None
    status = status_of(identity.pid)
    return status if status is not None and status.start_time == identity.start_time else None


def status_of(pid: int) -> ProcessStatus | None:
    """What the system says of `pid` now; None where there is no such process, or it may not be seen."""
    if pid <= 0:
        return None
    return _status_from(f"/proc/{pid}/stat") if _HAS_PROC else status_from_ps(pid)


def _status_from(path: str) -> ProcessStatus | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    try:
        line = os.read(descriptor, 4096)
    except ProcessLookupError:
        return None
    finally:
        os.close(descriptor)
    # The name in parentheses may hold anything, also ") R 1 2 3"; only the last parenthesis closes it.
    fields = line[line.rindex(b")") + 2 :].split(None, 20)
    return ProcessStatus(fields[0] in _DEAD_STATES, int(fields[2]), int(fields[3]), int(fields[19]))


def status_from_ps(pid: int) -> ProcessStatus | None:
    """The same by `ps`, for systems without /proc: state, group, and a checksum of the start date as start time."""
    words = _ask("ps", "-o", "stat=,pgid=,lstart=", "-p", str(pid)).split()
    if len(words) < 3:
        return None
    start = zlib.crc32(" ".join(words[2:]).encode())
    return ProcessStatus(words[0].startswith("Z"), int(words[1]), 0, start)


def _ask(*command: str) -> str:
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
    try:
        answer = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=5)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode("ascii", "replace").strip() if answer.returncode == 0 else ""
