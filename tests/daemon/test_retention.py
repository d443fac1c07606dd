"""Store and logs stay within their limits; what is kept, runs, or could still be asked for stays."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.daemon.retention import Retention
from chronex.engine.orders import Launch
from chronex.engine.update import apply_jobs
from chronex.jobfile import SchedulerSettings
from chronex.jobfile.settings import HistorySettings, LogSettings
from chronex.model.job import Job, JobVersion, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.run import LogDirectory
from chronex.storage import journal, keys
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, MINUTE, ProcessOutcome, RandomOutcomes, SimulatedMachine
from chronex.views.why import why
from tests.kit.machine import START

SMALL = SchedulerSettings(
    history=HistorySettings(max_count=20, max_events=300), logs=LogSettings(max_count=5, max_age_ms=10 * DAY)
)


class Logged(SimulatedMachine):
    """A machine whose attempts leave a log file each."""

    logs: LogDirectory

    def launch(self, order: Launch) -> None:
        super().launch(order)
        attempt = order.attempt
        name, descriptor = self.logs.create(attempt.id)
        os.write(descriptor, b"output\n")
        os.close(descriptor)
        os.utime(self.logs.path / name, (self.now / 1000, self.now / 1000))

        def write(tx: Transaction) -> None:
            records = Records(tx, self.now)
            found = records.attempt(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)
            assert found is not None
            records.put(replace(found, log_path=name))

        self.store.update(write)


@pytest.fixture
def machine(tmp_path: Path) -> Logged:
    machine = Logged(outcome=RandomOutcomes(5, fail_share=0))  # a dead letter would stay, whatever the limits
    machine.logs = LogDirectory(tmp_path / "logs")
    jobs = [Job(id=name, schedule="*/10 * * * *", tasks=(Task(name="main", run=("true",)),)) for name in ("a", "b")]
    apply_jobs(machine.store, jobs, machine.now)
    return machine


def files(machine: Logged) -> set[str]:
    return set(os.listdir(machine.logs.path))


def keep_up(machine: Logged) -> None:
    asyncio.run(Retention(machine.store, machine.logs, SMALL, machine.clock).whole_pass())


def test_files_and_records_are_bounded_however_long_it_runs(machine: Logged) -> None:
    sizes = []
    for day in range(1, 5):
        machine.run_until(START + day * DAY)
        keep_up(machine)
        rows = machine.store.view(lambda tx: len(tx.scan(b"", None, 1_000_000)))
        sizes.append((len(files(machine)), rows))
        assert len(machine.occurrences("a")) == len(machine.occurrences("b")) == 20
    assert all(count <= 2 * 5 + 2 for count, _ in sizes)
    assert max(rows for _, rows in sizes) <= min(rows for _, rows in sizes) + 30
    assert len(machine.store.view(lambda tx: journal.tail(tx, limit=10_000))) == 300


def test_every_log_that_an_attempt_names_is_there_and_no_other(machine: Logged) -> None:
    machine.run_until(START + DAY)
    keep_up(machine)
    named = {
        attempt.log_path
        for job in ("a", "b")
        for o in machine.occurrences(job)
        for attempt in machine.store.view(lambda tx, o=o: Reading(tx).attempts(o.job, o.nominal_ms))  # type: ignore[misc]
        if attempt.log_path
    }
    assert named == files(machine)


def test_the_log_of_a_running_attempt_stays_however_silent_it_is(machine: Logged) -> None:
    machine.outcome = lambda _launch: ProcessOutcome(100 * DAY)
    machine.run_until(START + 12 * HOUR)
    [process] = [p for p in machine.live.values() if p.job == "a"]
    machine.pass_time(60 * DAY)
    stray = machine.logs.create("attempt_" + "0" * 8 + "-0000-0000-0000-" + "0" * 12)
    os.close(stray[1])
    os.utime(machine.logs.path / stray[0], (START / 1000, START / 1000))
    keep_up(machine)
    assert f"{process.attempt_id}.log" in files(machine)
    assert stray[0] not in files(machine)


async def test_a_step_that_is_given_up_and_goes_on_is_waited_for(
    machine: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk: the daemon gives the step up after 30 s, its thread goes on, and the next one met it."""
    machine.run_until(START + DAY)
    begun, go_on, store_update = threading.Event(), threading.Event(), machine.store.update

    def slow(*arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return store_update(*arguments, **options)

    monkeypatch.setattr(machine.store, "update", slow)
    retention = Retention(machine.store, machine.logs, SMALL, machine.clock)
    given_up = asyncio.create_task(retention.do())
    assert await asyncio.to_thread(begun.wait, 60)
    given_up.cancel()
    await asyncio.wait([given_up])
    await retention.do()
    go_on.set()
    while len(machine.occurrences("a")) > 20:
        await retention.do()
        await asyncio.sleep(0)


def test_a_file_that_is_not_a_log_is_left_alone(machine: Logged) -> None:
    (machine.logs.path / "notes.txt").write_text("mine")
    os.utime(machine.logs.path / "notes.txt", (0, 0))
    keep_up(machine)
    assert files(machine) == {"notes.txt"}


def test_what_is_kept_is_explained_as_before_the_journal_was_trimmed(machine: Logged) -> None:
    machine.run_until(START + 2 * DAY)
    kept = [o.nominal_ms for o in machine.occurrences("a")[-20:]]

    def causes() -> list[object]:
        return machine.store.view(
            lambda tx: [getattr(why(Reading(tx), "a", i, machine.now), "cause", None) for i in kept]
        )

    before = causes()
    keep_up(machine)
    assert causes() == before


def test_old_versions_and_nodes_go_when_nothing_refers_to_them(machine: Logged) -> None:
    machine.run_until(START + 12 * HOUR)

    def write(tx: Transaction) -> None:
        records = Records(tx, machine.now)
        job = records.job("a")
        assert job is not None
        for version in range(1, 41):
            records.put(JobVersion(job=replace(job, version=version)))
        for number in range(80):
            records.put(Node(id=f"old-{number}", process=ProcessIdentity(1, "b", 1), started_ms=number, stopped_ms=9))

    machine.store.update(write)
    keep_up(machine)
    versions = machine.store.view(lambda tx: [int.from_bytes(k[-4:], "big") for k, _ in tx.scan(keys.JOB_VERSION)])
    assert versions == [1, *range(21, 41)]  # the kept occurrences were decided under version 1
    assert len(machine.store.view(lambda tx: Reading(tx).nodes())) == 50


def test_a_step_is_small_and_a_pass_is_not_repeated_at_once(machine: Logged) -> None:
    machine.run_until(START + DAY)
    retention = Retention(machine.store, machine.logs, SMALL, machine.clock)
    asyncio.run(retention.do())
    left = len(machine.occurrences("a"))
    assert left == 20
    machine.run_until(machine.now + 5 * MINUTE)
    before = machine.store.wait(-1, 0)
    asyncio.run(retention.do())
    assert machine.store.wait(-1, 0) == before


def test_other_limits_count_from_the_next_step_on(machine: Logged) -> None:
    machine.run_until(START + DAY)
    retention = Retention(machine.store, machine.logs, SchedulerSettings(), machine.clock)
    asyncio.run(retention.do())
    assert len(machine.occurrences("a")) > 20
    retention.use(SMALL)
    asyncio.run(retention.do())
    assert len(machine.occurrences("a")) == 20
