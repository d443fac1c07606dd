"""Files that are written whole or not at all.

The new content goes into a new file beside the old one, which takes its place at the end. A reader never sees half a
file, a full disk leaves the old one as it was, and a symbolic link is replaced, not followed. A device or a pipe is
never replaced: root would put a plain file in the place of /dev/null, for everybody.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

_OWN_FILE = 0o600
_OWN_DIRECTORY = 0o700
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write_private_file(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a file that only its owner may read. Raises FileExistsError where there is one, unless `replace`, and
    OSError where what is there is no file."""
    if replace:
        _write_and_rename(path, content, lambda descriptor: os.fchmod(descriptor, _OWN_FILE))
    else:
        _write_new(path, content, lambda descriptor: os.fchmod(descriptor, _OWN_FILE))


def replace_file(path: Path, content: bytes) -> None:
    """Replace an existing file; the new one has its mode and, where the system allows it, its owner."""
    old = path.stat()

    def take_over(descriptor: int) -> None:
        os.fchmod(descriptor, old.st_mode & 0o7777)
        with suppress(OSError):
            os.fchown(descriptor, old.st_uid, old.st_gid)

    _write_and_rename(path, content, take_over)


def make_private_directories(directory: Path) -> None:
    """Make the missing directories of a path, closed to others whatever the umask is."""
    if os.path.isdir(directory):
        return
    make_private_directories(directory.parent)
    try:
        directory.mkdir(_OWN_DIRECTORY)
    except FileExistsError:
        return  # another program made it just now; if it is not a directory, writing into it fails
    directory.chmod(_OWN_DIRECTORY)


def _write_and_rename(path: Path, content: bytes, set_rights: Callable[[int], None]) -> None:
    _refuse_unless_file(path)
    new = path.with_name(f".{path.name[:100]}.{token_hex(6)}")
    _write_new(new, content, set_rights)
    try:
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _refuse_unless_file(path: Path) -> None:
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def _write_new(path: Path, content: bytes, set_rights: Callable[[int], None]) -> None:
    """Create the file; it is closed to others until `set_rights` opens it, and removed if writing fails."""
    descriptor = os.open(path, _NEW, _OWN_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            set_rights(descriptor)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
