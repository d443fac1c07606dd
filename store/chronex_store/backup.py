"""`chronex backup` and `chronex restore`: one file that holds the whole store.

A backup is written beside a running daemon; a restore needs the store to itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import BackupError, StoreError
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.directory_checks import DATA_FILE, LOCK_FILE, directory_lock, open_private, prepare_directory
from chronex_store.doctor import check_pages, examine
from chronex_store.lmdb_environment import (
    BackupReport,
    LmdbEnvironment,
    open_environment,
    open_locked,
    refuse_second_open,
    sync_directory,
    write_snapshot,
)


def backup(path: Path, file: Path) -> BackupReport:
    """Write the store in `path` to `file`; safe beside a running daemon."""
    env = open_environment(path, create=False)  # of any format: a backup is what is there
    try:
        return write_snapshot(env, file.absolute())
    finally:
        env.close()


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored, and the file that keeps the state before it (`replaced`)."""

    store: str
    file: str
    records: int
    replaced: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def restore(file: Path, path: Path, clock: Clock = SYSTEM_CLOCK) -> RestoreReport:
    """Replace the store in `path` by the backup `file`, once the backup is found sound.

    Raises StoreInUseError beside a running daemon. The state before is kept as a backup in the same directory. In a
    process that has the store open, the next wait or update raises StoreReplacedError.
    """
    is_new = not path.exists()
    real = prepare_directory(path, create=True)
    try:
        refuse_second_open(real)
        with acquire_daemon_lock(real):
            staging = Path(tempfile.mkdtemp(prefix="restore-", dir=real))
            try:
                records = _copy_and_examine(file, staging)
                kept = _swap(real, staging / DATA_FILE, clock.wall_ms())
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except BackupError:
        if is_new:  # an empty directory would be taken for a store
            shutil.rmtree(real, ignore_errors=True)
        raise
    return RestoreReport(str(real), str(file), records, kept)


def _copy_and_examine(file: Path, staging: Path) -> int:
    """Make a private, synced copy and return how many records it has; BackupError when it is not a sound store."""
    if file.is_fifo():
        raise BackupError(f"{file} is a pipe; name the file of the backup")  # reading could wait for ever
    try:
        with file.open("rb") as source, open(open_private(staging / DATA_FILE, os.O_WRONLY), "wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BackupError(f"the backup {file} cannot be read: {why}; name a file that backup wrote") from error
    report = examine(staging, migrate=True)  # the copy is ours
    if report.worst is not None:
        raise BackupError(f"{file} is not a sound backup ({report.worst.message}); nothing was changed")
    return int(sum(report.figures["records"].values()))


def _swap(real: Path, new: Path, now_ms: int) -> str | None:
    data = real / DATA_FILE
    kept = real / f"before-restore-{now_ms}.backup" if data.exists() else None
    with directory_lock(real, exclusive=True), _old_store_locked(real, kept):
        # The lock file goes first: a process that has the old store open sees by it that the store was replaced.
        (real / LOCK_FILE).unlink(missing_ok=True)
        os.replace(new, data)
        sync_directory(real)
    return str(kept) if kept else None


@contextmanager
def _old_store_locked(real: Path, kept: Path | None) -> Iterator[None]:
    """Keep the old state as `kept`, and hold its writer lock, so that no commit goes to the old file meanwhile."""
    if kept is None:
        yield
        return
    old = _open_if_sound(real)
    if old is None:
        os.link(real / DATA_FILE, kept)
        yield
        return
    try:
        write_snapshot(old, kept)
        with old.lmdb.begin(write=True):
            yield
    finally:
        old.close()


def _open_if_sound(real: Path) -> LmdbEnvironment | None:
    """The old store, or None when it is damaged: its pages are checked first, because opening it could crash."""
    severities: list[str] = []
    check_pages(real / DATA_FILE, lambda severity, *_: severities.append(severity))
    try:
        return None if "error" in severities else open_locked(real)
    except StoreError:
        return None
