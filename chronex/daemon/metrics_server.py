"""A small HTTP server for two pages: GET /metrics and GET /healthz. Everything about it is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from chronex.clock import Clock
from chronex.daemon.metrics import CONTENT_TYPE, Tally, exposition, gauges
from chronex.daemon.periodic import Chore
from chronex.storage import journal
from chronex.storage.ports import ReadTransaction, Store
from chronex.storage.records import Reading

MOST_CONNECTIONS = 16
MOST_REQUEST_BYTES = 8_192
# A client that asks, or takes, more slowly is cut off.
PATIENCE_S = 5.0
FOLLOW_EVERY_S = 5.0
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
_PLAIN = "text/plain; charset=utf-8"


class Metrics:
    """The tally of one daemon, read on a thread of its own so that no tick waits for a scrape."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._tally = Tally(store.view(journal.head))
        self._one_at_a_time = asyncio.Lock()

    def chore(self) -> Chore:
        return Chore("metrics", FOLLOW_EVERY_S, self.follow)

    async def follow(self) -> None:
        """Stay near the end of the journal, a bounded piece at a time."""
        async with self._one_at_a_time:
            while await asyncio.to_thread(self._store.view, lambda tx: self._tally.advance(Reading(tx))):
                pass

    async def page(self) -> str:
        """Counters, histograms and gauges of one snapshot."""
        await self.follow()
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._store.view, self._read)

    def _read(self, tx: ReadTransaction) -> str:
        reading = Reading(tx)
        self._tally.advance(reading)
        return exposition(self._tally, gauges(reading, self._clock.wall_ms()))


class MetricsServer:
    """Serves `metrics` until closed."""

    def __init__(self, metrics: Metrics, is_well: Callable[[], bool] = lambda: True) -> None:
        self._metrics, self._is_well = metrics, is_well
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen; the port, which the system chooses where 0 is asked for. OSError where that cannot be."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=MOST_REQUEST_BYTES, backlog=32)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """No new connection, and those that are open are cut."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._exchange(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._connections) > MOST_CONNECTIONS:
                await self._answer(writer, 503, "too many connections\n")
            else:
                async with asyncio.timeout(PATIENCE_S):
                    status, body, kind = await self._page_for(reader)
                await self._answer(writer, status, body, kind)
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # slow, gone, or talking too much: there is nobody to tell
        finally:
            writer.close()

    async def _page_for(self, reader: asyncio.StreamReader) -> tuple[int, str, str]:
        head = await reader.readuntil(b"\r\n\r\n")
        parts = head.split(b"\r\n", 1)[0].split(b" ")
        if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
            return 400, "this is not HTTP\n", _PLAIN
        if parts[0] != b"GET":
            return 405, "only GET is served here\n", _PLAIN
        match parts[1].split(b"?", 1)[0]:
            case b"/metrics":
                return 200, await self._metrics.page(), CONTENT_TYPE
            case b"/healthz":
                return (200, "ok\n", _PLAIN) if self._is_well() else (503, "stopping\n", _PLAIN)
            case _:
                return 404, "there are /metrics and /healthz\n", _PLAIN

    async def _answer(self, writer: asyncio.StreamWriter, status: int, body: str, kind: str = _PLAIN) -> None:
        payload = body.encode()
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(payload)}\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + payload)
        with suppress(OSError):
            async with asyncio.timeout(PATIENCE_S):
                await writer.drain()
