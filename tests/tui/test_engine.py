"""The dashboard before an engine that runs: what a key asks for happens, and the screen shows that it did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from chronex.clock import SYSTEM_CLOCK
from chronex.daemon.embedded import EmbeddedEngine
from chronex.jobfile import SchedulerSettings
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import RetryPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from chronex_tui.app import StartOptions
from tests.tui.driving import Driver, SharedStore, app_on, driven

NEVER = "0 0 29 2 *"
# It counts on when it is let go: then no machine is too slow to see it run.
COUNTING = 'echo counted 1; until [ -e "$CHRONEX_STORE/go" ]; do sleep 0.05; done; for n in $(seq 2 12); do echo counted $n; done'
JOBS = (
    Job(id="bad", schedule=NEVER, tasks=(Task(name="main", run="echo it went wrong; exit 3"),)),
    Job(id="counting", schedule=NEVER, tasks=(Task(name="main", run=COUNTING),)),
    Job(id="flaky", schedule=NEVER, tasks=(Task(name="main", run="exit 4"),), retry=RetryPolicy(max=2, interval_ms=600_000, jitter=0)),
    Job(id="slow", schedule=NEVER, tasks=(Task(name="main", run=("sleep", "60")),)),
)  # fmt: skip


@asynccontextmanager
async def at_work(path: Path, options: StartOptions) -> AsyncIterator[tuple[Driver, EmbeddedEngine]]:
    with LmdbStore.open(path) as store:
        engine = EmbeddedEngine(store, settings=SchedulerSettings(grace_ms=200))
        await engine.start(JOBS)
        try:
            app = app_on(SharedStore(store, path), options, clock=SYSTEM_CLOCK)
            async with driven(app) as driver:
                yield driver, engine
        finally:
            await engine.stop()


def newest(engine: EmbeddedEngine, job: str) -> Occurrence:
    return engine.store.view(lambda tx: Reading(tx).occurrences(job, limit=1))[0]


async def test_a_trigger_runs_and_its_growing_output_is_followed(tmp_path: Path) -> None:
    async with at_work(tmp_path / "store", StartOptions(job="counting")) as (driver, engine):
        await driver.press("t", "y")
        await driver.until(lambda frame: "▶ counting" in frame)
        await driver.until(lambda _: bool(driver.app.state.detail and driver.app.state.detail.firing))
        await driver.press("l")
        await driver.until(lambda frame: "counted 1" in frame)
        (tmp_path / "store" / "go").touch()
        await driver.until(lambda frame: "counted 12" in frame and "ok" in frame)
        await driver.press("escape")
        await driver.until(lambda frame: "● counting" in frame and "1 of 1 ok" in frame)
        assert newest(engine, "counting").state is OccurrenceState.COMPLETED


async def test_cancel_ends_what_runs(tmp_path: Path) -> None:
    async with at_work(tmp_path / "store", StartOptions(job="slow")) as (driver, engine):
        await driver.press("t", "y")
        await driver.until(lambda frame: "▶ slow" in frame)
        await driver.press("X")
        await driver.until(lambda frame: "Cancel 1 run" in frame)
        await driver.press("y")
        await driver.until(lambda frame: "canceled" in frame and "▶ slow" not in frame)
        assert newest(engine, "slow").reason.code is ReasonCode.CANCELED


async def test_a_retry_is_counted_down_and_can_be_canceled(tmp_path: Path) -> None:
    async with at_work(tmp_path / "store", StartOptions(job="flaky")) as (driver, engine):
        await driver.press("t", "y")
        await driver.until(lambda frame: "retrying: attempt 2 of 3 in 9:" in frame)
        await driver.press("X", "y")
        await driver.until(lambda frame: "↻ flaky" not in frame)
        assert newest(engine, "flaky").state is OccurrenceState.CANCELED


async def test_a_failure_goes_to_the_dead_letters_and_is_replayed(tmp_path: Path) -> None:
    async with at_work(tmp_path / "store", StartOptions(job="bad")) as (driver, engine):
        await driver.press("t", "y")
        await driver.until(lambda frame: "✖ bad" in frame and "it went wrong" in frame and "exit code 3" in frame)
        await driver.press("2", "d")
        await driver.until(lambda frame: "✖ gave up" in frame)
        await driver.press("R", "y")
        await driver.until(lambda _: len(engine.store.view(lambda tx: Reading(tx).occurrences("bad"))) == 2)
        await driver.until(lambda _: newest(engine, "bad").state is OccurrenceState.FAILED)
        assert newest(engine, "bad").replay_of


async def test_pausing_holds_the_schedule(tmp_path: Path) -> None:
    async with at_work(tmp_path / "store", StartOptions(job="slow")) as (driver, engine):
        await driver.press("p")
        await driver.until(lambda frame: "‖ slow" in frame)
        job = engine.store.view(lambda tx: Reading(tx).job("slow"))
        assert job is not None
        assert job.progress.is_paused_at(SYSTEM_CLOCK.wall_ms())
        assert "(tui)" in job.progress.paused_by or job.progress.paused_by
