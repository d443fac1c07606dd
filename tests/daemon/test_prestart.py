"""Children stand ready before their instant; they run at it, or never."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from pathlib import Path

import pytest

from chronex.clock import SystemClock, wall_ms
from chronex.daemon import prestart as mustering
from chronex.daemon.prestart import LEAD_MS, Muster
from chronex.engine.orders import Launch
from chronex.model.records import Attempt, Job, Occurrence, Task
from chronex.run import AttemptRequest, Hooks, LogDirectory, Surroundings, run_attempt
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from tests.daemon.machine import Machine
from tests.kit.waits import is_gone, until, until_async

SOON_MS = LEAD_MS + 5  # their instant is so near that they are called at once


class StoppedClock(SystemClock):
    """A wall clock that moves only by hand: no instant comes before the children stand, however busy the machine."""

    now = wall_ms()

    def wall_ms(self) -> int:
        return self.now


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def surroundings(tmp_path: Path, clock: StoppedClock) -> Surroundings:
    return Surroundings.of_this_process(LogDirectory(tmp_path / "logs"), clock)


def launches(at_ms: int, place: Path, count: int = 1) -> list[Launch]:
    """Each leaves a file that tells when it ran."""
    made = []
    for number in range(count):
        task = Task(name="main", run=("touch", str(place / f"ran-{number}")))
        job = Job(id=f"job-{number}", schedule="* * * * *", tasks=(task,))
        occurrence = Occurrence(job=job.id, nominal_ms=at_ms, due_ms=at_ms)
        made.append(Launch(job, occurrence, task, Attempt(job=job.id, nominal_ms=at_ms, task="main", number=1)))
    return made


def request_of(launch: Launch) -> AttemptRequest:
    return AttemptRequest.of(launch.job, launch.task, launch.occurrence, launch.attempt)


async def mustered(surroundings: Surroundings, wanted: list[Launch], at_ms: int) -> Muster:
    muster = Muster(surroundings, lambda _at, most: wanted[:most], request_of)
    muster.prepare(at_ms)
    await until_async(lambda: len(muster.standing) == len(wanted), "the children that are to stand")
    return muster


def ran(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("ran-*"))


async def gone(*pids: int) -> None:
    await until_async(lambda: all(is_gone(pid) for pid in pids), "the end of those who were sent home")


async def test_a_child_stands_before_its_instant_and_runs_when_it_is_called(
    surroundings: Surroundings, clock: StoppedClock, tmp_path: Path
) -> None:
    at_ms = surroundings.clock.wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    muster = await mustered(surroundings, wanted, at_ms)
    clock.now = at_ms
    child = muster.take(request_of(launch))
    assert child is not None
    assert ran(tmp_path) == []
    assert muster.standing == {}
    result = await run_attempt(request_of(launch), Hooks(), surroundings, child)
    assert (result.exit_code, ran(tmp_path)) == (0, ["ran-0"])
    assert result.process == child.process.identity
    assert result.started_ms == at_ms, "it began when it was called, not when it stood"


async def test_who_is_not_called_goes_home(surroundings: Surroundings, tmp_path: Path) -> None:
    at_ms = surroundings.clock.wall_ms() + SOON_MS
    muster = await mustered(surroundings, launches(at_ms, tmp_path, 3), at_ms)
    pids = [one.child.process.identity.pid for one in muster.standing.values()]
    muster.dismiss(until_ms=at_ms - 1)
    assert len(muster.standing) == 3, "their instant has not come"
    muster.dismiss(until_ms=at_ms)
    await gone(*pids)
    assert (ran(tmp_path), muster.standing) == ([], {})


async def test_a_child_that_would_run_something_else_goes_home(surroundings: Surroundings, tmp_path: Path) -> None:
    at_ms = surroundings.clock.wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    muster = await mustered(surroundings, wanted, at_ms)
    (standing,) = muster.standing.values()
    changed = launch._replace(task=Task(name="main", run=("touch", str(tmp_path / "other"))))
    assert muster.take(request_of(changed)) is None
    await gone(standing.child.process.identity.pid)
    assert ran(tmp_path) == []


async def test_a_child_that_was_killed_at_its_gate_is_not_called(surroundings: Surroundings, tmp_path: Path) -> None:
    at_ms = surroundings.clock.wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    muster = await mustered(surroundings, wanted, at_ms)
    (standing,) = muster.standing.values()
    os.kill(standing.child.process.identity.pid, signal.SIGKILL)
    await until_async(standing.child.process.has_ended, "the end of the child")
    assert muster.take(request_of(launch)) is None
    await gone(standing.child.process.identity.pid)


async def test_who_cannot_stand_does_not_keep_the_others_from_it(surroundings: Surroundings, tmp_path: Path) -> None:
    at_ms = surroundings.clock.wall_ms() + SOON_MS
    wanted = launches(at_ms, tmp_path, 2)
    missing = wanted[0]._replace(task=Task(name="main", run=("/no/such/program",)))
    muster = Muster(surroundings, lambda _at, _most: [missing, wanted[1]], request_of)
    muster.prepare(at_ms)
    await until_async(lambda: muster.standing, "the child that can stand")
    assert list(muster.standing) == [wanted[1].attempt.id]
    muster.dismiss()
    await muster.gone()


async def test_another_instant_takes_the_place_of_the_first(surroundings: Surroundings, tmp_path: Path) -> None:
    asked: list[int] = []

    def foresee(at_ms: int, _most: int) -> list[Launch]:
        asked.append(at_ms)
        return []

    muster = Muster(surroundings, foresee, request_of)
    far, near = surroundings.clock.wall_ms() + 3_600_000, surroundings.clock.wall_ms() + SOON_MS
    muster.prepare(far)
    muster.prepare(far)
    muster.prepare(near)
    await until_async(lambda: asked, "the question what the instant will bring")
    assert asked == [near]
    muster.dismiss()
    await muster.gone()


async def test_what_cannot_be_foreseen_is_left_to_the_tick(surroundings: Surroundings) -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
    asked: list[int] = []

    def fail(at_ms: int, _most: int) -> list[Launch]:
        asked.append(at_ms)
        raise RuntimeError("the store is gone")

    muster = Muster(surroundings, fail, request_of)
    muster.prepare(surroundings.clock.wall_ms() + SOON_MS)
    await until_async(lambda: asked, "the question what the instant will bring")
    await until_async(lambda: muster._work is not None and muster._work.done(), "the end of the preparation")
    muster.dismiss()
    await muster.gone()
    assert (muster.standing, told) == ({}, [])


async def test_descriptors_are_given_back(surroundings: Surroundings, tmp_path: Path) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    at_ms = surroundings.clock.wall_ms() + SOON_MS
    cold = open_descriptors()
    warm = await mustered(surroundings, launches(at_ms, tmp_path), at_ms)
    warm.dismiss()
    await warm.gone()
    # The loop's own watcher stays, and the gate; the child's three descriptors are given back one after the other.
    await until_async(lambda: open_descriptors() <= cold + 2, "the descriptors of the first child")
    before = open_descriptors()
    muster = await mustered(surroundings, launches(at_ms, tmp_path, 5), at_ms)
    assert open_descriptors() >= before + 15
    muster.dismiss()
    await muster.gone()
    await until_async(lambda: open_descriptors() <= before, "the descriptors that are given back")


@pytest.mark.parametrize(("soft", "most"), [(64, 0), (1024, 128), (resource.RLIM_INFINITY, 1024), (1 << 20, 1024)])
def test_standing_children_leave_descriptors_for_the_others(
    soft: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, soft))
    assert mustering.most_standing() == most


# -- the real daemon -------------------------------------------------------------------------------------------------

CROWD = 60  # they stand for some 70 ms: long enough to be seen
JOBS = "[scheduler]\nmax_concurrent_jobs = 100\n" + "".join(
    f'[jobs.j{number}]\nschedule = "*/2 * * * * *"\noverlap = "allow"\nrun = "echo $$ $(date +%s%3N) >> ran"\n'
    for number in range(CROWD)
)


def children(daemon: int) -> set[int]:
    listed = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
    return {int(pid) for pid in listed}


def recorded(machine: Machine) -> dict[int, int]:
    """The instant for which each process was recorded as started."""

    def read(reading: Reading) -> dict[int, int]:
        found = [one for number in range(CROWD) for one in reading.occurrences(f"j{number}")]
        attempts = [attempt for one in found for attempt in reading.attempts(one.job, one.nominal_ms)]
        return {one.process.pid: one.nominal_ms for one in attempts if one.process is not None}

    with LmdbStore.open(machine.directory / "store", create=False) as store:
        return store.view(lambda tx: read(Reading(tx)))


def runs(machine: Machine) -> dict[int, int]:
    """When each process really ran, as it says itself."""
    path = machine.directory / "ran"
    lines = path.read_text().splitlines() if path.exists() else []
    return {int(pid): int(at_ms) for pid, at_ms in (line.split() for line in lines)}


def test_the_daemon_has_them_ready_and_none_runs_early(machine: Machine) -> None:
    machine.write(JOBS)
    daemon = machine.start(quiet=True)
    first_seen: dict[int, int] = {}

    def stood() -> bool:
        """Seen before the instant for which it was recorded; a busy machine may need more than one instant."""
        for _ in range(200):
            at_ms = wall_ms()
            for pid in children(daemon.pid):
                first_seen.setdefault(pid, at_ms)
            time.sleep(0.002)
        known = recorded(machine)
        return any(first_seen[pid] < known[pid] for pid in first_seen.keys() & known.keys())

    until((machine.directory / "ran").exists, "the first instant")
    until(stood, "a child that is there before its instant")
    assert daemon.stopped() == 0
    known, ran = recorded(machine), runs(machine)
    assert ran
    assert [pid for pid, at_ms in ran.items() if at_ms < known[pid]] == [], "they ran before their instant"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_when_the_daemon_goes_nobody_who_stood_ready_stays_or_runs(machine: Machine, number: signal.Signals) -> None:
    machine.write(JOBS)
    daemon = machine.start(quiet=True)
    standing = until(lambda: children(daemon.pid), "children that stand ready")
    daemon.send_signal(number)
    daemon.ended()
    until(lambda: all(is_gone(pid) for pid in standing), "the end of those who stood ready")
    # Where the instant came before the signal was heard, they rightly ran, and that is on record.
    assert runs(machine).keys() <= recorded(machine).keys(), "one ran whose start is not on record"
