"""The dashboard of a forked `chronex run`: a child that waits, with its imports done, until the daemon wants one.

The daemon starts its dashboard as a whole new process, which imports for a second of processor time. A process that was
forked for a test has these modules already, but has threads when it wants the dashboard, and only a process without
threads can be forked safely. So the children are made at the beginning, and begin when they are told to.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

from chronex.cli import dashboard_process

_PR_SET_PDEATHSIG = 1
Begin = Callable[[list[str]], NoReturn]


def wants_dashboard(arguments: Sequence[str]) -> bool:
    """Is it a daemon that will show itself?"""
    return "run" in arguments[:3] and "--headless" not in arguments and os.isatty(0) and os.isatty(1)


class WaitingDashboard(subprocess.Popen[bytes]):
    """In place of the process that a daemon starts: one of the children, or a whole start when they are used up."""

    waiting: list[tuple[int, socket.socket]]

    def __init__(self, command: list[str], **options: Any) -> None:
        self._arguments, self._options = command[command.index("dashboard") :], options
        super().__init__(command, **options)

    def _execute_child(self, *arguments: Any) -> None:
        if not self.waiting:
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        self.pid, line = self.waiting.pop(0)
        environment = self._options["env"]
        told = {"arguments": self._arguments, "environment": dict(os.environ if environment is None else environment)}
        with line:
            socket.send_fds(line, [json.dumps(told).encode()], self._options["pass_fds"])
        self._child_created = True


def prepare_dashboards(begin: Begin, number: int = 2) -> None:
    """Two, because some tests open the dashboard again."""
    WaitingDashboard.waiting = [_child(begin) for _ in range(number)]
    own = SimpleNamespace(Popen=WaitingDashboard, TimeoutExpired=subprocess.TimeoutExpired)
    vars(dashboard_process)["subprocess"] = own


def _child(begin: Begin) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ours.close()
        _wait_for_orders(theirs, parent, begin)
    theirs.close()
    return child, ours


def _wait_for_orders(theirs: socket.socket, parent: int, begin: Begin) -> NoReturn:
    _end_with(parent, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    text, received, _, _ = socket.recv_fds(theirs, 1 << 20, 1)
    theirs.close()
    if not text:
        os._exit(0)
    _end_with(parent, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    told = json.loads(text)
    os.dup2(received[0], int(told["arguments"][1]), inheritable=False)  # the number is one of its arguments
    os.environ.clear()
    os.environ.update(told["environment"])
    begin(told["arguments"])


def _end_with(parent: int, number: int) -> None:
    """A daemon that is killed leaves no children that wait."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if number and os.getppid() != parent:
        os._exit(0)
