"""Opening LMDB by the rules: a fixed map, private files, durable commits, one open per process."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import lmdb

from chronex.errors import (
    DamagedRecordError,
    ForeignStoreError,
    StoreAlreadyOpenError,
    StoreDamagedError,
    StoreError,
    StoreFormatError,
    StoreFullError,
    StoreLibraryError,
    StoreRefusedError,
)
from chronex.model.records import StoreMeta
from chronex.storage import keys
from chronex.storage.codec import decode, encode
from chronex.version import __version__
from chronex_store.daemon_lock import refuse_other_namespace
from chronex_store.data_file import DataFileState, data_file_state, refuse_damaged_pages
from chronex_store.directory_checks import (
    DATA_FILE,
    DIRECTORY_MODE,
    LOCK_FILE,
    directory_lock,
    open_private,
    prepare_directory,
)
from chronex_store.lmdb_errors import translate, translate_open

FORMAT = 2
ENGINE = "0.9"
MAX_READERS = 1024
DEFAULT_MAP_SIZE = (1 << 30) if sys.maxsize > 1 << 32 else (64 << 20)
# LMDB sizes its lock file as header plus 64 bytes a reader; 17 pages hold 1024 readers and a little more.
LOCK_FILE_BYTES = 17 * 4096

_TO_BE_MADE = (DataFileState.MISSING, DataFileState.UNCOMMITTED)

# The directories of the stores that this process has open.
_open_paths: set[Path] = set()


@dataclass(frozen=True, slots=True)
class LmdbEnvironment:
    """An open LMDB environment: where it is, what its meta record says, and the lock file it was opened with."""

    path: Path
    lmdb: Any
    meta: StoreMeta
    lock_file: str
    lock_inode: int

    def close(self) -> None:
        self.lmdb.close()
        _open_paths.discard(self.path)

    def is_replaced(self) -> bool:
        """Whether a restore has put other files in place; what is written to the old ones would be lost.

        The lock file is asked, because asking data.mdb for its status makes the kernel give the next write a
        fine timestamp of its own, which costs every commit a fifth of its time (Linux 6.13 and newer).
        """
        try:
            return os.stat(self.lock_file).st_ino != self.lock_inode
        except FileNotFoundError:
            return True


def open_environment(
    path: Path,
    *,
    create: bool,
    map_size: int = 0,
    allow_network: bool = False,
    now_ms: int = 0,
    grow: bool = False,
    verify: bool = False,
) -> LmdbEnvironment:
    """Check the directory, open the environment, check that it is ours. Nothing is changed by a refusal.

    `map_size` is used for a new store only, unless `grow` is set; `verify` reads every page first.
    """
    refuse_unpatched_library()
    real = prepare_directory(path, create=create, allow_network=allow_network)
    refuse_second_open(real)
    is_new = data_file_state(real / DATA_FILE) in _TO_BE_MADE
    if is_new and not create:
        raise StoreRefusedError(f"there is no store in {real}; `chronex apply` makes one")
    refuse_other_namespace(real)
    if verify and not is_new:
        refuse_damaged_pages(real / DATA_FILE)
    with directory_lock(real, exclusive=is_new):
        env = _open_checked(real, map_size, now_ms, grow)
    _open_paths.add(real)
    return env


def _open_checked(real: Path, map_size: int, now_ms: int, grow: bool = False) -> LmdbEnvironment:
    is_new = _prepare_data_file(real / DATA_FILE)
    _allocate_lock_file(real)
    if is_new:
        map_size = map_size or DEFAULT_MAP_SIZE
    elif not grow:
        map_size = 0  # LMDB takes the size that the file was made with, so that all processes agree on it
    env = _open_lmdb(real, map_size)
    try:
        check_flags(env)
        env.reader_check()
        meta = _read_meta(env, real) or _initialise(env, now_ms)
        lock_file = str(real / LOCK_FILE)
        return LmdbEnvironment(real, env, meta, lock_file, os.stat(lock_file).st_ino)
    except lmdb.Error as error:
        env.close()
        raise translate(error, "open") from error
    except BaseException:
        env.close()
        raise


def _prepare_data_file(data: Path) -> bool:
    """True for a store that is yet to be made, also when the process that made it died before its first commit."""
    match data_file_state(data):
        case DataFileState.SHORT:
            # LMDB may leave a page unwritten that a transaction allocated and freed, so a short file can be whole.
            refuse_damaged_pages(data)
        case DataFileState.FOREIGN:
            raise ForeignStoreError(
                f"{data} is no Chronex store, or a damaged one; restore a backup or choose another directory"
            )
        case DataFileState.UNCOMMITTED:
            os.truncate(data, 0)
            return True
        case DataFileState.MISSING:
            os.close(open_private(data, os.O_RDWR))  # LMDB would leave its mode to the umask
            return True
    return False


def refuse_second_open(real: Path) -> None:
    """Refuse to open a store twice: even opening and closing its file would drop the locks of the first one."""
    if real in _open_paths:
        raise StoreAlreadyOpenError(f"the store {real} is already open in this process; share that one")


def open_locked(real: Path) -> LmdbEnvironment:
    """Open a store whose directory lock the caller holds, as a restore does."""
    env = _open_checked(real, 0, 0)
    _open_paths.add(real)
    return env


def refuse_unpatched_library() -> None:
    """The wheel carries its own LMDB with fixes for damaged files; a system library has none of them."""
    try:
        version = lmdb.version(subpatch=True, lib_version=0)
    except lmdb.Error as error:
        raise StoreLibraryError from error
    if version[:2] != (0, 9) or not version[3]:
        raise StoreLibraryError


def check_flags(env: Any) -> None:
    """Durability depends on these flags; what LMDB reads back counts, not what was asked for."""
    flags = env.flags()
    if not (flags["sync"] and flags["metasync"] and flags["lock"]) or flags["writemap"] or flags["map_async"]:
        raise StoreError(f"LMDB did not take the durable flags: {flags}")


def _allocate_lock_file(directory: Path) -> None:
    # LMDB maps lock.mdb shared and would be killed by SIGBUS on its first touch of a page that the disk has no
    # space for. Opening and closing it here is safe only because this process has no environment on it yet.
    descriptor = open_private(directory / LOCK_FILE, os.O_RDWR)
    try:
        os.posix_fallocate(descriptor, 0, os.fstat(descriptor).st_size or LOCK_FILE_BYTES)
    except OSError as error:
        raise StoreFullError("the disk is full, so the store cannot be opened; free some space") from error
    finally:
        os.close(descriptor)


def _open_lmdb(directory: Path, map_size: int) -> Any:
    # Engine 0 is named, because an environment variable can change py-lmdb's default.
    try:
        return lmdb.open(
            str(directory),
            map_size=map_size,
            create=False,
            mode=DIRECTORY_MODE,
            max_readers=MAX_READERS,
            max_dbs=0,
            max_spare_txns=0,
            lib_version=0,
        )
    except lmdb.Error as error:
        if "already open" in str(error):
            raise StoreAlreadyOpenError from error
        raise translate_open(error, str(directory)) from error


def _read_meta(env: Any, path: Path) -> StoreMeta | None:
    """The record that says which format the store has; None when the store is empty."""
    with env.begin() as txn:
        raw = txn.get(keys.STORE_META)
        is_empty = txn.stat()["entries"] == 0
    if raw is None:
        if is_empty:
            return None
        raise ForeignStoreError(f"{path} holds a database that is not a Chronex store; choose another directory")
    try:
        meta = decode(keys.STORE_META, raw)
    except DamagedRecordError as error:
        raise StoreDamagedError(
            f"the store {path} cannot say which format it has ({error.reason}); restore a backup"
        ) from error
    assert isinstance(meta, StoreMeta)
    if meta.format > FORMAT:
        raise StoreFormatError(
            f"the store {path} has format {meta.format} and this Chronex knows up to {FORMAT}; "
            "install the newer version to use it"
        )
    return meta


def _initialise(env: Any, now_ms: int) -> StoreMeta:
    meta = StoreMeta(
        format=FORMAT,
        map_size=env.info()["map_size"],
        store_id=uuid4().hex,
        engine=ENGINE,
        created_ms=now_ms,
        chronex=__version__,
    )
    with env.begin(write=True) as txn:
        # Two processes may make the same store at once; the record of the first one is kept.
        if not txn.put(keys.STORE_META, encode(keys.STORE_META, meta), overwrite=False):
            found = decode(keys.STORE_META, txn.get(keys.STORE_META))
            assert isinstance(found, StoreMeta)
            return found
    return meta


def reopen(old: LmdbEnvironment) -> LmdbEnvironment:
    """Open again after a failed commit: LMDB's view of the file may be wrong, what is on disk counts."""
    with contextlib.suppress(lmdb.Error):
        old.lmdb.close()
    _open_paths.discard(old.path)
    return open_environment(old.path, create=False, allow_network=True)
