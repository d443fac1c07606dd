"""A server, or a proxy before it, that stands still: its connections live, and no answer comes over them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from chronex.errors import StoreAwayError, StoreOutcomeUnknownError
from chronex.storage import keys
from chronex.storage.ports import Transaction
from chronex_store.postgres.pg_connections import Connection, SilentServerError
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.postgres import PostgresServer
from tests.kit.relay import Relay
from tests.kit.waits import until

KEY = keys.task_state_key("a", "main", "word")


@pytest.fixture
def relay(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setattr(Connection, "longest_silence_s", 0.5)
    with Relay(postgres_server) as made:
        yield made


@pytest.fixture
def postgres_schema() -> str:
    return f"s{uuid4().hex}"


@pytest.fixture
def store(relay: Relay, postgres_schema: str) -> Iterator[PostgresStore]:
    with PostgresStore.open(relay.url(postgres_schema)) as made:
        made.longest_wait_ms = 500
        made.update(write)
        made.view(lambda tx: tx.get(KEY))
        yield made
        relay.is_silent = False
        relay.cut()


def write(tx: Transaction) -> None:
    tx.put(KEY, b"1")


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda store: store.view(lambda tx: tx.get(KEY)), id="view"),
        pytest.param(lambda store: store.update(write), id="update"),
    ],
)
def test_who_asks_is_told_that_no_answer_comes(
    store: PostgresStore, relay: Relay, ask: Callable[[PostgresStore], object]
) -> None:
    relay.is_silent = True
    with pytest.raises(StoreAwayError, match="does not answer"):
        ask(store)
    relay.is_silent = False
    relay.cut()

    def is_back() -> bool:
        with contextlib.suppress(StoreAwayError):
            ask(store)
            return True
        return False

    until(is_back, "an answer")


def test_a_commit_whose_answer_never_comes_is_asked_for_and_then_of_unknown_outcome(
    store: PostgresStore, relay: Relay
) -> None:
    def fall_silent(tx: Transaction) -> None:
        write(tx)
        relay.swallow_replies = True

    with pytest.raises(StoreOutcomeUnknownError, match="look again later"):
        store.update(fall_silent)
    relay.swallow_replies = False
    assert store.view(lambda tx: tx.get(KEY)) == b"1"


def test_who_waits_for_a_change_wakes_and_the_store_closes(relay: Relay, postgres_schema: str) -> None:
    store = PostgresStore.open(relay.url(postgres_schema))
    seen = store.wait(-1, 0)
    with PostgresStore.open(relay.url(postgres_schema)) as other:
        other.update(write)
    seen = store.wait(seen, 30)  # the watcher has its connection
    relay.is_silent = True
    assert store.wait(seen, 30) != seen, "whoever sleeps looks, and finds it away"
    closing = threading.Thread(target=store.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()


def test_an_answer_that_takes_long_is_waited_for_where_that_is_expected(store: PostgresStore) -> None:
    with store.reading_connection() as connection:
        connection.longest_silence_s = 30.0
        assert connection.execute("SELECT pg_sleep(1)").fetchall()
        connection.longest_silence_s = 1.0
        with pytest.raises(SilentServerError, match=r"no answer for 1 s"):
            connection.execute("SELECT pg_sleep(30)")


def test_where_one_connection_met_silence_the_others_wait_less(store: PostgresStore, relay: Relay) -> None:
    """A daemon that leaves would wait for each of them in turn."""
    with store.reading_connection() as waited, store.reading_connection() as further:
        waited.longest_silence_s, further.longest_silence_s = 0.2, 3600.0
        relay.is_silent = True
        for connection in (waited, further):
            with pytest.raises(SilentServerError):
                connection.execute("SELECT 1")


def test_one_that_is_heard_again_is_waited_for_as_before(store: PostgresStore, relay: Relay) -> None:
    with store.reading_connection() as deaf, store.reading_connection() as hearing:
        deaf.longest_silence_s = 0.1
        with pytest.raises(SilentServerError):
            deaf.execute("SELECT pg_sleep(5)")
        assert deaf.hearing.is_silent
        hearing.execute("SELECT 1")
        assert not deaf.hearing.is_silent
