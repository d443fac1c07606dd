"""Stores to test: the same suite runs over each kind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from chronex.storage.ports import Store
from chronex_store import LmdbStore, MemoryStore
from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_store import PostgresStore
from chronex_store.postgres.pg_tables import TABLES
from tests.kit.postgres import PostgresServer


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
        made = PostgresStore.open(request.getfixturevalue("emptied_url"))
    yield made
    made.close()


@pytest.fixture
def emptied_url(postgres_server: PostgresServer) -> str:
    """A store that has been used by other tests, and is empty: to make its tables takes longer than most tests."""
    url = postgres_server.url(schema="emptied")
    PostgresStore.open(url).close()
    address = read_address(url)
    with psycopg.connect(autocommit=True, **address.parameters) as connection:  # type: ignore[arg-type]
        connection.execute(f"SET search_path TO {address.schema}")
        for table in TABLES:
            connection.execute(f"DELETE FROM {table.name}")
        connection.execute("UPDATE journal_head SET last = 0")
    return url


@pytest.fixture
def lmdb_store(open_lmdb: OpenLmdb) -> LmdbStore:
    return open_lmdb()
