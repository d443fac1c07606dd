"""The two system calls of Linux that Python has no function for: statfs and inotify.

On another system each says that it has nothing to give, and the caller does without.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_IN_MODIFY = 0x2
_IN_ATTRIB = 0x4
_IN_DELETE_SELF = 0x400
_IN_MOVE_SELF = 0x800

# struct statfs begins with f_type, a long, on every Linux architecture; 256 bytes hold all of them.
_STATFS_BYTES = 256


def file_system_magic(path: Path) -> int:
    """The type of the file system as statfs(2) gives it; 0 on another system or an error."""
    if sys.platform != "linux":
        return 0
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        return 0
    return int(ctypes.c_ulong.from_buffer(buffer).value) & 0xFFFFFFFF


def watch_file(path: Path) -> int:
    """An inotify descriptor that becomes readable when the file changes; -1 where the system has none to give.

    Raises FileNotFoundError when there is no such file. The file itself is not opened.
    """
    if sys.platform != "linux":
        return -1
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return -1
    mask = _IN_MODIFY | _IN_ATTRIB | _IN_DELETE_SELF | _IN_MOVE_SELF
    if libc.inotify_add_watch(descriptor, os.fsencode(path), mask) < 0:
        is_missing = ctypes.get_errno() == errno.ENOENT
        os.close(descriptor)
        if is_missing:
            raise FileNotFoundError(path)
        return -1
    return descriptor
