"""Files that root may act upon: nobody but root can change them, or what their path leads to.

Every directory and link on the way counts. Where only root can change any of them, nothing can change between the
look and the reading.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque

_MOST_LINKS = 40
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UntrustedPathError(PermissionError):
    """Another user could change what would be read; `problem` says who and where."""

    def __init__(self, problem: str, path: str) -> None:
        self.problem = problem
        super().__init__(errno.EPERM, problem, path)


def trust_problem(path: str, owner: int) -> str | None:
    """Who else than root and `owner` could change this file, or None. OSError where it cannot be looked at."""
    todo = deque(_parts(os.path.join(os.getcwd(), path)))  # ".." is where the system finds it, not the text
    here, links = "/", 0
    problem = _problem_with("/", os.lstat("/"), owner)
    while todo and problem is None:
        place = os.path.join(here, todo.popleft())
        found = os.lstat(place)
        if not stat.S_ISLNK(found.st_mode):
            here, problem = place, _problem_with(place, found, owner)
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if found.st_uid not in (0, owner):
            return f"the link {place} belongs to user {found.st_uid}"
        target = os.readlink(place)
        if target.startswith("/"):
            here = "/"
        todo.extendleft(reversed(_parts(target)))
    return problem


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _problem_with(place: str, found: os.stat_result, owner: int) -> str | None:
    if found.st_uid not in (0, owner):
        return f"{place} belongs to user {found.st_uid}"
    others = found.st_mode & _OTHERS_WRITE
    if found.st_gid == 0:  # the group of root
        others &= ~stat.S_IWGRP
    # In a directory such as /tmp a name belongs to who made it, and who that is was looked at, or will be.
    is_shared = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if others and not is_shared:
        who = "every user" if others & stat.S_IWOTH else f"group {found.st_gid}"
        return f"{place} can be written by {who}"
    return None


def read_trusted(path: str, most: int, owner: int | None = None) -> bytes:
    """The bytes of a plain file, at most `most`. A scheduler that is root reads only what nobody else can change.

    Raises UntrustedPathError, or OSError as reading does; a file that is longer is refused with EFBIG.
    """
    owner = os.geteuid() if owner is None else owner
    if owner == 0 and (problem := trust_problem(path, owner)) is not None:
        raise UntrustedPathError(problem, path)
    # A named pipe, or a device, must not hold us up.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        data = b""
        while len(data) <= most and (chunk := os.read(descriptor, most + 1 - len(data))):
            data += chunk
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"longer than {most} bytes", path)
    return data
