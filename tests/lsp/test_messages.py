"""Messages that no editor should send: the server answers with an error or not at all, lives on, and leaves in order."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from tests.kit.forked import ChronexProcess
from tests.kit.waits import DEADLINE_S
from tests.lsp.sessions import ARGUMENTS, ROOT

DOCUMENT = {"uri": "file:///x/a.crontab"}
METHODS = [
    "textDocument/hover", "textDocument/completion", "textDocument/codeAction", "textDocument/inlayHint",
    "textDocument/documentSymbol", "textDocument/diagnostic", "textDocument/didChange", "textDocument/didClose",
    "workspace/didChangeConfiguration", "no/such/method", "$/cancelRequest",
]  # fmt: skip
VALUES: list[Any] = [None, 0, -1, 2**40, "x", "😀", [], {}, [None], {"a": []}, True]


class Wire:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._in, self._out = process, process.stdin, process.stdout
        self._id = 0

    def raw(self, body: bytes) -> None:
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._in.flush()

    def send(self, method: str, params: Any, *, is_request: bool = False) -> int:
        self._id += 1
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.raw(json.dumps(message | ({"id": self._id} if is_request else {})).encode())
        return self._id

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        asked = self.send(method, params, is_request=True)
        while True:
            message = self._read(self._out)
            if message.get("id") == asked and "method" not in message:
                return message

    def _read(self, stream: IO[bytes]) -> dict[str, Any]:
        length = 0
        while (line := stream.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the server has gone"
        message: dict[str, Any] = json.loads(stream.read(length))
        return message


@contextmanager
def server() -> Iterator[Wire]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'store'}"}
    process = ChronexProcess(
        ARGUMENTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        wire = Wire(process)
        wire.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        wire.send("initialized", {})
        yield wire
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def opened(wire: Wire, text: str) -> None:
    wire.send("textDocument/didOpen", {"textDocument": {**DOCUMENT, "languageId": "", "version": 1, "text": text}})


def test_nonsense_is_answered_and_the_server_lives_on() -> None:
    dice = random.Random(7)
    with server() as wire:
        opened(wire, "*/7 * * * * /usr/bin/a\n")
        for _ in range(120):
            method, params = dice.choice(METHODS), dice.choice(VALUES)
            if dice.random() < 0.5:
                params = {"textDocument": dice.choice([DOCUMENT, {"uri": "no uri"}, params]), "position": params,
                          "range": dice.choice(VALUES), "context": dice.choice(VALUES)}  # fmt: skip
            wire.send(method, params, is_request=dice.random() < 0.7)
        for body in (b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b'{"id": 1}', b"9" * 999):
            if body:
                wire.raw(body)
        opened(wire, "*/7 * * * * /usr/bin/a\n")
        answer = wire.ask("textDocument/hover", {"textDocument": DOCUMENT, "position": {"line": 0, "character": 2}})
        assert "Every hour at minutes 0, 7, 14" in answer["result"]["contents"]["value"]


def test_positions_outside_the_text_are_answered() -> None:
    with server() as wire:
        opened(wire, "*/7 * * * * /usr/bin/a\n")
        for line, character in [(0, 10**6), (10**6, 0), (2**31 - 1, 2**31 - 1), (1, 5)]:
            position = {"line": line, "character": character}
            whole = {"start": {"line": 0, "character": 0}, "end": position}
            questions: list[tuple[str, dict[str, Any]]] = [
                ("textDocument/hover", {"position": position}),
                ("textDocument/completion", {"position": position}),
                ("textDocument/inlayHint", {"range": whole}),
                ("textDocument/codeAction", {"range": whole, "context": {"diagnostics": []}}),
            ]
            for method, more in questions:
                assert "error" not in wire.ask(method, {"textDocument": DOCUMENT, **more})


def test_shutdown_and_exit_leave_with_0() -> None:
    with server() as wire:
        wire.ask("shutdown", None)
        wire.send("exit", None)
        assert wire.process.wait(DEADLINE_S) == 0


def test_an_editor_that_goes_away_takes_the_server_with_it() -> None:
    with server() as wire:
        assert wire.process.stdin is not None
        wire.process.stdin.close()
        assert wire.process.wait(DEADLINE_S) in (0, 1)
