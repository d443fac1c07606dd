"""Children stand ready before their instant; they run at it, or never."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.clock import wall_ms
from chronex.daemon import prestart as mustering
from chronex.daemon.prestart import Muster
from chronex.engine.orders import Launch
from chronex.model.records import Attempt, Job, Occurrence, Task
from chronex.run import AttemptRequest, Hooks, LogDirectory, Surroundings, run_attempt
from tests.daemon.machine import Machine, until, until_told

SOON_MS = 400


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    return Surroundings.of_this_process(LogDirectory(tmp_path / "logs"))


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
    while len(muster.standing) < len(wanted):
        assert wall_ms() < at_ms + 10_000, "they never stood"
        await asyncio.sleep(0.005)
    return muster


def ran(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("ran-*"))


async def gone(pid: int) -> None:
    for _ in range(1_000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{pid} is still there")


async def test_a_child_stands_before_its_instant_and_runs_when_it_is_called(
    surroundings: Surroundings, tmp_path: Path
) -> None:
    at_ms = wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    muster = await mustered(surroundings, wanted, at_ms)
    stood_ms = wall_ms()
    child = muster.take(request_of(launch))
    assert child is not None
    assert ran(tmp_path) == []
    assert muster.standing == {}
    result = await run_attempt(request_of(launch), Hooks(), surroundings, child)
    assert (result.exit_code, ran(tmp_path)) == (0, ["ran-0"])
    assert result.process == child.process.identity
    assert result.started_ms is not None
    assert result.started_ms >= stood_ms, "it began when it was called, not when it stood"


async def test_who_is_not_called_goes_home(surroundings: Surroundings, tmp_path: Path) -> None:
    at_ms = wall_ms() + SOON_MS
    muster = await mustered(surroundings, launches(at_ms, tmp_path, 3), at_ms)
    pids = [one.child.process.identity.pid for one in muster.standing.values()]
    muster.dismiss(until_ms=at_ms - 1)
    assert len(muster.standing) == 3, "their instant has not come"
    muster.dismiss(until_ms=at_ms)
    for pid in pids:
        await gone(pid)
    assert (ran(tmp_path), muster.standing) == ([], {})


async def test_a_child_that_would_run_something_else_goes_home(surroundings: Surroundings, tmp_path: Path) -> None:
    at_ms = wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    muster = await mustered(surroundings, wanted, at_ms)
    (standing,) = muster.standing.values()
    changed = launch._replace(task=Task(name="main", run=("touch", str(tmp_path / "other"))))
    assert muster.take(request_of(changed)) is None
    await gone(standing.child.process.identity.pid)
    assert ran(tmp_path) == []


async def test_a_child_that_was_killed_at_its_gate_is_not_called(surroundings: Surroundings, tmp_path: Path) -> None:
    at_ms = wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    muster = await mustered(surroundings, wanted, at_ms)
    (standing,) = muster.standing.values()
    os.kill(standing.child.process.identity.pid, signal.SIGKILL)
    while not standing.child.process.has_ended():
        await asyncio.sleep(0.005)
    assert muster.take(request_of(launch)) is None
    await gone(standing.child.process.identity.pid)


async def test_who_cannot_stand_does_not_keep_the_others_from_it(surroundings: Surroundings, tmp_path: Path) -> None:
    at_ms = wall_ms() + SOON_MS
    wanted = launches(at_ms, tmp_path, 2)
    missing = wanted[0]._replace(task=Task(name="main", run=("/no/such/program",)))
    muster = Muster(surroundings, lambda _at, _most: [missing, wanted[1]], request_of)
    muster.prepare(at_ms)
    while not muster.standing:
        await asyncio.sleep(0.005)
    assert list(muster.standing) == [wanted[1].attempt.id]
    muster.dismiss()
    await muster.gone()


async def test_another_instant_takes_the_place_of_the_first(surroundings: Surroundings, tmp_path: Path) -> None:
    asked: list[int] = []

    def foresee(at_ms: int, _most: int) -> list[Launch]:
        asked.append(at_ms)
        return []

    muster = Muster(surroundings, foresee, request_of)
    far, near = wall_ms() + 3_600_000, wall_ms() + 100
    muster.prepare(far)
    muster.prepare(far)
    muster.prepare(near)
    while not asked:
        await asyncio.sleep(0.005)
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
    muster.prepare(wall_ms() + SOON_MS)
    while not asked:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)
    muster.dismiss()
    await muster.gone()
    assert (muster.standing, told) == ({}, [])


async def test_descriptors_are_given_back(surroundings: Surroundings, tmp_path: Path) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    warm = await mustered(surroundings, launches(wall_ms(), tmp_path), wall_ms() + SOON_MS)
    warm.dismiss()
    await warm.gone()
    await asyncio.sleep(0.05)
    before = open_descriptors()
    at_ms = wall_ms() + SOON_MS
    muster = await mustered(surroundings, launches(at_ms, tmp_path, 5), at_ms)
    assert open_descriptors() >= before + 15
    muster.dismiss()
    await muster.gone()
    for _ in range(400):
        if open_descriptors() <= before:
            break
        await asyncio.sleep(0.005)
    assert open_descriptors() <= before


@pytest.mark.parametrize(("soft", "most"), [(64, 0), (1024, 128), (resource.RLIM_INFINITY, 1024), (1 << 20, 1024)])
def test_standing_children_leave_descriptors_for_the_others(
    soft: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, soft))
    assert mustering.most_standing() == most


# -- the real daemon -------------------------------------------------------------------------------------------------


def waiting_gates(daemon: int) -> list[int]:
    """Children of the daemon."""
    listed = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
    return [int(pid) for pid in listed]


def at_second(seconds_ahead: int) -> tuple[str, int]:
    moment = int(time.time()) + seconds_ahead
    told = time.gmtime(moment)
    return f"{told.tm_sec} {told.tm_min} {told.tm_hour} {told.tm_mday} {told.tm_mon} *", moment


CROWD = 60  # they stand for some 70 ms: long enough to be seen


def crowd(schedule: str) -> str:
    jobs = (f'[jobs.j{n}]\nschedule = "{schedule}"\nrun = "date +%s.%N >> ran-{n}"\n' for n in range(CROWD))
    return "[scheduler]\nmax_concurrent_jobs = 100\n" + "".join(jobs)


def test_the_daemon_has_them_ready_and_none_runs_early(machine: Machine) -> None:
    schedule, moment = at_second(3)
    machine.write(crowd(schedule))
    daemon = machine.start()
    until_told(daemon, "SchedulerStarted")
    stood: set[int] = set()
    while time.time() < moment:
        stood.update(waiting_gates(daemon.pid))
        time.sleep(0.002)
    until(lambda: len([path for path in machine.directory.glob("ran-*") if path.stat().st_size]) == CROWD)
    assert stood, "nobody stood ready"
    times = [float(path.read_text()) for path in machine.directory.glob("ran-*")]
    assert min(times) >= moment
    until(lambda: len([row for row in machine.history() if row["state"] == "completed"]) == CROWD)


def _kill(machine: Machine, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def _stop(machine: Machine, pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize("act", [_kill, _stop], ids=["killed", "stopped"])
def test_when_the_daemon_goes_nobody_who_stood_ready_stays_or_runs(
    machine: Machine, act: Callable[[Machine, int], None]
) -> None:
    schedule, moment = at_second(3)
    machine.write(crowd(schedule))
    daemon = machine.start()
    until_told(daemon, "SchedulerStarted")
    while not (standing := waiting_gates(daemon.pid)):
        assert time.time() < moment + 5, "nobody stood ready"
    act(machine, daemon.pid)
    daemon.wait(20)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in standing))
    if time.time() < moment:  # on a busy machine the instant may have come first, and then they rightly ran
        assert list(machine.directory.glob("ran-*")) == []
