"""Children are held before their instant; they run at it, or never."""

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
from chronex.daemon.prestart import Prestart
from chronex.engine.orders import Launch
from chronex.model.records import Attempt, Job, Occurrence, Task
from chronex.run import AttemptRequest, Hooks, LogDirectory, RunContext, run_attempt
from tests.daemon.machine import Machine, until, until_told

SOON_MS = 400


@pytest.fixture
def run_context(tmp_path: Path) -> RunContext:
    return RunContext.of_this_process(LogDirectory(tmp_path / "logs"))


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


async def prestarted(run_context: RunContext, wanted: list[Launch], at_ms: int) -> Prestart:
    prestart = Prestart(run_context, lambda _at, most: wanted[:most], request_of)
    prestart.prepare(at_ms)
    while len(prestart.held) < len(wanted):
        assert wall_ms() < at_ms + 10_000, "they were never held"
        await asyncio.sleep(0.005)
    return prestart


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


async def test_a_child_is_held_before_its_instant_and_runs_when_it_is_ordered(
    run_context: RunContext, tmp_path: Path
) -> None:
    at_ms = wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    prestart = await prestarted(run_context, wanted, at_ms)
    stood_ms = wall_ms()
    child = prestart.take(request_of(launch))
    assert child is not None
    assert ran(tmp_path) == []
    assert prestart.held == {}
    result = await run_attempt(request_of(launch), Hooks(), run_context, child)
    assert (result.exit_code, ran(tmp_path)) == (0, ["ran-0"])
    assert result.process == child.process.identity
    assert result.started_ms is not None
    assert result.started_ms >= stood_ms, "it began when it was called, not when it stood"


async def test_a_child_that_is_not_ordered_is_discarded(run_context: RunContext, tmp_path: Path) -> None:
    at_ms = wall_ms() + SOON_MS
    prestart = await prestarted(run_context, launches(at_ms, tmp_path, 3), at_ms)
    pids = [one.child.process.identity.pid for one in prestart.held.values()]
    prestart.discard(until_ms=at_ms - 1)
    assert len(prestart.held) == 3, "their instant has not come"
    prestart.discard(until_ms=at_ms)
    for pid in pids:
        await gone(pid)
    assert (ran(tmp_path), prestart.held) == ([], {})


async def test_a_child_that_would_run_something_else_is_discarded(run_context: RunContext, tmp_path: Path) -> None:
    at_ms = wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    prestart = await prestarted(run_context, wanted, at_ms)
    (held,) = prestart.held.values()
    changed = launch._replace(task=Task(name="main", run=("touch", str(tmp_path / "other"))))
    assert prestart.take(request_of(changed)) is None
    await gone(held.child.process.identity.pid)
    assert ran(tmp_path) == []


async def test_a_child_that_was_killed_at_its_barrier_is_not_used(run_context: RunContext, tmp_path: Path) -> None:
    at_ms = wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    prestart = await prestarted(run_context, wanted, at_ms)
    (held,) = prestart.held.values()
    os.kill(held.child.process.identity.pid, signal.SIGKILL)
    while not held.child.process.has_ended():
        await asyncio.sleep(0.005)
    assert prestart.take(request_of(launch)) is None
    await gone(held.child.process.identity.pid)


async def test_one_that_cannot_be_held_does_not_block_the_others(run_context: RunContext, tmp_path: Path) -> None:
    at_ms = wall_ms() + SOON_MS
    wanted = launches(at_ms, tmp_path, 2)
    missing = wanted[0]._replace(task=Task(name="main", run=("/no/such/program",)))
    prestart = Prestart(run_context, lambda _at, _most: [missing, wanted[1]], request_of)
    prestart.prepare(at_ms)
    while not prestart.held:
        await asyncio.sleep(0.005)
    assert list(prestart.held) == [wanted[1].attempt.id]
    prestart.discard()
    await prestart.wait_reaped()


async def test_another_instant_takes_the_place_of_the_first(run_context: RunContext, tmp_path: Path) -> None:
    asked: list[int] = []

    def foresee(at_ms: int, _most: int) -> list[Launch]:
        asked.append(at_ms)
        return []

    prestart = Prestart(run_context, foresee, request_of)
    far, near = wall_ms() + 3_600_000, wall_ms() + 100
    prestart.prepare(far)
    prestart.prepare(far)
    prestart.prepare(near)
    while not asked:
        await asyncio.sleep(0.005)
    assert asked == [near]
    prestart.discard()
    await prestart.wait_reaped()


async def test_what_cannot_be_guessed_is_left_to_the_tick(run_context: RunContext) -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
    asked: list[int] = []

    def fail(at_ms: int, _most: int) -> list[Launch]:
        asked.append(at_ms)
        raise RuntimeError("the store is gone")

    prestart = Prestart(run_context, fail, request_of)
    prestart.prepare(wall_ms() + SOON_MS)
    while not asked:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)
    prestart.discard()
    await prestart.wait_reaped()
    assert (prestart.held, told) == ({}, [])


async def test_descriptors_are_given_back(run_context: RunContext, tmp_path: Path) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    warm = await prestarted(run_context, launches(wall_ms(), tmp_path), wall_ms() + SOON_MS)
    warm.discard()
    await warm.wait_reaped()
    await asyncio.sleep(0.05)
    before = open_descriptors()
    at_ms = wall_ms() + SOON_MS
    prestart = await prestarted(run_context, launches(at_ms, tmp_path, 5), at_ms)
    assert open_descriptors() >= before + 15
    prestart.discard()
    await prestart.wait_reaped()
    for _ in range(400):
        if open_descriptors() <= before:
            break
        await asyncio.sleep(0.005)
    assert open_descriptors() <= before


@pytest.mark.parametrize(("soft", "most"), [(64, 0), (1024, 128), (resource.RLIM_INFINITY, 1024), (1 << 20, 1024)])
def test_held_children_leave_descriptors_for_the_others(
    soft: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, soft))
    assert mustering.most_held() == most


# -- the real daemon -------------------------------------------------------------------------------------------------


def held_children(daemon: int) -> list[int]:
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
        stood.update(held_children(daemon.pid))
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
def test_when_the_daemon_goes_no_held_child_stays_or_runs(
    machine: Machine, act: Callable[[Machine, int], None]
) -> None:
    schedule, moment = at_second(3)
    machine.write(crowd(schedule))
    daemon = machine.start()
    until_told(daemon, "SchedulerStarted")
    while not (held := held_children(daemon.pid)):
        assert time.time() < moment + 5, "nobody stood ready"
    act(machine, daemon.pid)
    daemon.wait(20)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in held))
    if time.time() < moment:  # on a busy machine the instant may have come first, and then they rightly ran
        assert list(machine.directory.glob("ran-*")) == []
