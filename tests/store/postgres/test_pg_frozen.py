"""A node that is stopped in the middle of a transaction holds its locks, and the server waits for the rest for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from chronex.errors import StoreBusyError
from chronex.storage import keys
from chronex.storage.ports import Transaction
from chronex_store.postgres import pg_connections, pg_frozen, pg_signs
from chronex_store.postgres.pg_connections import Connection, Connections
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.waits import DEADLINE_S, until

KEY = keys.task_state_key("a", "main", "word")
ALONE = "SELECT pg_advisory_xact_lock(hashtext(current_schema()), 1)"
WITH_OTHERS = "SELECT pg_advisory_xact_lock_shared(hashtext(current_schema()), 1)"


@pytest.fixture
def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    monkeypatch.setitem(pg_connections._SESSION, "lock_timeout", "500ms")
    monkeypatch.setattr(pg_frozen, "LONGEST_IDLE", "300ms")
    monkeypatch.setattr(pg_signs, "EVERY_S", 0.05)
    with PostgresStore.open(postgres_url) as made:
        yield made


def write(tx: Transaction) -> None:
    tx.put(KEY, b"1")


@contextmanager
def sent_in_part(store: PostgresStore, *statements: str) -> Iterator[Connection]:
    """Its statements have come and been done; that no more belong to them has not."""
    connection = Connections(store.address).connect()
    try:
        with connection.pipeline():
            for statement in ("BEGIN", *statements):
                connection.execute(statement)
            connection.pgconn.send_flush_request()
            connection.pgconn.flush()
            yield connection
            connection.execute("COMMIT")
    finally:
        connection.close()


@pytest.mark.parametrize("lock", [ALONE, WITH_OTHERS])
def test_a_node_that_stands_still_while_it_sends_holds_the_others_up_for_seconds(
    store: PostgresStore, lock: str
) -> None:
    with pytest.raises(psycopg.OperationalError), sent_in_part(store, lock):
        store.update(write)
    assert store.view(lambda tx: tx.get(KEY)) == b"1"


@pytest.mark.parametrize("lock", [ALONE, WITH_OTHERS])
def test_so_does_one_that_stands_still_between_two_rounds(store: PostgresStore, lock: str) -> None:
    """The server's own limit for idle transactions is over with the request to flush that ends each pipeline."""
    with Connections(store.address).connect() as frozen:
        with frozen.pipeline():
            frozen.execute("BEGIN")
            frozen.execute(lock)
        store.update(write)
        with pytest.raises(psycopg.OperationalError):
            frozen.execute("COMMIT")
    assert store.view(lambda tx: tx.get(KEY)) == b"1"


def test_one_that_works_for_long_is_left_alone(store: PostgresStore) -> None:
    """The server is busy with its statement, for which it has 30 s."""
    with sent_in_part(store, ALONE, "SELECT pg_sleep(2)"):
        time.sleep(0.3)
        with pytest.raises(StoreBusyError):
            store.update(write)


def test_one_that_has_nothing_of_this_store_is_left_alone(store: PostgresStore) -> None:
    elsewhere = "SELECT pg_advisory_xact_lock(hashtext('another'), 1)"
    with sent_in_part(store, elsewhere):
        time.sleep(0.5)
        assert not store._end_frozen()


def test_whether_somebody_is_in_the_middle_of_a_transaction_can_be_seen(store: PostgresStore) -> None:
    """A campaign stops a node there."""
    schema = store.address.schema

    def is_held() -> bool:
        with store.reading_connection() as connection:
            return pg_frozen.holds_store(connection, schema, "chronex")

    assert not is_held()
    with sent_in_part(store, WITH_OTHERS):
        until(is_held, "the lock")
        with store.reading_connection() as connection:
            assert not pg_frozen.holds_store(connection, schema, "another")
            assert not pg_frozen.holds_store(connection, "another", "chronex")


def test_one_that_decides_for_long_is_left_alone(store: PostgresStore) -> None:
    """An apply of thousands of jobs: nothing goes to the server meanwhile, and whoever works says so."""
    deciding, waited = threading.Event(), threading.Event()

    def decide(tx: Transaction) -> int:
        write(tx)
        deciding.set()
        waited.wait(DEADLINE_S)
        return len(tx.scan(keys.JOB))

    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(store.update, decide)
        assert deciding.wait(DEADLINE_S)
        try:
            with PostgresStore.open(store.address) as other:
                for _ in range(3):  # each of them looks for one who stands still
                    with pytest.raises(StoreBusyError):
                        other.update(write)
        finally:
            waited.set()
        assert long.result() == 0
    assert store.view(lambda tx: tx.get(KEY)) == b"1"


def test_one_that_decides_for_longer_than_anybody_may_is_ended(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pg_signs, "LONGEST_S", 0.0)
    deciding = threading.Event()

    def decide(tx: Transaction) -> None:
        write(tx)
        deciding.set()
        assert is_ended.wait(DEADLINE_S)

    is_ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(store.update, decide)
        assert deciding.wait(DEADLINE_S)
        try:
            with PostgresStore.open(store.address) as other:
                other.update(write)
        finally:
            is_ended.set()
        long.result()  # at its second try nobody waited
