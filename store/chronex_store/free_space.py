"""How much space a store has: its map, its disk, the part kept in reserve, and a larger map.

The end of running work must be recorded even when everything is full. So ordinary updates leave the last part of the
map untouched, and a reserve file on the disk is deleted when the disk is full.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmdb
from msgspec.structs import replace

from chronex.errors import StoreError
from chronex.storage import keys
from chronex.storage.codec import encode
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.directory_checks import RESERVE_FILE, open_private, prepare_directory
from chronex_store.lmdb_environment import LmdbEnvironment, open_environment
from chronex_store.lmdb_errors import is_no_space

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

    @property
    def ratio(self) -> float:
        return self.used_bytes / self.map_bytes


def measure_space(env: LmdbEnvironment) -> Space:
    info = env.lmdb.info()
    stat = env.lmdb.stat()
    page_bytes = stat["psize"]
    return Space(
        map_bytes=info["map_size"],
        used_bytes=_used_pages(stat) * page_bytes,
        file_bytes=(info["last_pgno"] + 1) * page_bytes,
        disk_bytes=free_disk_bytes(env.path),
    )


def is_map_low(env: LmdbEnvironment, txn: Any) -> bool:
    """Whether the map is filled up to the part that only updates with `use_reserve` may use."""
    stat: dict[str, int] = txn.stat()
    total = env.meta.map_size // stat["psize"]
    return _used_pages(stat) > total - max(total // RESERVE_SHARE, RESERVE_MIN_PAGES)


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
                os.posix_fallocate(descriptor, 0, RESERVE_FILE_BYTES)
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
