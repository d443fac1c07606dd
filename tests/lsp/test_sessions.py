"""A long time in an editor: whatever is typed, findings are those of the text that then stands there."""

from __future__ import annotations

import signal
import subprocess
from random import Random
from urllib.parse import quote

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from tests.kit.forked import PythonProcess
from tests.kit.waits import DEADLINE_S
from tests.lint.golden import CASES
from tests.lsp.sessions import PUSHED_TO, asked, open_text, session, uri

Range = tuple[int, int, int, int]


def changes(path: str, version: int, *parts: tuple[Range, str]) -> lsp.DidChangeTextDocumentParams:
    """What an editor sends for these edits, one after another."""
    edits = [
        lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(*at[:2]), lsp.Position(*at[2:])), text)
        for at, text in parts
    ]
    return lsp.DidChangeTextDocumentParams(lsp.VersionedTextDocumentIdentifier(version, uri(path)), edits)


@pytest.mark.parametrize(
    ("text", "at", "new", "becomes"),
    [
        ("# \f\n0 9 * * * x\n", (1, 2, 1, 3), "25", "# \f\n0 25 * * * x\n"),
        (
            "# \x0b\x1c\x85\u2028\u2029\n0 9 * * * x\n",
            (1, 2, 1, 3),
            "25",
            "# \x0b\x1c\x85\u2028\u2029\n0 25 * * * x\n",
        ),
        ("# a\rb\n0 9 * * * x\n", (1, 2, 1, 3), "25", "# a\rb\n0 25 * * * x\n"),
        ("0 25 * * * xy", (0, 0, 0, 4_000), "", ""),
        ("0 9 * * * x\n0 25 * * * y", (1, 0, 7, 0), "", "0 9 * * * x\n"),
        ("0 9 * * * x\r\n", (0, 11, 0, 90), "\r\n0 25 * * * y", "0 9 * * * x\r\n0 25 * * * y\r\n"),
        ("'0 9 * * *'\r\n", (0, 1, 0, 90), "", "'\r\n"),
        ("# 😀😀", (0, 6, 0, 6), "\n0 25 * * * x", "# 😀😀\n0 25 * * * x"),
    ],
    ids=repr,
)
async def test_a_change_is_made_where_the_editor_has_its_cursor(text: str, at: Range, new: str, becomes: str) -> None:
    """Lines end with a line feed alone: an editor does not begin one at a form feed, as Python's splitlines does."""
    async with session() as client:
        changed, whole = open_text(client, "a/x.crontab", text), open_text(client, "b/x.crontab", becomes)
        client.text_document_did_change(changes("a/x.crontab", 2, (at, new)))
        assert await asked(client, changed) == await asked(client, whole)


@pytest.mark.parametrize("name", ["a b.crontab", "é/😀.crontab", "100%.crontab"])
async def test_a_path_may_have_any_characters(name: str) -> None:
    """An editor writes them with percent signs."""
    path = quote(name)
    async with session() as client:
        document = open_text(client, path, "0 25 * * * x\n")
        assert [d.code for d in await asked(client, document)] == ["E003"]
    async with session(PUSHED_TO) as client:
        document = open_text(client, path, "0 25 * * * x\n")
        client.text_document_did_change(changes(path, 2, ((0, 2, 0, 4), "9")))
        client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams({"chronex": {}}))
        assert await asked(client, document) == []
        client.text_document_did_save(lsp.DidSaveTextDocumentParams(document))
        await asked(client, document)
        assert {address: list(found) for address, found in client.diagnostics.items()} == {uri(path): []}


TYPED = ("0", "25", "*", "/", "~", "-", ",", " ", "\t", "'", '"', "[", "]", "{", "}", "=", ":", "#", "%", "@daily", "MON", "PST",
         "\n", "\r\n", "\r", "\f", "\x0b", "\x85", "\u2028", "\0", "é", "日", "😀", "e\u0301", "\ufeff", "\u00a0",
         "0 25 * * * x\n", "  - cron: '0 0 31 2 *'\n", "schedule = \"0 24 * * *\"\n", "# chronex: ignore[W111]\n")  # fmt: skip


def edit(dice: Random, text: str, encoding: str) -> tuple[Range, str, str]:
    """Where, what, and the text that the editor then shows."""
    start = dice.randrange(len(text) + 1)
    end = min(len(text), start + dice.choice([0, 0, 0, 1, 2, 8, 60]))
    start, end = (at - (text[at - 1 : at + 1] == "\r\n") for at in (start, end))
    new = "".join(dice.choice(TYPED) for _ in range(dice.choice([0, 1, 1, 2, 5])))
    span = (*place(text, start, encoding), *place(text, end, encoding))
    if end == len(text) and dice.random() < 0.5:
        span = (*span[:2], span[2] + dice.choice([0, 1, 9]), span[3] + dice.choice([1, 2_000_000_000]))
    return span, new, text[:start] + new + text[end:]


def place(text: str, offset: int, encoding: str) -> tuple[int, int]:
    before = text[:offset].split("\n")
    return len(before) - 1, len(before[-1].encode(f"{encoding}-le" if encoding != "utf-8" else encoding)) // (
        {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    )


async def follow(seed: int, steps: int) -> None:
    dice = Random(seed)
    encoding = dice.choice(list(lsp.PositionEncodingKind))
    cases = dice.sample(CASES, 6)
    async with session(encoding=encoding) as client:
        texts = {f"long/{case.path}": case.text for case in cases}
        documents = {path: open_text(client, path, text) for path, text in texts.items()}
        for version in range(2, steps):
            path = dice.choice(list(texts))
            if dice.random() < 0.05:
                client.text_document_did_close(lsp.DidCloseTextDocumentParams(documents[path]))
                with pytest.raises(JsonRpcInvalidParams, match="is not open"):
                    await asked(client, documents[path])
                open_text(client, path, texts[path])
            parts: list[tuple[Range, str]] = []
            for _ in range(dice.choice([1, 1, 1, 2, 6])):
                span, new, texts[path] = edit(dice, texts[path], str(encoding.value))
                parts.append((span, new))
            client.text_document_did_change(changes(path, version, *parts))
            if dice.random() < 0.3:
                continue  # a burst
            at = lsp.Position(*place(texts[path], dice.randrange(len(texts[path]) + 1), str(encoding.value)))
            everything = lsp.Range(lsp.Position(0, 0), lsp.Position(10_000, 0))
            context = lsp.CodeActionContext([])
            await client.text_document_hover_async(lsp.HoverParams(documents[path], at))
            await client.text_document_completion_async(lsp.CompletionParams(documents[path], at))
            await client.text_document_inlay_hint_async(lsp.InlayHintParams(documents[path], everything))
            await client.text_document_code_action_async(lsp.CodeActionParams(documents[path], everything, context))
            await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(documents[path]))
            options = lsp.FormattingOptions(4, insert_spaces=True)
            await client.text_document_formatting_async(lsp.DocumentFormattingParams(documents[path], options))
            fresh = open_text(client, path.replace("long", "fresh", 1), texts[path])
            assert await asked(client, documents[path]) == await asked(client, fresh), (seed, version, texts[path])
            client.text_document_did_close(lsp.DidCloseTextDocumentParams(fresh))
        assert client.log_messages == []
        assert client.messages == []


@pytest.mark.parametrize(
    ("seeds", "steps"),
    [(range(1), 80), pytest.param(range(1, 60), 300, marks=[pytest.mark.torture, pytest.mark.timeout(7200)])],
)
async def test_a_long_session_has_the_findings_of_the_text_that_stands_there(seeds: range, steps: int) -> None:
    for seed in seeds:
        await follow(seed, steps)


def test_an_interrupt_ends_the_server_though_its_editor_says_nothing() -> None:
    request = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}'
    pipe = subprocess.PIPE
    with PythonProcess(["-m", "chronex", "lsp"], stdin=pipe, stdout=pipe, stderr=pipe) as server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            assert server.stderr is not None
            server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(request), request))
            server.stdin.flush()
            assert server.stdout.readline().startswith(b"Content-Length")
            server.send_signal(signal.SIGINT)
            assert server.wait(DEADLINE_S) == 130
            assert server.stderr.read() == b""
        finally:
            server.kill()
