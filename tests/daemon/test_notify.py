"""Which notices are sent, and how often: once per row of failures, once per recovery, whatever crashes in between."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.daemon.notify import Notifier
from chronex.engine.commands.actor import Actor
from chronex.engine.commands.control import pause
from chronex.engine.notices import HANDED_OUT_MS, PAUSES_MS, claim
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.policies import NotifyPolicy
from chronex.model.records import Notice
from chronex.run import LogDirectory, RunContext
from chronex.storage import journal, keys
from chronex.storage.records import Reading, Records
from chronex.testing import HOUR, MINUTE, FakeClock, MemoryStore, RandomOutcomes, SimulatedMachine
from chronex.testing.machine import ProcessOutcome
from tests.kit.machine import START

TASK = (Task(name="main", run=("true",)),)
HOURLY = Job(id="j", schedule="0 * * * *", tasks=TASK, notify=NotifyPolicy(("true",), after_failures=3))


def notices(machine: SimulatedMachine) -> list[tuple[str, int, int]]:
    found = machine.store.view(lambda tx: Reading(tx).scan(keys.NOTICE, Notice))
    return [(n.kind, ((n.nominal_ms or 0) - START) // HOUR, n.failures) for n in found]


def failing(machine: SimulatedMachine, share: float, hours: int) -> None:
    machine.outcome = RandomOutcomes(1, fail_share=share)
    machine.run_until(machine.now + hours * HOUR)


def test_told_once_after_so_many_failures_and_once_when_it_is_well_again() -> None:
    machine = SimulatedMachine([HOURLY], outcome=RandomOutcomes(1))
    failing(machine, 1.0, 6)
    assert notices(machine) == [("failing", 3, 3)]
    failing(machine, 0.0, 3)
    assert notices(machine) == [("failing", 3, 3), ("recovered", 6, 5)]
    failing(machine, 1.0, 2)
    failing(machine, 0.0, 2)
    assert len(notices(machine)) == 2, "two failures are below the limit"


def test_a_crash_neither_repeats_nor_forgets() -> None:
    machine = SimulatedMachine([HOURLY], outcome=RandomOutcomes(1))
    failing(machine, 1.0, 4)
    machine.crash()
    machine.boot()
    failing(machine, 1.0, 4)
    assert [kind for kind, _, _ in notices(machine)] == ["failing"]


def test_without_recovery_only_failures_are_told() -> None:
    machine = SimulatedMachine(
        [replace(HOURLY, notify=NotifyPolicy(("true",), on_recovery=False))], outcome=RandomOutcomes(1)
    )
    failing(machine, 1.0, 3)
    failing(machine, 0.0, 2)
    assert [kind for kind, _, _ in notices(machine)] == ["failing"]


# -- late --------------------------------------------------------------------------------------------------------

EXPECTED = replace(HOURLY, expect_within_ms=2 * HOUR)


def run_context(machine: SimulatedMachine, directory: Path) -> RunContext:
    found = RunContext.of_this_process(LogDirectory(directory / "logs"))
    return RunContext(**{**{f: getattr(found, f) for f in found.__dataclass_fields__}, "clock": machine.clock})


def notices_of_late_runs(machine: SimulatedMachine, directory: Path) -> list[tuple[str, int, int]]:
    Notifier(machine.store, run_context(machine, directory)).find_late()
    return notices(machine)


def test_a_run_that_was_missed_in_a_downtime_is_late_once_and_then_on_time(tmp_path: Path) -> None:
    machine = SimulatedMachine([EXPECTED], outcome=RandomOutcomes(1, fail_share=0))
    failing(machine, 0.0, 3)
    assert notices_of_late_runs(machine, tmp_path) == []
    machine.crash()
    machine.pass_time(5 * HOUR)
    machine.boot()
    assert notices_of_late_runs(machine, tmp_path) == [("late", 6, 0)]
    assert notices_of_late_runs(machine, tmp_path) == [("late", 6, 0)]
    failing(machine, 0.0, 2)
    assert notices_of_late_runs(machine, tmp_path) == [("late", 6, 0), ("on_time", 7, 0)]


def test_a_job_that_was_paused_by_mistake_is_late_too(tmp_path: Path) -> None:
    machine = SimulatedMachine([EXPECTED], outcome=RandomOutcomes(1, fail_share=0))
    failing(machine, 0.0, 1)
    machine.store.update(lambda tx: pause(Records(tx, machine.now), "j", Actor("eve", "cli", "here")))
    failing(machine, 0.0, 6)
    assert [kind for kind, _, _ in notices_of_late_runs(machine, tmp_path)] == ["late"]


def test_a_run_that_takes_longer_than_usual_is_told_while_it_runs(tmp_path: Path) -> None:
    usual = replace(HOURLY, expect_usual=True)
    machine = SimulatedMachine([usual], outcome=RandomOutcomes(1, fail_share=0))
    failing(machine, 0.0, 8)
    assert notices_of_late_runs(machine, tmp_path) == []
    machine.outcome = lambda _launch: ProcessOutcome(5 * HOUR, 0)
    machine.run_until(machine.now + 2 * HOUR)
    assert [kind for kind, _, _ in notices_of_late_runs(machine, tmp_path)] == ["slow"]
    assert [kind for kind, _, _ in notices_of_late_runs(machine, tmp_path)] == ["slow"]


@pytest.mark.parametrize("changes", [{"enabled": False}, {"expect_within_ms": None}, {"expect_within_ms": 40 * HOUR}])
def test_nothing_is_owed(tmp_path: Path, changes: dict[str, object]) -> None:
    machine = SimulatedMachine([replace(EXPECTED, **changes)], outcome=RandomOutcomes(1, fail_share=1))
    machine.pass_time(10 * HOUR)
    assert notices_of_late_runs(machine, tmp_path) == []


def test_an_edit_owes_nothing_for_the_time_before_it(tmp_path: Path) -> None:
    machine = SimulatedMachine([EXPECTED], outcome=RandomOutcomes(1, fail_share=0))
    machine.pass_time(10 * HOUR)
    apply_jobs(machine.store, [replace(EXPECTED, schedule="5 * * * *")], machine.now)
    assert notices_of_late_runs(machine, tmp_path) == []


# -- sending -----------------------------------------------------------------------------------------------------


def events(machine: SimulatedMachine) -> list[tuple[str, str]]:
    lines = machine.store.view(journal.tail)
    return [(e.name, str(e.reason)) for _, e in lines if e.name.startswith("Notification")]


def send(machine: SimulatedMachine, directory: Path) -> None:
    asyncio.run(asyncio.wait_for(Notifier(machine.store, run_context(machine, directory)).do(), 60))


def test_the_command_reads_the_report_and_the_notice_is_gone(tmp_path: Path) -> None:
    script = f'cat > {tmp_path}/notice; printf %s "$CHRONEX_NOTICE $CHRONEX_JOB" > {tmp_path}/env'
    machine = SimulatedMachine([replace(HOURLY, notify=NotifyPolicy(script))], outcome=RandomOutcomes(1))
    failing(machine, 1.0, 2)
    send(machine, tmp_path)
    notice = json.loads((tmp_path / "notice").read_text())
    assert (notice["kind"], notice["job"], notice["nominal"], notice["failures_in_a_row"]) == (
        "failing",
        "j",
        "2027-01-01T01:00:00Z",
        1,
    )
    assert set(notice) == {
        "delivery",
        "kind",
        "job",
        "at",
        "nominal",
        "occurrence",
        "reason",
        "failures_in_a_row",
        "try",
    }
    assert (tmp_path / "env").read_text() == "failing j"
    assert notices(machine) == []
    assert events(machine) == [("NotificationSent", "")]


def test_a_command_that_fails_is_tried_again_with_growing_pauses_and_then_given_up(tmp_path: Path) -> None:
    machine = SimulatedMachine(
        [replace(HOURLY, notify=NotifyPolicy(f"echo x >> {tmp_path}/tries; echo no; exit 3"))],
        outcome=RandomOutcomes(1),
    )
    failing(machine, 1.0, 2)
    for pause_ms in PAUSES_MS:
        send(machine, tmp_path)
        send(machine, tmp_path)  # not before its time
        machine.pass_time(pause_ms)
    send(machine, tmp_path)
    assert (tmp_path / "tries").read_text().count("x") == 1 + len(PAUSES_MS)
    assert notices(machine) == []
    assert events(machine) == [("NotificationFailed", "exit code 3: no")]


def test_a_job_without_its_command_any_more_does_not_block_others(tmp_path: Path) -> None:
    machine = SimulatedMachine([HOURLY], outcome=RandomOutcomes(1))
    failing(machine, 1.0, 4)
    apply_jobs(machine.store, [], machine.now)
    for pause_ms in (*PAUSES_MS, MINUTE):
        send(machine, tmp_path)
        machine.pass_time(pause_ms)
    assert notices(machine) == []


def test_of_two_nodes_that_both_believe_to_be_the_one_that_sends_one_sends(tmp_path: Path) -> None:
    """Each notice is claimed in a transaction before its command runs, and again when a try has had its time."""
    store, told = MemoryStore(), tmp_path / "told"
    job = replace(HOURLY, notify=NotifyPolicy(("sh", "-c", f"echo $CHRONEX_NOTICE >> {told}")))
    apply_jobs(store, [job], START)
    logs = LogDirectory(tmp_path / "logs")
    clock = FakeClock(START + 1)
    notice = Notice(job="j", kind="failing", at_ms=START, nominal_ms=START)
    store.update(lambda tx: Records(tx, START).put(notice))
    nodes = [Notifier(store, RunContext.of_this_process(logs, clock), node) for node in ("node-1", "node-2")]

    async def both() -> None:
        await asyncio.gather(*(node.do() for node in nodes))
        await asyncio.gather(*(node.do() for node in nodes))

    asyncio.run(both())
    logs.close()
    assert told.read_text().split() == ["failing"]
    assert store.view(lambda tx: Reading(tx).scan(keys.NOTICE, Notice)) == []


def test_a_notice_whose_sender_died_is_sent_by_another_when_its_try_has_had_its_time() -> None:
    store = MemoryStore()
    notice = Notice(job="j", kind="failing", at_ms=START, nominal_ms=START)
    store.update(lambda tx: Records(tx, START).put(notice))
    assert len(store.update(lambda tx: claim(Records(tx, START + 1), "node-1", 4))) == 1
    assert store.update(lambda tx: claim(Records(tx, START + 2), "node-2", 4)) == []
    (taken,) = store.update(lambda tx: claim(Records(tx, START + 1 + HANDED_OUT_MS), "node-2", 4))
    assert taken.owner == "node-2"
