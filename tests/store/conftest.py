"""Stores to test: the same suite runs over each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chronex.engine.ports import Store
from chronex_store import LmdbStore, MemoryStore

OpenLmdb = Callable[..., LmdbStore]


@pytest.fixture
def open_lmdb(tmp_path: Path) -> Iterator[OpenLmdb]:
    opened: list[LmdbStore] = []

    def open_store(name: str = "store", **options: object) -> LmdbStore:
        store = LmdbStore.open(tmp_path / name, **options)  # type: ignore[arg-type]
        opened.append(store)
        return store

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture(params=["memory", "lmdb"])
def store(request: pytest.FixtureRequest, open_lmdb: OpenLmdb) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else open_lmdb()
    yield made
    made.close()


@pytest.fixture
def lmdb_store(open_lmdb: OpenLmdb) -> LmdbStore:
    return open_lmdb()
