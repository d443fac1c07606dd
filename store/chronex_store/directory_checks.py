"""Which directory may hold a store: who owns it, who may read it, which file system it is on, who is opening it."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chronex.errors import ForeignStoreError, StoreError, StoreNetworkError, StorePermissionError, StoreRefusedError
from chronex.text.files import make_private_directories

DATA_FILE = "data.mdb"
LOCK_FILE = "lock.mdb"
DAEMON_LOCK_FILE = "daemon.lock"
ENGINES_LOCK_FILE = "engines.lock"
RESERVE_FILE = "reserve"
OWN_FILES = (DATA_FILE, LOCK_FILE, DAEMON_LOCK_FILE, ENGINES_LOCK_FILE, RESERVE_FILE)

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
OTHERS = 0o077
# Ten seconds in all: a restore swaps two files.
_LOCK_TRIES = 200
_LOCK_PAUSE_S = 0.05

# The magic numbers of statfs(2) for file systems whose locks or shared maps do not hold between machines.
NETWORK_FILE_SYSTEMS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB2",
    0x01021997: "9P",
    0x65735546: "FUSE",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x73757245: "Coda",
    0x564C: "NCP",
    0x0BD00BD0: "Lustre",
    0x01161970: "GFS2",
    0x7461636F: "OCFS2",
    0x47504653: "GPFS",
    0x19830326: "BeeGFS",
    0x786F4256: "a VirtualBox share",
}

# struct statfs begins with f_type, a long, on every Linux architecture; 256 bytes hold all of them.
_STATFS_BYTES = 256


def prepare_directory(path: Path, *, create: bool, allow_network: bool = False) -> Path:
    """The real path of a directory that is safe to hold a store; raises StoreRefusedError otherwise."""
    try:
        real = Path(os.path.realpath(path, strict=not create))
        if create and not real.exists():
            make_private_directories(real)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if isinstance(error, PermissionError) and not create:
            raise StorePermissionError(f"{path}: permission denied; it belongs to another user") from error
        if create:
            raise StoreRefusedError(f"cannot make a store at {path}: {reason}; choose another --store") from error
        raise StoreRefusedError(f"no store at {path}: {reason}; `chronex apply` makes one") from error
    refuse_network(real, allow_network)
    _refuse_foreign(real, create=create)
    _check_directory(real)
    for name in OWN_FILES:
        check_file(real / name)
    return real


def _refuse_foreign(path: Path, *, create: bool) -> None:
    """Refuse a directory with other files that other users may read: `--store /etc` is a mistake."""
    if not path.is_dir() or os.path.lexists(path / DATA_FILE):
        return
    if not os.access(path, os.R_OK | os.X_OK):
        raise StorePermissionError(f"{path}: permission denied; it belongs to another user")
    if not create:
        raise StoreRefusedError(f"there is no store in {path}; `chronex apply` makes one")
    if path.stat().st_mode & OTHERS and any(path.iterdir()):
        raise StorePermissionError(
            f"{path} is open to other users and has other things in it; give the store a directory of its own"
        )


def refuse_network(path: Path, allowed: bool = False) -> None:
    kind = NETWORK_FILE_SYSTEMS.get(file_system_magic(path))
    if kind and not allowed:
        raise StoreNetworkError(
            f"{path} lies on {kind}, where the store's locks do not hold; choose a local directory"
        )


def file_system_magic(path: Path) -> int:
    """The type of the file system as statfs(2) gives it; 0 on another system or an error."""
    if sys.platform != "linux":
        return 0
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        return 0
    return int(ctypes.c_ulong.from_buffer(buffer).value) & 0xFFFFFFFF


def _check_directory(path: Path) -> None:
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise ForeignStoreError(f"{path} is not a directory; name the directory of the store")
    _check_owner(path, found)
    if found.st_mode & OTHERS:
        raise StorePermissionError(f"{path} is open to other users; run: chmod 700 {path}")


def check_file(path: Path) -> None:
    """Refuse one of the store's files unless it is private, regular and has one name; missing is fine."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise ForeignStoreError(f"{path} is a link or special file; remove it, or choose another directory")
    _check_owner(path, found)
    if found.st_mode & OTHERS:
        raise StorePermissionError(f"{path} is open to other users; run: chmod 600 {path}")


def _check_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise StorePermissionError(
            f"{path} belongs to user {found.st_uid}, not to you ({os.geteuid()}); use your own store"
        )


def open_private(path: Path, flags: int) -> int:
    """A descriptor of one of the store's files, created private under every umask, never through a link."""
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        raise StoreRefusedError(
            f"{path.parent} is on a read-only file system; a store must be writable, also to look at it: copy it"
        ) from error
    try:
        os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def allocate(descriptor: int, size: int) -> None:
    """Give the file `size` bytes of the disk; what is in it stays."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    # macOS has no such call; a byte that was written has its place on the disk.
    end = os.fstat(descriptor).st_size
    while end < size:
        end += os.pwrite(descriptor, bytes(size - end), end)


@contextmanager
def directory_lock(path: Path, *, exclusive: bool = False) -> Iterator[None]:
    """A lock on the directory: shared while a store is opened, exclusive while one is made or restored.

    Without it a process could open the old lock file with the new data, and LMDB would look for transactions that
    the new data never had.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if exclusive:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            _lock_shared(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _lock_shared(descriptor: int, path: Path) -> None:
    """Making and restoring take a moment; raises StoreError instead of waiting longer than that."""
    for _ in range(_LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        time.sleep(_LOCK_PAUSE_S)
    raise StoreError(f"the store {path} is being made or restored by another process; try again when that is done")
