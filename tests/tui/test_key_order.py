"""Keys that arrive in one burst: each is handled once, in order, by the screen it was meant for."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path

import pytest
from textual.events import Key, Paste

from chronex.engine.commands import Actor, pause
from chronex.storage import journal
from chronex.storage.ports import Store
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore
from chronex_tui.app import ChronexApp, StartOptions
from chronex_tui.key_order import EscapeParser
from chronex_tui.screens.dialogs import Dialog
from chronex_tui.widgets import Table
from tests.tui.driving import app_on, driven
from tests.tui.examples import HOUR, NOW

CHARACTERS = {
    "slash": "/",
    "space": " ",
    "enter": "\r",
    "escape": None,
    "colon": ":",
    "question_mark": "?",
    "up": None,
    "tab": "\t",
}


async def burst(app: ChronexApp, *keys: str) -> None:
    """All of them at once, as a terminal delivers what was pasted or held up on the way; until all are handled."""
    for key in keys:
        app.post_message(Paste(key[1:-1]) if key.startswith('"') else Key(key, CHARACTERS.get(key, key[:1])))
    arrived = asyncio.Event()
    app.call_later(arrived.set)
    await arrived.wait()
    await app.key_order.until_idle()


async def test_letters_right_behind_the_slash_are_the_filter(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await burst(driver.app, "slash", *"pip")
        assert driver.app.state.filter.text == "pip"
        assert not driver.app.state.pending


def journal_of(path: Path, open_store: Store | None = None) -> list[tuple[str, str]]:
    """What people asked for; the first events are those of the example itself."""
    with nullcontext(open_store) if open_store is not None else LmdbStore.open(path, create=False) as store:
        found = [event for _, event in store.view(journal.tail)]
    return [(event.name, event.job) for event in found if "(tui)" in event.actor]


# Keys that arrive together, what they leave in the journal, and the title of what is open then.
BURSTS: tuple[tuple[tuple[str, ...], list[tuple[str, str]], str], ...] = (
    (("t", "y"), [("JobTriggered", "vacuum")], ""),
    (("t", "y", "y"), [("JobTriggered", "vacuum")], ""),  # the second y copies: it is meant for the board
    (("t", "n"), [], ""),
    (("t", "enter"), [], ""),  # no is highlighted
    (("t", "up", "enter"), [("JobTriggered", "vacuum")], ""),
    (("t", "tab", "enter"), [("JobTriggered", "vacuum")], ""),
    (("t", "escape", "p"), [("JobPaused", "vacuum")], ""),
    (("p", "u"), [("JobPaused", "vacuum"), ("JobResumed", "vacuum")], ""),
    (("p", "p"), [("JobPaused", "vacuum"), ("JobResumed", "vacuum")], ""),
    (("k", "p"), [("JobPaused", "warm-cache")], ""),  # the job that the cursor was moved to
    (("slash", *"rotate", "enter", "p"), [("JobPaused", "rotate-logs")], ""),
    (("slash", *"nosuch", "enter", "p"), [], ""),  # a job that the filter hides
    (("slash", *"tXRpy", "escape"), [], ""),
    (("slash", '"pppt"', "enter"), [], ""),
    (('"pty"',), [], ""),  # pasted on the board it means nothing
    (("n", *"pty p", "escape"), [], ""),
    (("w", *"pX", "w"), [], ""),
    (("w", "q"), [], ""),
    (("l", *"pX"), [], ""),
    (("2", "l", *"pt", "escape"), [], ""),
    (("colon", *"pause", "enter"), [("JobPaused", "vacuum")], ""),
    (("colon", *"trigger", "enter", "y"), [("JobTriggered", "vacuum")], ""),
    (("colon", *"trigger", "enter", "enter"), [], ""),
    (("a", "p"), [("JobPaused", "vacuum")], ""),
    (("a", "escape", "escape", "5", "p", "t", "y"), [], ""),
    (("f", "b", "c"), [], "Columns"),  # b chooses a state, c is meant for the board
    (("question_mark", *"pXt"), [], "Keys on the Jobs screen"),
    (("c", *"snlrz", "enter", "p"), [("JobPaused", "vacuum")], ""),
)


WRITING = [row for row in BURSTS if row[1]]


@pytest.mark.parametrize(("keys", "asked", "_title"), WRITING, ids=[" ".join(row[0]) for row in WRITING])
async def test_a_burst_does_what_its_keys_do_one_by_one(
    example_store: Path, keys: tuple[str, ...], asked: list[tuple[str, str]], _title: str
) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await burst(driver.app, *keys)
    assert journal_of(example_store) == asked


async def test_bursts_that_ask_for_nothing_do_nothing(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        app = driver.app
        table = app.board.query_one("#jobs", Table)
        for keys, asked, title in BURSTS:
            if asked:
                continue
            await burst(app, *keys)
            titles = [
                str(one.query_one("#dialog").border_title) for one in app.screen_stack if isinstance(one, Dialog)
            ]
            assert titles == [title] if title else True, keys
            await burst(app, "escape", "escape", "escape", "1")
            table.move_to(next(n for n, row in enumerate(app.state.rows) if row.job.id == "vacuum"))
            await burst(app, "f5")
            assert (len(app.screen_stack), app.state.job) == (1, "vacuum"), keys
            assert journal_of(example_store, app.live.store) == [], keys


async def test_undo_reverses_exactly_what_was_done(example_store: Path) -> None:
    """Of two marked jobs one was paused before, for a while: its pause is neither made longer nor ended."""
    with LmdbStore.open(example_store, create=False) as store:
        store.update(lambda tx: pause(Records(tx, NOW), "vacuum", Actor("maria", "cli", "host"), until_ms=NOW + HOUR))
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await burst(driver.app, "space", "g", "space", "p", "u")
    assert journal_of(example_store) == [("JobPaused", "etl-orders"), ("JobResumed", "etl-orders")]


async def test_the_command_that_is_shown_is_the_one_of_what_was_done(example_store: Path) -> None:
    """Also where a key did it to several jobs, and where it was an undo."""
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        app = driver.app
        await burst(app, "p")
        assert app.current_command() == "chronex pause vacuum"
        await burst(app, "u")
        assert app.current_command() == "chronex resume vacuum"
        await burst(app, "space", "g", "space", "p")
        assert app.current_command() == "chronex pause etl-orders && chronex pause vacuum"
        await burst(app, "t")
        assert "$ chronex trigger etl-orders && chronex trigger vacuum" in driver.frame()


async def test_while_a_filter_is_typed_only_its_own_keys_are_offered(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        await burst(driver.app, "slash", *"it's")
        *_, command, keys = (await driver.until(lambda frame: "esc drops it" in frame)).splitlines()
        assert command.strip() == "$ chronex list --filter 'it'\\''s'"
        assert "t trigger" not in keys
        await burst(driver.app, "enter")
        await driver.until(lambda frame: "? keys" in frame.splitlines()[-1])


async def test_undoing_a_resume_keeps_the_end_of_the_pause(example_store: Path) -> None:
    with LmdbStore.open(example_store, create=False) as store:
        store.update(lambda tx: pause(Records(tx, NOW), "vacuum", Actor("maria", "cli", "host"), until_ms=NOW + HOUR))
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await burst(driver.app, "p", "u")
    with LmdbStore.open(example_store, create=False) as store:
        job = store.view(lambda tx: Reading(tx).job("vacuum"))
    assert job is not None
    assert job.progress.paused_until_ms == NOW + HOUR
    assert job.progress.is_paused_at(NOW)


# -- from bytes to keys -------------------------------------------------------------------------------------------

# What a terminal sends, in the pieces in which it arrives, and the keys that it means.
SENT: tuple[tuple[tuple[str, ...], list[str]], ...] = (
    (("\x1b\r",), ["escape", "enter"]),
    (("\x1bp",), ["escape", "p"]),
    (("\x1bP",), []),  # it may begin a sequence: what it means is known when more arrives or nothing does
    (("\x1bb", "\x1bf"), ["escape", "b", "escape", "f"]),  # not a word to the left and to the right
    (("\x1b", "q"), ["escape", "q"]),
    (("\x1b\x1b\x1bq",), ["escape", "escape", "escape", "q"]),
    (("\x1b\x7f\x1b/pip\r",), ["escape", "backspace", "escape", "slash", "p", "i", "p", "enter"]),
    (("t\x1b", "\r2"), ["t", "escape", "enter", "2"]),
    (("\x1b[A\x1b[B\x1bOP\x1b[1;5C",), ["up", "down", "f1", "ctrl+right"]),
    (("\x1b", "[", "A", "p"), ["up", "p"]),
    (("\x1b\x1b[A",), ["escape", "up"]),
    (("\x1b[27u\r",), ["escape", "enter"]),  # a terminal that names its keys
    (("\x1b[200~pt\x1b[201~p",), ["paste:pt", "p"]),
    (("\x1b[20", "0~pt\x1b[2", "01~", "p"), ["paste:pt", "p"]),
    (("\x1b[200~a\x1bp" + "p" * 40 + "\x1b[201~q",), ["paste:ap" + "p" * 40, "q"]),
    (
        (
            "\x1b[200~\x1b\x1b[31mred\x1b",
            "[0m\x1b[201~q",
        ),
        ["paste:[31mred[0m", "q"],
    ),
)


@pytest.mark.parametrize(("pieces", "keys"), SENT, ids=[repr("|".join(row[0]))[:40] for row in SENT])
def test_escape_and_a_key_that_arrive_together_are_two_keys(pieces: tuple[str, ...], keys: list[str]) -> None:
    parser = EscapeParser()
    read = [event for piece in pieces for event in parser.feed(piece)]
    assert [
        f"paste:{event.text}" if isinstance(event, Paste) else event.key
        for event in read
        if isinstance(event, (Key, Paste))
    ] == keys
