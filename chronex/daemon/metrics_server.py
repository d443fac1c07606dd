"""Serves the metrics of one store over HTTP, to Prometheus and to whoever looks whether the daemon is well.

Everything is bounded: connections, the size of a request, the time of a client, the formats that are kept.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from chronex.clock import Clock
from chronex.daemon.log_handlers import log_event
from chronex.daemon.loop import Daemon
from chronex.daemon.metrics import MetricsCollector, MetricsTally, PageWriter
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.errors import StoreError
from chronex.jobfile import SchedulerSettings
from chronex.model.reasons import TroubleCode
from chronex.model.records import Node
from chronex.storage import journal
from chronex.storage.ports import Store

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

FOLLOW_EVERY_S = 5.0
MOST_CONNECTIONS = 16
MOST_REQUEST_BYTES = 8_192
MOST_FORMATS = 4
_GZIP_LEVEL = 6  # 9 takes three times as long and saves one byte in a hundred
# A client that takes longer to send its request, or to take the answer, is disconnected.
CLIENT_TIMEOUT_S = 5.0

T = TypeVar("T")
log = logging.getLogger(__name__)

_EVERY_ANSWER = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Connection", "close"))


class HttpAnswer(NamedTuple):
    """What is sent to a client, but for the headers that every answer has."""

    status: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/plain; charset=utf-8"),)


class MetricsServer:
    """Serves GET /metrics and GET /healthz of one store until closed.

    The store is read on one thread of the server's own, so that no tick waits for a scrape and no two scrapes meet.
    """

    def __init__(self, store: Store, clock: Clock, node: Node | None = None) -> None:
        """`node` is who serves them, where machines share the store."""
        from prometheus_client.exposition import choose_encoder, gzip_accepted

        self._choose_encoder = choose_encoder
        self._gzip_accepted = gzip_accepted
        tally = MetricsTally(store.view(journal.head), "" if node is None else node.id)
        self._collector = MetricsCollector(store, clock, tally, node)
        self._writers: dict[str, PageWriter] = {}  # by content type
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chronex-metrics")
        self._connections: set[asyncio.Task[None]] = set()
        self._is_local = True
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen, and return the port, which the system chooses for 0. OSError when the address is not free."""
        self._is_local = _is_loopback(host)
        self._server = await asyncio.start_server(self._accept, host, port, limit=MOST_REQUEST_BYTES, backlog=32)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Accept no new connection, cut those that are open, and leave the store, which may be closed after this."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    async def follow(self) -> None:
        """Count up to the end of the journal, a bounded number of events at a time."""
        while await self._on_thread(self._collector.advance):
            pass

    def _on_thread(self, fn: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, fn)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._exchange(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._connections) > MOST_CONNECTIONS:
                await _send(writer, HttpAnswer("503 Service Unavailable", b"too many connections\n"))
            else:
                async with asyncio.timeout(CLIENT_TIMEOUT_S):
                    answer = await self._answer(await reader.readuntil(b"\r\n\r\n"))
                await _send(writer, answer)
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            writer.transport.abort()  # the client is slow, has left, or sent too much; what it was sent is dropped
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> HttpAnswer:
        request = _request(head)
        if request is None:
            return HttpAnswer("400 Bad Request", b"this is not HTTP\n")
        if request.method != "GET":
            return HttpAnswer("405 Method Not Allowed", b"only GET is served here\n")
        if self._is_local and not _is_this_machine(request.host):
            return HttpAnswer(
                "403 Forbidden", b"use the address of this machine, such as 127.0.0.1, not another name\n"
            )
        if request.path == "/healthz":
            return HttpAnswer("200 OK", b"ok\n")
        if request.path != "/metrics":
            return HttpAnswer("404 Not Found", b"there are /metrics and /healthz\n")
        try:
            await self.follow()
            return await self._on_thread(lambda: self._render(request.accept, request.accept_encoding))
        except StoreError as error:
            return HttpAnswer("503 Service Unavailable", f"the store cannot be read: {error}\n".encode())

    def _render(self, accept: str, accept_encoding: str) -> HttpAnswer:
        """The page in the format and encoding that the request accepts."""
        try:
            encode, content_type = self._choose_encoder(accept)
        except (TypeError, ValueError):  # the library cannot compare a version such as "abc"
            encode, content_type = self._choose_encoder("")
        body = self._writer(content_type, encode).page(self._collector.values())
        headers = [("Content-Type", content_type)]
        if self._gzip_accepted(accept_encoding):
            body = gzip.compress(body, _GZIP_LEVEL)
            headers.append(("Content-Encoding", "gzip"))
        return HttpAnswer("200 OK", body, tuple(headers))

    def _writer(self, content_type: str, encode: Callable[[Collector], bytes]) -> PageWriter:
        """The content type has the version that the client asks for, so a client can ask for any number of them."""
        if content_type not in self._writers:
            if len(self._writers) >= MOST_FORMATS:
                self._writers.clear()
            self._writers[content_type] = PageWriter(encode)
        return self._writers[content_type]


def _is_this_machine(host: str) -> bool:
    """Whether the Host of a request is an address, localhost, or this machine's name.

    A web page can have its own name resolve to 127.0.0.1, and would then read the answer: its name is in the Host.
    """
    name = (host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]).lower().rstrip(".")
    return not name or _is_address(name) or name in ("localhost", socket.gethostname().lower())


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class HttpRequest(NamedTuple):
    method: str
    path: str
    accept: str
    accept_encoding: str
    host: str = ""


def _request(head: bytes) -> HttpRequest | None:
    """None when the first line is not that of an HTTP request."""
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    path = parts[1].partition("?")[0]
    accept, encoding = headers.get("accept", ""), headers.get("accept-encoding", "")
    return HttpRequest(parts[0], path, accept, encoding, headers.get("host", ""))


async def _send(writer: asyncio.StreamWriter, answer: HttpAnswer) -> None:
    writer.transport.set_write_buffer_limits(high=0)  # so that drain returns when nothing is left to send
    length = ("Content-Length", str(len(answer.body)))
    headers = "".join(f"{name}: {value}\r\n" for name, value in (*answer.headers, length, *_EVERY_ANSWER))
    writer.write(f"HTTP/1.1 {answer.status}\r\n{headers}\r\n".encode() + answer.body)
    async with asyncio.timeout(CLIENT_TIMEOUT_S):
        await writer.drain()


@asynccontextmanager
async def serve_metrics(daemon: Daemon, settings: SchedulerSettings) -> AsyncIterator[None]:
    """Serve metrics where an address is set. An address that is not free is logged and does not stop the daemon."""
    if settings.metrics is None:
        yield
        return
    node = daemon.node if daemon.registration.is_shared else None
    server = MetricsServer(daemon.store, daemon.clock, node)
    try:
        await server.open(settings.metrics.host, settings.metrics.port)
    except OSError as error:
        problem = {"address": str(settings.metrics), "reason": error.strerror or str(error)}
        daemon.journal("MetricsUnavailable", problem)
        daemon.troubles.begin(TroubleCode.METRICS_UNAVAILABLE, f"{settings.metrics}: {problem['reason']}")
    else:
        daemon.periodic.add(PeriodicTask("metrics", FOLLOW_EVERY_S, server.follow))
        log_event(log, "metrics served", {"address": str(settings.metrics)})
    try:
        yield
    finally:
        await server.close()
