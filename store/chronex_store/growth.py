"""A larger map, made only while nobody else works on the store."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from chronex.errors import StoreError
from chronex.storage import keys
from chronex.storage.codec import encode
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.environment import open_environment
from chronex_store.places import prepare_directory


def grow(path: Path, map_size: int) -> int:
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
