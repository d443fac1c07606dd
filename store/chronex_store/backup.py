"""One file that holds the whole store, written while others go on, restored with the store to oneself."""

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
from chronex_store.checks import check_structure
from chronex_store.copying import BackupReport, sync_directory, write_backup
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.doctor import examine
from chronex_store.environment import Environment, open_unheld, refuse_second_open
from chronex_store.lmdb_store import LmdbStore
from chronex_store.places import DATA_FILE, LOCK_FILE, directory_held, open_private, prepare_directory


def backup(path: Path, file: Path) -> BackupReport:
    """Write the store in `path` to `file`; safe beside a running daemon."""
    with LmdbStore.open(path, create=False) as store:
        return write_backup(store.environment(), file.absolute())


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What stands now, and where the state before it went."""

    store: str
    file: str
    records: int
    replaced: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def restore(file: Path, path: Path, clock: Clock = SYSTEM_CLOCK) -> RestoreReport:
    """Put the backup `file` in the place of the store in `path`, once it is found sound.

    Never over a live daemon (StoreInUseError). What was there before stays beside it as a backup. Others who
    have the store open are told to open it again by their next wait or update.
    """
    is_new = not path.exists()
    real = prepare_directory(path, create=True)
    try:
        refuse_second_open(real)
        with acquire_daemon_lock(real):
            waiting_room = Path(tempfile.mkdtemp(prefix="restore-", dir=real))
            try:
                records = _bring_in(file, waiting_room)
                kept = _swap(real, waiting_room / DATA_FILE, clock.wall_ms())
            finally:
                shutil.rmtree(waiting_room, ignore_errors=True)
    except BackupError:
        if is_new:  # a place that was made for nothing would be taken for a store
            shutil.rmtree(real, ignore_errors=True)
        raise
    return RestoreReport(str(real), str(file), records, kept)


def _bring_in(file: Path, room: Path) -> int:
    """A private, synced and examined copy; BackupError when it is not a sound store."""
    if file.is_fifo():
        raise BackupError(f"{file} is a pipe; name the file of the backup")  # nobody may ever write to it
    try:
        with file.open("rb") as source, open(open_private(room / DATA_FILE, os.O_WRONLY), "wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BackupError(f"the backup {file} cannot be read: {why}; name a file that backup wrote") from error
    report = examine(room)
    if report.worst is not None:
        raise BackupError(f"{file} is not a sound backup ({report.worst.message}); nothing was changed")
    return int(sum(report.figures["records"].values()))


def _swap(real: Path, new: Path, now_ms: int) -> str | None:
    data = real / DATA_FILE
    kept = real / f"before-restore-{now_ms}.backup" if data.exists() else None
    with directory_held(real, exclusive=True), _old_writers_held(real, kept):
        # The lock file goes first: whoever has the old store open sees by it that the store was replaced.
        (real / LOCK_FILE).unlink(missing_ok=True)
        os.replace(new, data)
        sync_directory(real)
    return str(kept) if kept else None


@contextmanager
def _old_writers_held(real: Path, kept: Path | None) -> Iterator[None]:
    """Keep the old state, and its writer's lock, so that no commit goes to the old file during the swap."""
    if kept is None:
        yield
        return
    old = _open_if_sound(real)
    if old is None:
        os.link(real / DATA_FILE, kept)
        yield
        return
    try:
        write_backup(old, kept)
        with old.lmdb.begin(write=True):
            yield
    finally:
        old.close()


def _open_if_sound(real: Path) -> Environment | None:
    """The old store, unless opening it could crash: pages are read as bytes first."""
    problems: list[str] = []
    check_structure(real / DATA_FILE, lambda severity, *_: problems.append(severity))
    try:
        return None if "error" in problems else open_unheld(real)
    except StoreError:
        return None
