"""Between a client and a PostgreSQL server: a network that is slow, cut, or loses the replies.

It listens on a socket of its own directory, which an address names in place of the server's.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

from tests.kit.postgres import PostgresServer

_PIECE = 1 << 16
_FLUSH = b"H\0\0\0\4"
LATE_S = 0.1


class Relay:
    """`delay_s` is what one way takes. `cut` breaks all connections; while `is_down` none is taken.

    `swallow_replies` lets requests through and answers nothing any more: who asked learns nothing of what he did.
    """

    def __init__(self, server: PostgresServer, delay_s: float = 0.0) -> None:
        self._target = str(server.directory / f".s.PGSQL.{server.port}")
        self._directory = tempfile.TemporaryDirectory(prefix="chronex-relay-")
        self.port = server.port
        self.delay_s = delay_s
        self.is_down = False
        self.swallow_replies = False
        self.late_flush = False  # a request to flush behind others comes when they have been answered
        self.is_silent = False  # nothing gets through in either direction, and nobody is told
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        Path(self._directory.name).chmod(0o755)
        place = Path(self._directory.name) / f".s.PGSQL.{self.port}"
        self._listener.bind(str(place))
        place.chmod(0o777)  # a server that follows another one is run by somebody else
        self._listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        return self._directory.name

    def url(self, schema: str = "chronex", user: str = "chronex", database: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self._directory.name}&port={self.port}&schema={schema}"

    def cut(self) -> None:
        """Break every connection that there is."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Relay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_down = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._directory.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                if self.is_down:
                    raise OSError
                server.connect(self._target)
            except OSError:
                client.close()
                server.close()
                continue
            with self._lock:
                self._pairs.add((client, server))
            for source, sink, is_reply in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pump, args=(source, sink, is_reply), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_reply: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE):
                if self.delay_s:
                    time.sleep(self.delay_s)
                while self.is_silent:
                    time.sleep(0.01)
                if is_reply and self.swallow_replies:
                    continue
                if self.late_flush and not is_reply and piece.endswith(_FLUSH):
                    sink.sendall(piece.removesuffix(_FLUSH))
                    time.sleep(LATE_S)
                    piece = _FLUSH
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
