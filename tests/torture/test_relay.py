"""The relay between a node and its database: what passes, what is lost, and what breaks."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from chronex.torture.relay import Relay


@pytest.fixture
def echo() -> Iterator[socket.socket]:
    """A server that says everything back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while data := connection.recv(4096):
                connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield listener
    listener.close()


@pytest.fixture
def relay(echo: socket.socket) -> Iterator[Relay]:
    made = Relay(("127.0.0.1", echo.getsockname()[1]))
    yield made
    made.close()


def client(relay: Relay) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", relay.port), timeout=10)
    made.sendall(b"hello")
    assert made.recv(5) == b"hello"
    return made


def test_a_cut_passes_nothing_and_says_nothing_and_its_end_breaks_what_hung(relay: Relay) -> None:
    with client(relay) as connection:
        relay.cut()
        connection.sendall(b"lost")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(4)
        relay.heal()
        connection.settimeout(10)
        with pytest.raises(ConnectionError):
            _read_to_the_end(connection)
    client(relay).close()


def test_a_mute_database_hears_and_is_not_heard(relay: Relay) -> None:
    with client(relay) as connection:
        relay.mute()
        connection.sendall(b"unheard")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(7)


def test_a_reset_breaks_every_connection_once(relay: Relay) -> None:
    with client(relay) as connection:
        relay.reset()
        with pytest.raises(ConnectionError):
            _read_to_the_end(connection)
    client(relay).close()


def _read_to_the_end(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass
    raise ConnectionError("it was closed")
