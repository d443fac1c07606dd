"""The dashboard in a browser: a small server that starts one dashboard for each open page.

Each page has a process of its own, the same program as at a terminal, whose keys and frames pass through a socket;
the page itself draws with the scripts of textual-serve. The number of pages, the size of what a page may send, and
the time that a process has to end are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from chronex_tui.model.browser_access import ServeAddress, is_own_page, is_token

if TYPE_CHECKING:
    from asyncio.subprocess import Process

MOST_SESSIONS = 8
_MOST_MESSAGE = 64 * 1024  # bytes that a page may send at once; a pasted text is the largest
_HEARTBEAT_S = 15.0
_MOST_END_S = 5.0  # for a process to end after its page is gone
_LEAST_SIZE, _MOST_SIZE = (20, 6), (400, 200)
_FIRST_LINE = b"__GANGLION__\n"  # what Textual writes before its packets

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>chronex</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/css/xterm.css">
<link rel="stylesheet" href="page.css">
<script src="static/js/textual.js"></script>
<script src="page.js"></script>
</head>
<body>
<div class="said" id="opening">opening the dashboard …</div>
<div class="said" id="closed">This page shows nothing any more. <a href="./">Open it again</a></div>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="{font_size}"></div>
</body>
</html>
"""
_STYLE = """
@font-face { font-family: "Roboto Mono"; src: url("static/fonts/RobotoMono-VariableFont_wght.ttf"); }
html, body { margin: 0; height: 100%; background: #0d1117; color: #c9d1d9; font: 16px "Roboto Mono", monospace; }
#terminal { position: absolute; inset: 0; }
.said { position: absolute; inset: 0; display: flex; gap: 1ch; align-items: center; justify-content: center; }
#opening { z-index: 1; }
body.-first-byte #opening, body.-closed #opening { display: none; }
#closed { z-index: 2; display: none; background: #0d1117e0; }
body.-closed #closed { display: flex; }
a { color: #58a6ff; }
"""
# The terminal takes keys while it has the focus, which no click should be needed for.
_SCRIPT = """
const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
addEventListener("load", () => setTimeout(focus, 0));
addEventListener("focus", focus);
"""
# Only what this server serves, and no other site in a frame around it; the terminal sets styles from its script.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; img-src 'self' data:; connect-src 'self' {socket}; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class PageSession(AppService):
    """The dashboard of one page: textual-serve's way of talking to it, started without a shell and ended for sure."""

    def __init__(
        self,
        command: Sequence[str],
        write_bytes: Callable[[bytes], Awaitable[None]],
        write_str: Callable[[str], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(
            "chronex",
            write_bytes=write_bytes,
            write_str=write_str,
            close=close,
            download_manager=DownloadManager(),
        )
        self._arguments = list(command)

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        environment = self._build_environment(width, height) | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._process = await asyncio.create_subprocess_exec(
            *self._arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None,  # what it says goes to whoever runs the server
            env=environment,
            start_new_session=True,  # Ctrl-C at the server's terminal is for the server
        )
        self._stdin = self._process.stdin
        return self._process

    async def run(self) -> None:
        """Hand on what the dashboard draws, until it ends; then close the page's socket."""
        assert self._process is not None
        output = self._process.stdout
        assert output is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
            await output.readuntil(_FIRST_LINE)
            while True:
                kind = await output.readexactly(1)
                payload = await output.readexactly(int.from_bytes(await output.readexactly(4), "big"))
                if kind == b"D":
                    await self.on_data(payload)
                elif json.loads(payload).get("type") == "exit" if kind == b"M" else False:
                    break
        with contextlib.suppress(ConnectionError):
            await self.remote_close()

    async def stop(self) -> None:
        """Ask it to quit, then insist. Nothing of it is left afterwards."""
        task, self._task = self._task, None
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            await self.send_meta({"type": "quit"})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _MOST_END_S)
        if process.returncode is None:
            process.kill()
            await process.wait()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class BrowserServer:
    """Serves one dashboard to whoever has the URL. `command` starts the dashboard of a page."""

    def __init__(self, address: ServeAddress, token: str, command: Sequence[str]) -> None:
        self.address, self.token, self._command = address, token, command
        self.sessions: set[PageSession] = set()

    @property
    def url(self) -> str:
        """For a person to open; on all addresses it names this machine by its loopback address."""
        shown = ServeAddress("127.0.0.1", self.address.port).shown if self.address.is_any else self.address.shown
        return f"http://{shown}/{self.token}/"

    def application(self) -> web.Application:
        package = find_spec("textual_serve")
        assert package is not None
        assert package.origin is not None
        app = web.Application(middlewares=[self._guard], client_max_size=_MOST_MESSAGE)
        app.add_routes(
            [
                web.get("/{token}/", self._index),
                web.get("/{token}/page.css", self._style),
                web.get("/{token}/page.js", self._script),
                web.get("/{token}/ws", self._socket),
                web.static(f"/{self.token}/static", Path(package.origin).parent / "static"),
            ]
        )
        app.on_shutdown.append(self._end_sessions)
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Without the token nothing is there, whatever is asked for."""
        token = request.path.split("/")[1]
        if not is_token(token, self.token) or not self.address.allows_host(request.host):
            raise web.HTTPNotFound(text="Nothing here. Open the address that chronex tui --serve has printed.\n")
        response = await handler(request)
        if not response.prepared:
            sockets = f"ws://{request.host} wss://{request.host}"
            response.headers.update({name: value.format(socket=sockets) for name, value in _HEADERS.items()})
        return response

    async def _index(self, request: web.Request) -> web.Response:
        font_size = request.query.get("fontsize", "")
        size = int(font_size) if font_size.isascii() and font_size.isdecimal() and len(font_size) < 3 else 16
        scheme = "wss" if request.headers.get("X-Forwarded-Proto") == "https" else "ws"
        socket = escape(f"{scheme}://{request.host}/{self.token}/ws")
        return web.Response(text=_PAGE.format(socket=socket, font_size=max(size, 6)), content_type="text/html")

    async def _style(self, request: web.Request) -> web.Response:
        return web.Response(text=_STYLE, content_type="text/css")

    async def _script(self, request: web.Request) -> web.Response:
        return web.Response(text=_SCRIPT, content_type="text/javascript")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if not is_own_page(request.headers.get("Origin", ""), request.host):
            raise web.HTTPForbidden(text="This socket is for the page of this server only.\n")
        if len(self.sessions) >= MOST_SESSIONS:
            raise web.HTTPServiceUnavailable(text=f"{MOST_SESSIONS} pages are open; close one of them.\n")
        socket = web.WebSocketResponse(heartbeat=_HEARTBEAT_S, max_msg_size=_MOST_MESSAGE)

        async def close() -> None:
            await socket.close()

        session = PageSession(self._command, socket.send_bytes, socket.send_str, close)
        self.sessions.add(session)
        try:
            await socket.prepare(request)
            await session.start(*_size(request.query.get("width"), request.query.get("height")))
            await _hand_on(socket, session)
        finally:
            await asyncio.shield(session.stop())
            self.sessions.discard(session)
        return socket

    async def _end_sessions(self, _: web.Application) -> None:
        await asyncio.gather(*(session.stop() for session in tuple(self.sessions)), return_exceptions=True)


async def _hand_on(socket: web.WebSocketResponse, session: PageSession) -> None:
    """What the page sends: keys, its size, whether it has the focus. What is none of these is dropped."""
    async for message in socket:
        if message.type is not WSMsgType.TEXT:
            continue
        try:
            envelope = json.loads(message.data)
        except ValueError:
            continue
        match envelope:
            case ["stdin", str(text)]:
                await session.send_bytes(text.encode("utf-8", "replace"))
            case ["resize", {"width": width, "height": height}]:
                await session.set_terminal_size(*_size(width, height))
            case ["ping", str(stamp)] if len(stamp) < 40:
                await socket.send_json(["pong", stamp])
            case ["focus"]:
                await session.focus()
            case ["blur"]:
                await session.blur()


def _size(width: object, height: object) -> tuple[int, int]:
    """As the page says, inside the sizes that the dashboard draws."""
    found = []
    for given, least, most, usual in zip((width, height), _LEAST_SIZE, _MOST_SIZE, (80, 24), strict=True):
        text = str(given)
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else usual
        found.append(max(least, min(number, most)))
    return (found[0], found[1])


async def serve(server: BrowserServer, on_ready: Callable[[str], None], stop: asyncio.Event) -> None:
    """Until it is to stop; pages that are open are closed, and their processes end."""
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=_MOST_END_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, server.address.host, server.address.port)
        await site.start()
        if server.address.port == 0:  # any free one
            server.address = server.address._replace(port=runner.addresses[0][1])
        on_ready(server.url)
        await stop.wait()
    finally:
        await runner.cleanup()
