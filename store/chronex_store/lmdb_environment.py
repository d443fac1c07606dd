"""The environment of a store: its file before LMDB maps it, how LMDB is opened, its space, and a copy of it.

LMDB trusts its pages. A file that is shorter than its first pages say can kill the process with SIGBUS, a damaged
page aborts it, and a file whose making was cut off by a power failure is refused for ever, though it is empty.
Reading bytes cannot crash. It is only for a file that this process does not have open: closing it again drops LMDB's
locks.

An environment has a fixed map, private files and durable commits, and a process opens it once. The end of running
work must be recorded even when everything is full. So ordinary updates leave the last part of the map untouched, and
a reserve file on the disk is deleted when the disk is full.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from struct import Struct
from typing import Any
from uuid import uuid4

import lmdb
from lmdb import verify
from msgspec.structs import replace

from chronex.errors import (
    BackupError,
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
from chronex_store.daemon_lock import acquire_daemon_lock, refuse_other_namespace
from chronex_store.directory_checks import (
    DATA_FILE,
    DIRECTORY_MODE,
    FILE_MODE,
    LOCK_FILE,
    RESERVE_FILE,
    allocate,
    directory_lock,
    open_private,
    prepare_directory,
)
from chronex_store.transaction import is_no_space, translate, translate_open

PAGE = 4096
MAGIC = 0xBEEFC0DE
# Page header of 16 bytes; magic, version, address, map size; two trees of 48 bytes; last page, transaction.
# The first tree's first field holds the page size.
_META = Struct("=16xII8xQI44x48xQQ")
# A page's header has its flags and the end of its list of entries, which has two bytes for each.
_PAGE_HEADER = Struct("=10xHHH")
_LEAF = 0x02
# The first commit of a store is its meta record, on the page after the two meta pages.
_FIRST_COMMIT_PAGES = 3
# How often the pages are read again when a commit changed the file meanwhile.
_MAX_READS = 3


class DataFileState(Enum):
    """What the first two pages say of the file."""

    MISSING = "missing"
    UNCOMMITTED = "uncommitted"  # made, but nothing was ever committed to it
    WHOLE = "whole"
    SHORT = "short"  # pages that its newest commit allocated are missing
    FOREIGN = "foreign"


class DataFileBusyError(Exception):
    """The file changed each time that its pages were read."""


def data_file_state(data: Path) -> DataFileState:
    try:
        with data.open("rb") as file:
            first = file.read(_FIRST_COMMIT_PAGES * PAGE)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return DataFileState.MISSING
    pages, rest = (first[:PAGE], first[PAGE : 2 * PAGE]), first[2 * PAGE :]
    metas = [_parse(page) for page in pages]
    if all(meta is None and any(page) for meta, page in zip(metas, pages, strict=True)):
        return DataFileState.FOREIGN
    if all(not any(page) or (meta and meta[2] == 0) for meta, page in zip(metas, pages, strict=True)):
        # Such a file is emptied and made again, so it must be certain that it never held anything: a store whose
        # first pages were lost has the rest of its pages.
        is_first = size <= _FIRST_COMMIT_PAGES * PAGE and _holds_at_most_the_first_record(rest)
        return DataFileState.UNCOMMITTED if is_first else DataFileState.FOREIGN
    newest = max((meta for meta in metas if meta), key=lambda meta: meta[2], default=None)
    if newest is None or any(meta is None for meta in metas):
        return DataFileState.FOREIGN
    page_size, last_page, _ = newest
    return DataFileState.WHOLE if size >= (last_page + 1) * page_size else DataFileState.SHORT


def _parse(page: bytes) -> tuple[int, int, int] | None:
    """Page size, last page and transaction number of a meta page."""
    if len(page) < _META.size:
        return None
    magic, version, _, page_size, last_page, transaction = _META.unpack_from(page)
    if magic != MAGIC or version & 0xFFFF != 1 or not page_size:
        return None
    return page_size, last_page, transaction


def _holds_at_most_the_first_record(page: bytes) -> bool:
    """Whether the page has nothing on it, or what the first commit of a store writes: a leaf with one entry."""
    if not any(page):
        return True
    if len(page) < _PAGE_HEADER.size:
        return False
    flags, lower, _ = _PAGE_HEADER.unpack_from(page)
    return bool(flags & _LEAF) and lower <= _PAGE_HEADER.size + 2


def damaged_pages(data: Path) -> list[str]:
    """What is wrong with the pages of `data`; DataFileBusyError when it is written faster than it can be read."""
    for _ in range(_MAX_READS):
        before = _meta_pages(data)
        try:
            problems: list[str] = verify.verify(str(data))  # type: ignore[no-untyped-call]
        except verify.VerifyError as error:
            problems = [str(error)]
        problems += _meta_problems(before)
        if not problems or _meta_pages(data) == before:
            return problems
    raise DataFileBusyError


def refuse_damaged_pages(data: Path) -> None:
    """Raise StoreDamagedError for damaged pages, on most of which LMDB would abort the process."""
    try:
        problems = damaged_pages(data)
    except DataFileBusyError:
        return  # another process commits to it, so LMDB can read it
    if problems:
        raise StoreDamagedError(f"{data} is damaged ({problems[0]}); run `chronex restore` with your last backup")


def _meta_problems(first_pages: bytes) -> list[str]:
    """Commits write the two meta pages in turn, each with the number of its commit.

    A number that is not next to the other was changed. LMDB would take the older page for the newer one, and give an
    earlier state of the store, whole in itself, for the current one.
    """
    metas = [_parse(first_pages[start : start + PAGE]) for start in (0, PAGE)]
    numbers = [meta[2] for meta in metas if meta is not None]
    if len(numbers) < len(metas) or abs(numbers[0] - numbers[1]) == 1 or not any(numbers):
        return []
    return [f"the meta pages are of the commits {numbers[0]} and {numbers[1]}, which do not follow each other"]


def _meta_pages(data: Path) -> bytes:
    """The two meta pages: when they are equal before and after, no process committed meanwhile."""
    with data.open("rb") as file:
        return file.read(2 * PAGE)


FORMAT = 3
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
        allocate(descriptor, os.fstat(descriptor).st_size or LOCK_FILE_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:  # no free space would help
            raise StoreError(
                "the store cannot be opened: this process may not write files of its size; raise that with: ulimit -f"
            ) from error
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


# Ordinary updates leave one sixteenth of the map, or at least 32 pages, to those with `use_reserve`.
RESERVE_SHARE = 16
RESERVE_MIN_PAGES = 32

RESERVE_FILE_BYTES = 256 * 1024
# The reserve file is created again only when the disk has four times its size, not when the first byte is free.
RECREATE_FACTOR = 4
DISK_FULL_BELOW_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Space:
    """How full the map is. Pages that are free inside the file count as free. `disk_bytes` are left on the disk."""

    map_bytes: int
    used_bytes: int
    file_bytes: int
    disk_bytes: int
    reserve_bytes: int = 0

    @property
    def ratio(self) -> float:
        return self.used_bytes / self.map_bytes

    @property
    def is_map_low(self) -> bool:
        """Whether only the ends of running work are taken: nothing is claimed until there is room."""
        return self.used_bytes > self.map_bytes - self.reserve_bytes


def measure_space(env: LmdbEnvironment) -> Space:
    info = env.lmdb.info()
    stat = env.lmdb.stat()
    page_bytes = stat["psize"]
    return Space(
        map_bytes=info["map_size"],
        used_bytes=_used_pages(stat) * page_bytes,
        file_bytes=(info["last_pgno"] + 1) * page_bytes,
        disk_bytes=free_disk_bytes(env.path),
        reserve_bytes=_reserve_pages(env.meta.map_size // page_bytes) * page_bytes,
    )


def is_map_low(env: LmdbEnvironment, txn: Any) -> bool:
    """Whether the map is filled up to the part that only updates with `use_reserve` may use."""
    stat: dict[str, int] = txn.stat()
    total = env.meta.map_size // stat["psize"]
    return _used_pages(stat) > total - _reserve_pages(total)


def _reserve_pages(total: int) -> int:
    return max(total // RESERVE_SHARE, RESERVE_MIN_PAGES)


def is_disk_full(error: lmdb.Error, path: Path) -> bool:
    """Whether a commit failed for a full disk. LMDB reports a short write as EIO, so the file system is asked too."""
    return is_no_space(error) or free_disk_bytes(path) < DISK_FULL_BELOW_BYTES


def free_disk_bytes(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def grow_map(path: Path, map_size: int) -> int:
    """Give the store a map of `map_size` bytes and return its size; StoreInUseError beside a daemon.

    Growing from several processes at once has corrupted LMDB files, so it is never done on the fly.
    """
    real = prepare_directory(path, create=False)
    with acquire_daemon_lock(real):
        env = open_environment(real, create=False, map_size=map_size, grow=True)
        try:
            if map_size <= env.meta.map_size:
                raise StoreError(f"the map has {env.meta.map_size} bytes already; name a larger size")
            size: int = env.lmdb.info()["map_size"]
            meta = replace(env.meta, map_size=size)
            with env.lmdb.begin(write=True) as txn:
                txn.put(keys.STORE_META, encode(keys.STORE_META, meta))
            return size
        finally:
            env.close()


class ReserveFile:
    """The file `reserve` of a store directory: disk space that is released when the disk is full."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / RESERVE_FILE

    def create(self) -> None:
        """Create the file unless it exists or the disk is nearly full. Errors are ignored: it is not required."""
        if self._path.exists():
            return
        if free_disk_bytes(self._path.parent) < RECREATE_FACTOR * RESERVE_FILE_BYTES:
            return
        with contextlib.suppress(OSError):
            descriptor = open_private(self._path, os.O_WRONLY)
            try:
                allocate(descriptor, RESERVE_FILE_BYTES)
            finally:
                os.close(descriptor)

    def release(self) -> bool:
        """Delete the file, so that its space can be written to; False when there was none."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True


def _used_pages(stat: dict[str, int]) -> int:
    return stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was written where."""

    file: str
    size: int
    store: str
    logs: int = 0  # how many logs of attempts are in it

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
