"""A backup with the logs of attempts: one tar file that holds the store's data and, beside it, each log.

The lengths of the logs are noted when the data has been copied, and no log is copied beyond its length: of a command
that is still writing, the backup has what it had written by then. A reader takes nothing but these names, and only
plain files.
"""

from __future__ import annotations

import io
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from chronex.errors import BackupError
from chronex_store.directory_checks import DATA_FILE, FILE_MODE, open_private

LOGS = "logs"
_LOG_NAME = re.compile(r"attempt_[0-9a-f-]{36}(?:\.[2-9])?\.log", re.ASCII)
_MAGIC_AT, _MAGIC = 257, b"ustar"
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MOST_LOGS = 10_000_000


class LogLength(NamedTuple):
    name: str
    length: int


def log_lengths(directory: Path) -> list[LogLength]:
    """The logs that are there now, each with its length; none where there is no such directory."""
    try:
        with os.scandir(directory) as entries:
            found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries if _is_log(entry.name)]
    except FileNotFoundError:
        return []
    return [LogLength(name, about.st_size) for name, about in sorted(found) if stat.S_ISREG(about.st_mode)]


def _is_log(name: str) -> bool:
    return _LOG_NAME.fullmatch(name) is not None


def write_archive(file: Path, data: Path, directory: Path, lengths: list[LogLength]) -> int:
    """Write the new tar `file` from the copied `data` and the logs; how many logs it has. OSError as writing."""
    count = 0
    descriptor = open_private(file, os.O_WRONLY | os.O_EXCL)
    with os.fdopen(descriptor, "wb") as target:
        with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive, data.open("rb") as source:
            archive.addfile(_member(DATA_FILE, data.stat().st_size), source)
            for log in lengths:
                text = _read_log(directory / log.name, log.length)
                if text is not None:
                    archive.addfile(_member(f"{LOGS}/{log.name}", len(text)), io.BytesIO(text))
                    count += 1
        target.flush()
        os.fsync(target.fileno())
    return count


def _member(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, FILE_MODE
    return info


def _read_log(path: Path, length: int) -> bytes | None:
    """As much as it had; None where it has been removed meanwhile, because it became too old."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(length)


def is_archive(file: Path) -> bool:
    with file.open("rb") as source:
        source.seek(_MAGIC_AT)
        return source.read(len(_MAGIC)) == _MAGIC


@contextmanager
def opened_data(file: Path) -> Iterator[IO[bytes]]:
    """The store's data in a backup of either form. BackupError where a tar file is no backup."""
    if not is_archive(file):
        with file.open("rb") as plain:
            yield plain
        return
    with _opened(file) as archive:
        member = next((each for each in archive if each.name == DATA_FILE and each.isreg()), None)
        inside = archive.extractfile(member) if member is not None else None
        if inside is None:
            raise BackupError(f"{file} is a tar file and no backup of Chronex; nothing was changed")
        yield inside


def extract_logs(file: Path, directory: Path) -> int | None:
    """Put the logs of the backup into a new `directory`, and say how many; None where the backup has none."""
    if not is_archive(file):
        return None
    directory.mkdir(mode=0o700)
    count = 0
    with _opened(file) as archive:
        for member in archive:
            folder, _, name = member.name.partition("/")
            if member.name == DATA_FILE:
                continue
            if folder != LOGS or not _is_log(name) or not member.isreg() or count >= _MOST_LOGS:
                raise BackupError(f"{file} has a file that no backup has ({member.name[:80]!r}); nothing was changed")
            inside = archive.extractfile(member)
            assert inside is not None, "a plain file"
            with os.fdopen(open_private(directory / name, os.O_WRONLY | os.O_EXCL), "wb") as log:
                while chunk := inside.read(1 << 20):
                    log.write(chunk)
            count += 1
    return count


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, mode="r:") as archive:
            yield archive
    except tarfile.TarError as error:
        raise BackupError(f"{file} is damaged or no backup ({error}); nothing was changed") from error
