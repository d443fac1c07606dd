"""LMDB and PostgreSQL do what the memory model does, step by step and after reopening."""

from __future__ import annotations

import shutil
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from chronex.storage.ports import Row, Transaction
from chronex_store import LmdbStore, MemoryStore
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.postgres import PostgresServer

from .conftest import memory_directory

KEYS = st.one_of(
    st.sampled_from([b"J", b"Ja", b"Jb", b"O\0", b"O\xff", b"\xff", b"\xff\xff"]),
    st.binary(min_size=1, max_size=6),
)
VALUES = st.one_of(st.binary(max_size=12), st.integers(0, 9000).map(lambda n: b"x" * n))
WRITES = st.one_of(
    st.tuples(st.just("put"), KEYS, VALUES),
    st.tuples(st.just("create"), KEYS, VALUES),
    st.tuples(st.just("delete"), KEYS, st.just(b"")),
)
OURS = b"M"


def apply(tx: Transaction, writes: list[tuple[str, bytes, bytes]], fail: bool) -> list[object]:
    results: list[object] = []
    for verb, key, value in writes:
        if key.startswith(OURS):
            continue
        results.append(tx.delete(key) if verb == "delete" else getattr(tx, verb)(key, value))
    if fail:
        raise RuntimeError
    return results


class StoresAgree(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="chronex-machine-", dir=memory_directory()))
        self.model = MemoryStore()
        self.real = self.open()

    def open(self) -> LmdbStore | PostgresStore:
        return LmdbStore.open(self.path / "store")

    def teardown(self) -> None:
        if hasattr(self, "real"):
            self.real.close()
            shutil.rmtree(self.path)

    @rule(writes=st.lists(WRITES, max_size=6), fail=st.booleans())
    def update(self, writes: list[tuple[str, bytes, bytes]], fail: bool) -> None:
        outcomes = []
        for store in (self.real, self.model):
            try:
                outcomes.append(store.update(lambda tx: apply(tx, writes, fail)))
            except RuntimeError:
                outcomes.append(["failed"])
        assert outcomes[0] == outcomes[1]

    @rule(prefix=st.binary(max_size=2), after=st.none() | KEYS, limit=st.integers(0, 5), reverse=st.booleans())
    def scan(self, prefix: bytes, after: bytes | None, limit: int, reverse: bool) -> None:
        found = [
            [row for row in store.view(lambda tx: tx.scan(prefix, after, limit + 2, reverse)) if row[0] != b"Mstore"]
            for store in (self.real, self.model)
        ]
        assert found[0][:limit] == found[1][:limit]

    @rule()
    def reopen(self) -> None:
        self.real.close()
        self.real = self.open()

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "real"):
            assert rows(self.real) == rows(self.model)


def rows(store: LmdbStore | MemoryStore | PostgresStore) -> list[Row]:
    return [row for row in store.view(lambda tx: tx.scan(b"")) if row[0] != b"Mstore"]


TestStoresAgree = StoresAgree.TestCase
TestStoresAgree.settings = settings(max_examples=15, stateful_step_count=50, deadline=None)


@pytest.mark.torture
def test_the_stores_agree_for_long() -> None:
    run_state_machine_as_test(
        StoresAgree, settings=settings(max_examples=5000, stateful_step_count=50, deadline=None)
    )


def postgres_agrees(server: PostgresServer, examples: int) -> None:
    numbers = count()

    class PostgresAgrees(StoresAgree):
        def open(self) -> PostgresStore:
            if not hasattr(self, "schema"):
                self.schema = f"machine_{next(numbers)}"
            return PostgresStore.open(server.url(schema=self.schema))

    run_state_machine_as_test(
        PostgresAgrees, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None)
    )


def test_postgres_does_what_the_model_does(postgres_server: PostgresServer) -> None:
    postgres_agrees(postgres_server, examples=5)


@pytest.mark.torture
def test_postgres_agrees_for_long(postgres_server: PostgresServer) -> None:
    postgres_agrees(postgres_server, examples=500)
