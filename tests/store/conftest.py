"""Stores to test: the same suite runs over each kind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chronex.storage.ports import Store
from chronex_store import LmdbStore, MemoryStore
from chronex_store.postgres.pg_store import PostgresStore


def memory_directory() -> Path | None:
    """A place without a disk, for tests of many commits that are not about the disk; None where there is none."""
    place = Path("/dev/shm")
    return place if os.access(place, os.W_OK) else None


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    return on_disk


OpenLmdb = Callable[..., LmdbStore]


@pytest.fixture
def open_lmdb() -> Iterator[OpenLmdb]:
    """Stores without a disk; what the disk does to a store is for the crash tests."""
    opened: list[LmdbStore] = []
    place = tempfile.TemporaryDirectory(prefix="chronex-", dir=memory_directory())

    def open_store(name: str = "store", **options: object) -> LmdbStore:
        store = LmdbStore.open(Path(place.name) / name, **options)  # type: ignore[arg-type]
        opened.append(store)
        return store

    yield open_store
    for store in opened:
        store.close()
    place.cleanup()


@pytest.fixture(params=["memory", "lmdb", "postgres"])
def store(request: pytest.FixtureRequest, open_lmdb: OpenLmdb) -> Iterator[Store]:
    made: Store
    if request.param == "memory":
        made = MemoryStore()
    elif request.param == "lmdb":
        made = open_lmdb()
    else:
        made = PostgresStore.open(request.getfixturevalue("postgres_url"))
    yield made
    made.close()


@pytest.fixture
def lmdb_store(open_lmdb: OpenLmdb) -> LmdbStore:
    return open_lmdb()
