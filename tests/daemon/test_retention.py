"""Store and logs stay within their limits; what is kept, runs, or could still be asked for stays."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

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
    """A world whose attempts leave a log file each."""

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
def world(tmp_path: Path) -> Logged:
    world = Logged(outcome=RandomOutcomes(5, fail_share=0))  # a dead letter would stay, whatever the limits
    world.logs = LogDirectory(tmp_path / "logs")
    jobs = [Job(id=name, schedule="*/10 * * * *", tasks=(Task(name="main", run=("true",)),)) for name in ("a", "b")]
    apply_jobs(world.store, jobs, world.now)
    return world


def files(world: Logged) -> set[str]:
    return set(os.listdir(world.logs.path))


def keep_up(world: Logged) -> None:
    asyncio.run(Retention(world.store, world.logs, SMALL, world.clock).whole_pass())


def test_files_and_records_are_bounded_however_long_it_runs(world: Logged) -> None:
    sizes = []
    for day in range(1, 5):
        world.run_until(START + day * DAY)
        keep_up(world)
        rows = world.store.view(lambda tx: len(tx.scan(b"", None, 1_000_000)))
        sizes.append((len(files(world)), rows))
        assert len(world.occurrences("a")) == len(world.occurrences("b")) == 20
    assert all(count <= 2 * 5 + 2 for count, _ in sizes)
    assert max(rows for _, rows in sizes) <= min(rows for _, rows in sizes) + 30
    assert len(world.store.view(lambda tx: journal.tail(tx, limit=10_000))) == 300


def test_every_log_that_an_attempt_names_is_there_and_no_other(world: Logged) -> None:
    world.run_until(START + DAY)
    keep_up(world)
    named = {
        attempt.log_path
        for job in ("a", "b")
        for o in world.occurrences(job)
        for attempt in world.store.view(lambda tx, o=o: Reading(tx).attempts(o.job, o.nominal_ms))  # type: ignore[misc]
        if attempt.log_path
    }
    assert named == files(world)


def test_the_log_of_a_running_attempt_stays_however_silent_it_is(world: Logged) -> None:
    world.outcome = lambda _launch: ProcessOutcome(100 * DAY)
    world.run_until(START + 12 * HOUR)
    [process] = [p for p in world.live.values() if p.job == "a"]
    world.pass_time(60 * DAY)
    stray = world.logs.create("attempt_" + "0" * 8 + "-0000-0000-0000-" + "0" * 12)
    os.close(stray[1])
    os.utime(world.logs.path / stray[0], (START / 1000, START / 1000))
    keep_up(world)
    assert f"{process.attempt_id}.log" in files(world)
    assert stray[0] not in files(world)


def test_a_file_that_is_not_a_log_is_left_alone(world: Logged) -> None:
    (world.logs.path / "notes.txt").write_text("mine")
    os.utime(world.logs.path / "notes.txt", (0, 0))
    keep_up(world)
    assert files(world) == {"notes.txt"}


def test_what_is_kept_is_explained_as_before_the_journal_was_trimmed(world: Logged) -> None:
    world.run_until(START + 2 * DAY)
    kept = [o.nominal_ms for o in world.occurrences("a")[-20:]]

    def causes() -> list[object]:
        return world.store.view(
            lambda tx: [getattr(why(Reading(tx), "a", i, world.now), "cause", None) for i in kept]
        )

    before = causes()
    keep_up(world)
    assert causes() == before


def test_old_versions_and_nodes_go_when_nothing_refers_to_them(world: Logged) -> None:
    world.run_until(START + 12 * HOUR)

    def write(tx: Transaction) -> None:
        records = Records(tx, world.now)
        job = records.job("a")
        assert job is not None
        for version in range(1, 41):
            records.put(JobVersion(job=replace(job, version=version)))
        for number in range(80):
            records.put(Node(id=f"old-{number}", process=ProcessIdentity(1, "b", 1), started_ms=number, stopped_ms=9))

    world.store.update(write)
    keep_up(world)
    versions = world.store.view(lambda tx: [int.from_bytes(k[-4:], "big") for k, _ in tx.scan(keys.JOB_VERSION)])
    assert versions == [1, *range(21, 41)]  # the kept occurrences were decided under version 1
    assert len(world.store.view(lambda tx: Reading(tx).nodes())) == 50


def test_a_step_is_small_and_a_pass_is_not_repeated_at_once(world: Logged) -> None:
    world.run_until(START + DAY)
    retention = Retention(world.store, world.logs, SMALL, world.clock)
    asyncio.run(retention.do())
    left = len(world.occurrences("a"))
    assert left == 20
    world.run_until(world.now + 5 * MINUTE)
    before = world.store.wait(-1, 0)
    asyncio.run(retention.do())
    assert world.store.wait(-1, 0) == before


def test_other_limits_count_from_the_next_step_on(world: Logged) -> None:
    world.run_until(START + DAY)
    retention = Retention(world.store, world.logs, SchedulerSettings(), world.clock)
    asyncio.run(retention.do())
    assert len(world.occurrences("a")) > 20
    retention.use(SMALL)
    asyncio.run(retention.do())
    assert len(world.occurrences("a")) == 20
