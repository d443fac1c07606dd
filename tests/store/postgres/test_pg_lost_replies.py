"""Connections that break at any time, replies that never come: what was acknowledged is there, once, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from random import Random

import pytest

from chronex.engine.update import apply_jobs
from chronex.errors import StoreAwayError
from chronex.model.event import Event
from chronex.model.job import Job, Task
from chronex.storage import journal, keys, scopes
from chronex.storage.ports import Transaction
from chronex_store.postgres import pg_connections
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.postgres import PostgresServer
from tests.kit.relay import Relay

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


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(5))
def test_no_update_of_a_thousand_is_lost_or_done_twice(relay: Relay, postgres_url: str, seed: int) -> None:
    acknowledged, found = counted_through(
        relay, postgres_url.rpartition("schema=")[2], 1_000, seed, scopes.of_jobs("a")
    )
    assert found == acknowledged
    assert acknowledged > 0
