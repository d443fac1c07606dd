"""Processes: which one it really is, signals to its group, when it ends, and what it leaves running.

Pids are reused; boot, pid and start time together are not. Linux answers from /proc. Elsewhere (macOS) `ps` and
`sysctl` answer: the start time is then known to the second, so a pid that is reused within the second of its start
cannot be distinguished, and each question costs a process.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from chronex.clock import SYSTEM_CLOCK
from chronex.model import ProcessIdentity
from chronex.model.occurrence import Usage

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


def age_ms(identity: ProcessIdentity) -> int | None:
    """How long the process has been there, whatever clocks were set to; None where the system does not tell."""
    if not _HAS_PROC or 1000 % os.sysconf("SC_CLK_TCK"):
        return None
    before_ms = SYSTEM_CLOCK.boottime_ms()
    tick = _start_time_of_a_thread()
    # Between two readings, and not in one tick as below: a busy machine may let no two readings fall into one.
    if tick is None or not before_ms // _TICK_MS <= tick <= SYSTEM_CLOCK.boottime_ms() // _TICK_MS:
        return None
    return max(0, before_ms - identity.start_time * _TICK_MS)


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

    def read() -> None:
        with contextlib.suppress(OSError):  # out of descriptors
            seen.append(_status_from("/proc/thread-self/stat"))

    thread = threading.Thread(target=read)
    try:
        thread.start()
    except RuntimeError:  # the machine's processes are used up
        return None
    thread.join()
    return seen[0].start_time if seen and seen[0] is not None else None


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


def is_readable_within(descriptor: int, seconds: float) -> bool:
    """Whether something can be read, or the other end is closed, before so many seconds have passed.

    By poll: select knows the first 1,024 descriptors alone, and a program with an engine in it may have more.
    """
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(max(0, round(seconds * 1000))))


def _ask(*command: str) -> str:
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
    try:
        answer = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=5)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode("ascii", "replace").strip() if answer.returncode == 0 else ""


# Attempts watch thousands of short-lived descriptors on one event loop. `loop.add_reader` and `remove_reader` cost
# several times what the kernel takes for the same, and every attempt needs them twice. So one epoll object is the
# loop's only reader, and attempts enter theirs directly.
Callback = Callable[[], object]
_EVENTS_PER_TURN = 64


class DescriptorWatcher(Protocol):
    """Calls back as long as the descriptor is readable or its other end is closed."""

    def add(self, descriptor: int, callback: Callback) -> None: ...

    def remove(self, descriptor: int) -> None: ...


class EpollWatcher:
    """Does not know its loop, so that the loop can be forgotten and this with it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callback] = {}

    def fileno(self) -> int:
        return self._epoll.fileno()

    def add(self, descriptor: int, callback: Callback) -> None:
        self._epoll.register(descriptor, select.EPOLLIN)
        self._callbacks[descriptor] = callback

    def remove(self, descriptor: int) -> None:
        if self._callbacks.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def dispatch(self) -> None:
        for descriptor, _ in self._epoll.poll(0, _EVENTS_PER_TURN):
            callback = self._callbacks.get(descriptor)  # a callback before it may have removed it
            if callback is None:
                continue
            try:
                callback()
            except Exception as problem:
                context = {"message": "a watched descriptor's callback failed", "exception": problem}
                asyncio.get_running_loop().call_exception_handler(context)


class LoopWatcher:
    """The same by the loop itself, where the system has no epoll."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def add(self, descriptor: int, callback: Callback) -> None:
        self._loop.add_reader(descriptor, callback)

    def remove(self, descriptor: int) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(descriptor)


_watchers: WeakKeyDictionary[asyncio.AbstractEventLoop, EpollWatcher] = WeakKeyDictionary()


def watcher_of(loop: asyncio.AbstractEventLoop) -> DescriptorWatcher:
    """The loop's watcher, made at the first call."""
    if not hasattr(select, "epoll"):
        return LoopWatcher(loop)
    watcher = _watchers.get(loop)
    if watcher is None:
        watcher = _watchers[loop] = EpollWatcher()
        loop.add_reader(watcher.fileno(), watcher.dispatch)
    return watcher


_FIRST_POLL_S = 0.002
_SLOWEST_POLL_S = 0.1

OnExit = Callable[[int | None], None]


class _OwnPeak:
    """The most memory that this process ever had, in the system's own unit; it only grows."""

    def __init__(self) -> None:
        self._known = 0

    def is_below(self, peak: int) -> bool:
        """Asks the system only where what it said before does not decide: with threads that start processes, each
        question waits for them, and was a sixth of the work of a loop of short commands."""
        if peak > self._known:
            self._known = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak > self._known


_own_peak = _OwnPeak()


def usage_from(used: resource.struct_rusage) -> Usage:
    """As wait4 gives it: seconds, and KiB (bytes on macOS) for memory.

    A child begins with the peak of the process that started it, so one that is not above that is not known.
    """
    peak = used.ru_maxrss
    in_kib = peak // 1024 if sys.platform == "darwin" else peak
    cpu_ms = round((used.ru_utime + used.ru_stime) * 1000)
    return Usage(cpu_ms, in_kib if _own_peak.is_below(peak) else None, used.ru_inblock, used.ru_oublock)


class SupervisedProcess(Protocol):
    """The main process of an attempt: a child of ours, or one that a dead daemon left."""

    identity: ProcessIdentity
    unknown_because: str
    usage: Usage | None

    def watch(self, on_exit: OnExit) -> None: ...

    def has_ended(self) -> bool: ...

    @property
    def is_reaped(self) -> bool: ...

    def signal_group(self, number: int) -> bool: ...

    def group_is_alive(self) -> bool: ...

    def close(self) -> None: ...


class Child:
    """Knows when the process ends by its pidfd; where there is none, it polls."""

    __slots__ = ("_loop", "_on_exit", "_pidfd", "_reaped", "_watcher", "identity", "pid", "usage")

    unknown_because = "another part of this program took it"

    def __init__(self, loop: asyncio.AbstractEventLoop, identity: ProcessIdentity) -> None:
        self._loop = loop
        self._watcher = watcher_of(loop)
        self.identity = identity
        self.pid = pid = identity.pid
        self.usage: Usage | None = None
        self._reaped = False
        self._on_exit: OnExit | None = None
        try:
            self._pidfd = os.pidfd_open(pid)
        except (AttributeError, OSError):
            self._pidfd = -1

    def watch(self, on_exit: OnExit) -> None:
        """`on_exit` gets the wait status once, after the process was reaped; None where another took it."""
        self._on_exit = on_exit
        if self._pidfd >= 0:
            self._watcher.add(self._pidfd, self._reap)
        else:
            self._poll(_FIRST_POLL_S)

    @property
    def is_reaped(self) -> bool:
        return self._reaped

    def has_ended(self) -> bool:
        """Asked of the system, and nothing is taken from it: its status can still be waited for."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _poll(self, pause: float) -> None:
        if not self._reap():
            self._loop.call_later(pause, self._poll, min(pause * 2, _SLOWEST_POLL_S))

    def _reap(self) -> bool:
        status: int | None
        try:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
        except ChildProcessError:
            pid, status, used = self.pid, None, None
        if not pid:
            return False
        self.usage = None if used is None else usage_from(used)
        self._reaped = True
        if self._pidfd >= 0:
            self._watcher.remove(self._pidfd)
        if self._on_exit is not None:
            self._on_exit(status)
        return True

    def signal_group(self, number: int) -> bool:
        """Signal the child's group; never a stranger's, also when the child is long reaped."""
        if self._pidfd >= 0 and (not self._reaped or groups_outlive_their_leader()):
            return signal_group_of(self._pidfd, self.pid, number)
        return not self._reaped and kill_group(self.pid, number)

    def group_is_alive(self) -> bool:
        """A process of the group is left; the child itself counts until it is reaped."""
        if self._pidfd >= 0 and groups_outlive_their_leader():
            return signal_group_of(self._pidfd, self.pid, 0)
        return kill_group(self.pid, 0)  # signal 0 only asks

    def close(self) -> None:
        """Let go; a child that still runs is reaped all the same when it ends."""
        if self._reaped:
            self._release()
        else:
            self._on_exit = lambda _status: self._release()

    def _release(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


_ROUNDS = 40
_BETWEEN_ROUNDS_S = 0.02

Marks = frozenset[bytes]


def find_leftovers(main: ProcessIdentity, marks: Marks) -> tuple[ProcessIdentity, ...]:
    """Living processes of the main process's group or session, or with the attempt's marks in their environment.

    The last finds those that left for a session of their own. Reads every process: not for the event loop.
    Without /proc nothing is found.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return ()
    # While members live, the number of their group cannot be given to a new process. So another process that has
    # it now means that there are none, and that group and session of that number are a stranger's.
    now = status_of(main.pid)
    by_number = now is None or now.start_time == main.start_time
    found = []
    for pid in (int(name) for name in names if name.isdigit()):
        status = status_of(pid)
        if pid in (main.pid, os.getpid()) or status is None or status.dead:
            continue
        if (by_number and main.pid in (status.group, status.session)) or marks <= _environment_of(pid):
            found.append(ProcessIdentity(pid, boot_id(), status.start_time, status.group))
    return tuple(found)


def kill_leftovers(
    found: Iterable[ProcessIdentity], main: ProcessIdentity, marks: Marks
) -> tuple[tuple[ProcessIdentity, ...], int]:
    """Kill them, and what they start meanwhile, for about a second: all that were seen, and how many are gone."""
    seen: dict[ProcessIdentity, None] = {}
    current = tuple(found)
    for _ in range(_ROUNDS):
        if not current:
            break
        seen.update(dict.fromkeys(current))
        for identity in current:
            signal_process(identity, signal.SIGKILL)
        time.sleep(_BETWEEN_ROUNDS_S)
        current = find_leftovers(main, marks)
    return tuple(seen), sum(not is_alive(identity) for identity in seen)


def _environment_of(pid: int) -> Marks:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as source:
            return frozenset(source.read(256 * 1024).split(b"\0"))
    except OSError:
        return frozenset()
