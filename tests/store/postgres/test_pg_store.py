"""What only a store on PostgreSQL does: refusals in words, the journal's numbers, lost replies, the clock, SQL."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from chronex.engine.update import apply_jobs
from chronex.errors import StoreAwayError, StoreError, StoreFormatError, StorePermissionError, StoreRefusedError
from chronex.model.event import Event
from chronex.model.job import Job, Task
from chronex.storage import journal, keys
from chronex.storage.ports import OwnerCounts, ReadTransaction, Transaction
from chronex_store.postgres.pg_address import PostgresAddress, read_address
from chronex_store.postgres.pg_connections import Connections, DatabaseClock
from chronex_store.postgres.pg_store import PostgresStore
from chronex_store.postgres.pg_transaction import PostgresTransaction
from tests.kit.postgres import PostgresServer

AT = 1_800_000_000_000


@pytest.mark.parametrize(
    ("changes", "kind", "why"),
    [
        ({"dbname": "nowhere"}, StoreRefusedError, "there is no such database"),
        ({"user": "nobody-knows-him"}, StoreRefusedError, "does not know this user"),
        ({"host": "/nowhere"}, StoreAwayError, "does not answer"),
        ({"host": "localhost", "port": "1"}, StoreAwayError, r"does not answer .*; is the server running\?"),
        ({"host": "nowhere.invalid"}, StoreAwayError, r"does not answer .*; is its name right\?"),
        ({"sslmode": "s3cret"}, StoreRefusedError, "could not be made as the address asks"),
        ({"bogus": "1"}, StoreRefusedError, "could not be made as the address asks"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_who_is_not_let_in_is_told_why(
    postgres_url: str, changes: dict[str, str], kind: type[StoreError], why: str
) -> None:
    found = read_address(postgres_url)
    wrong = PostgresAddress({**found.parameters, "password": "s3cret", **changes}, found.schema, found.shown)
    with pytest.raises(kind, match=why) as refused:
        PostgresStore.open(wrong)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None, "a cause would show what the library said"


def sql(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Ask the database itself, in the schema of the store."""
    address = read_address(url)
    with psycopg.connect(autocommit=True, **address.parameters) as connection:  # type: ignore[arg-type]
        connection.execute(f"SET search_path TO {address.schema}")
        cursor = [connection.execute(statement) for statement in statements][-1]
        return cursor.fetchall() if cursor.description else []


def test_looking_makes_no_store(postgres_url: str) -> None:
    with pytest.raises(StoreRefusedError, match=r"there is no store at .* yet"):
        PostgresStore.open(postgres_url, create=False)
    assert (
        sql(postgres_url, f"SELECT 1 FROM pg_namespace WHERE nspname = '{read_address(postgres_url).schema}'") == []
    )


def test_a_layout_of_a_newer_chronex_is_left_alone(postgres_url: str) -> None:
    PostgresStore.open(postgres_url).close()
    sql(postgres_url, "UPDATE layout SET number = 99")
    with pytest.raises(StoreFormatError, match="layout 99 of a newer Chronex"):
        PostgresStore.open(postgres_url)
    assert sql(postgres_url, "SELECT number FROM layout") == [(99,)]


def test_who_may_only_read_is_told_so_when_he_writes(postgres_url: str) -> None:
    PostgresStore.open(postgres_url).close()
    schema = read_address(postgres_url).schema
    reader = f"reader_{schema}"
    sql(
        postgres_url,
        f"CREATE ROLE {reader} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {reader}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {reader}",
    )
    with PostgresStore.open(postgres_url.replace("chronex@", f"{reader}@"), create=False) as store:
        assert store.view(lambda tx: tx.get(b"J")) is None
        with pytest.raises(StorePermissionError, match="lacks a right"):
            store.update(lambda tx: tx.put(b"Ja", b"x"))


def test_several_make_the_store_at_once_and_it_is_made_once(postgres_url: str) -> None:
    problems: list[BaseException] = []

    def make() -> None:
        try:
            PostgresStore.open(postgres_url).close()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sql(postgres_url, "SELECT count(*) FROM layout") == [(1,)]


def test_rows_are_counted_up_to_a_bound_with_what_the_update_wrote(postgres_url: str) -> None:
    """Notices are counted so. The count was no SQL once: no failure with a notice could be recorded."""
    rows = [keys.notice_key("job", AT + number, "failed") for number in range(3)]
    with PostgresStore.open(postgres_url) as store:

        def write(tx: Transaction) -> list[int]:
            assert isinstance(tx, OwnerCounts)
            found = []
            for key in rows:
                tx.put(key, b"")
                found.append(tx.count_rows(keys.NOTICE, 2))
            return found

        assert store.update(write) == [1, 2, 3]

        def counted(tx: ReadTransaction, limit: int) -> int:
            assert isinstance(tx, OwnerCounts)
            return tx.count_rows(keys.NOTICE, limit)

        assert [store.view(partial(counted, limit=limit)) for limit in (1, 3, 9)] == [1, 3, 3]


def test_the_journal_is_numbered_by_the_commits_of_all(postgres_url: str) -> None:
    """Two processes' stores: numbers without a gap, and those of one update beside each other."""
    with PostgresStore.open(postgres_url) as one, PostgresStore.open(postgres_url) as two:

        def write(store: PostgresStore, name: str) -> None:
            for number in range(20):
                pair = [
                    Event(name=name, at_ms=AT, data={"n": number}),
                    Event(name=name, at_ms=AT, data={"n": number}),
                ]
                store.update(lambda tx, pair=pair: journal.append(tx, *pair))  # type: ignore[misc]

        threads = [threading.Thread(target=write, args=(store, name)) for store, name in ((one, "a"), (two, "b"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = one.view(journal.tail)
    assert [number for number, _ in lines] == list(range(1, 81))
    told = [(event.name, event.data["n"]) for _, event in lines]
    assert told[::2] == told[1::2], "the events of one update stay together"


def test_a_reply_that_is_lost_lands_once(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks after the commit was sent: whether it landed is asked, and nothing is done twice."""
    with PostgresStore.open(postgres_url) as store:
        store.update(lambda tx: tx.put(b"Jn", b"0"))
        real = PostgresStore._send
        lost = {"before": False, "after": False}

        def count(tx: PostgresTransaction) -> None:
            tx.put(b"Jn", str(int(tx.get(b"Jn") or b"0") + 1).encode())

        def send(self: PostgresStore, connection: psycopg.Connection, *rest: Any, is_word: bool) -> None:
            if not lost["after"]:
                lost["after"] = True
                real(self, connection, *rest, is_word=is_word)  # type: ignore[arg-type]
                connection.close()
                raise _unknown()
            if not lost["before"]:
                lost["before"] = True
                connection.close()
                raise _unknown()
            real(self, connection, *rest, is_word=is_word)  # type: ignore[arg-type]

        monkeypatch.setattr(PostgresStore, "_send", send)
        store.update(count)  # type: ignore[arg-type]
        assert store.view(lambda tx: tx.get(b"Jn")) == b"1"
        store.update(count)  # type: ignore[arg-type]
        assert store.view(lambda tx: tx.get(b"Jn")) == b"2"


def _unknown() -> Exception:
    from chronex_store.postgres.pg_store import CommitUnknownError

    return CommitUnknownError()


def test_a_large_update_goes_through(postgres_url: str) -> None:
    """12 MB in one commit: libpq and the server must not wait for each other."""
    with PostgresStore.open(postgres_url) as store:

        def fill(tx: PostgresTransaction) -> None:
            for number in range(200):
                tx.put(b"Sbig%d" % number, os.urandom(64 * 1024 - 10))

        store.update(fill)  # type: ignore[arg-type]
        assert len(store.view(lambda tx: tx.scan(b"Sbig"))) == 200


def test_a_server_that_was_restarted_is_used_again(tmp_path: Path, postgres_server: PostgresServer) -> None:
    """Connections that were kept are dead: a view and an update make new ones by themselves."""
    url = postgres_server.url(schema="restarted")
    with PostgresStore.open(url) as store:
        store.update(lambda tx: tx.put(b"Ja", b"1"))
        sql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert store.view(lambda tx: tx.get(b"Ja")) == b"1"
        sql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        store.update(lambda tx: tx.put(b"Ja", b"2"))
        assert store.view(lambda tx: tx.get(b"Ja")) == b"2"


def test_who_asks_in_sql_finds_views(postgres_url: str) -> None:
    job = Job(id="backup", schedule="0 3 * * *", tasks=(Task(name="main", run=("true",)),))
    with PostgresStore.open(postgres_url) as store:
        apply_jobs(store, [job], AT, actor="ann")
    assert sql(postgres_url, "SELECT job, schedule, paused, definition->>'id' FROM jobs") == [
        ("backup", "0 3 * * *", False, "backup")
    ]
    assert sql(postgres_url, "SELECT number, name, job, actor FROM events") == [(1, "JobNew", "backup", "ann")]
    for view in ("occurrences", "runs", "attempts", "nodes"):
        assert sql(postgres_url, f"SELECT * FROM {view}") == []


def test_connections_are_few(postgres_url: str) -> None:
    # The server ends the sessions of a test before this one in its own time.
    sessions = "SELECT pid FROM pg_stat_activity WHERE application_name = 'chronex'"
    before = sql(postgres_url, sessions)
    with PostgresStore.open(postgres_url) as store:
        for _ in range(20):
            store.view(lambda tx: tx.get(b"J"))
            store.update(lambda tx: tx.put(b"Ja", b"x"))
        store.wait(-1, 0)
        own = set(sql(postgres_url, sessions)) - set(before)
        assert 1 <= len(own) <= 4, own


class StillClock:
    """A boot time that a test sets; its wall clock is wrong, and must not matter."""

    now = 1_000

    def wall_ms(self) -> int:
        return 7

    def monotonic_ms(self) -> int:
        return self.now

    def boottime_ms(self) -> int:
        return self.now


def test_the_time_is_that_of_the_server() -> None:
    local = StillClock()
    clock = DatabaseClock(local)
    clock.learn(AT, 1_000, 1_010)
    local.now = 2_005
    assert clock.wall_ms() == AT + 1_000
    assert clock.uncertainty_ms == 5


def test_the_quickest_answer_is_believed_most_and_a_server_that_was_set_at_once() -> None:
    local = StillClock()
    clock = DatabaseClock(local)
    clock.learn(AT + 500, 1_000, 1_002)
    clock.learn(AT + 510, 1_000, 1_400)  # slow, and within what it may be off
    local.now = 1_001
    assert clock.wall_ms() == AT + 500
    clock.learn(AT + 60_000, 1_000, 1_002)
    assert clock.wall_ms() == AT + 60_000


def test_an_address_of_no_use_to_a_library_is_refused_in_words() -> None:
    with pytest.raises(StoreRefusedError):
        Connections(PostgresAddress({"host": "/tmp", "sslmode": "verify-full\udcff"}, "s", "shown")).connect()
