"""The keeper's file of ends: written before anybody is told, so that an end outlives the keeper too.

It is not synced: the page cache outlives every process, and when the machine dies all of its commands die with it.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from chronex.keeper.messages import Ended, FrameTooLongError, Opened, frame, take_frames

ENDS_NAME = "ends"
# Why a file that is there cannot be looked at for a while: no descriptors, or no memory.
PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_NEW = "ends.new"
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
# With so many bytes in it, and three quarters of them out of date, it is written anew.
_REWRITTEN_FROM = 256 * 1024


class EndsFile:
    """What counts of it: the commands that run, and the ends that no scheduler has recorded."""

    def __init__(self, directory: int) -> None:
        self._directory = directory
        self._descriptor = os.open(ENDS_NAME, _FLAGS, 0o600, dir_fd=directory)
        self._size = 0
        self._counts: dict[str, bytes] = {}
        self._unwritten: dict[str, bytes] = {}  # the last word on each; nothing of what is on record already
        self.ends: dict[str, Ended] = {}

    @property
    def is_behind(self) -> bool:
        """Something could not be written: the disk is full."""
        return bool(self._unwritten)

    def opened(self, message: Opened) -> None:
        self.ends.pop(message.attempt_id, None)
        self._write(message.attempt_id, frame(message))

    def ended(self, message: Ended) -> None:
        self.ends[message.attempt_id] = message
        self._write(message.attempt_id, frame(message))

    def recorded(self, attempt_id: str) -> None:
        """Forget it; a file that mostly holds what no longer counts is written anew."""
        if self.ends.pop(attempt_id, None) is None:
            return
        del self._counts[attempt_id]
        self._unwritten.pop(attempt_id, None)
        if self._size > _REWRITTEN_FROM and self._size > 4 * sum(map(len, self._counts.values())):
            self._rewrite()

    def write_rest(self) -> None:
        """Try again what the disk did not take."""
        while self._unwritten and self._append(next(iter(self._unwritten.values()))):
            del self._unwritten[next(iter(self._unwritten))]

    def _write(self, attempt_id: str, data: bytes) -> None:
        self._counts[attempt_id] = data
        self.write_rest()
        if self._unwritten or not self._append(data):
            self._unwritten[attempt_id] = data

    def _append(self, data: bytes) -> bool:
        """All of it, or nothing: half a frame would hide those behind it."""
        try:
            written = os.write(self._descriptor, data)
        except OSError:
            return False
        if written == len(data):
            self._size += written
            return True
        os.ftruncate(self._descriptor, self._size)
        return False

    def _rewrite(self) -> None:
        """Into a new file that takes the place of the old one: a keeper that is killed here loses nothing."""
        kept = b"".join(self._counts.values())
        try:
            descriptor = os.open(_NEW, _FLAGS | os.O_TRUNC, 0o600, dir_fd=self._directory)
        except OSError:
            return
        try:
            if os.write(descriptor, kept) == len(kept):
                os.rename(_NEW, ENDS_NAME, src_dir_fd=self._directory, dst_dir_fd=self._directory)
                descriptor, self._descriptor = self._descriptor, descriptor
                self._size, self._unwritten = len(kept), {}
        except OSError:
            return
        finally:
            os.close(descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def read_ends(path: Path) -> dict[str, Opened | Ended]:
    """The last word on each attempt; nothing where the file is not there or is no such file.

    OSError where the system cannot read now what it may be able to read later.
    """
    try:
        taken = take_frames((path / ENDS_NAME).read_bytes())
    except FrameTooLongError:
        return {}
    except OSError as problem:
        if problem.errno in PASSING:
            raise
        return {}
    return {one.attempt_id: one for one in taken.messages if isinstance(one, Opened | Ended)}
