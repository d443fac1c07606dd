"""A relay between a node and its database, which can be cut, made deaf or silent, and turned to another database."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from enum import Enum

_CHUNK = 64 * 1024
_POLL_S = 0.05
Upstream = str | tuple[str, int]


class RelayMode(Enum):
    OPEN = "open"
    # Nothing passes, and nobody is told: as with a cable that was pulled.
    HOLE = "hole"
    # What the node says arrives, what the database answers does not: a commit whose reply is lost.
    MUTE = "mute"


class _Pair:
    """One connection of a node, and the relay's own to the database."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near, self.far = near, far

    def other(self, one: socket.socket) -> socket.socket:
        return self.far if one is self.near else self.near

    def reset(self) -> None:
        """Closed as a network does it that has lost them: whoever reads gets an error, at once."""
        for one in (self.near, self.far):
            with contextlib.suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            one.close()


class Relay:
    """Listens on a port of this machine until it is closed. One thread carries all of its bytes."""

    def __init__(self, upstream: Upstream, host: str = "127.0.0.1") -> None:
        self.upstream, self.host = upstream, host
        self.mode = RelayMode.OPEN
        self._listener = socket.create_server((host, 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._pairs: set[_Pair] = set()
        self._must_reset = False
        self._is_closing = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._work, name="chronex-relay", daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Nothing passes from now on."""
        self.mode = RelayMode.HOLE

    def mute(self) -> None:
        self.mode = RelayMode.MUTE

    def heal(self) -> None:
        """Everything passes again. Connections that have lost bytes are reset; so are those that were cut."""
        self._must_reset = self.mode is not RelayMode.OPEN
        self.mode = RelayMode.OPEN

    def reset(self) -> None:
        """Every connection breaks, once."""
        self._must_reset = True

    def close(self) -> None:
        self._is_closing = True
        self._thread.join(timeout=10)

    def _work(self) -> None:
        while not self._is_closing:
            for key, _ in self._selector.select(_POLL_S):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and isinstance(key.data, _Pair):
                    self._carry(key.fileobj, key.data)
            if self._must_reset:
                self._must_reset = False
                for pair in list(self._pairs):
                    self._drop(pair)
            if self.mode is RelayMode.HOLE:
                threading.Event().wait(_POLL_S)  # what is readable stays so: it must not be asked in a circle
        for pair in list(self._pairs):
            self._drop(pair)
        self._listener.close()
        self._selector.close()

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        try:
            far = self._connected()
        except OSError:
            near.close()
            return
        pair = _Pair(near, far)
        self._pairs.add(pair)
        for one in (near, far):
            self._selector.register(one, selectors.EVENT_READ, pair)

    def _connected(self) -> socket.socket:
        if isinstance(self.upstream, str):
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.upstream)
            except OSError:
                far.close()
                raise
            return far
        return socket.create_connection(self.upstream, timeout=5)

    def _carry(self, one: socket.socket, pair: _Pair) -> None:
        if self.mode is RelayMode.HOLE or pair not in self._pairs:
            return
        try:
            data = one.recv(_CHUNK)
            if data and not (self.mode is RelayMode.MUTE and one is pair.far):
                pair.other(one).sendall(data)
        except OSError:
            data = b""
        if not data:
            self._drop(pair)

    def _drop(self, pair: _Pair) -> None:
        self._pairs.discard(pair)
        for one in (pair.near, pair.far):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(one)
        pair.reset()
