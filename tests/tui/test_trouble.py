"""What goes wrong around a dashboard: hostile text, small windows, a daemon that dies, a store that goes away."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from chronex.errors import StoreAwayError
from chronex.model.event import Event
from chronex.model.job import Job, JobProgress, Task
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import free_text, of_task
from chronex.model.records import Record
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append
from chronex.storage.ports import Store, T, Transaction, ViewFn
from chronex.storage.records import Records
from chronex.testing import FakeClock
from chronex_store import LmdbStore, MemoryStore
from chronex_tui.app import StartOptions
from chronex_tui.data import DataArrived, JobRead, Live
from chronex_tui.model.board_lines import no_jobs
from chronex_tui.model.snapshot import Snapshot
from tests.tui.driving import app_on, driven
from tests.tui.examples import HOUR, JOBS, MINUTE, NOW, job, make_store, node

HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;owned\x07title",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "[bold red]markup[/bold red] [/] [@click=app.quit]x[/]",
    "日本語のジョブ名 宽字符 한국어",
    "שלום مرحبا \u202eevil\u202c",
    "a\u0301\u0302\u0303 👩\u200d👩\u200d👧 🇩🇪 👍🏽",
    "tab\tnew\nline\rback\x08\x00nul",
    "x" * 500,
)


def write(path: Path, *records: Record) -> None:
    def put(tx: Transaction) -> None:
        ledger = Records(tx, NOW)
        for record in records:
            ledger.put(record)
        append(tx, *(Event(name="Put", at_ms=NOW, job=getattr(record, "job", "") or record.id) for record in records))  # type: ignore[union-attr]

    with LmdbStore.open(path) as store:
        store.update(put)


def hostile_store(path: Path) -> Path:
    records: list[Record] = [node()]
    for number, text in enumerate(HOSTILE):
        hostile = (
            job(f"job-{number}", "*/5 * * * *", description=text, tags=(text[:50],), source=text, metadata={"note": text},
                tasks=(Task(name="main", run=text),), paused=number % 3 == 0, paused_by=text)
        )  # fmt: skip
        records.append(
            Occurrence(job=f"job-{number}", nominal_ms=NOW - MINUTE, due_ms=NOW - MINUTE, started_ms=NOW - MINUTE,
                       finished_ms=NOW - 1000, state=OccurrenceState.FAILED, reason=of_task("main", free_text(text)),
                       triggered_by=text, manual=True)
        )  # fmt: skip
        counted = replace(JOBS[0].progress.counters, failed=1, failures_in_a_row=1)
        records.append(hostile.progressed(counters=counted))
    write(path, *records)
    return path


async def test_hostile_text_is_shown_inert_and_columns_stay_aligned(tmp_path: Path) -> None:
    path = hostile_store(tmp_path / "store")
    async with driven(app_on(path), (120, 40)) as driver:
        for key in ("1", "j", "j", "j", "2", "j", "j", "j", "3", "4", "5", "1", "a", "escape", "x", "escape"):
            frame = await driver.press(key)
            assert "\x1b" not in frame
            assert "\u202e" not in frame
            framed = [line for line in frame.splitlines() if line.startswith("│") and line.endswith("│")]
            assert {cell_len(line) for line in framed} <= {120}, key


async def test_the_driver_is_never_given_an_escape_from_data(tmp_path: Path) -> None:
    path = hostile_store(tmp_path / "store")
    async with driven(app_on(path), (120, 40)) as driver:
        await driver.press("2", "enter", "escape")
        svg = driver.app.export_screenshot()
        assert "owned" in svg or "�]0;" in svg
        assert "\x1b" not in svg


@pytest.mark.usefixtures("painted")
async def test_it_lives_through_every_size_and_back(example_store: Path) -> None:
    async with driven(app_on(example_store), (200, 60)) as driver:
        await driver.press("1")
        wide = driver.frame()
        for key, sizes in (("1", ((40, 12), (20, 6), (61, 17))), *((key, ((40, 12),)) for key in "2345")):
            await driver.press(key)
            for size in (*sizes, (200, 60)):
                await driver.pilot.resize_terminal(*size)
                await driver.pilot.pause()
                frame = driver.frame()
                assert len(frame.splitlines()) <= size[1]
                assert all(cell_len(line) <= size[0] for line in frame.splitlines())
        await driver.press("1")
        assert driver.frame() == wide


async def test_a_daemon_that_dies_and_returns_is_told_without_a_key(tmp_path: Path) -> None:
    """What it had started is not said to run on: nobody records how it ends until a daemon runs again."""
    path = make_store(tmp_path / "store")
    async with driven(app_on(path, StartOptions(job="etl-orders"))) as driver:
        assert "daemon up" in driver.frame()
        assert "running for 0:42" in driver.frame()
        store = driver.app.live.store
        assert store is not None
        store.update(lambda tx: Records(tx, NOW).put(node(is_alive=False)))
        frame = await driver.until(lambda frame: "daemon stopped" in frame)
        assert "The daemon is stopped" in frame
        assert "what starts the daemon" in await driver.press("y")
        await driver.press("escape")
        assert "would run" in frame
        assert "outcome unknown" in frame
        assert "? 1 unknown" in frame
        assert "began at 14:55:22 CET; no scheduler runs" in frame
        assert "0:42" not in frame
        runs = await driver.press("2")
        assert re.search(r"unknown +etl-orders +14:55:22 .*\?", runs)
        assert "0:42" not in runs
        await driver.press("1")
        store.update(lambda tx: Records(tx, NOW).put(node()))
        frame = await driver.until(lambda frame: "daemon up" in frame)
        assert "would run" not in frame
        assert "running 0:42" in frame


async def test_why_there_is_no_output_is_read_whole_in_a_narrow_window(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="warm-cache")), (40, 12)) as driver:
        frame = await driver.press("l")
        assert " ".join(frame.split()).find("this job has not run yet, so there is no output") > 0


async def test_a_store_that_is_moved_away_and_comes_back(example_store: Path) -> None:
    aside = example_store.with_name("aside")
    async with driven(app_on(example_store)) as driver:
        example_store.rename(aside)
        frame = await driver.until(lambda frame: "etl-orders" in frame and "8 jobs" not in frame.splitlines()[1])
        assert "etl-orders" in frame, "the last picture stays"
        aside.rename(example_store)
        await driver.until(lambda frame: "8 jobs" in frame.splitlines()[1])


async def test_no_store_yet_is_a_place_to_begin(tmp_path: Path) -> None:
    path = tmp_path / "nothing"
    async with driven(app_on(path)) as driver:
        frame = driver.frame()
        assert "No jobs yet" in frame
        assert "chronex init" in frame
        assert not path.exists(), "opening the dashboard made a store"
        for key in ("2", "3", "4", "5", "n", "escape", "1"):
            await driver.press(key)
        make_store(path)
        await driver.until(lambda frame: "etl-orders" in frame)


async def test_an_empty_store_says_how_to_begin(tmp_path: Path) -> None:
    LmdbStore.open(tmp_path / "store").close()
    async with driven(app_on(tmp_path / "store"), (80, 24)) as driver:
        frame = driver.frame()
        assert "No jobs yet" in frame
        assert "no jobs in it yet" in frame
        assert "Opening this screen changes nothing." in frame


async def test_a_job_that_is_removed_leaves_and_a_new_one_comes(example_store: Path) -> None:
    from chronex.engine.update import apply_jobs

    async with driven(app_on(example_store)) as driver:
        store = driver.app.live.store
        assert store is not None
        apply_jobs(store, [*(one for one in JOBS if one.id != "vacuum"), job("added", "0 5 * * *")], NOW)
        frame = await driver.until(lambda frame: "added" in frame)
        assert "vacuum " not in frame


async def test_a_schedule_that_another_program_knows_is_no_trouble_here(example_store: Path) -> None:
    write(
        example_store,
        Job(
            id="foreign",
            schedule="moon-phases",
            dialect="custom",
            progress=JobProgress(next_ms=NOW + HOUR, cursor_ms=NOW),
        ),
    )
    async with driven(app_on(example_store, StartOptions(job="foreign"))) as driver:
        for key in ("3", "4", "5", "1"):
            frame = await driver.press(key)
        assert "a schedule of the program's own" in frame
        assert "9 jobs" in frame


async def test_a_mistake_in_one_answer_does_not_end_the_others(example_store: Path) -> None:
    async with driven(app_on(example_store)) as driver:
        driver.app.live.compute("broken", lambda: 1 // 0)
        await driver.until(lambda frame: "this should not have happened (ZeroDivisionError" in frame)
        store = driver.app.live.store
        assert store is not None
        store.update(lambda tx: Records(tx, NOW).put(node()))
        await driver.until(lambda frame: "8 jobs" in frame)


@pytest.mark.parametrize("theme", ["dark", "light", "colorblind", "ansi", "mono"])
async def test_state_is_told_by_sign_and_word_in_every_theme(example_store: Path, theme: str) -> None:
    async with driven(app_on(example_store, StartOptions(theme=theme)), (80, 24)) as driver:
        frame = driver.frame()
        for sign in ("▶ 1 running", "↻ 1 retrying", "✖ 1 failed", "‖ 1 paused"):
            assert sign in frame


async def test_no_colour_means_no_colour(example_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with driven(app_on(example_store, StartOptions(theme="mono")), (80, 24)) as driver:
        styles = [seg.style for strip in driver.app.screen._compositor.render_strips() for seg in strip if seg.style]
        colours = {str(style.color) for style in styles if style.color and not style.color.is_default}
        grounds = {str(style.bgcolor) for style in styles if style.bgcolor and not style.bgcolor.is_default}
        assert not colours
        assert not grounds
        assert any(style.reverse for style in styles), "the cursor is still to be seen"


async def test_leaving_lets_go_of_the_store(example_store: Path) -> None:
    async with driven(app_on(example_store)):
        pass
    with LmdbStore.open(example_store, create=False):
        pass
    shutil.rmtree(example_store)


async def test_data_that_arrives_while_the_panels_close_ends_nothing(
    example_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with driven(app_on(example_store)) as driver:
        app = driver.app
        await app.query_one("#side-log").remove()
        with monkeypatch.context() as closing:
            closing.setattr(app, "_running", False)
            app.on_data_arrived(DataArrived(JobRead(app.state.job or "", app.state.detail)))


async def test_a_paused_job_says_when_it_would_run(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(job="newsletter")), (120, 40)) as driver:
        frame = await driver.until(lambda frame: "paused; would run" in frame)
        assert "Mon 16 Nov 15:00 CET" in frame


async def test_the_worst_trouble_and_the_zone_are_named_at_the_top(example_store: Path) -> None:
    async with driven(app_on(example_store), (120, 40)) as driver:
        line = driver.frame().splitlines()[1]
        assert "worst: sync-s3, failed 2 times in a row" in line
        assert "Europe/Berlin (T)" in line
        await driver.pilot.resize_terminal(80, 24)
        line = (await driver.until(lambda frame: len(frame.splitlines()) == 24)).splitlines()[1]
        assert "Berlin (T)" in line


async def test_the_order_of_the_jobs_is_named(example_store: Path) -> None:
    async with driven(app_on(example_store), (80, 24)) as driver:
        assert "by state (s)" in driver.frame()
        assert "by name (s)" in await driver.press("s")
        assert "by name, reversed (s)" in await driver.press("S")


def test_a_store_that_cannot_be_opened_is_not_called_empty() -> None:
    refused = Snapshot(problem="/s is on a read-only file system", is_there=False, is_refused=True, store_path="/s")
    shown = "\n".join("".join(text for text, _ in line) for line in no_jobs(refused, "", 100))
    assert "The store cannot be opened." in shown
    assert "/s is on a read-only file system" in shown
    assert "No jobs yet" not in shown


async def test_the_dashboard_says_why_a_store_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not a store" * 1000)
    async with driven(app_on(tmp_path)) as driver:
        frame = await driver.press()
    assert "The store cannot be opened." in frame
    assert "No jobs yet" not in frame


class _AwayAtTimes(MemoryStore):
    """As one on a database, which can be away while its change counter stands still."""

    path, shown = Path("nowhere"), "postgresql://db/jobs"
    is_away = False

    def view(self, fn: ViewFn[T]) -> T:
        if self.is_away:
            raise StoreAwayError(f"{self.shown} does not answer any more")
        return super().view(fn)

    def is_missing(self) -> bool:
        return False

    def open(self) -> Store:
        return self

    def release(self, store: Store) -> None:
        return


def test_a_database_that_is_away_is_told_once_and_no_longer_than_that() -> None:
    posted: list[object] = []
    store = _AwayAtTimes()
    live = Live(store, FakeClock(NOW), posted.append)
    live._open()
    for is_away in (False, True, True, False):
        store.is_away = is_away
        live._read_board()
    told = [one.problem for one in posted if isinstance(one, Snapshot)]
    assert told == ["", "postgresql://db/jobs does not answer any more", ""]
    live.close()
