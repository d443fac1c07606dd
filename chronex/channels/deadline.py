"""One time for a whole exchange with a server, however slowly it answers.

A socket's own limit begins anew with every byte. So a timer cuts the connection off: whoever reads from it or writes
to it finds that out at once.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Deadline:
    """Cuts off every socket that it watches once `seconds` are over. Used in one `with`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()

    def watch(self, connection: socket.socket) -> None:
        """The socket in use from now on: encryption takes the place of the plain one."""
        with self._lock:
            self._socket = connection
            if self.is_over:
                _shut(connection)

    def _cut(self) -> None:
        with self._lock:
            self.is_over = True
            if self._socket is not None:
                _shut(self._socket)


def _shut(connection: socket.socket) -> None:
    """Below the encryption, which would wait for its own farewell."""
    with contextlib.suppress(OSError, ValueError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
