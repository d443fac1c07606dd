"""The server through the protocol: the golden table, each feature once, and texts that are half typed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.workspace import PositionCodec, TextDocument
from pytest_lsp import LanguageClient

from chronex.lsp.server import UTF8, UTF16, UTF32, Positions
from tests.lint.golden import CASES
from tests.lsp.sessions import PUSHED_TO, applied, asked, change, open_text, session, uri, written

TABLE = {case.path: list(case.findings) for case in CASES}
JOBS = '# 😀\n[jobs.nightly]\nrun = "x" # 😀\nschedule = "30 2 * * *"\ntask_timeout = "1h"\n'


def whole(text: str) -> lsp.Range:
    return lsp.Range(lsp.Position(0, 0), lsp.Position(text.count("\n") + 1, 0))


async def actions(client: LanguageClient, path: str, text: str) -> dict[str, lsp.CodeAction]:
    document = lsp.TextDocumentIdentifier(uri(path))
    params = lsp.CodeActionParams(document, whole(text), lsp.CodeActionContext([]))
    found = await client.text_document_code_action_async(params)
    return {action.title: action for action in found or [] if isinstance(action, lsp.CodeAction)}


def result_of(action: lsp.CodeAction, path: str, text: str) -> str:
    assert action.edit is not None
    assert action.edit.changes is not None
    return applied(text, list(action.edit.changes[uri(path)]))


async def test_asked_for_diagnostics_it_answers_with_the_golden_table() -> None:
    async with session() as client:
        found = {}
        for case in CASES:
            document = open_text(client, case.path, case.text)
            found[case.path] = written(case.text, await asked(client, document))
    assert found == TABLE


async def test_an_editor_that_does_not_ask_is_sent_the_same() -> None:
    async with session(PUSHED_TO) as client:
        for case in CASES:
            open_text(client, case.path, case.text)
        await asked(client, lsp.TextDocumentIdentifier(uri(CASES[-1].path)))  # all were sent before this answer
        found = {case.path: written(case.text, list(client.diagnostics[uri(case.path)])) for case in CASES}
    assert found == TABLE


async def test_an_editor_that_counts_bytes_is_answered_in_bytes() -> None:
    async with session(encoding=lsp.PositionEncodingKind.Utf8) as client:
        document = open_text(client, "a.py", "import chronex\nx = '😀'; chronex.parse('0 25 * * *')\n")
        found = await asked(client, document)
    assert [(d.range.start.character, d.range.end.character) for d in found] == [(29, 31)]


async def test_changes_are_pushed_and_a_closed_file_has_no_findings() -> None:
    path = "a.crontab"
    async with session(PUSHED_TO) as client:
        open_text(client, path, "@wekly /usr/bin/a\n")
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        change(client, path, 2, "@weekly /usr/bin/a\n@dialy /usr/bin/b\n")
        change(client, path, 3, "@weekly /usr/bin/a\n@daily /usr/bin/b\n*/7 * * * * /usr/bin/c\n")
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        assert [d.code for d in client.diagnostics[uri(path)]] == ["W103"]
        closed = lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri(path)))
        client.text_document_did_close(closed)
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        assert list(client.diagnostics[uri(path)]) == []


async def test_hover_hints_symbols_and_completion() -> None:
    path = "chronex.toml"
    async with session() as client:
        document = open_text(client, path, JOBS)
        at = lsp.Position(3, 14)
        hover = await client.text_document_hover_async(lsp.HoverParams(document, at))
        hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, whole(JOBS)))
        symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
        items = await client.text_document_completion_async(lsp.CompletionParams(document, lsp.Position(3, 12)))
    assert hover is not None
    assert isinstance(hover.contents, lsp.MarkupContent)
    markdown = hover.contents.value
    assert markdown.startswith("**At 02:30**\n\n- Fri 01 Jan 2027 02:30 CET (in 1h30m)\n- Sat 02 Jan")
    assert markdown.count("\n- ") == 5
    assert "Clock change on Sun 28 Mar 2027 (Europe/Berlin): 02:30 does not exist" in markdown
    assert "Zone Europe/Berlin: from --tz. Language: Chronex, because it is read by Chronex." in markdown
    assert [(hint.position.line, hint.position.character, hint.label) for hint in hints or []] == [
        (3, 23, "Fri 02:30 CET (in 1h30m)")
    ]
    assert [(s.name, s.detail) for s in symbols or [] if isinstance(s, lsp.DocumentSymbol)] == [
        ("nightly", "30 2 * * *")
    ]
    assert isinstance(items, list)
    assert {"@daily", "*/15", "TZ="} <= {item.label for item in items}


async def test_actions_fix_ignore_and_move_and_leave_no_finding() -> None:
    path = "chronex.toml"
    async with session() as client:
        document = open_text(client, path, JOBS)
        offered = await actions(client, path, JOBS)
        assert list(offered) == [
            "Move 02:30 to 03:30, outside the clock change", "Ignore W111 here", "Ignore W112 here",
        ]  # fmt: skip
        moved = result_of(offered["Move 02:30 to 03:30, outside the clock change"], path, JOBS)
        assert moved == JOBS.replace("30 2", "30 3")
        ignored = result_of(offered["Ignore W111 here"], path, JOBS)
        change(client, path, 2, moved)
        assert await asked(client, document) == []
        change(client, path, 3, ignored)
        assert [d.code for d in await asked(client, document)] == ["W112"]


async def test_all_safe_fixes_come_as_one_action_where_an_editor_asks_for_them_by_name() -> None:
    path, text = "a.crontab", "0 9 * * monday x 😀\n*/1 * * * * y\n5/10 * * * * z\n"
    async with session() as client:
        document = open_text(client, path, text)
        everything = whole(text)
        for only in (lsp.CodeActionKind.SourceFixAll, "source.fixAll.chronex"):
            context = lsp.CodeActionContext([], only=[only])
            found = await client.text_document_code_action_async(lsp.CodeActionParams(document, everything, context))
            assert found is not None
            (action,) = found
            assert isinstance(action, lsp.CodeAction)
            better = result_of(action, path, text)
            assert better == "0 9 * * MON x 😀\n* * * * * y\n5/10 * * * * z\n"  # 5/10 is a suggestion
        change(client, path, 2, better)
        assert not await client.text_document_code_action_async(lsp.CodeActionParams(document, everything, context))


async def test_formatting_writes_the_schedules_of_a_job_file_in_canonical_text() -> None:
    text = (
        '[jobs.a]\nschedule = "0 09 * * mon-fri <jitter:90s>"  # 😀\nrun = "x"\n[jobs.b]\nschedule = "0 99 * * *"\n'
    )
    options = lsp.FormattingOptions(4, True)
    async with session() as client:
        document = open_text(client, "chronex.toml", text)
        edits = await client.text_document_formatting_async(lsp.DocumentFormattingParams(document, options))
        assert edits is not None
        assert [edit.new_text for edit in edits] == ["0 9 * * MON-FRI {jitter:1m30s}"]
        other = open_text(client, "a.py", "import chronex\nx = chronex.parse('0 09 * * *')\n")
        assert not await client.text_document_formatting_async(lsp.DocumentFormattingParams(other, options))


async def test_a_question_about_a_file_that_is_not_open_is_a_typed_error() -> None:
    async with session() as client:
        never_opened = lsp.TextDocumentIdentifier(uri("never.crontab"))
        with pytest.raises(JsonRpcInvalidParams, match="is not open"):
            await client.text_document_hover_async(lsp.HoverParams(never_opened, lsp.Position(0, 0)))


async def test_an_editor_sends_only_what_changed() -> None:
    path, text = "a.crontab", "# 😀 é\n0 9 * * * x\n0 9 * * * y\n"
    async with session() as client:
        document = open_text(client, path, text)
        part = lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(1, 2), lsp.Position(1, 3)), "25")
        named = lsp.VersionedTextDocumentIdentifier(2, uri(path))
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(named, [part]))
        found = await asked(client, document)
        assert [(d.code, d.range.start.line, d.range.start.character) for d in found if d.severity == 1] == [
            ("E003", 1, 2)
        ]


@pytest.mark.parametrize("encoding", list(lsp.PositionEncodingKind))
def test_a_text_put_together_from_changes_is_that_of_the_editor(encoding: lsp.PositionEncodingKind) -> None:
    """The document of pygls, changed by chance, beside a plain string."""
    rng = Random(7)
    codec = PositionCodec(encoding)
    text = "0 9 * * * x\n"
    document = TextDocument(
        "file:///a", text, 1, sync_kind=lsp.TextDocumentSyncKind.Incremental, position_codec=codec
    )
    for _ in range(400):
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + 6)
        new = "".join(rng.choice(["a", "é", "日", "😀", "\n", "\r\n", " ", "*"]) for _ in range(rng.randrange(5)))
        positions = Positions(text, str(encoding.value))
        if "\r\n" in (text[start - 1 : start + 1], text[end - 1 : end + 1]):
            continue  # between the two characters of a line end, where no editor can stand
        span = lsp.Range(lsp.Position(*positions.of(start)), lsp.Position(*positions.of(end)))
        document.apply_change(lsp.TextDocumentContentChangePartial(span, new))
        text = text[:start] + new + text[end:]
        assert document.source == text


async def test_the_minute_is_spread_and_typos_are_put_right_beside_an_emoji() -> None:
    path, text = ".github/workflows/a.yml", "{name: 😀, on: {schedule: [{cron: '0 4 * * MNO'}]}}\n"
    async with session() as client:
        open_text(client, path, text)
        offered = await actions(client, path, text)
        better = result_of(offered["Write MON"], path, text)
        assert better == text.replace("MNO", "MON")
        change(client, path, 2, better)
        offered = await actions(client, path, better)
        spread = next(action for title, action in offered.items() if title.startswith("Spread to minute"))
        change(client, path, 3, result_of(spread, path, better))
        assert await asked(client, lsp.TextDocumentIdentifier(uri(path))) == []


async def test_text_that_is_half_typed_is_answered_at_every_step() -> None:
    texts = {
        "chronex.toml": '[jobs.a]\nschedule = "TZ=Europe/Berlin 30 2 * * MON {jitter:5m}"\nretry = { max = 3 }\n',
        ".github/workflows/a.yml": "on:\n  schedule:\n    - cron: '30 2 * * *'\n      timezone: Europe/Berlin\n",
        "a.timer": "[Timer]\nOnCalendar=Mon..Fri *-*-1..7 02:30:00/15 Europe/Berlin\n",
        "a.crontab": "CRON_TZ=Europe/Berlin\n30 2 * * MON /usr/bin/a $(date +%F)\n",
    }
    async with session() as client:
        version = 1
        for path, text in texts.items():
            document = open_text(client, path, "")
            for end in range(0, len(text) + 1, 3):
                version += 1
                typed = text[:end]
                change(client, path, version, typed)
                lines = typed.split("\n")
                at = lsp.Position(len(lines) - 1, len(lines[-1]))
                await asked(client, document)
                await client.text_document_hover_async(lsp.HoverParams(document, at))
                await client.text_document_completion_async(lsp.CompletionParams(document, at))
                await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, whole(typed)))
        await actions(client, "chronex.toml", texts["chronex.toml"])


async def test_settings_choose_the_zone_and_switch_hints_off() -> None:
    path, text = "a.crontab", "30 1 * * * /usr/bin/a\n"
    async with session(options={"timezone": "America/New_York", "inlayHints": False}) as client:
        document = open_text(client, path, text)
        assert [d.code for d in await asked(client, document)] == ["W112"]
        assert not await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, whole(text)))
        settings = {"chronex": {"timezone": "Asia/Tokyo", "inlayHints": True}}
        client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings))
        assert await asked(client, document) == []
        hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, whole(text)))
        assert [hint.label for hint in hints or []] == ["Sat 01:30 JST (in 16h30m)"]


async def test_it_is_silent_on_files_that_are_not_its_own() -> None:
    unrelated = {
        "compose.yaml": "services: {a: {schedule: '99'}}\n",
        "a.py": "print('0 25 * * *')\n",
        "a.toml": 'a = "99 * * * *"\n',
    }
    async with session() as client:
        for path, text in unrelated.items():
            document = open_text(client, path, text)
            assert await asked(client, document) == []
            assert await client.text_document_hover_async(lsp.HoverParams(document, lsp.Position(0, 3))) is None
            assert not await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, whole(text)))
            assert not await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))


# -- offsets and positions, both ways, with characters of one, two, three and four bytes ------------------------

MIXED = "aé😀b\n火x\n"


@pytest.mark.parametrize(
    ("encoding", "offset", "position"),
    [
        (UTF16, 0, (0, 0)),
        (UTF16, 3, (0, 4)),  # behind the emoji: two units
        (UTF8, 3, (0, 7)),
        (UTF32, 3, (0, 3)),
        (UTF16, 5, (1, 0)),
        (UTF8, 6, (1, 3)),
        (UTF16, len(MIXED), (2, 0)),
        ("unknown", 3, (0, 4)),
    ],
)
def test_both_ways(encoding: str, offset: int, position: tuple[int, int]) -> None:
    positions = Positions(MIXED, encoding)
    assert positions.of(offset) == position
    assert positions.offset(*position) == offset


@pytest.mark.parametrize(
    ("position", "offset"),
    [((0, 3), 3), ((0, 99), 4), ((99, 0), len(MIXED)), ((-1, 0), 0), ((1, 99), 7)],
)
def test_any_position_has_an_offset(position: tuple[int, int], offset: int) -> None:
    assert Positions(MIXED).offset(*position) == offset


@given(st.text(alphabet="a\n\ré😀火\u2028\ud800", max_size=30), st.sampled_from([UTF8, UTF16, UTF32]))
def test_every_offset_comes_back(text: str, encoding: str) -> None:
    positions = Positions(text, encoding)
    for offset in range(len(text) + 1):
        is_within_line_end = (
            text[max(offset - 1, 0) : offset + 1] == "\r\n"
        )  # where no editor stands: it is before it
        assert positions.offset(*positions.of(offset)) == offset - is_within_line_end
