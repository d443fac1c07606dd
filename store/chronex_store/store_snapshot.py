"""A copy of the whole store in one file. Backups, restores and migrations all begin with one."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lmdb

from chronex.errors import BackupError
from chronex_store.directory_checks import FILE_MODE
from chronex_store.lmdb_environment import LmdbEnvironment


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was written where."""

    file: str
    size: int
    store: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def write_snapshot(env: LmdbEnvironment, file: Path) -> BackupReport:
    """Write a compact copy of what is committed now.

    The file is private, durable before it gets its name, and never replaces another.
    """
    if file.exists():
        raise BackupError(f"{file} exists; name a new file, a backup is never overwritten")
    part = file.with_name(file.name + ".part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            os.fchmod(descriptor, FILE_MODE)
            env.lmdb.copyfd(descriptor, compact=True)
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        os.rename(part, file)
        sync_directory(file.parent)
    except (OSError, lmdb.Error) as error:
        part.unlink(missing_ok=True)
        raise BackupError(f"the backup {file} could not be written: {_reason(error)}") from error
    return BackupReport(str(file), size, str(env.path))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror.lower()}; choose another file"
    return str(error)


def sync_directory(path: Path) -> None:
    """Make the names of new and renamed files durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
