"""The files of a job directory: which they are, whether they may be read, and their texts."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from chronex.jobfile.parsing import MAX_BYTES
from chronex.text.trusted_paths import trust_problem

# Without O_NONBLOCK, opening a named pipe would wait for its other end.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_MOST_FILES = 1_000_000
# All texts of a directory are in memory together.
MOST_BYTES_TOGETHER = 64 * MAX_BYTES


class DirectoryProblem(Exception):  # noqa: N818  what is told of it is a problem, and it is caught by its caller
    """Why a directory, or a file in it, is not read."""

    def __init__(self, path: Path | str, message: str, advice: str) -> None:
        self.path, self.message, self.advice = path, message, advice
        super().__init__(message)


class DirectoryFile(NamedTuple):
    """`text` may be one byte longer than a job file may be, by which the reader sees that it is too long.

    Of a hundred thousand files paths as text take a tenth of the time that values of pathlib take.
    """

    path: str
    text: bytes


def is_job_file_name(name: str) -> bool:
    """Names that begin with a dot are those of editors and of files that are being written."""
    return name.endswith(".toml") and not name.startswith(".")


def file_names(directory: Path) -> list[str]:
    return sorted(_listed(directory))


def _listed(directory: Path) -> dict[str, bool]:
    """The names of its job files, and whether each is a link."""
    with os.scandir(directory) as entries:
        return {entry.name: entry.is_symlink() for entry in entries if is_job_file_name(entry.name)}


def read_directory(directory: Path) -> list[DirectoryFile]:
    """Its job files by name. DirectoryProblem where another user could have a say in them; OSError as reading."""
    _check_directory(directory)
    names = _listed(directory)
    if len(names) > _MOST_FILES:
        raise DirectoryProblem(directory, f"has more than {_MOST_FILES} job files", "join some of them")
    found: list[DirectoryFile] = []
    room = MOST_BYTES_TOGETHER
    for name in sorted(names):
        path = f"{directory}/{name}"
        found.append(DirectoryFile(path, _read(path, is_link=names[name])))
        room -= len(found[-1].text)
        if room < 0:
            most = MOST_BYTES_TOGETHER >> 20
            raise DirectoryProblem(directory, f"has more than {most} MiB of job files", "make two directories of it")
    return found


def _check_directory(directory: Path) -> None:
    """Who can add a file to it runs commands in the name of who applies it."""
    found, own = directory.stat(), os.geteuid()
    if own == 0 and (problem := trust_problem(str(directory), 0)) is not None:
        advice = "keep it where only root can write, such as /etc/chronex"
        raise DirectoryProblem(directory, f"is not read by root: {problem}, who could run commands as root", advice)
    if found.st_uid not in (own, 0):
        who = f"belongs to user {found.st_uid}, who could run commands as you ({own})"
        raise DirectoryProblem(directory, who, f"make it yours with: chown {own} {directory}")
    if found.st_mode & stat.S_IWOTH:
        who = "can be written by every user of this machine, who could run commands as you"
        raise DirectoryProblem(directory, who, f"run: chmod o-w {directory}")


def _read(path: str, *, is_link: bool) -> bytes:
    """The directory has been looked at, so a plain file in it needs a look at itself alone; a link leads anywhere."""
    own = os.geteuid()
    if is_link and own == 0 and (problem := trust_problem(path, 0)) is not None:
        raise DirectoryProblem(path, f"is not read by root: {problem}", "put the file itself into the directory")
    descriptor = os.open(path, _READ if is_link else _READ | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise DirectoryProblem(path, "is not a regular file", "remove it, or give it another ending than .toml")
        if found.st_uid not in (own, 0):
            who = f"belongs to user {found.st_uid}, who could run commands as you ({own})"
            raise DirectoryProblem(path, who, f"make it yours with: chown {own} {path}")
        others = stat.S_IWOTH | (stat.S_IWGRP if own == 0 and found.st_gid != 0 else 0)
        if found.st_mode & others:
            who = "can be written by other users, who could run commands as you"
            raise DirectoryProblem(path, who, f"run: chmod go-w {path}")
        return _whole(descriptor, found.st_size)
    finally:
        os.close(descriptor)


def _whole(descriptor: int, size: int) -> bytes:
    """The text, up to one byte more than is read of a file."""
    parts: list[bytes] = []
    room = MAX_BYTES + 1
    while room > 0 and (part := os.read(descriptor, min(size + 1, room))):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)
