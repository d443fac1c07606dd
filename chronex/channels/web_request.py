"""One request to a web server: within a time, reading little, following nothing, and with its certificate checked."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from chronex.channels.deadline import Deadline
from chronex.text.terminal import terminal_safe
from chronex.text.web_addresses import shown_host, url_problem, without_address
from chronex.version import __version__

CONNECT_S = 10.0
WITHIN_S = 20.0
MOST_READ = 4_096
_SHOWN = 200
# A server that answers so would say the same of the same message again.
_REFUSED = (400, 405, 411, 413, 414, 415, 422, 431)


class Reply(NamedTuple):
    """What came of a try. `problem` is empty where it was taken; `is_final`: the same message is never taken;
    `is_absent`: no server listens there, so nothing of it was sent."""

    problem: str = ""
    said: str = ""
    is_final: bool = False
    is_absent: bool = False


def ask(
    method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None, within_s: float = WITHIN_S
) -> Reply:
    """Never raises. No word of the answer holds more of the address than its host. A name and a password in the
    address are for the server alone."""
    problem = url_problem(url, is_kept=True)
    if problem:
        return Reply(problem)
    where = shown_host(url)
    with Deadline(within_s) as deadline:
        try:
            return _exchange(method, url, body, headers or {}, deadline)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if deadline.is_over:
                return Reply(f"{where} gave no answer within {within_s:g} s")
            return Reply(f"{where}: {described(error)}")


def _exchange(method: str, url: str, body: bytes, headers: Mapping[str, str], deadline: Deadline) -> Reply:
    parts = urlsplit(url)
    connection = _connection(parts.scheme, parts.hostname or "", parts.port)
    try:
        connection.connect()
        deadline.watch(connection.sock)
        path = parts.path or "/"
        own = {"User-Agent": f"chronex/{__version__}", "Connection": "close", **_login(parts), **headers}
        connection.request(method, f"{path}?{parts.query}" if parts.query else path, body, own)
        response = connection.getresponse()
        if deadline.is_over:
            raise TimeoutError  # what was read of a status that came byte by byte is no answer
        said = b""
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):  # the status is the answer
            said = _first_chunks(response) if response.chunked else response.read(MOST_READ)
        return _judged(url, response.status, said)
    finally:
        connection.close()


def _first_chunks(response: http.client.HTTPResponse) -> bytes:
    """Taken apart here: to the library a chunk of the size -1 is whatever comes, gigabytes in the time of a try."""
    said = b""
    while len(said) < MOST_READ and (size := int(response.fp.readline(MOST_READ).partition(b";")[0], 16)) > 0:
        said += response.fp.read(min(size, MOST_READ))
        if size > MOST_READ:
            break
        response.fp.readline(MOST_READ)
    return said[:MOST_READ]


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=CONNECT_S, context=context)
    return http.client.HTTPConnection(host, port, timeout=CONNECT_S)


def _login(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    both = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"Authorization": f"Basic {base64.b64encode(both).decode()}"}


def _judged(url: str, status: int, body: bytes) -> Reply:
    where, text = shown_host(url), without_address(body.decode("utf-8", "replace"), url)
    words = " ".join(terminal_safe(text).split())[:_SHOWN]
    said = f"{status}{f' {words}' if words else ''}"
    if 200 <= status < 300:
        return Reply(said=said)
    if 300 <= status < 400:
        return Reply(
            f"{where} answered {status}, and redirects are not followed; write the address that it names", said
        )
    return Reply(f"{where} answered {said}", said, status in _REFUSED)


def described(error: Exception) -> str:
    """A failed connection in words."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError():
            return f"no encrypted connection: {error.reason or error}"
        case socket.gaierror():
            return f"its name is not known: {error.strerror}"
        case TimeoutError():
            return "no answer in time"
        case http.client.RemoteDisconnected():
            return "it closed the connection without an answer"
        case OSError():
            return (error.strerror or str(error) or type(error).__name__).lower()
    return f"it answered what is not HTTP ({type(error).__name__})"
