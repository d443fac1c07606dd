"""The dashboard in a browser: nothing without the token, no page of another site, and no action unless it is allowed."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError

from chronex.cli.browser_serving import serve_dashboard, session_command
from chronex.cli.commands.tui import TuiOptions
from chronex.cli.options import UsageError
from chronex.storage import journal
from chronex_store import LmdbStore
from chronex_tui import browser
from chronex_tui.app import StartOptions
from chronex_tui.browser import BrowserServer, PageSession, serve
from chronex_tui.model.browser_access import ServeAddress, ServeAddressError, is_own_page, read_address
from tests.kit.waits import is_gone, until_async
from tests.tui.driving import app_on, driven

TOKEN = "the-token-of-this-test"
HERE = ServeAddress("127.0.0.1", 0)


# -- the address and the page, as values ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address", "is_loopback"),
    [
        ("127.0.0.1:8787", ServeAddress("127.0.0.1", 8787), True),
        ("8787", ServeAddress("127.0.0.1", 8787), True),
        ("localhost:80", ServeAddress("localhost", 80), True),
        ("[::1]:8787", ServeAddress("::1", 8787), True),
        ("0.0.0.0:8787", ServeAddress("0.0.0.0", 8787), False),
        ("[::]:8787", ServeAddress("::", 8787), False),
        ("192.168.1.5:0", ServeAddress("192.168.1.5", 0), False),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: ServeAddress, is_loopback: bool) -> None:
    assert read_address(text) == address
    assert address.is_loopback is is_loopback


@pytest.mark.parametrize(
    "text", ["", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "example.org:80", ":80", "a:b:c"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ServeAddressError, match=r"write 127\.0\.0\.1:8787"):
        read_address(text)


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("http://127.0.0.1:8787", "127.0.0.1:8787", True),
        ("https://board.example", "board.example", True),
        ("http://127.0.0.1:8788", "127.0.0.1:8787", False),
        ("http://evil.example", "127.0.0.1:8787", False),
        ("http://127.0.0.1:8787.evil.example", "127.0.0.1:8787", False),
        ("null", "127.0.0.1:8787", False),
        ("file://127.0.0.1:8787", "127.0.0.1:8787", False),
        ("", "127.0.0.1:8787", False),
        ("", "", False),
    ],
)
def test_a_socket_is_for_the_page_of_the_same_host(origin: str, host: str, is_own: bool) -> None:
    assert is_own_page(origin, host) is is_own


@pytest.mark.parametrize(
    ("address", "host", "is_allowed"),
    [
        (ServeAddress("127.0.0.1", 8787), "127.0.0.1:8787", True),
        (ServeAddress("127.0.0.1", 8787), "localhost:8787", True),
        (ServeAddress("127.0.0.1", 8787), "rebound.example:8787", False),
        (ServeAddress("127.0.0.1", 8787), "127.0.0.1:9999", False),
        (ServeAddress("0.0.0.0", 8787), "server.example:8787", True),
    ],
)
def test_on_loopback_only_its_own_names_are_served(address: ServeAddress, host: str, is_allowed: bool) -> None:
    assert address.allows_host(host) is is_allowed


# -- the server -------------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(command: list[str]) -> AsyncIterator[tuple[BrowserServer, ClientSession]]:
    server = BrowserServer(HERE, TOKEN, command)
    stop, ready = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(serve(server, lambda _: ready.set(), stop))
    await ready.wait()
    try:
        async with ClientSession(f"http://{server.address.shown}") as client:
            yield server, client
    finally:
        stop.set()
        await task


def origin_of(server: BrowserServer) -> str:
    return f"http://{server.address.shown}"


async def test_without_the_token_nothing_is_there() -> None:
    async with served(["false"]) as (server, client):
        found = {}
        for path in ("/", "/ws", "/static/js/textual.js", "/page.js", "/wrong/", "/wrong/ws", "/wrong/static/js/textual.js",
                     f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", f"/static/../{TOKEN}", "/favicon.ico"):  # fmt: skip
            async with client.get(path, headers={"Origin": origin_of(server)}) as response:
                found[path] = response.status
        assert set(found.values()) == {404}, found
        for path in ("/", "/page.js", "/page.css", "/static/js/textual.js", "/static/css/xterm.css"):
            async with client.get(f"/{TOKEN}{path}") as response:
                assert response.status == 200, path
                assert (
                    "frame-ancestors 'none'" in response.headers.get("Content-Security-Policy", "")
                    or "static" in path
                )


async def test_another_name_of_this_machine_is_not_served() -> None:
    async with (
        served(["false"]) as (_, client),
        client.get(f"/{TOKEN}/", headers={"Host": "rebound.example"}) as response,
    ):
        assert response.status == 404


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null"])
async def test_the_socket_is_closed_to_other_pages(origin: str | None) -> None:
    async with served(["false"]) as (server, client):
        with pytest.raises(WSServerHandshakeError) as refused:
            await client.ws_connect(f"/{TOKEN}/ws", headers={} if origin is None else {"Origin": origin})
        assert refused.value.status == 403
        assert not server.sessions


async def test_pages_are_bounded_and_a_closed_one_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "MOST_SESSIONS", 2)
    async with served(["sleep", "600"]) as (server, client):
        headers = {"Origin": origin_of(server)}
        pages = [await client.ws_connect(f"/{TOKEN}/ws", headers=headers) for _ in range(2)]
        await until_async(lambda: all(one._process for one in server.sessions), "both to be started")
        processes = [one._process.pid for one in server.sessions if one._process is not None]
        with pytest.raises(WSServerHandshakeError) as refused:
            await client.ws_connect(f"/{TOKEN}/ws", headers=headers)
        assert refused.value.status == 503
        monkeypatch.setattr(browser, "_MOST_END_S", 0.05)  # a program that does not listen is killed
        for page in pages:
            await page.close()
        await until_async(lambda: not server.sessions, "the sessions of closed pages to end")
        assert all(is_gone(pid) for pid in processes)


async def test_what_a_page_sends_besides_keys_and_sizes_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []

    async def send_bytes(_: PageSession, data: bytes) -> bool:
        sent.append(data)
        return True

    async def resized(_: PageSession, width: int, height: int) -> None:
        sent.append((width, height))

    monkeypatch.setattr(PageSession, "send_bytes", send_bytes)
    monkeypatch.setattr(PageSession, "set_terminal_size", resized)
    monkeypatch.setattr(browser, "_MOST_END_S", 0.05)
    async with served(["sleep", "600"]) as (server, client):
        async with client.ws_connect(f"/{TOKEN}/ws", headers={"Origin": origin_of(server)}) as page:
            for text in (
                "{",
                "[]",
                '["stdin"]',
                '["stdin", 5]',
                '["resize", {"width": "x"}]',
                '["quit"]',
                "null",
                '"stdin"',
            ):
                await page.send_str(text)
            await page.send_bytes(b"\xff")
            for width, height in ((100, 30), (10**9, -1), ("7", None)):
                await page.send_json(["resize", {"width": width, "height": height}])
            await page.send_json(["stdin", "j"])
            await until_async(lambda: b"j" in sent, "the key to arrive")
        assert sent == [(100, 30), (80, 24), (20, 24), b"j"]


# -- a page and its dashboard -----------------------------------------------------------------------------------


class Page:
    """What the dashboard has drawn, without its colours."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket, self.text = socket, ""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self.socket:
            if message.type is WSMsgType.BINARY:
                self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z$]", "", message.data.decode("utf-8", "replace"))

    async def press(self, keys: str) -> None:
        await self.socket.send_json(["stdin", keys])

    async def shows(self, text: str) -> None:
        await until_async(lambda: text in self.text, lambda: f"{text!r} in\n{self.text[-4000:]}")


def journal_head(path: Path) -> int:
    with LmdbStore.open(path, create=False) as store:
        return store.view(journal.head)


async def test_a_page_shows_the_store_and_can_change_nothing(example_store: Path) -> None:
    before = journal_head(example_store)
    command = session_command(TuiOptions(store=str(example_store), job="backup-db", theme="dark"))
    async with served(command) as (server, client):
        async with client.ws_connect(
            f"/{TOKEN}/ws?width=120&height=40", headers={"Origin": origin_of(server)}
        ) as socket:
            page = Page(socket)
            await page.shows("backup-db")
            await page.shows("read-only")
            await page.press("WtpXReu?")  # allow changes, trigger, pause, cancel, replay, edit, undo; then the keys
            await page.shows("Keys on the Jobs screen")
            assert "Trigger" not in page.text
            assert "changes are allowed" not in page.text
            (session,) = server.sessions
            assert session._process is not None
            pid = session._process.pid
        await until_async(lambda: is_gone(pid), "the dashboard to end with its page")
    assert journal_head(example_store) == before


@pytest.mark.parametrize("key", ["W", "t", "p", "u", "R", "X", "e"])
async def test_a_locked_dashboard_has_no_key_that_changes_anything(key: str) -> None:
    from chronex_tui.model.available_actions import ActionContext, action_for

    context = ActionContext("jobs", job="a", live_run="a@1", is_live=True, is_read_only=True, is_locked=True,
                            has_store=False, in_browser=True)  # fmt: skip
    assert action_for(key, context) is None


async def test_no_key_leaves_a_locked_dashboard(example_store: Path) -> None:
    options = StartOptions(job="backup-db", is_read_only=True, is_locked=True, in_browser=True)
    async with driven(app_on(example_store, options)) as driver:
        frame = await driver.press("W", "t")
        assert driver.app.state.is_read_only
        assert "Trigger" not in frame


def test_a_port_that_is_taken_is_told_in_the_words_of_the_system(example_store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = f"--serve: 127.0.0.1:{port} cannot be used: address already in use; choose another port"
        with pytest.raises(UsageError, match=f"^{re.escape(told)}$"):
            serve_dashboard(TuiOptions(store=str(example_store)), f"127.0.0.1:{port}")


# -- a real browser ---------------------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--window-size=1200,800")  # fmt: skip


class Tab:
    """One page of a browser, driven by its debugging protocol; it hears what the page's socket receives."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket, self._number = socket, 0
        self.answers: dict[int, Any] = {}
        self.drawn = ""
        self.errors: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        from base64 import b64decode

        async for message in self._socket:
            found = json.loads(message.data)
            if "id" in found:
                self.answers[found["id"]] = found.get("result", {})
            elif found["method"] == "Network.webSocketFrameReceived":
                frame = found["params"]["response"]
                if frame["opcode"] == 2:
                    text = b64decode(frame["payloadData"]).decode("utf-8", "replace")
                    self.drawn += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z$]", "", text)
            elif found["method"] in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.errors.append(str(found["params"]))

    async def call(self, method: str, **parameters: object) -> Any:
        self._number += 1
        number = self._number
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        return await until_async(lambda: (self.answers.get(number),) if number in self.answers else (), method)

    async def press(self, key: str) -> None:
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def shows(self, text: str) -> None:
        await until_async(lambda: text in self.drawn, lambda: f"{text!r} in\n{self.drawn[-4000:]}\n{self.errors}")

    async def value(self, expression: str) -> Any:
        (found,) = await self.call("Runtime.evaluate", expression=expression)
        return found["result"].get("value")


@asynccontextmanager
async def tab(profile: Path) -> AsyncIterator[Tab]:
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank",
        stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        while not (found := re.search(rb"ws://([^/]+)/", line := await process.stderr.readline())):
            assert line, "the browser ended before it could be driven"
        async with ClientSession(f"http://{found[1].decode()}") as client:
            async with client.put("/json/new?about:blank") as answer:
                target = await answer.json()
            async with client.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Tab(socket)
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed, so no real browser opens the dashboard")
@pytest.mark.parametrize(
    "is_allowed",
    [pytest.param(False, id="read-only", marks=pytest.mark.torture), pytest.param(True, id="with actions")],
)
async def test_a_browser_shows_the_dashboard(example_store: Path, tmp_path: Path, is_allowed: bool) -> None:
    before = journal_head(example_store)
    options = TuiOptions(store=str(example_store), job="rotate-logs", theme="dark", allow_actions=is_allowed)
    async with served(session_command(options)) as (server, _), tab(tmp_path / "profile") as page:
        for domain in ("Network", "Runtime", "Log", "Page"):
            await page.call(f"{domain}.enable")
        await page.call("Page.navigate", url=server.url)
        await page.shows("rotate-logs")
        assert "-first-byte" in await page.value("document.body.className")
        await page.press("t")
        await page.press("?" if not is_allowed else "y")
        await page.shows("Keys on the Jobs screen" if not is_allowed else "asked to run rotate-logs")
        assert await page.value("document.querySelectorAll('canvas').length") > 0
        await until_async(lambda: (journal_head(example_store) > before) == is_allowed, "the trigger on record")
        assert not [one for one in page.errors if "WebGL" not in one], page.errors
        await page.call("Page.navigate", url=server.url.replace(TOKEN, "guessed"))

        async def is_refused() -> str:
            text = str(await page.value("document.body?.innerText ?? ''"))
            return text if "Nothing here" in text else ""

        told: str = await until_async(is_refused, "the page without the token")
        assert "chronex tui --serve" in told
