"""Noticing a commit of any process without asking again and again.

LMDB ends every commit with a write to the meta page of data.mdb, and inotify reports that write after it has
taken effect. So a sleeping reader costs nothing, a writer does nothing for it, and no extra file exists.
Watching never opens data.mdb, which matters: closing it again would drop LMDB's locks of this process.
Without inotify (another system, or its instances used up) a reader asks every 20 ms.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import sys
from pathlib import Path

POLL_SECONDS = 0.02
_MASK = 0x2 | 0x4 | 0x400 | 0x800  # IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF


class Watcher:
    """A descriptor that becomes readable when the file changes; -1 where the system has none to give."""

    def __init__(self, path: Path) -> None:
        self.descriptor = _inotify(path)

    def sleep(self, seconds: float, alarm: int) -> None:
        """Until the file changes, `alarm` becomes readable, or the time is over."""
        poll = select.poll()
        poll.register(alarm, select.POLLIN)
        if self.descriptor >= 0:
            poll.register(self.descriptor, select.POLLIN)
        else:
            seconds = min(seconds, POLL_SECONDS)
        poll.poll(max(seconds, 0.0) * 1000)

    def drain(self) -> None:
        if self.descriptor >= 0:
            try:
                os.read(self.descriptor, 65536)
            except BlockingIOError:
                return

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _inotify(path: Path) -> int:
    if sys.platform != "linux":
        return -1
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return -1
    if libc.inotify_add_watch(descriptor, os.fsencode(path), _MASK) < 0:
        missing = ctypes.get_errno() == errno.ENOENT
        os.close(descriptor)
        if missing:
            raise FileNotFoundError(path)
        return -1
    return descriptor
