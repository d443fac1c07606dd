"""A server as a child process, spoken to by a client that claims to be this or that editor."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from tests.kit.forked import stand_in
from tests.lint.golden import NOW, ZONE

ROOT = Path(__file__).parent.parent.parent
ARGUMENTS = ["lsp", "--tz", ZONE, "--now", NOW]
PUSHED_TO = "visual-studio-code"  # 1.65, which does not ask
ASKS = "neovim@v0.11.0"


@asynccontextmanager
async def session(
    editor: str = ASKS,
    options: dict[str, object] | None = None,
    encoding: lsp.PositionEncodingKind = lsp.PositionEncodingKind.Utf16,
) -> AsyncIterator[LanguageClient]:
    environment = {**os.environ, "CHRONEX_CRON": "debian", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'store'}"}
    client = await ClientServerConfig(server_command=[stand_in(), *ARGUMENTS], server_env=environment).start()
    assert isinstance(client, LanguageClient)
    capabilities = client_capabilities(editor)
    assert capabilities.general is not None
    capabilities.general.position_encodings = [encoding]
    await client.initialize_session(lsp.InitializeParams(capabilities, initialization_options=options))
    try:
        yield client
    finally:
        await client.shutdown_session()
        await client.stop()  # type: ignore[no-untyped-call]


def uri(path: str) -> str:
    return f"file:///golden/{path}"


def open_text(client: LanguageClient, path: str, text: str, language: str = "") -> lsp.TextDocumentIdentifier:
    item = lsp.TextDocumentItem(uri(path), language, 1, text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    return lsp.TextDocumentIdentifier(uri(path))


def change(client: LanguageClient, path: str, version: int, text: str) -> None:
    document = lsp.VersionedTextDocumentIdentifier(version, uri(path))
    whole = lsp.TextDocumentContentChangeWholeDocument(text)
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [whole]))


async def asked(client: LanguageClient, document: lsp.TextDocumentIdentifier) -> list[lsp.Diagnostic]:
    report = await client.text_document_diagnostic_async(lsp.DocumentDiagnosticParams(document))
    assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
    return list(report.items)


def utf16_index(line: str, column: int) -> int:
    return len(line[:column].encode("utf-16-le")) // 2


def written(text: str, diagnostics: list[lsp.Diagnostic]) -> list[str]:
    """As the golden table writes findings: from UTF-16 units back to characters, counted from 1."""
    lines = text.split("\n")

    def place(position: lsp.Position) -> str:
        line = lines[position.line]
        units = line.encode("utf-16-le")[: position.character * 2]
        return f"{position.line + 1}:{len(units.decode('utf-16-le')) + 1}"

    return [f"{place(d.range.start)}-{place(d.range.end)} {d.code}" for d in diagnostics]


def applied(text: str, edits: list[lsp.TextEdit]) -> str:
    lines = text.split("\n")

    def offset(position: lsp.Position) -> int:
        line = lines[position.line]
        column = len(line.encode("utf-16-le")[: position.character * 2].decode("utf-16-le"))
        return sum(len(before) + 1 for before in lines[: position.line]) + column

    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text
