"""From a child's output to its log, without ever making the child or the event loop wait."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections import OrderedDict
from functools import partial

from chronex.run.logfile import BoundedLog
from chronex.run.redact import Redactor
from chronex.run.watcher import Watcher, watcher_of

_READ = 64 * 1024
# One flooding child gets this much of a turn of the loop (well under a millisecond); then the others are served.
_BUDGET = 128 * 1024
_WIDER_PIPE = 256 * 1024
_MAX_LEFT_RUNNING = 64

# Pipes that processes still hold after their attempt has ended; what comes out is thrown away.
_left_running: OrderedDict[int, Watcher] = OrderedDict()


def open_pipe() -> tuple[int, int]:
    """(our end, the child's end).

    Where /proc allows it the child's end can be read as well as written. Then it does not break when the daemon
    dies: a child that goes on writing is not killed by SIGPIPE, waits at worst once the pipe is full, and the
    next daemon can take our end's place through /proc/PID/fd/1.
    """
    if not hasattr(os, "pipe2"):
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        return ours, theirs
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        # Opened anew, so it has flags of its own: a child's output must not be non-blocking.
        both_ways = os.open(f"/proc/self/fd/{theirs}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        os.set_blocking(theirs, True)
        return ours, theirs
    os.close(theirs)
    return ours, both_ways


def reopen_pipe(pid: int) -> int | None:
    """Our end of the pipe of an adopted process; None where it no longer holds that pipe, or it may not be seen.

    Ours is the pipe that is open both ways. After `exec > >(tee file)` a process's output is a pipe as well, but
    tee's, and reading from that would steal.
    """
    for number in (1, 2):
        try:
            with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as source:
                flags = next(int(line.split()[1], 8) for line in source if line.startswith("flags:"))
            is_pipe = os.readlink(f"/proc/{pid}/fd/{number}").startswith("pipe:")
            if is_pipe and flags & os.O_ACCMODE == os.O_RDWR:
                return os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
    return None


class Capture:
    """Reads our end of the pipe while the loop runs. `ended` is done once no process holds the other end.

    A descriptor of -1 is no pipe at all: nothing will come.
    """

    __slots__ = ("_descriptor", "_log", "_redactor", "_watcher", "_widened", "ended")

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int, log: BoundedLog, secrets: tuple[bytes, ...]):
        self._watcher = watcher_of(loop)
        self._descriptor = descriptor
        self._log = log
        self._redactor = Redactor(secrets) if secrets else None
        self._widened = False
        self.ended: asyncio.Future[None] = loop.create_future()
        if descriptor < 0:
            self.ended.set_result(None)

    def start(self) -> None:
        if self._descriptor >= 0:
            self._watcher.add(self._descriptor, self.pump)

    def pump(self) -> None:
        """Take what is there, up to the budget of one turn."""
        left = _BUDGET
        while left > 0 and self._descriptor >= 0:
            try:
                data = os.read(self._descriptor, _READ)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._end()
                return
            self._log.write(self._redactor.feed(data) if self._redactor else data)
            if len(data) < _READ:
                return
            left -= len(data)
            self._widen()

    def _widen(self) -> None:
        """A child that fills the pipe gets a wider one, once; the system may refuse, and then it does not matter."""
        if not self._widened and hasattr(fcntl, "F_SETPIPE_SZ"):
            self._widened = True
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, _WIDER_PIPE)

    def _end(self) -> None:
        self._watcher.remove(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        if not self.ended.done():
            self.ended.set_result(None)

    def finish(self) -> None:
        """The log gets what was held back. Processes that still hold the pipe may go on writing, to nobody."""
        if self._redactor:
            held = self._redactor.finish()
            if held:
                self._log.write(held)
        if self._descriptor >= 0:
            self._watcher.remove(self._descriptor)
            _leave_running(self._watcher, self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        """Stop reading at once. Idempotent."""
        if self._descriptor >= 0:
            self._end()


def _leave_running(watcher: Watcher, descriptor: int) -> None:
    """A closed pipe would kill or stop a process that the policy keeps; so it is emptied as long as it is held."""
    if len(_left_running) >= _MAX_LEFT_RUNNING:
        oldest = next(iter(_left_running))
        _close_left_running(oldest)
    _left_running[descriptor] = watcher
    watcher.add(descriptor, partial(_throw_away, descriptor))


def _throw_away(descriptor: int) -> None:
    try:
        if os.read(descriptor, _BUDGET):
            return
    except BlockingIOError:
        return
    except OSError:
        pass
    _close_left_running(descriptor)


def _close_left_running(descriptor: int) -> None:
    _left_running.pop(descriptor).remove(descriptor)
    os.close(descriptor)
