"""The first process of a container: it starts the scheduler, hands signals on to it, and reaps what nobody waits for.

Processes whose parent has ended become children of process 1, and stay as zombies until it waits for them. The
scheduler waits for its own children only, and waiting for any other from within it could take an end away from
whoever watches that process. So the first process does nothing else, as an init does, and the scheduler is its child.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterable

_HANDED_ON = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
    signal.SIGCONT,
)  # fmt: skip
_FROM_THE_KERNEL = 128  # SI_KERNEL: a key at the terminal, which the scheduler has got as well
_PR_SET_CHILD_SUBREAPER = 36


def is_first_process() -> bool:
    """Process 1, or what the starter of the one-file program runs where that starter is process 1."""
    if os.getpid() == 1:
        return True
    if os.getppid() != 1 or not getattr(sys, "frozen", False):
        return False
    try:
        return os.path.samefile("/proc/1/exe", sys.executable)
    except OSError:
        return False


def leave_first_process() -> None:
    """Go on as a child where this is the first process, which stays behind as its init; nothing otherwise.

    To be called before there are threads: only the calling one goes on in a child.
    """
    if sys.platform != "linux" or not is_first_process():
        return
    if os.getpid() != 1:
        _adopt_orphans()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*_HANDED_ON, signal.SIGCHLD))
    scheduler = os.fork()
    if scheduler == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    os._exit(_serve(scheduler))


def _adopt_orphans() -> None:
    """Orphans come to the starter otherwise, which waits for one process only."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _serve(scheduler: int) -> int:
    """Until the scheduler ends; its exit code, 128 and the number for a signal, as a shell has it."""
    while True:
        received = signal.sigwaitinfo((*_HANDED_ON, signal.SIGCHLD))
        if received.si_signo == signal.SIGCHLD:
            code = end_of(scheduler, reaped())
            if code is not None:
                return code
        elif received.si_code != _FROM_THE_KERNEL:
            os.kill(scheduler, received.si_signo)


def reaped() -> Iterable[tuple[int, int]]:
    """Every child that has ended, with its status; one signal may stand for several."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def end_of(scheduler: int, ended: Iterable[tuple[int, int]]) -> int | None:
    code = None
    for pid, status in ended:
        if pid == scheduler:
            found = os.waitstatus_to_exitcode(status)
            code = found if found >= 0 else 128 - found
    return code
