"""Who is told what, and how often: once per stretch of failures, once per recovery, whatever crashes in between."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.daemon.notify import PAUSES_MS, Notifier
from chronex.engine.commands.actor import Actor
from chronex.engine.commands.control import pause
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.policies import NotifyPolicy
from chronex.model.records import Notice
from chronex.run import LogDirectory, RunContext
from chronex.storage import journal, keys
from chronex.storage.records import Reading, Records
from chronex.testing import HOUR, MINUTE, RandomOutcomes, SimulatedMachine
from tests.kit.machine import START

TASK = (Task(name="main", run=("true",)),)
HOURLY = Job(id="j", schedule="0 * * * *", tasks=TASK, notify=NotifyPolicy(("true",), after_failures=3))


def notices(world: SimulatedMachine) -> list[tuple[str, int, int]]:
    found = world.store.view(lambda tx: Reading(tx).scan(keys.NOTICE, Notice))
    return [(n.kind, ((n.nominal_ms or 0) - START) // HOUR, n.failures) for n in found]


def failing(world: SimulatedMachine, share: float, hours: int) -> None:
    world.outcome = RandomOutcomes(1, fail_share=share)
    world.run_until(world.now + hours * HOUR)


def test_told_once_after_so_many_failures_and_once_when_it_is_well_again() -> None:
    world = SimulatedMachine([HOURLY], outcome=RandomOutcomes(1))
    failing(world, 1.0, 6)
    assert notices(world) == [("failing", 3, 3)]
    failing(world, 0.0, 3)
    assert notices(world) == [("failing", 3, 3), ("recovered", 6, 5)]
    failing(world, 1.0, 2)
    failing(world, 0.0, 2)
    assert len(notices(world)) == 2, "two failures are below the limit"


def test_a_crash_neither_repeats_nor_forgets() -> None:
    world = SimulatedMachine([HOURLY], outcome=RandomOutcomes(1))
    failing(world, 1.0, 4)
    world.crash()
    world.boot()
    failing(world, 1.0, 4)
    assert [kind for kind, _, _ in notices(world)] == ["failing"]


def test_without_recovery_only_failures_are_told() -> None:
    world = SimulatedMachine(
        [replace(HOURLY, notify=NotifyPolicy(("true",), on_recovery=False))], outcome=RandomOutcomes(1)
    )
    failing(world, 1.0, 3)
    failing(world, 0.0, 2)
    assert [kind for kind, _, _ in notices(world)] == ["failing"]


# -- late --------------------------------------------------------------------------------------------------------

EXPECTED = replace(HOURLY, expect_within_ms=2 * HOUR)


def run_context(world: SimulatedMachine, directory: Path) -> RunContext:
    found = RunContext.of_this_process(LogDirectory(directory / "logs"))
    return RunContext(**{**{f: getattr(found, f) for f in found.__dataclass_fields__}, "clock": world.clock})


def look(world: SimulatedMachine, directory: Path) -> list[tuple[str, int, int]]:
    Notifier(world.store, run_context(world, directory)).find_late()
    return notices(world)


def test_a_run_that_was_missed_in_a_downtime_is_late_once_and_then_on_time(tmp_path: Path) -> None:
    world = SimulatedMachine([EXPECTED], outcome=RandomOutcomes(1, fail_share=0))
    failing(world, 0.0, 3)
    assert look(world, tmp_path) == []
    world.crash()
    world.pass_time(5 * HOUR)
    world.boot()
    assert look(world, tmp_path) == [("late", 6, 0)]
    assert look(world, tmp_path) == [("late", 6, 0)]
    failing(world, 0.0, 2)
    assert look(world, tmp_path) == [("late", 6, 0), ("on_time", 7, 0)]


def test_a_job_that_was_paused_by_mistake_is_late_too(tmp_path: Path) -> None:
    world = SimulatedMachine([EXPECTED], outcome=RandomOutcomes(1, fail_share=0))
    failing(world, 0.0, 1)
    world.store.update(lambda tx: pause(Records(tx, world.now), "j", Actor("eve", "cli", "here")))
    failing(world, 0.0, 6)
    assert [kind for kind, _, _ in look(world, tmp_path)] == ["late"]


@pytest.mark.parametrize("changes", [{"enabled": False}, {"expect_within_ms": None}, {"expect_within_ms": 40 * HOUR}])
def test_nothing_is_owed(tmp_path: Path, changes: dict[str, object]) -> None:
    world = SimulatedMachine([replace(EXPECTED, **changes)], outcome=RandomOutcomes(1, fail_share=1))
    world.pass_time(10 * HOUR)
    assert look(world, tmp_path) == []


def test_an_edit_owes_nothing_for_the_time_before_it(tmp_path: Path) -> None:
    world = SimulatedMachine([EXPECTED], outcome=RandomOutcomes(1, fail_share=0))
    world.pass_time(10 * HOUR)
    apply_jobs(world.store, [replace(EXPECTED, schedule="5 * * * *")], world.now)
    assert look(world, tmp_path) == []


# -- sending -----------------------------------------------------------------------------------------------------


def events(world: SimulatedMachine) -> list[tuple[str, str]]:
    lines = world.store.view(journal.tail)
    return [(e.name, str(e.reason)) for _, e in lines if e.name.startswith("Notification")]


def send(world: SimulatedMachine, directory: Path) -> None:
    asyncio.run(asyncio.wait_for(Notifier(world.store, run_context(world, directory)).do(), 60))


def test_the_command_reads_the_report_and_the_notice_is_gone(tmp_path: Path) -> None:
    script = f'cat > {tmp_path}/told; printf %s "$CHRONEX_NOTICE $CHRONEX_JOB" > {tmp_path}/env'
    world = SimulatedMachine([replace(HOURLY, notify=NotifyPolicy(script))], outcome=RandomOutcomes(1))
    failing(world, 1.0, 2)
    send(world, tmp_path)
    told = json.loads((tmp_path / "told").read_text())
    assert (told["kind"], told["job"], told["nominal"], told["failures_in_a_row"]) == (
        "failing",
        "j",
        "2027-01-01T01:00:00Z",
        1,
    )
    assert set(told) == {"kind", "job", "at", "nominal", "occurrence", "reason", "failures_in_a_row", "try"}
    assert (tmp_path / "env").read_text() == "failing j"
    assert notices(world) == []
    assert events(world) == [("NotificationSent", "")]


def test_a_command_that_fails_is_tried_again_with_growing_pauses_and_then_given_up(tmp_path: Path) -> None:
    world = SimulatedMachine(
        [replace(HOURLY, notify=NotifyPolicy(f"echo x >> {tmp_path}/tries; echo no; exit 3"))],
        outcome=RandomOutcomes(1),
    )
    failing(world, 1.0, 2)
    for pause_ms in PAUSES_MS:
        send(world, tmp_path)
        send(world, tmp_path)  # not before its time
        world.pass_time(pause_ms)
    send(world, tmp_path)
    assert (tmp_path / "tries").read_text().count("x") == 1 + len(PAUSES_MS)
    assert notices(world) == []
    assert events(world) == [("NotificationFailed", "exit code 3: no")]


def test_a_job_without_its_command_any_more_does_not_block_others(tmp_path: Path) -> None:
    world = SimulatedMachine([HOURLY], outcome=RandomOutcomes(1))
    failing(world, 1.0, 4)
    apply_jobs(world.store, [], world.now)
    for pause_ms in (*PAUSES_MS, MINUTE):
        send(world, tmp_path)
        world.pass_time(pause_ms)
    assert notices(world) == []
