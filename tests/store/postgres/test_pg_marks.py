"""Marks of writers: what killed commands leave is swept up once, and nobody who lives loses anything by it."""

from __future__ import annotations

import subprocess
import sys
from uuid import UUID, uuid4

import pytest

from chronex.errors import StoreWentBackError
from chronex.model.event import Event
from chronex.storage import journal
from chronex.storage.ports import Store
from chronex.testing.clock import FakeClock
from chronex_store.postgres.pg_redo import CHECK_EVERY_MS, SWEPT_AFTER_MS, MarkSeen, MarkSweep, unchanged
from chronex_store.postgres.pg_store import PostgresStore

AT = 1_800_000_000_000
ONE, TWO = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(
    ("seen", "found", "kept"),
    [
        ({}, [("a", ONE)], {"a": MarkSeen(ONE, 50)}),
        ({"a": MarkSeen(ONE, 7)}, [("a", ONE)], {"a": MarkSeen(ONE, 7)}),
        ({"a": MarkSeen(ONE, 7)}, [("a", TWO)], {"a": MarkSeen(TWO, 50)}),
        ({"a": MarkSeen(ONE, 7)}, [], {}),
    ],
    ids=["new", "as before", "moved", "gone"],
)
def test_since_when_a_mark_is_as_it_is(
    seen: dict[str, MarkSeen], found: list[tuple[str, UUID]], kept: dict[str, MarkSeen]
) -> None:
    assert unchanged(seen, found, 50) == kept


def note(store: Store) -> None:
    store.update(lambda tx: journal.append(tx, Event(name="StoreBack", at_ms=AT)))


def marks(store: PostgresStore) -> dict[str, int]:
    with store.reading_connection() as connection:
        rows = connection.execute(f"SELECT writer, n FROM {store.address.schema}.commit_mark").fetchall()
    return {str(writer): int(n) for writer, n in rows}


KILLED = """
import os, signal, sys
from chronex.model.event import Event
from chronex.storage import journal
from chronex_store.postgres.pg_store import PostgresStore
store = PostgresStore.open(sys.argv[1], create=False)
for _ in range(3):
    store.update(lambda tx: journal.append(tx, Event(name="StoreBack", at_ms=1)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_command_left_is_swept_once_and_its_commits_stay_counted(postgres_url: str) -> None:
    with PostgresStore.open(postgres_url) as store:
        note(store)
        (own,) = marks(store).keys() - {"clients"}
        assert subprocess.run([sys.executable, "-c", KILLED, postgres_url], check=False).returncode == -9
        clock = FakeClock(AT)
        sweep, other = (MarkSweep(store.address.schema, own, clock) for _ in range(2))
        with store.reading_connection() as connection:
            assert [sweep.work(connection), other.work(connection)] == [0, 0]
            assert sorted(marks(store).values()) == [0, 1, 3]
            for _ in range(SWEPT_AFTER_MS // CHECK_EVERY_MS):
                note(store)
                clock.advance(CHECK_EVERY_MS)
                assert sweep.work(connection) <= 1
            assert marks(store) == {"clients": 3, own: 1 + SWEPT_AFTER_MS // CHECK_EVERY_MS}
            other.work(connection)
        assert marks(store)["clients"] == 3, "who comes second counts nothing again"
        note(store)


def test_a_mark_that_moves_while_it_is_swept_stays(postgres_url: str) -> None:
    with PostgresStore.open(postgres_url) as living, PostgresStore.open(postgres_url) as store:
        note(living)
        clock = FakeClock(AT)
        sweep = MarkSweep(store.address.schema, "nobody", clock)
        with store.reading_connection() as connection:
            sweep.work(connection)
            clock.advance(SWEPT_AFTER_MS)
            sweep._seen = {name: one._replace(token=uuid4()) for name, one in sweep._seen.items()}
            sweep.work(connection)
        note(living)
        assert sorted(marks(store).values()) == [0, 2]


def let_time_pass(store: PostgresStore, clock: FakeClock, ms: int) -> None:
    """For this process alone: that the database has another time than it would have now is known to it."""
    clock.advance(ms)
    with store.reading_connection() as connection:
        store._learn_time(connection)


def test_a_writer_that_was_silent_for_hours_goes_on_when_its_mark_was_swept(postgres_url: str) -> None:
    """A dashboard that stood open over night: its mark is gone, and the database has not gone back."""
    clock = FakeClock(AT)
    with PostgresStore.open(postgres_url, clock=clock) as dashboard, PostgresStore.open(postgres_url) as store:
        note(dashboard)
        with store.reading_connection() as connection:
            connection.execute(f"DELETE FROM {store.address.schema}.commit_mark WHERE writer <> 'clients'")
        let_time_pass(dashboard, clock, SWEPT_AFTER_MS)
        note(dashboard)
        events = store.view(lambda tx: [event.name for _, event in journal.tail(tx, 0)])
        assert events == ["StoreBack", "StoreBack"], "no commit was done once more"


def test_a_mark_that_is_gone_a_minute_later_means_that_the_database_went_back(postgres_url: str) -> None:
    clock = FakeClock(AT)
    with PostgresStore.open(postgres_url, clock=clock) as writer, PostgresStore.open(postgres_url) as store:
        note(writer)
        with store.reading_connection() as connection:
            connection.execute(f"DELETE FROM {store.address.schema}.commit_mark WHERE writer <> 'clients'")
        let_time_pass(writer, clock, 60_000)
        with pytest.raises(StoreWentBackError):
            note(writer)
