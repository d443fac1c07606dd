"""Real servers on loopback that behave well, or badly in one way: they refuse, hang, break off, or answer byte by byte."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def http_answer(status: int, body: bytes = b"", headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d Some Words\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n%s" % (
        status,
        len(body),
        headers,
        body,
    )


class WebRequest(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Behaviour:
    """What a server does with one connection. `answer` is sent in whole, or byte by byte until the client has gone."""

    answer: bytes = OK
    hangs: bool = False  # it reads and never answers
    drips: bool = False  # a byte now and then, without an end
    breaks_off: bool = False  # it closes without an answer


@dataclass
class LoopbackServer:
    """Accepts one connection after the other, each as the next behaviour says; the last one holds for all others."""

    behaviours: list[Behaviour]
    context: ssl.SSLContext | None = None
    connections: int = 0
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.is_over.set()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        self._thread.join(10)
        self.listener.close()

    def _serve(self) -> None:
        while not self.is_over.is_set():
            connection, _ = self.listener.accept()
            if self.is_over.is_set():
                connection.close()
                return
            number, self.connections = self.connections, self.connections + 1
            behaviour = self.behaviours[min(number, len(self.behaviours) - 1)]
            threading.Thread(target=self._handle, args=(connection, behaviour), daemon=True).start()

    def _handle(self, connection: socket.socket, behaviour: Behaviour) -> None:
        connection.settimeout(30)
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            held.enter_context(connection)
            if self.context is not None:
                connection = held.enter_context(self.context.wrap_socket(connection, server_side=True))
            self.converse(connection, behaviour)

    def converse(self, connection: socket.socket, behaviour: Behaviour) -> None:
        raise NotImplementedError

    def misbehave(self, connection: socket.socket, behaviour: Behaviour, first: bytes = b"HTTP/1.1 200 ") -> bool:
        """True where it did, and the connection is over."""
        if behaviour.breaks_off:
            return True
        if behaviour.hangs:
            with contextlib.suppress(OSError):
                while connection.recv(4096):
                    pass
            return True
        if behaviour.drips:
            with contextlib.suppress(OSError):
                for byte in first:
                    connection.sendall(bytes((byte,)))
                while not self.is_over.wait(0.02):
                    connection.sendall(b"x")
            return True
        return False


@dataclass
class WebServer(LoopbackServer):
    """Keeps every request that came whole."""

    requests: list[WebRequest] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'http' if self.context is None else 'https'}://127.0.0.1:{self.port}"

    def converse(self, connection: socket.socket, behaviour: Behaviour) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = connection.recv(65_536)
            if not chunk:
                return
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65_536)
        method, path, _ = first.split(" ")
        self.requests.append(WebRequest(method, path, headers, body))
        if not self.misbehave(connection, behaviour):
            connection.sendall(behaviour.answer)


@dataclass
class MailServer(LoopbackServer):
    """Speaks enough SMTP to take a mail. `replies` are its answers to a word, in place of the usual ones; words are in
    small letters, because Python 3.11 says `TO:` and 3.13 says `to:`."""

    replies: dict[str, bytes] = field(default_factory=dict)
    mails: list[tuple[str, list[str], bytes]] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)
    encryption: ssl.SSLContext | None = None

    def converse(self, connection: socket.socket, behaviour: Behaviour) -> None:
        if not self.misbehave(connection, behaviour, b"220-"):
            self._converse(connection)

    def _converse(self, connection: socket.socket, *, is_greeted: bool = False) -> None:
        with connection.makefile("rwb") as file:
            self._speak(connection, file, is_greeted=is_greeted)

    def _speak(self, connection: socket.socket, file: Any, *, is_greeted: bool) -> None:
        sender, to = "", list[str]()

        def say(word: str, usual: bytes) -> bytes:
            answer = self.replies.get(word, usual)
            file.write(answer + b"\r\n")
            file.flush()
            return answer

        if not is_greeted:
            say("greeting", b"220 here")
        while line := file.readline():
            word, _, rest = line.decode().strip().partition(" ")
            match word.upper():
                case "EHLO":
                    offers = b"250-here\r\n250-STARTTLS\r\n" if self.encryption else b"250-here\r\n"
                    say("ehlo", offers + b"250 AUTH PLAIN")
                case "STARTTLS" if self.encryption is not None:
                    say("starttls", b"220 go on")
                    with self.encryption.wrap_socket(connection, server_side=True) as secret:
                        self._converse(secret, is_greeted=True)
                    return
                case "AUTH":
                    self.logins.append(rest.encode())
                    say("auth", b"235 welcome")
                case "MAIL":
                    sender = rest
                    say("mail", b"250 fine")
                case "RCPT":
                    if say(f"rcpt {rest.lower()}", self.replies.get("rcpt", b"250 fine")).startswith(b"250"):
                        to.append(rest)
                case "DATA":
                    if not say("data", b"354 go on").startswith(b"354"):
                        continue
                    body = b""
                    while (piece := file.readline()) and piece != b".\r\n":
                        body += piece
                    if self.replies.get("taken") == b"":
                        self.mails.append((sender, to, body))
                        return  # it dies when it has the mail, and before it has said so
                    if say("taken", b"250 taken").startswith(b"250"):
                        self.mails.append((sender, to, body))
                    sender, to = "", []
                case "QUIT":
                    say("quit", b"221 bye")
                    return
                case _:
                    say("other", b"250 fine")


@contextlib.contextmanager
def web_server(*behaviours: Behaviour, context: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    server = WebServer(list(behaviours) or [Behaviour()], context)
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def mail_server(*behaviours: Behaviour, **settings: object) -> Iterator[MailServer]:
    server = MailServer(list(behaviours) or [Behaviour()], **settings)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.close()


def refusing_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
