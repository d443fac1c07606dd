"""Connections that break at any time, replies that never come: what was acknowledged is there, once, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import psycopg
import pytest

from chronex.engine.update import apply_jobs
from chronex.errors import StoreAwayError
from chronex.model.event import Event
from chronex.model.job import Job, Task
from chronex.storage import journal, keys, scopes
from chronex.storage.ports import Transaction
from chronex_store.postgres import pg_connections, pg_store
from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.postgres import PostgresServer
from tests.kit.relay import Relay
from tests.kit.waits import until

AT = 1_798_761_600_000
COUNTER = keys.task_state_key("a", "main", "counter")


@pytest.fixture
def relay(postgres_server: PostgresServer) -> Iterator[Relay]:
    with Relay(postgres_server) as made:
        yield made


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for a connection again at once, so that every update meets the network."""
    monkeypatch.setattr(pg_connections, "LONGEST_MS", 1)


def count(tx: Transaction) -> int:
    number = int(tx.get(COUNTER) or b"0") + 1
    tx.put(COUNTER, str(number).encode())
    journal.append(tx, Event(name="Counted", at_ms=AT, data={"n": number}))
    return number


def counted_through(relay: Relay, schema: str, updates: int, seed: int, scope: scopes.Scope) -> tuple[int, int]:
    """How many updates were acknowledged, and how many there are, when the network loses replies and connections."""
    acknowledged = 0
    over = threading.Event()
    random = Random(seed)

    def disturb() -> None:
        while not over.wait(random.uniform(0.002, 0.03)):
            relay.swallow_replies = random.random() < 0.5
            over.wait(random.uniform(0, 0.01))
            relay.cut()
            relay.swallow_replies = False

    job = Job(id="a", schedule="@daily", tasks=(Task(name="main", run="true"),))
    with PostgresStore.open(relay.url(schema)) as store:
        apply_jobs(store, [job], AT)
        network = threading.Thread(target=disturb)
        network.start()
        try:
            for _ in range(updates):
                try:
                    store.update(count, scope=scope)
                    acknowledged += 1
                except StoreAwayError:
                    pass  # it says that nothing was written
        finally:
            over.set()
            network.join()
        found = store.view(lambda tx: tx.get(COUNTER))
        numbers = [event.data["n"] for _, event in store.view(journal.tail) if event.name == "Counted"]
    assert numbers == list(range(1, len(numbers) + 1)), "the journal has each once, in order"
    return acknowledged, int(found or b"0")


@pytest.mark.parametrize("scope", [scopes.WHOLE, scopes.of_jobs("a")], ids=["the store", "a job"])
def test_no_update_is_lost_or_done_twice(relay: Relay, postgres_url: str, scope: scopes.Scope) -> None:
    acknowledged, found = counted_through(relay, postgres_url.rpartition("schema=")[2], 40, 1, scope)
    assert found == acknowledged


def test_a_word_to_the_others_that_fails_takes_no_commit_back(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue of such words is bounded, and who does not listen for days fills it."""
    monkeypatch.setattr(pg_store, "HINT", "SELECT 1 / 0")
    with PostgresStore.open(postgres_url) as store:
        for number in (1, 2):
            assert store.update(count) == number


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(5))
def test_no_update_of_a_thousand_is_lost_or_done_twice(relay: Relay, postgres_url: str, seed: int) -> None:
    acknowledged, found = counted_through(
        relay, postgres_url.rpartition("schema=")[2], 1_000, seed, scopes.of_jobs("a")
    )
    assert found == acknowledged
    assert acknowledged > 0


# -- a commit that is slow, and whose connection breaks meanwhile -----------------------------------------------------

SLOW = 4711
# As a commit that waits for its standby: in the first case it has written all, in the second nothing yet.
HELD_UP = {
    "while it commits": "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION hold_up()",
    "before its first statement": "CREATE TRIGGER slow BEFORE INSERT OR UPDATE ON commit_mark "
    "FOR EACH ROW EXECUTE FUNCTION hold_up()",
}


@contextmanager
def commits_held_up(url: str, trigger: str) -> Iterator[psycopg.Connection]:
    """Every commit waits until the connection lets go of its lock."""
    address = read_address(url)
    with psycopg.connect(
        autocommit=True,
        options=f"-c search_path={address.schema}",
        **address.parameters,  # type: ignore[arg-type]
    ) as holder:
        holder.execute(
            "CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN PERFORM pg_advisory_xact_lock_shared({SLOW}); RETURN NEW; END'"
        )
        holder.execute(trigger)
        holder.execute(f"SELECT pg_advisory_lock({SLOW})")
        yield holder


def waiting(holder: psycopg.Connection) -> int:
    (row,) = holder.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchall()
    return int(row[0])


@pytest.mark.parametrize("is_first", [True, False], ids=["the first of its process", "a later one"])
@pytest.mark.parametrize("when", HELD_UP)
def test_a_slow_commit_whose_connection_broke_is_waited_for(
    relay: Relay, postgres_url: str, when: str, is_first: bool
) -> None:
    """A command is one commit: that its process has no mark yet does not mean that nothing will land."""
    job = Job(id="a", schedule="@daily", tasks=(Task(name="main", run="true"),))
    with PostgresStore.open(postgres_url) as store:
        apply_jobs(store, [job], AT)
    with PostgresStore.open(relay.url(read_address(postgres_url).schema)) as store:
        if not is_first:
            store.update(count, scope=scopes.of_jobs("a"))
        with commits_held_up(postgres_url, HELD_UP[when]) as holder:
            answers: list[int] = []
            update = threading.Thread(target=lambda: answers.append(store.update(count, scope=scopes.of_jobs("a"))))
            update.start()
            until(lambda: waiting(holder) == 1, "a commit that is held up")
            relay.cut()
            until(lambda: waiting(holder) == 2, "the question what became of it")
            holder.execute(f"SELECT pg_advisory_unlock({SLOW})")
            update.join()
        expected = 1 if is_first else 2
        assert answers == [expected]
        assert store.view(lambda tx: tx.get(COUNTER)) == str(expected).encode()
