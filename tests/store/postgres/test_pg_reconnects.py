"""Who asks for a database that is away: later and later, each process at another moment, and never without bound."""

from __future__ import annotations

import socket
import threading
from random import Random

import pytest

from chronex.errors import StoreAwayError
from chronex.testing.clock import FakeClock
from chronex_store.postgres.pg_address import PostgresAddress
from chronex_store.postgres.pg_connections import Connections, Reconnects, pause_after

AT = 1_800_000_000_000


@pytest.mark.parametrize(
    ("failures", "least", "most"),
    [(0, 50, 100), (1, 100, 200), (2, 200, 400), (5, 1_600, 3_200), (6, 2_500, 5_000), (7, 2_500, 5_000)],
)
def test_the_pause_doubles_up_to_five_seconds_and_is_spread(failures: int, least: int, most: int) -> None:
    drawn = {pause_after(failures, Random(seed)) for seed in range(200)}
    assert least <= min(drawn) < max(drawn) <= most
    assert len(drawn) > 20, "nodes come at different moments"


def test_after_any_number_of_failures_the_pause_has_its_bound() -> None:
    assert pause_after(10_000_000, Random(1)) <= 5_000


def failed_often(clock: FakeClock, times: int) -> Reconnects:
    pauses = Reconnects(clock, Random(1))
    for _ in range(times):
        clock.advance(5_000)
        pauses.failed(StoreAwayError("it does not answer"))
    return pauses


def test_who_asks_within_a_long_pause_is_answered_in_the_same_words() -> None:
    clock = FakeClock(AT)
    pauses = failed_often(clock, 8)
    with pytest.raises(StoreAwayError, match="it does not answer"):
        pauses.check()
    clock.advance(5_000)
    pauses.check()


def test_a_short_pause_is_waited_for() -> None:
    failed_often(FakeClock(AT), 1).check()


def test_several_that_fail_at_once_count_as_one() -> None:
    pauses = Reconnects(FakeClock(AT), Random(1))
    for _ in range(50):
        pauses.failed(StoreAwayError("gone"))
    pauses.check()


def test_a_connection_that_is_made_ends_the_pause() -> None:
    pauses = failed_often(FakeClock(AT), 8)
    pauses.made()
    pauses.check()
    pauses.failed(StoreAwayError("gone"))
    pauses.check()


class _Deaf:
    """A server that takes connections, counts them, and hangs up."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.asked = 0
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while True:
            found, _ = self._listener.accept()
            found.close()
            if self._is_over:
                return
            self.asked += 1

    _is_over = False

    def close(self) -> None:
        self._is_over = True
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join()
        self._listener.close()


def test_who_asks_in_the_pause_does_not_reach_the_network() -> None:
    server, clock = _Deaf(), FakeClock(AT)
    address = {"host": "127.0.0.1", "port": str(server.port), "dbname": "jobs", "user": "u", "sslmode": "disable"}
    connections = Connections(PostgresAddress(address, "chronex", "shown"), clock)

    def ask() -> None:
        with pytest.raises(StoreAwayError, match="shown does not answer"):
            connections.connect()

    try:
        for _ in range(5):
            ask()
            clock.advance(5_000)
        for _ in range(100):
            ask()
        assert server.asked == 6
    finally:
        server.close()
