"""A mistake of ours beside the schedule is told, the rest goes on, and nobody waits without a word for what it stopped."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chronex.daemon import event_feed, executor
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.periodic_tasks import Faults
from chronex.daemon.registration import Registration
from chronex.engine.engine import Engine
from chronex.errors import StoreUnavailableError
from chronex.keeper.kept_commands import KeptCommands
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy, RetryPolicy
from chronex.model.reasons import TroubleCode
from chronex.model.states import AttemptState, OccurrenceState
from chronex.run import condition_check
from chronex.storage import journal
from chronex.storage.records import Reading
from chronex_store import LmdbStore, MemoryStore
from tests.daemon.test_embedded import SOON, begun, completed, ended, job
from tests.kit.waits import until_async

RETRIED = RetryPolicy(max=2, interval_ms=1)


class OddError(Exception):
    """Nobody expects it."""


def failing(real: Callable[..., Any], times: int = 1) -> Callable[..., Any]:
    """The same, after it has failed so many times."""
    count = itertools.count()

    def call(*arguments: Any, **named: Any) -> Any:
        if next(count) < times:
            raise OddError("odd")
        return real(*arguments, **named)

    return call


def faults_of(engine: EmbeddedEngine) -> list[str]:
    assert engine._daemon is not None
    return [one.detail for one in engine._daemon.troubles.found if one.code is TroubleCode.FAULT]


async def test_what_fails_again_and_again_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    faults, told = Faults(), list[str]()
    faults.on_fault = lambda what, fault: told.append(f"{what}: {fault}")
    for _ in range(3):
        await asyncio.wait([faults.watched(_fail(), "the look")])
    await asyncio.sleep(0)
    assert told == ["the look: OddError: odd"] * 3
    (logged,) = [record for record in caplog.records if record.message == "a fault of Chronex"]
    assert logged.levelno == logging.ERROR
    assert logged.fields["where"].startswith("test_fault_log.py:")  # type: ignore[attr-defined]


async def _fail() -> None:
    raise OddError("odd")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "FAULT_PAUSES_S", (0.01, 0.01))


def command(*words: str, **more: Any) -> Job:
    return Job(id="job", schedule=SOON, tasks=(Task(name="main", run=words),), retry=RETRIED, **more)


async def test_it_is_no_fault_to_be_cancelled_before_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    task = Faults().watched(_fail(), "the look")
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert caplog.records == []


async def test_an_end_that_met_a_fault_is_recorded_by_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was on record as running for ever, and its job, which never runs beside itself, never ran again."""
    monkeypatch.setattr(Engine, "ended", failing(Engine.ended, times=2))
    async with EmbeddedEngine(tmp_path / "store") as engine:
        engine.apply([command("sh", "-c", "exit 0")])
        await completed(engine, 1)
        (occurrence,) = [one for one in begun(engine.store) if one.state is OccurrenceState.COMPLETED]
        (attempt,) = engine.store.view(lambda tx: Reading(tx).attempts("job", occurrence.nominal_ms))
        assert faults_of(engine) == [f"the attempt {attempt.id}: OddError: odd"]
    assert (attempt.state, attempt.exit_code) == (AttemptState.SUCCESS, 0)


async def test_a_start_that_met_a_fault_has_ended_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeptCommands, "run", failing(KeptCommands.run))
    witness = tmp_path / "witness"
    async with EmbeddedEngine(tmp_path / "store") as engine:
        engine.apply([command("sh", "-c", f"echo ran >> {witness}")])
        await completed(engine, 1)
        (occurrence,) = [one for one in begun(engine.store) if one.state is OccurrenceState.COMPLETED]
        first, second = engine.store.view(lambda tx: Reading(tx).attempts("job", occurrence.nominal_ms))
    assert (first.state, second.state) == (AttemptState.CRASHED, AttemptState.SUCCESS)
    assert "its scheduler had a fault" in str(first.reason)
    assert witness.read_text() == "ran\n"


async def test_what_fails_every_time_is_told_and_keeps_no_other_job_from_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = Engine.ended

    def end(engine: Engine, attempt: Any, *rest: Any) -> Any:
        return failing(real, times=attempt.job == "poison")(engine, attempt, *rest)

    monkeypatch.setattr(Engine, "ended", end)
    async with EmbeddedEngine(MemoryStore(), calls={"note": lambda _context: None}) as engine:
        ours = job("note")
        engine.apply([Job(id="poison", schedule=SOON, tasks=ours.tasks), ours])
        await completed(engine, 1)
        await until_async(lambda: bool(faults_of(engine)), "the fault to be told")


async def test_a_look_at_a_condition_that_met_a_fault_is_told_and_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job waited, and `show` and `why` knew of no look."""
    is_broken = True
    real = condition_check.check_condition

    def check(*arguments: Any) -> str:
        if is_broken:
            raise OddError("odd")
        return real(*arguments)

    monkeypatch.setattr("chronex.daemon.condition_watch.check_condition", check)
    async with EmbeddedEngine(MemoryStore(), calls={"note": lambda _context: None}) as engine:
        engine.apply([job("note", wait_for=(f"path:{tmp_path}",))])
        assert engine._daemon is not None
        found = engine._daemon.engine.found
        await until_async(lambda: "job" in found, "the first look")
        assert (found["job"].holds, found["job"].lacking) == (
            False,
            f"path:{tmp_path} (its look failed: OddError: odd)",
        )
        assert faults_of(engine) == [f"the look at path:{tmp_path} for job: OddError: odd"]
        is_broken = False
        await completed(engine, 1)


@pytest.mark.parametrize("problem", [StoreUnavailableError("away"), OddError("odd")], ids=["away", "fault"])
async def test_callbacks_hear_what_happened_while_the_journal_could_not_be_read(
    monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    """After one such answer of the store they heard nothing any more."""
    real, refused = journal.tail, list[int]()

    def tail(*arguments: Any) -> Any:
        if len(refused) < 2:
            refused.append(1)
            raise problem
        return real(*arguments)

    seen: list[str] = []
    monkeypatch.setattr(event_feed, "MAX_WAIT_S", 0.01)
    monkeypatch.setattr(journal, "tail", tail)
    async with EmbeddedEngine(MemoryStore(), calls={"note": lambda _context: None}) as engine:
        engine.on("OccurrenceCompleted", lambda event: seen.append(event.job))
        engine.apply([job("note", overlap=OverlapPolicy.QUEUE)])
        await ended(engine, 1)
        await until_async(lambda: seen == ["job"], "the event")
        assert faults_of(engine) == ([] if isinstance(problem, StoreUnavailableError) else [
            "the events for callbacks: OddError: odd"
        ])  # fmt: skip


async def test_who_cannot_find_out_how_it_is_asked_to_stop_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Registration, "asked_to_stop", failing(Registration.asked_to_stop))
    with LmdbStore.open(tmp_path / "store") as store:
        async with EmbeddedEngine(store) as engine:
            daemon = engine._daemon
            assert daemon is not None
            daemon.stop_as_asked()
            await until_async(lambda: daemon.is_stopping, "the daemon to stop")
