"""The protocol: requests of an editor, answered from the analysis of its document. The only user of pygls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from chronex.jobfile.positions import LineIndex
from chronex.lint.cron_programs import CRON_PROGRAMS, CronProgram
from chronex.lint.findings import Assumptions, Edit, LintFinding, ZoneNote
from chronex.lint.formats import rule_address
from chronex.lint.host_schedules import zone_or_utc
from chronex.lint.lint_config import InvalidLintConfigError, LintConfig, config_above, lint_configured, with_config
from chronex.lint.linter import Analysis, fixed
from chronex.lint.source_files import open_document
from chronex.lsp.code_actions import FIX_ALL, EditorAction, actions_between, canonical_edits, fix_all
from chronex.lsp.completions import completions_at
from chronex.lsp.hovers import hints, hover_at
from chronex.version import __version__

_DEBOUNCE_SECONDS = 0.15
_REFRESH_SECONDS = 60.0
_MINUTE_MS = 60_000
# Files that are Chronex's own; in all others another program is the formatter.
_FORMATTED_KINDS = ("chronex", "trigger")
_FORMATTED_FILES = ("**/chronex.toml", "**/*.chronex.toml", "**/*{trigger,triggers}.json")
_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
_COMPLETION_KINDS = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "value": lsp.CompletionItemKind.Value,
    "property": lsp.CompletionItemKind.Property,
}


class ServerInputs(NamedTuple):
    """What the program gives to the server: the clock, and the zone of the machine."""

    now_ms: Callable[[], int]
    assume: Assumptions


class Read(NamedTuple):
    """A document as it stands in the editor."""

    analysis: Analysis
    positions: Positions

    def position(self, offset: int) -> lsp.Position:
        return lsp.Position(*self.positions.of(offset + self.analysis.document.has_mark))

    def range(self, start: int, end: int) -> lsp.Range:
        return lsp.Range(self.position(start), self.position(end))

    def offset(self, position: lsp.Position) -> int:
        offset = self.positions.offset(position.line, position.character)
        return max(offset - self.analysis.document.has_mark, 0)

    def edit(self, edit: Edit) -> lsp.TextEdit:
        return lsp.TextEdit(self.range(edit.start, edit.end), edit.text)


class EditorText(TextDocument):
    """An open document as its editor has it.

    The document of pygls begins a line at each character that `str.splitlines` knows, a form feed among them, and
    keeps one character too many where a position lies behind the end of the last line.
    """

    def __init__(self, opened: TextDocument, encoding: str) -> None:
        super().__init__(opened.uri, opened.source, opened.version, opened.language_id)
        self.positions = Positions(opened.source, encoding)

    @property
    def source(self) -> str:
        return self.positions.text

    def apply_change(self, change: lsp.TextDocumentContentChangeEvent) -> None:
        text = change.text
        if isinstance(change, lsp.TextDocumentContentChangePartial):
            at, old = change.range, self.source
            start = self.positions.offset(at.start.line, at.start.character)
            end = self.positions.offset(at.end.line, at.end.character)
            text = old[:start] + text + old[max(start, end) :]
        self.positions = Positions(text, self.positions.encoding)


class ChronexServer(LanguageServer):
    """Editors send what changed of a document, and ask about documents that they have opened."""

    def __init__(self, inputs: ServerInputs) -> None:
        super().__init__("chronex", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental)
        self.inputs = inputs
        self.zone: str | None = None
        self.shows_hints = True
        self.waiting: dict[str, asyncio.TimerHandle] = {}
        self.refreshing: asyncio.Task[None] | None = None
        self.cron: CronProgram | None = None
        self._held_back: Callable[..., Any] | None = None
        self._known: dict[str, tuple[object, Read]] = {}

    # -- documents ----------------------------------------------------------------------------------------

    def now(self) -> int:
        """The minute that it is: findings do not depend on more, and stay the same within it."""
        return self.inputs.now_ms() // _MINUTE_MS * _MINUTE_MS

    def assume(self) -> Assumptions:
        assume = self.inputs.assume._replace(reference_ms=self.now())
        if self.zone is not None:
            assume = assume._replace(zone=ZoneNote(self.zone, "from the editor's settings"))
        return assume if self.cron is None else assume._replace(cron=self.cron)

    def keep_as_edited(self, uri: str) -> None:
        """The document that pygls has opened, from now on as the editor has it."""
        opened = self.workspace.get_text_document(uri)
        encoding = str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding) or UTF16)
        documents = self.workspace.text_documents
        for key in [key for key, document in documents.items() if document is opened]:  # pygls decodes its keys
            documents[key] = EditorText(opened, encoding)

    def open_text(self, uri: str) -> EditorText | None:
        document = self.workspace.get_text_document(uri)  # pygls makes one of a file that is not open
        return document if isinstance(document, EditorText) else None

    def read(self, uri: str) -> Read:
        document = self.open_text(uri)
        if document is None:
            raise JsonRpcInvalidParams(message=f"{uri} is not open")
        assume = self.assume()
        config = _config_above(to_fs_path(uri) or uri)
        key = (document.version, document.source, assume.reference_ms, assume.zone, assume.cron, config)
        known = self._known.get(uri)
        if known is not None and known[0] == key:
            return known[1]
        path = to_fs_path(uri) or uri
        opened = open_document(path, document.source, None, document.language_id or "")
        found = Read(lint_configured(opened, assume, config), document.positions)
        self._known[uri] = (key, found)
        return found

    def fixed_text(self, uri: str) -> str:
        """The text with all safe fixes, as `chronex lint --fix` would write it."""
        config = _config_above(to_fs_path(uri) or uri)
        document = self.read(uri).analysis.document
        if config.excludes(document.path):
            return document.text
        return fixed(document, with_config(self.assume(), config), config.choice_for(document.path).keeps).text

    def forget(self, uri: str) -> None:
        self._known.pop(uri, None)
        if (handle := self.waiting.pop(uri, None)) is not None:
            handle.cancel()

    # -- formatting ---------------------------------------------------------------------------------------

    def hold_back_formatting(self) -> None:
        """An editor that can be told for which files is told later: as a formatter of all Python and YAML the server
        would stand in the way of theirs."""
        documents = self.client_capabilities.text_document
        if documents is not None and documents.formatting is not None and documents.formatting.dynamic_registration:
            self._held_back = self.protocol.fm.features.pop(lsp.TEXT_DOCUMENT_FORMATTING, None)

    def register_formatting(self) -> None:
        if self._held_back is None:
            return
        self.protocol.fm.features[lsp.TEXT_DOCUMENT_FORMATTING] = self._held_back
        selector = [lsp.TextDocumentFilterPattern(pattern=pattern) for pattern in _FORMATTED_FILES]
        options = lsp.DocumentFormattingRegistrationOptions(document_selector=selector)
        registration = lsp.Registration("chronex-formatting", lsp.TEXT_DOCUMENT_FORMATTING, options)
        self.client_register_capability(lsp.RegistrationParams([registration]))

    # -- diagnostics --------------------------------------------------------------------------------------

    @property
    def pulls_diagnostics(self) -> bool:
        """A client that asks for diagnostics is not sent them too, or it would show them twice."""
        documents = self.client_capabilities.text_document
        return documents is not None and documents.diagnostic is not None

    def diagnostics(self, uri: str) -> list[lsp.Diagnostic]:
        read = self.read(uri)
        return [_diagnostic(read, finding) for finding in read.analysis.findings]

    def publish(self, uri: str) -> None:
        self.waiting.pop(uri, None)
        document = self.open_text(uri)
        if self.pulls_diagnostics or document is None:
            return
        found = lsp.PublishDiagnosticsParams(uri, self.diagnostics(uri), document.version)
        self.text_document_publish_diagnostics(found)

    def publish_soon(self, uri: str) -> None:
        if (handle := self.waiting.pop(uri, None)) is not None:
            handle.cancel()
        self.waiting[uri] = asyncio.get_running_loop().call_later(_DEBOUNCE_SECONDS, self.publish, uri)

    def read_settings(self, given: Any) -> None:
        """Settings: { timezone, cron, inlayHints }, alone or under "chronex"."""
        settings = _as_dict(given)
        settings = _as_dict(settings.get("chronex", settings))
        zone, shows, cron = settings.get("timezone"), settings.get("inlayHints"), settings.get("cron")
        if isinstance(cron, str):
            self.cron = CRON_PROGRAMS.get(cron)
        if isinstance(zone, str):
            self.zone = zone if zone_or_utc(zone).name == zone else None
        if isinstance(shows, bool):
            self.shows_hints = shows

    async def refresh_hints(self) -> None:
        """Once a minute, and not before the client has answered the last request; the answer has no content."""
        request: Future[None] | None = None
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            if self.workspace.text_documents and self.shows_hints and (request is None or request.done()):
                request = self.workspace_inlay_hint_refresh(None)


def _as_dict(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    return dict(getattr(given, "_asdict", dict)()) if given is not None else {}


def _config_above(path: str) -> LintConfig:
    """Settings with mistakes count as not there: the command line says what is wrong with them."""
    try:
        return config_above(path)
    except InvalidLintConfigError:
        return LintConfig()


def _diagnostic(read: Read, finding: LintFinding) -> lsp.Diagnostic:
    tags = [lsp.DiagnosticTag.Unnecessary] if finding.code == "W142" else None
    return lsp.Diagnostic(
        read.range(finding.start, finding.end),
        finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        source="chronex",
        tags=tags,
        code_description=lsp.CodeDescription(address) if (address := rule_address(finding.code)) else None,
    )


def _code_action(uri: str, read: Read, action: EditorAction) -> lsp.CodeAction:
    edits = [read.edit(edit) for edit in action.edits]
    return lsp.CodeAction(
        action.title,
        kind=action.kind,
        diagnostics=[_diagnostic(read, action.finding)] if action.finding is not None else None,
        is_preferred=action.is_preferred or None,
        edit=lsp.WorkspaceEdit(changes={uri: edits}),
    )


def _is_of_kind(kind: str, wanted: str) -> bool:
    return kind == wanted or kind.startswith(f"{wanted}.")


def build(inputs: ServerInputs) -> ChronexServer:
    server = ChronexServer(inputs)
    _add_lifecycle(server)
    _add_queries(server)
    _add_edits(server)
    return server


def _add_lifecycle(server: ChronexServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.read_settings(params.initialization_options)
        server.hold_back_formatting()

    @server.feature(lsp.INITIALIZED)
    def initialized(params: lsp.InitializedParams) -> None:
        server.register_formatting()
        workspace = server.client_capabilities.workspace
        refresh = workspace.inlay_hint.refresh_support if workspace and workspace.inlay_hint else False
        if refresh:
            server.refreshing = asyncio.get_running_loop().create_task(server.refresh_hints())

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: lsp.DidChangeConfigurationParams) -> None:
        server.read_settings(params.settings)
        workspace = server.client_capabilities.workspace
        if server.pulls_diagnostics and workspace and workspace.diagnostics and workspace.diagnostics.refresh_support:
            server.workspace_diagnostic_refresh(None)  # the answers that it has are no longer true
        for document in server.workspace.text_documents.values():
            server.publish_soon(document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.keep_as_edited(params.text_document.uri)
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.publish_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.forget(uri)
        if not server.pulls_diagnostics:
            server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


def _add_queries(server: ChronexServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(identifier="chronex", inter_file_dependencies=False, workspace_diagnostics=False),
    )
    def diagnostic(params: lsp.DocumentDiagnosticParams) -> lsp.RelatedFullDocumentDiagnosticReport:
        return lsp.RelatedFullDocumentDiagnosticReport(server.diagnostics(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        read = server.read(params.text_document.uri)
        local = zone_or_utc(server.assume().zone.name)
        found = hover_at(read.analysis, read.offset(params.position), server.now(), local)
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.markdown)
        return lsp.Hover(content, read.range(found.start, found.end))

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hint(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        if not server.shows_hints:
            return []
        read = server.read(params.text_document.uri)
        start, end = read.offset(params.range.start), read.offset(params.range.end)
        return [
            lsp.InlayHint(
                read.position(hint.offset), hint.label, tooltip=hint.tooltip, padding_left=True
            )
            for hint in hints(read.analysis, start, end, server.now())
        ]  # fmt: skip

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def document_symbol(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        read = server.read(params.text_document.uri)
        return [
            lsp.DocumentSymbol(
                site.name.strip() or site.host.title,
                lsp.SymbolKind.Event,
                read.range(site.start, site.end),
                read.range(site.start, site.end),
                detail=site.text,
            )
            for site in read.analysis.sites
        ]  # fmt: skip


def _add_edits(server: ChronexServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.RefactorRewrite, FIX_ALL]),
    )
    def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        read = server.read(uri)
        start, end = read.offset(params.range.start), read.offset(params.range.end)
        wanted = [str(getattr(kind, "value", kind)) for kind in params.context.only or []]
        if any(_is_of_kind(FIX_ALL, kind) for kind in wanted):  # asked for by name, as on saving
            return [_code_action(uri, read, action) for action in fix_all(read.analysis, server.fixed_text(uri))]
        return [
            _code_action(uri, read, action)
            for action in actions_between(read.analysis, start, end, server.now())
            if not wanted or any(_is_of_kind(action.kind, kind) for kind in wanted)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        read = server.read(params.text_document.uri)
        if read.analysis.document.kind not in _FORMATTED_KINDS:
            return []
        return [read.edit(edit) for edit in canonical_edits(read.analysis)]

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=[" ", "@", "=", "/", "{", '"', "'"]),
    )
    def completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        read = server.read(params.text_document.uri)
        offset = read.offset(params.position)
        found = completions_at(read.analysis.document, offset)
        return [
            lsp.CompletionItem(
                item.label,
                kind=_COMPLETION_KINDS[item.kind],
                detail=item.detail or None,
                sort_text=f"{number:04}",
                text_edit=read.edit(Edit(item.start, item.end, item.label)),
            )
            for number, item in enumerate(found)
        ]  # fmt: skip


FEATURES = {
    "diagnostics": "pushed on open, change and save, or pulled",
    "hover": "words, next five runs, the next clock change, language and zone",
    "inlay hints": "the next run behind each schedule",
    "completion": "fields, names, nicknames, zones, options, keys of chronex.toml",
    "code actions": "every fix, ignore here, move out of the clock change, spread the minute; source.fixAll",
    "formatting": "schedules of Chronex's own files in canonical text",
    "document symbols": "every schedule of the file",
}


UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"
_UNITS: dict[str, Callable[[str], int]] = {
    UTF8: lambda text: len(text.encode("utf-8", "surrogatepass")),
    UTF16: lambda text: len(text) + sum(char > "\uffff" for char in text),
    UTF32: len,
}


class Positions:
    """Both ways, for one text in one encoding. Any position is answered, also one that lies outside."""

    def __init__(self, text: str, encoding: str = UTF16) -> None:
        self.text, self.lines, self.encoding = text, LineIndex(text), encoding
        self._units = _UNITS.get(encoding, _UNITS[UTF16])

    def of(self, offset: int) -> tuple[int, int]:
        """Line and character, both counted from 0."""
        offset = max(0, min(offset, len(self.text)))
        line, column = self.lines.line_and_column(offset)
        return line - 1, self._units(self.text[offset - column + 1 : offset])

    def offset(self, line: int, character: int) -> int:
        if line < 0:
            return 0
        if line >= self.lines.count:
            return len(self.text)
        start, end = self.lines.start_of_line(line + 1), self.lines.end_of_line(line + 1)
        if self.text[max(start, end - 1) : end + 1] == "\r\n":
            end -= 1  # no editor stands between the two
        at, units = start, 0
        while at < end and units < character:
            units += self._units(self.text[at])
            at += 1
        return at
