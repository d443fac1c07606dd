"""Every action by its key, against a real store: what it shows, and what it leaves in the store."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.events import Key

from chronex.jobfile.keymap import ACTIONS, BY_ID, DashboardAction
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage import journal
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore
from chronex_tui.app import StartOptions
from chronex_tui.launch import frame_lines
from chronex_tui.model.available_actions import KeyClashError, check_keys
from chronex_tui.model.snapshot import RunKey
from chronex_tui.screens.log_screen import open_log_screen
from chronex_tui.widgets import Panel
from tests.kit.waits import DEADLINE_S
from tests.tui.driving import app_on, driven
from tests.tui.examples import MINUTE, NOW


def read_job(path: Path, name: str) -> Job:
    with LmdbStore.open(path, create=False) as store:
        found = store.view(lambda tx: Reading(tx).job(name))
    assert found is not None
    return found


def occurrences(path: Path, name: str) -> list[Occurrence]:
    with LmdbStore.open(path, create=False) as store:
        return store.view(lambda tx: Reading(tx).occurrences(name))


def events(path: Path) -> list[tuple[str, str, str]]:
    with LmdbStore.open(path, create=False) as store:
        return [(event.name, event.job, event.actor) for _, event in store.view(journal.tail)]


# -- commands -------------------------------------------------------------------------------------------------------


async def test_trigger_asks_first_and_then_writes_an_occurrence_that_is_due(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        frame = await driver.press("t")
        assert "Run vacuum now?" in frame
        assert "chronex trigger vacuum" in frame
        await driver.press("y")
        await driver.until(lambda _: occurrences_in(driver.app, "vacuum")[0].manual)
    newest = occurrences(example_store, "vacuum")[0]
    assert (newest.manual, newest.state) == (True, OccurrenceState.PENDING)
    assert any(name == "JobTriggered" and "(tui)" in actor for name, _, actor in events(example_store))


@pytest.mark.parametrize("answer", ["n", "enter", "escape"])
async def test_everything_but_y_means_no(example_store: Path, answer: str) -> None:
    before = len(occurrences(example_store, "vacuum"))
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await driver.press("t", answer)
    assert len(occurrences(example_store, "vacuum")) == before


async def test_trigger_says_what_the_overlap_policy_does_to_a_job_that_runs(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="etl-orders"))) as driver:
        frame = await driver.press("t")
        assert "etl-orders runs already; its overlap policy is skip." in frame
        await driver.press("y")
        assert occurrences_in(driver.app, "etl-orders")[0].state is OccurrenceState.SKIPPED


def occurrences_in(app: object, name: str) -> list[Occurrence]:
    store = app.live.store  # type: ignore[attr-defined]
    return store.view(lambda tx: Reading(tx).occurrences(name))  # type: ignore[no-any-return]


async def test_pause_and_resume_need_no_question_and_can_be_taken_back(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await driver.press("p")
        await driver.until(lambda frame: "‖ vacuum" in frame)
        await driver.press("u")
        await driver.until(lambda frame: "● vacuum" in frame)
        await driver.press("p")
        await driver.until(lambda frame: "‖ vacuum" in frame)
        await driver.press("p")
        await driver.until(lambda frame: "● vacuum" in frame)
    assert not read_job(example_store, "vacuum").progress.is_paused_at(NOW)
    assert [name for name, job, _ in events(example_store) if job == "vacuum"] == [
        "JobPaused", "JobResumed", "JobPaused", "JobResumed",
    ]  # fmt: skip


async def test_cancel_names_what_it_ends_and_records_the_request(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="etl-orders"))) as driver:
        frame = await driver.press("X")
        assert "Cancel 1 run" in frame
        assert "etl-orders, scheduled for Sun 15 Nov 14:55:22 CET: running, 0:42" in frame
        await driver.press("y")
    running = next(o for o in occurrences(example_store, "etl-orders") if o.started_ms == NOW - 42_000)
    assert running.cancel_reason.code is ReasonCode.CANCELED
    assert "(tui)" in running.cancel_reason.by


async def test_a_job_that_does_nothing_cannot_be_canceled(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        assert "Cancel" not in await driver.press("X")


async def test_replay_offers_runs_that_are_older_than_the_newest_of_the_store(example_store: Path) -> None:
    """The Jobs screen reads the newest runs of all jobs; those of a daily job are not among them."""
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        assert not any(item.key.job == "vacuum" for item in driver.app.state.history.items)
        frame = await driver.press("R")
        assert "Replay which run of vacuum?" in frame
        assert "04:00 CET: ok, 4m00s" in frame
        await driver.press("b")
        assert "chronex replay --reason 'run again' vacuum@" in driver.frame()


async def test_replay_of_a_dead_letter_from_the_list_of_runs(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        frame = await driver.press("2", "d")
        assert "Dead letters" in frame
        frame = await driver.press("R")
        assert "Run it again, at its old scheduled time?" in frame
        assert "chronex replay --reason 'run again' sync-s3@" in frame
        await driver.press("y")
        await driver.until(lambda _: len(driver.app.state.history.dead) == 1)
    newest = occurrences(example_store, "sync-s3")[0]
    assert newest.replay_of
    assert newest.state is OccurrenceState.PENDING


async def test_replay_of_all_dead_letters_of_a_job_from_the_list_of_jobs(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="sync-s3"))) as driver:
        frame = await driver.press("R")
        assert "all 2 dead letters of sync-s3" in frame
        frame = await driver.press("a")
        assert "Run these 2 again, at their old scheduled times?" in frame
        await driver.press("y")
        await driver.until(lambda _: not driver.app.state.history.dead)
    assert sum(1 for o in occurrences(example_store, "sync-s3") if o.replay_of) == 2


async def test_marked_jobs_are_acted_on_together(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await driver.press("space", "j", "space")
        await driver.press("p")
        await driver.until(lambda frame: "‖ 3 paused" in frame)
        assert "▸ vacuum" in driver.frame()
        await driver.press("escape")
        assert "▸ vacuum" not in driver.frame()


async def test_read_only_hides_every_key_that_writes_until_it_is_left(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum", is_read_only=True))) as driver:
        for key in ("t", "p", "R", "X"):
            assert "yes" not in await driver.press(key)
        assert "trigger" not in driver.frame().splitlines()[-1]
        await driver.press("W")
        assert "t trigger" in driver.frame().splitlines()[-1]


# -- view actions ----------------------------------------------------------------------------------------------------


async def test_looking_at_everything_writes_nothing(example_store: Path) -> None:
    before = hashes(example_store)
    async with driven(app_on(example_store), (120, 40)) as driver:
        await driver.press(
            "j", "k", "2", "j", "enter", "escape", "escape", "3", "+", "left", "0", "4", "]", "space", "5"
        )
        await driver.press(
            "1", "x", "escape", "l", "escape", "n", "escape", "?", "escape", "a", "escape", "T", "s", "S"
        )
    assert hashes(example_store) == before


def hashes(path: Path) -> dict[str, str]:
    """Every file but the lock file, in which LMDB lists its readers."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "lock.mdb")
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


async def test_the_filter_narrows_as_it_is_typed_and_escape_drops_it(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        await driver.press("slash")
        frame = await driver.press(*"state:failed")
        assert "1 of 8 jobs" in frame
        assert "vacuum" not in frame
        frame = await driver.press("enter", "escape")
        assert "8 jobs" in frame
        await driver.press("slash")
        frame = await driver.press(*"zzz")
        assert "0 of 8 jobs match" in frame


async def test_a_mistake_in_the_filter_is_reported(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(filter="state:faild"))) as driver:
        assert "did you mean failed?" in driver.frame()
    async with driven(app_on(example_store, StartOptions(filter="state:x")), (80, 24)) as driver:
        assert "no state 'x'" in driver.frame()


async def test_the_cursor_stays_with_its_job_when_the_order_changes(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="rotate-logs"))) as driver:
        for _ in range(4):
            await driver.press("s")
            assert driver.app.state.job == "rotate-logs"
        await driver.press("S")
        assert driver.app.state.job == "rotate-logs"


async def test_columns_are_chosen_from_a_list_with_marks_and_stay_chosen(example_store: Path) -> None:
    def head(frame: str) -> str:
        return next(line for line in frame.splitlines() if "JOB" in line)

    async with driven(app_on(example_store), (200, 60)) as driver:
        assert all(title in head(driver.frame()) for title in ("SCHEDULE", "NEXT", "LAST", "RETRY", "ZONE"))
        assert "[x] schedule" in await driver.press("c")
        frame = await driver.press("s", "z")
        assert "[ ] schedule" in frame
        assert "[ ] zone" in frame
        assert "[x] next" in frame
        await driver.press("enter", "2", "1")
        frame = driver.frame()
        assert "SCHEDULE" not in head(frame)
        assert "ZONE" not in head(frame)
        assert "NEXT" in head(frame)
        await driver.press("c", "s", "escape")
        assert "SCHEDULE" in head(driver.frame())
        assert "ZONE" in head(await driver.press("c", "a", "c"))


async def test_the_table_of_jobs_stands_without_any_other_column(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        frame = await driver.press("c", "s", "n", "l", "r", "z", "enter")
        assert "vacuum" in frame
        assert "NEXT" not in frame


async def test_what_is_selected_goes_along_from_screen_to_screen(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="rotate-logs"))) as driver:
        await driver.press("3")
        assert driver.app.state.job == "rotate-logs"
        await driver.press("down", "1")
        assert driver.app.state.job == "warm-cache"
        assert "╭─ warm-cache" in driver.frame()


async def test_states_are_chosen_from_a_list_with_counts(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        frame = await driver.press("f")
        assert "ok           3" in frame
        await driver.press("escape", "2")
        await driver.press("f")
        frame = await driver.press("a")
        assert "etl-orders" in frame


async def test_times_are_shown_by_three_clocks(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        assert "Europe/Berlin (T)" in driver.frame()
        assert "each job's zone (T)" in await driver.press("T")
        frame = await driver.press("T")
        assert "UTC (T)" in frame
        assert "13:56:04 UTC" in frame


async def test_the_timeline_zooms_pans_and_returns_to_now(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(screen="timeline"))) as driver:
        assert "6 hours before and after now" in await driver.press("minus")
        assert "an hour before and after now" in await driver.press("plus")
        assert "before and after 14:26" in await driver.press("left")
        assert "before and after now" in await driver.press("0")


async def test_the_clock_screen_asks_what_if_without_saving_it(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(screen="clock"))) as driver:
        assert "the run fires at 03:00 instead" in driver.frame()
        await driver.press("space")
        frame = await driver.press("space")
        assert "what if: gap skip, overlap first" in frame
        assert "1 run skipped" in frame
    assert read_job(example_store, "backup-db").dst is None


async def test_the_past_week_counts_what_did_start(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(screen="density"))) as driver:
        frame = await driver.press("P")
        assert "the past seven days" in frame
        await driver.until(lambda frame: "started in the hour" in frame)


async def test_run_time_is_counted_instead_of_starts_in_either_week(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(screen="density"))) as driver:
        frame = await driver.press("D")
        assert "Density  minutes of run time in each hour of the coming seven days" in frame
        frame = await driver.until(lambda frame: "minutes of run time in the hour" in frame)
        assert "fullest minute" not in frame
        await driver.press("P")
        await driver.until(lambda frame: "of run time in all" in frame and "past seven days" in frame)
        await driver.press("D")
        await driver.until(lambda frame: "started in the hour" in frame)


async def test_the_busiest_minute_is_spread_in_words_only(example_store: Path) -> None:
    before = hashes(example_store)
    async with driven(app_on(example_store, StartOptions(screen="density"))) as driver:
        await driver.press("H")
        frame = await driver.until(lambda frame: "Busiest minute" in frame)
        assert "starts in this minute" in frame
        assert "becomes" in frame
        assert "Nothing is changed" in frame
        assert "Busiest minute" not in await driver.press("escape")
    assert hashes(example_store) == before


async def test_a_schedule_is_tried_as_it_is_typed(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        frame = await driver.press("n", *"30 2 * * *")
        assert "At 02:30" in frame
        assert "Mon 16 Nov 02:30 CET" in frame
        assert "02:30 does not exist" in frame
        frame = await driver.press("backspace", "x")
        assert "^" in frame
        assert "E0" in frame


async def test_explain_says_what_the_shell_says(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="backup-db"))) as driver:
        frame = await driver.press("x")
        assert "Explain backup-db" in frame
        assert "next 5 runs after" in frame
        assert "clock changes of Europe/Berlin" in frame


async def test_an_explanation_that_takes_long_holds_no_key_up(example_store: Path) -> None:
    is_released = threading.Event()

    def explain(*_: object) -> list[str]:
        assert is_released.wait(DEADLINE_S)
        return ["explained at last"]

    app = app_on(example_store, StartOptions(job="backup-db"))
    app.explain = explain
    async with driven(app) as driver:
        await driver.pilot.press("x")
        await driver.until(lambda frame: "Explain backup-db" in frame and "reading" in frame)
        await driver.pilot.press("escape", "w")
        # Attempts of this store name no node, as those of the first versions do.
        frame = await driver.until(lambda frame: "Why: backup-db" in frame and "attempt 1 failed" in frame)
        is_released.set()
        await driver.press("escape", "x")
        await driver.until(lambda frame: "explained at last" in frame)
        assert "Why: backup-db" in frame, "what was asked before is not shown as the answer"


async def test_the_column_that_jobs_are_ordered_by_says_so(example_store: Path) -> None:
    async with driven(app_on(example_store), (200, 60)) as driver:
        assert "JOB ↓" in await driver.press("s")
        assert "JOB ↑" in await driver.press("S")
        assert "NEXT ↑" in await driver.press("s")


async def test_why_tells_the_chain_of_a_run_and_of_a_job(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="sync-s3"))) as driver:
        frame = await driver.press("w")
        assert "Why: sync-s3" in frame
        assert "Sun 15 Nov 14:55 CET" in frame or "Sun 15 Nov 13:55 UTC" in frame
        await driver.press("escape", "2")
        await driver.press("j", "j")
        frame = await driver.press("w")
        assert "Why: sync-s3" in frame
        assert "exit code 2" in frame


async def test_help_lists_every_key_of_the_screen_with_its_command(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum")), (120, 140)) as driver:
        frame = await driver.press("question_mark")
        for action in ACTIONS:
            if "jobs" in action.screens and action.id != "write":  # which the read-only dashboard has
                assert " ".join(action.help.split()[:4]) in frame, action.id
        assert "$ chronex trigger vacuum" in frame


async def test_the_palette_finds_actions_by_name(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        await driver.press("colon")
        await driver.press(*"density")
        await driver.until(lambda frame: "how many runs start" in frame)
        await driver.press("enter")
        await driver.until(lambda frame: "In this hour" in frame)


async def test_freezing_holds_the_picture(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        await driver.press("!")
        await driver.press("p")
        assert "● vacuum" in await driver.until(lambda frame: "frozen" in frame)
        await driver.press("!")
        await driver.until(lambda frame: "‖ vacuum" in frame)


async def test_a_panel_is_zoomed_and_given_back(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        assert "Timeline" not in await driver.press("z")
        assert "Timeline ─" in await driver.press("escape")


async def test_copy_offers_the_command_first(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        frame = await driver.press("y")
        assert "chronex show vacuum" in frame
        await driver.press("y")
        assert driver.app.clipboard == "chronex show vacuum"


# -- the log --------------------------------------------------------------------------------------------------------


async def test_the_log_is_searched_wrapped_and_left(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="backup-db"))) as driver:
        frame = await driver.press("l")
        assert "backup-db  main, try 2  ✖ failed exit 1" in frame
        assert "pg_dump: error: connection refused" in frame
        await driver.press("slash", *"refused", "enter")
        assert not driver.app.screen.pane.follows  # type: ignore[attr-defined]
        assert "wrap on" in await driver.press("w")
        await driver.press("escape")
        frame = await driver.press("escape")
        assert "2 Runs" in frame


async def test_a_growing_log_is_followed(example_store: Path) -> None:
    attempt = Attempt(job="etl-orders", nominal_ms=NOW - 42_000, task="main", number=1)
    name = f"{attempt.id}.log"
    log = example_store / "logs" / name
    log.write_text("begun\n")
    log.chmod(0o600)
    with LmdbStore.open(example_store, create=False) as store:

        def link(tx: object) -> None:
            records = Records(tx, NOW)  # type: ignore[arg-type]
            found = records.attempt(attempt.job, attempt.nominal_ms, "main", 1)
            assert found is not None
            records.put(replace(found, log_path=name))

        store.update(link)
    async with driven(app_on(example_store, StartOptions(job="etl-orders")), (80, 24)) as driver:
        await driver.press("l")
        await driver.until(lambda frame: "begun" in frame)
        for number in range(40):
            with log.open("a") as file:
                file.write(f"line {number}\n")
        await driver.until(lambda frame: "line 39" in frame)
        assert "line 3\n" not in driver.frame()
        assert "follow off" in await driver.press("g")
        with log.open("a") as file:
            file.write("the last line\n")
        await driver.until(lambda _: len(driver.app.screen.pane.lines) == 42)  # type: ignore[attr-defined]
        assert "the last line" not in driver.frame()
        assert "the last line" in await driver.press("F")


# -- the table of actions -----------------------------------------------------------------------------------------------


def test_no_key_means_two_things_on_one_screen() -> None:
    check_keys(ACTIONS)
    clash = DashboardAction("other", "t", "other", "Does something else.")
    with pytest.raises(KeyClashError, match="the key t stands for trigger and other on jobs"):
        check_keys((*ACTIONS, clash))


def test_what_cannot_be_taken_back_is_a_capital_or_asks() -> None:
    for action in ACTIONS:
        if action.writes and not action.asks:
            assert action.id in ("pause", "undo", "mark"), action.id


async def test_every_action_has_a_handler_and_only_those_that_write_can_change_the_store(example_store: Path) -> None:
    app = app_on(example_store)
    assert set(app.view_actions.handlers) == {action.id for action in ACTIONS if not action.writes}
    assert set(app.store_commands.handlers) == {action.id for action in ACTIONS if action.writes}
    app.live.close()


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_has_a_sentence(action: DashboardAction) -> None:
    assert action.help.endswith(".")


@pytest.mark.parametrize("asks", [True, False])
async def test_the_table_decides_whether_a_dialog_asks_first(
    example_store: Path, monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    monkeypatch.setitem(BY_ID, "pause", dataclasses.replace(BY_ID["pause"], asks=asks))
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        frame = await driver.press("p")
        assert ("y or n, or enter for the highlighted one" in frame) == asks
        if asks:
            await driver.press("y")
        await driver.until(lambda frame: "‖ vacuum" in frame)


@pytest.mark.parametrize("keys", ["tnn", "tyy", "xxx"])
async def test_keys_of_one_burst_end_a_dialog_once(example_store: Path, keys: str) -> None:
    """Both keys are in the queue of the dialog before the first one has ended it."""
    app = app_on(example_store, StartOptions(job="vacuum"))
    async with driven(app) as driver:
        await driver.press(keys[0])
        screen = app.screen
        assert screen is not app.board
        for key in keys[1:]:
            screen.post_message(Key(key, key))
        await driver.until(lambda _: app.screen is app.board)
        assert app.is_running


async def test_a_log_that_is_left_twice_is_left_once(example_store: Path) -> None:
    app = app_on(example_store, StartOptions(job="backup-db"))
    async with driven(app) as driver:
        await driver.press("l")
        log = open_log_screen(app)
        assert log is not None
        log.action_leave()
        log.action_leave()
        await driver.until(lambda _: app.screen is app.board)


# -- where it begins ------------------------------------------------------------------------------------------------


async def test_a_deep_link_opens_the_log_of_a_job(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="backup-db", log=True))) as driver:
        await driver.until(lambda frame: "backup-db  main, try 2" in frame)


async def test_a_deep_link_selects_a_run(example_store: Path) -> None:
    key = RunKey("backup-db", NOW - 12 * MINUTE)
    async with driven(app_on(example_store, StartOptions(screen="runs", run=key))) as driver:
        assert driver.app.state.run == key
        assert "↻ main  retrying" in driver.frame()


async def test_a_deep_link_to_a_clock_change(example_store: Path) -> None:
    since = 1_835_000_000_000  # in February 2028
    async with driven(
        app_on(example_store, StartOptions(screen="clock", zone="Asia/Tehran", since_ms=since))
    ) as driver:
        assert "Asia/Tehran never changes its clock" in driver.frame()
    async with driven(
        app_on(example_store, StartOptions(screen="clock", zone="America/New_York", since_ms=since))
    ) as driver:
        assert "Sun 12 Mar 2028  America/New_York" in driver.frame()


async def test_a_job_that_is_not_there_is_reported(example_store: Path) -> None:
    app = app_on(example_store, StartOptions(job="bakcup"))
    async with driven(app) as driver:
        await driver.pilot.pause()
        assert any("there is no job bakcup" in str(note.message) for note in app._notifications)


async def test_a_panel_is_painted_again_only_where_its_lines_are_others(
    example_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with driven(app_on(example_store, StartOptions(job="vacuum"))) as driver:
        painted: list[str | None] = []
        monkeypatch.setattr(Panel, "refresh", lambda panel, *_, **__: painted.append(panel.id))
        driver.app.board.view.update_all()
        assert painted == []
        driver.app.state.job = "etl-orders"
        driver.app.board.view.update_all()
        assert set(painted) == {"detail"}
        monkeypatch.undo()
        dark = frame_lines(driver.app)
        await driver.press("C")
        assert frame_lines(driver.app)[6] != dark[6], "another theme paints every line"
