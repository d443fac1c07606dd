"""Several processes on one store: races, kills, stale readers, and being woken."""

from __future__ import annotations

import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from chronex.clock import SystemClock
from chronex.errors import StoreError
from chronex.model.job import Job, Task
from chronex.storage.ports import Row, Transaction
from chronex.storage.records import Reading, Records, pages
from chronex_store import LmdbStore
from tests.kit.waits import DEADLINE_S, until

from .conftest import memory_directory
from .processes import assert_sound, command, run_worker, start_worker


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with LmdbStore.open(tmp_path / "store"):
        return tmp_path / "store"


def race(path: Path, processes: int, ids: int) -> None:
    workers = [start_worker(command("claim", path, f"worker-{n}", ids)) for n in range(processes)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    won = [worker.communicate(timeout=DEADLINE_S)[0].split() for worker in workers]
    assert sorted(int(number) for mine in won for number in mine) == list(range(ids))
    with LmdbStore.open(path) as store:
        rows = dict(store.view(lambda tx: tx.scan(b"Qclaim", limit=ids + 1)))
    for name, mine in enumerate(won):
        assert all(rows[b"Qclaim%06d" % int(number)] == b"worker-%d" % name for number in mine)


def test_eight_processes_win_each_of_two_thousand_ids_exactly_once() -> None:
    with tempfile.TemporaryDirectory(dir=memory_directory()) as place:
        race(Path(place) / "store", 8, 2000)


@pytest.mark.torture
def test_the_race_on_a_disk(path: Path) -> None:
    race(path, 8, 2000)


class Campaign:
    """Processes that write, read and are killed; the last word of each about a key is remembered."""

    def __init__(self, path: Path, processes: int, seed: int) -> None:
        self.path = path
        self.chance = random.Random(seed)
        self.names = [f"w{number}" for number in range(processes)]
        self.workers: dict[str, subprocess.Popen[str]] = {}
        self.said: dict[str, int] = {}
        self.generation = 0

    def run(self, kills: int) -> None:
        """So many kills at moments that nobody knows, and more until some of the killed have written something."""
        for name in self.names:
            self.start(name)
        for _ in range(kills):
            self.kill_one()
        until(self.has_written_or_kills_one, "something written by those who are killed")
        for name in self.names:
            self.kill(name)

    def has_written_or_kills_one(self) -> bool:
        if not self.said:
            self.kill_one()
        return bool(self.said)

    def kill_one(self) -> None:
        time.sleep(self.chance.uniform(0.02, 0.15))
        name = self.chance.choice(self.names)
        self.kill(name)
        self.start(name)

    def start(self, name: str) -> None:
        # A new name each time, so that a value is never older than the last acknowledged one by design.
        self.generation += 1
        self.workers[name] = start_worker(command("churn", self.path, f"{name}g{self.generation}"))

    def kill(self, name: str) -> None:
        worker = self.workers.pop(name)
        worker.kill()
        out, _ = worker.communicate(timeout=DEADLINE_S)
        for line in out.splitlines():
            key, _, step = line.partition(" ")
            assert key != "error", line
            if step.isdigit():
                self.said[key] = int(step)


def all_rows(store: LmdbStore) -> list[list[Row]]:
    return store.view(lambda tx: list(pages(tx, b"Qchurn")))


def survive(path: Path, processes: int, kills: int) -> None:
    campaign = Campaign(path, processes, seed=processes)
    campaign.run(kills)
    assert campaign.said
    assert_sound(path)
    with LmdbStore.open(path) as store:
        store.update(lambda tx: tx.put(b"Qafter", b""))  # it would hang if a killed writer held the lock
        kept = {key.decode(): int(value[:9]) for rows in all_rows(store) for key, value in rows}
        assert all(kept[key] >= step for key, step in campaign.said.items())
        space = store.space()
        # In a store of a megabyte the pages that a killed reader pinned for a moment weigh more than the data.
        assert space.file_bytes < 2 * max(space.used_bytes, 4 << 20), space
        assert len(store.environment().lmdb.readers().splitlines()) < 128


def test_killed_writers_and_readers_lose_nothing(path: Path) -> None:
    survive(path, 4, kills=8)


@pytest.mark.torture
def test_ten_processes_are_killed_again_and_again(path: Path) -> None:
    survive(path, 10, kills=500)


def test_a_writer_killed_inside_an_update_leaves_nothing_and_blocks_nobody(path: Path) -> None:
    code, _ = run_worker(command("die_inside", path))
    assert code == -signal.SIGKILL
    with LmdbStore.open(path) as store:
        assert store.view(lambda tx: tx.get(b"Qhalf")) is None
        store.update(lambda tx: tx.put(b"Qwhole", b""))


def test_two_hundred_killed_readers_are_cleared(path: Path) -> None:
    worker = hold_snapshots(path, 200)
    with LmdbStore.open(path) as store:
        assert len(store.environment().lmdb.readers().splitlines()) > 200
    worker.kill()
    worker.communicate()
    with LmdbStore.open(path) as store:
        assert store.environment().lmdb.reader_check() == 0, "opening had not cleared them"
        assert len(store.environment().lmdb.readers().splitlines()) < 5


class SetClock(SystemClock):
    """Real, but for the monotonic hand, which can be moved on."""

    ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


def hold_snapshots(path: Path, count: int) -> subprocess.Popen[str]:
    worker = start_worker(command("read_for_ever", path, count))
    assert worker.stdout is not None
    for _ in range(count):
        assert worker.stdout.readline() == "held\n"
    return worker


def test_killed_readers_are_cleared_every_minute(path: Path) -> None:
    clock = SetClock()
    with LmdbStore.open(path, clock=clock) as store:
        worker = hold_snapshots(path, 20)
        worker.kill()
        worker.communicate()
        store.view(lambda tx: tx.get(b"J"))
        assert len(store.environment().lmdb.readers().splitlines()) > 20
        clock.ahead_ms = 61_000
        store.view(lambda tx: tx.get(b"J"))
        assert len(store.environment().lmdb.readers().splitlines()) < 5


def test_when_every_reader_slot_is_taken_the_dead_are_cleared(path: Path) -> None:
    with LmdbStore.open(path) as store:
        worker = hold_snapshots(path, store.environment().lmdb.info()["max_readers"])
        with pytest.raises(StoreError, match="READERS_FULL"):
            store.view(lambda tx: tx.get(b"J"))
        worker.kill()
        worker.communicate()
        assert store.view(lambda tx: tx.get(b"J")) is None


def test_a_commit_wakes_another_process(path: Path) -> None:
    """Each is written only after the one before has woken us: a wake-up that is lost would be the end."""
    worker = start_worker(command("write_when_told", path))
    assert worker.stdin is not None
    with LmdbStore.open(path) as store:
        since = store.wait(-1, 0)
        for number in range(20):
            worker.stdin.write(f"{number}\n")
            worker.stdin.flush()
            while store.view(lambda tx: tx.get(b"Qtime")) != b"%d" % number:
                since, before = store.wait(since, DEADLINE_S), since
                assert since != before, "nobody was woken"
    worker.communicate(timeout=DEADLINE_S)


def test_waiting_costs_nothing(path: Path) -> None:
    """Once in each of its pauses it looks at the store, whatever the machine does meanwhile."""
    with LmdbStore.open(path) as store:
        since = store.wait(-1, 0)
        before = time.process_time()
        store.wait(since, 0.4)
        assert time.process_time() - before < 0.2, "it did not sleep"


def test_a_job_that_another_process_changed_is_never_read_as_it_was(path: Path) -> None:
    """Decoded rows are kept in memory; the bytes in the store decide whether they still stand."""
    with LmdbStore.open(path) as store:
        job = Job(id="job", schedule="0 0 * * *", tasks=(Task(name="main", run=("true",)),))
        store.update(lambda tx: Records(tx, 0).put(job))

        def read(tx: Transaction) -> Job | None:
            return Records.cached(tx, 0).job("job")

        for hour in range(1, 4):
            schedule = f"0 {hour} * * *"
            assert store.update(read) == store.view(lambda tx: Reading(tx).job("job"))
            assert run_worker(command("reschedule", path, "job", schedule)) == (0, [])
            for found in (store.update(read), store.view(lambda tx: Reading(tx).job("job"))):
                assert found is not None
                assert (found.schedule, found.progress.paused) == (schedule, True)
            store.update(lambda tx: Records(tx, 0).put(job))
