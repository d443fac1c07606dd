"""Who is told of a commit, and when: words are few, and the last commit of a burst is told too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chronex.testing.clock import FakeClock
from chronex_store.postgres import pg_changes
from chronex_store.postgres.pg_changes import ChangeWatch, Hints
from chronex_store.postgres.pg_connections import Connection
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.waits import DEADLINE_S, until


def test_a_burst_is_told_at_its_beginning_and_once_after_its_end() -> None:
    clock = FakeClock(datetime(2027, 1, 1, tzinfo=UTC))
    hints = Hints(clock)
    assert hints.may_notify()
    assert not hints.must_notify()
    clock.advance(timedelta(milliseconds=50))
    assert not hints.may_notify()
    assert not hints.must_notify()  # too early
    clock.advance(timedelta(milliseconds=150))
    assert hints.must_notify()
    assert not hints.must_notify()  # told


def test_what_a_later_commit_has_told_is_not_told_again() -> None:
    clock = FakeClock(datetime(2027, 1, 1, tzinfo=UTC))
    hints = Hints(clock)
    assert hints.may_notify()
    clock.advance(timedelta(milliseconds=50))
    assert not hints.may_notify()
    clock.advance(timedelta(milliseconds=200))
    assert hints.may_notify()
    clock.advance(timedelta(milliseconds=200))
    assert not hints.must_notify()


def put(store: PostgresStore, value: bytes) -> None:
    store.update(lambda tx: tx.put(b"Ja", value))


def test_nobody_looks_for_what_it_has_committed_itself(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Connection] = []
    look = ChangeWatch._check

    def noted(self: ChangeWatch, listener: Connection) -> None:
        looks.append(listener)
        look(self, listener)

    monkeypatch.setattr(ChangeWatch, "_check", noted)
    monkeypatch.setattr(pg_changes, "POLL_S", 10 * DEADLINE_S)
    with PostgresStore.open(postgres_url) as writer, PostgresStore.open(postgres_url) as other:
        writer.wait(-1, 0)
        until(lambda: looks, "the first look, after which it listens")
        before = writer._changes._of_others
        put(writer, b"own")
        put(other, b"of another")
        until(lambda: writer._changes._of_others != before, "the other one's commit")
        assert len(looks) <= 2, "one at first, and one for the word of the other"


def test_the_last_of_a_burst_wakes_others_though_they_would_not_look(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresStore.open(postgres_url) as writer, PostgresStore.open(postgres_url) as other:
        monkeypatch.setattr(pg_changes, "POLL_S", 10 * DEADLINE_S)
        writer.wait(-1, 0)  # its watcher begins
        seen = other.wait(-1, 0)
        for value in (b"first", b"second", b"last"):
            put(writer, value)
        while other.view(lambda tx: tx.get(b"Ja")) != b"last":
            before, seen = seen, other.wait(seen, DEADLINE_S)
            assert seen != before, "nobody said that there was more"


def test_who_sleeps_is_woken_when_the_server_goes_away_and_when_it_is_back(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who only looks would not find out: nothing changes in a store that does not answer."""
    listeners: list[Connection] = []
    look = ChangeWatch._check

    def noted(self: ChangeWatch, listener: Connection) -> None:
        look(self, listener)
        listeners.append(listener)

    monkeypatch.setattr(ChangeWatch, "_check", noted)
    with PostgresStore.open(postgres_url) as store, PostgresStore.open(postgres_url) as other:
        seen = store.wait(-1, 0)
        until(lambda: listeners, "the first look")
        with other.reading_connection() as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (listeners[0].info.backend_pid,))
        until(lambda: store.wait(-1, 0) >= seen + 2, "to be woken twice")
        assert listeners[-1] is not listeners[0]
