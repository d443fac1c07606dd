"""Children are held before their instant and run at it or never; the guess is what the tick orders, or nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.clock import SYSTEM_CLOCK, SystemClock, wall_ms
from chronex.daemon import prestart as prestart_module
from chronex.daemon.attempt_records import request_from_records
from chronex.daemon.prestart import LEAD_MS, HeldChild, Prestart, next_tick_guess
from chronex.engine.commands import Actor, pause
from chronex.engine.orders import Launch
from chronex.model.job import Call, Job, Task
from chronex.model.occurrence import Attempt, Occurrence, ProcessIdentity
from chronex.model.policies import OverlapPolicy, TaskMode
from chronex.run import AttemptRequest, Hooks, LogDirectory, RunContext, run_attempt
from chronex.run.command_runner import OwnChildren
from chronex.run.process import SupervisedProcess
from chronex.run.supervise import Supervision
from chronex.storage.records import Reading, Records
from chronex.testing import MINUTE
from chronex_store import LmdbStore
from tests.daemon.machine import Machine
from tests.kit.machine import FIRST, ONE, START, TWO, SteppedEngine
from tests.kit.waits import is_gone, until, until_async

SOON_MS = LEAD_MS + 5  # their instant is so near that they are started at once


class StoppedClock(SystemClock):
    """A wall clock that moves only by hand: no instant comes before the children are held, however busy the machine."""

    now = wall_ms()

    def wall_ms(self) -> int:
        return self.now


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def run_context(tmp_path: Path, clock: StoppedClock) -> RunContext:
    return RunContext.of_this_process(LogDirectory(tmp_path / "logs"), clock)


def launches(at_ms: int, place: Path, count: int = 1) -> list[Launch]:
    """Each leaves a file that says when it ran."""
    made = []
    for number in range(count):
        task = Task(name="main", run=("touch", str(place / f"ran-{number}")))
        job = Job(id=f"job-{number}", schedule="* * * * *", tasks=(task,))
        occurrence = Occurrence(job=job.id, nominal_ms=at_ms, due_ms=at_ms)
        made.append(Launch(job, occurrence, task, Attempt(job=job.id, nominal_ms=at_ms, task="main", number=1)))
    return made


def request_of(launch: Launch) -> AttemptRequest:
    return request_from_records(launch.job, launch.task, launch.occurrence, launch.attempt)


async def prestarted(run_context: RunContext, wanted: list[Launch], at_ms: int) -> Prestart:
    prestart = Prestart(OwnChildren(run_context), run_context.clock, lambda _at, most: wanted[:most], request_of)
    prestart.prepare(at_ms)
    await until_async(lambda: len(prestart.held) == len(wanted), "the children that are to be held")
    return prestart


def process_of(held: HeldChild) -> SupervisedProcess:
    assert isinstance(held.child, Supervision)
    return held.child.process


def ran(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("ran-*"))


async def gone(*pids: int) -> None:
    await until_async(lambda: all(is_gone(pid) for pid in pids), "the end of those that were discarded")


async def test_a_child_is_held_before_its_instant_and_runs_when_it_is_ordered(
    run_context: RunContext, clock: StoppedClock, tmp_path: Path
) -> None:
    at_ms = run_context.clock.wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    prestart = await prestarted(run_context, wanted, at_ms)
    clock.now = at_ms
    child = prestart.take(request_of(launch))
    assert isinstance(child, Supervision)
    assert ran(tmp_path) == []
    assert prestart.held == {}
    result = await run_attempt(request_of(launch), Hooks(), run_context, child)
    assert (result.exit_code, ran(tmp_path)) == (0, ["ran-0"])
    assert result.process == child.process.identity
    assert result.started_ms == at_ms, "it began when it was ordered, not when it was held"


async def test_a_child_that_is_not_ordered_is_discarded(run_context: RunContext, tmp_path: Path) -> None:
    at_ms = run_context.clock.wall_ms() + SOON_MS
    prestart = await prestarted(run_context, launches(at_ms, tmp_path, 3), at_ms)
    pids = [process_of(one).identity.pid for one in prestart.held.values()]
    prestart.discard(until_ms=at_ms - 1)
    assert len(prestart.held) == 3, "their instant has not come"
    prestart.discard(until_ms=at_ms)
    await gone(*pids)
    assert (ran(tmp_path), prestart.held) == ([], {})


async def test_a_child_that_would_run_something_else_is_discarded(run_context: RunContext, tmp_path: Path) -> None:
    at_ms = run_context.clock.wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    prestart = await prestarted(run_context, wanted, at_ms)
    (held,) = prestart.held.values()
    changed = launch._replace(task=Task(name="main", run=("touch", str(tmp_path / "other"))))
    assert prestart.take(request_of(changed)) is None
    await gone(process_of(held).identity.pid)
    assert ran(tmp_path) == []


async def test_a_child_that_was_killed_at_its_barrier_is_not_used(run_context: RunContext, tmp_path: Path) -> None:
    at_ms = run_context.clock.wall_ms() + SOON_MS
    (launch,) = wanted = launches(at_ms, tmp_path)
    prestart = await prestarted(run_context, wanted, at_ms)
    (held,) = prestart.held.values()
    os.kill(process_of(held).identity.pid, signal.SIGKILL)
    await until_async(process_of(held).has_ended, "the end of the child")
    assert prestart.take(request_of(launch)) is None
    await gone(process_of(held).identity.pid)


async def test_one_that_cannot_be_held_does_not_block_the_others(run_context: RunContext, tmp_path: Path) -> None:
    at_ms = run_context.clock.wall_ms() + SOON_MS
    wanted = launches(at_ms, tmp_path, 2)
    missing = wanted[0]._replace(task=Task(name="main", run=("/no/such/program",)))
    prestart = Prestart(
        OwnChildren(run_context), run_context.clock, lambda _at, _most: [missing, wanted[1]], request_of
    )
    prestart.prepare(at_ms)
    await until_async(lambda: prestart.held, "the child that can be held")
    assert list(prestart.held) == [wanted[1].attempt.id]
    prestart.discard()
    await prestart.wait_reaped()


async def test_another_instant_takes_the_place_of_the_first(run_context: RunContext, tmp_path: Path) -> None:
    asked: list[int] = []

    def foresee(at_ms: int, _most: int) -> list[Launch]:
        asked.append(at_ms)
        return []

    prestart = Prestart(OwnChildren(run_context), run_context.clock, foresee, request_of)
    far, near = run_context.clock.wall_ms() + 3_600_000, run_context.clock.wall_ms() + SOON_MS
    prestart.prepare(far)
    prestart.prepare(far)
    prestart.prepare(near)
    await until_async(lambda: asked, "the question what the instant will bring")
    assert asked == [near]
    prestart.discard()
    await prestart.wait_reaped()


async def test_what_cannot_be_guessed_is_left_to_the_tick(run_context: RunContext) -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
    asked: list[int] = []

    def fail(at_ms: int, _most: int) -> list[Launch]:
        asked.append(at_ms)
        raise RuntimeError("the store is gone")

    prestart = Prestart(OwnChildren(run_context), run_context.clock, fail, request_of)
    prestart.prepare(run_context.clock.wall_ms() + SOON_MS)
    await until_async(lambda: asked, "the question what the instant will bring")
    await until_async(lambda: prestart._work is not None and prestart._work.done(), "the end of the preparation")
    prestart.discard()
    await prestart.wait_reaped()
    assert (prestart.held, problems) == ({}, [])


async def test_descriptors_are_given_back(run_context: RunContext, tmp_path: Path) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    gc.collect()  # else a closed loop of an earlier test may give its descriptors back while they are counted
    at_ms = run_context.clock.wall_ms() + SOON_MS
    cold = open_descriptors()
    warm = await prestarted(run_context, launches(at_ms, tmp_path), at_ms)
    warm.discard()
    await warm.wait_reaped()
    # The loop's own watcher stays, and the start barrier; the child's three descriptors are given back one after the other.
    await until_async(lambda: open_descriptors() <= cold + 2, "the descriptors of the first child")
    before = open_descriptors()
    prestart = await prestarted(run_context, launches(at_ms, tmp_path, 5), at_ms)
    assert open_descriptors() >= before + 15
    prestart.discard()
    await prestart.wait_reaped()
    await until_async(lambda: open_descriptors() <= before, "the descriptors that are given back")


@pytest.mark.parametrize(("soft", "most"), [(64, 0), (1024, 128), (resource.RLIM_INFINITY, 1024), (1 << 20, 1024)])
def test_held_children_leave_descriptors_for_the_others(
    soft: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, soft))
    assert prestart_module.most_held() == most


# -- the real daemon -------------------------------------------------------------------------------------------------

SEVERAL = 8  # held for some 25 ms; few enough that a busy machine can start them ahead of their instant
JOBS = "[scheduler]\nmax_concurrent_jobs = 100\n" + "".join(
    f'[jobs.j{number}]\nschedule = "*/2 * * * * *"\noverlap = "allow"\nrun = "echo $$ $(date +%s%3N) >> ran"\n'
    for number in range(SEVERAL)
)


def held_by_keeper(machine: Machine) -> set[int]:
    """The children of the daemon's keeper."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if not path.read_text().startswith("chronex-keeper"):
                continue
            if str(machine.directory).encode() in (path.parent / "environ").read_bytes():
                for listed in path.parent.glob("task/*/children"):  # each thread has those that it started
                    found |= {int(pid) for pid in listed.read_text().split()}
    return found


def processes(machine: Machine) -> list[tuple[ProcessIdentity, int]]:
    """Every process that was recorded as started, with the instant for which it was."""

    def read(reading: Reading) -> list[tuple[ProcessIdentity, int]]:
        found = [one for number in range(SEVERAL) for one in reading.occurrences(f"j{number}")]
        attempts = [attempt for one in found for attempt in reading.attempts(one.job, one.nominal_ms)]
        return [(one.process, one.nominal_ms) for one in attempts if one.process is not None]

    with LmdbStore.open(machine.directory / "store", create=False) as store:
        return store.view(lambda tx: read(Reading(tx)))


def recorded(machine: Machine) -> dict[int, int]:
    """The instant for which each process was recorded as started."""
    return {process.pid: nominal_ms for process, nominal_ms in processes(machine)}


def runs(machine: Machine) -> dict[int, int]:
    """When each process really ran, as it says itself."""
    path = machine.directory / "ran"
    lines = path.read_text().splitlines() if path.exists() else []
    return {int(pid): int(at_ms) for pid, at_ms in (line.split() for line in lines)}


def test_the_daemon_has_them_ready_and_none_runs_early(machine: Machine) -> None:
    machine.write(JOBS)
    daemon = machine.start(quiet=True)
    tick_ms = 1000 // os.sysconf("SC_CLK_TCK")  # the start time of a process is counted in these
    booted_ms = wall_ms() - SYSTEM_CLOCK.boottime_ms()

    def was_held() -> bool:
        """One was started before its instant; a busy machine may need more than one instant for that."""
        return any(
            booted_ms + (process.start_time + 1) * tick_ms < nominal_ms for process, nominal_ms in processes(machine)
        )

    until((machine.directory / "ran").exists, "the first instant")
    until(was_held, "a child that is there before its instant")
    assert daemon.stopped() == 0
    known, ran = recorded(machine), runs(machine)
    assert ran
    assert [pid for pid, at_ms in ran.items() if at_ms < known[pid]] == [], "they ran before their instant"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_when_the_daemon_goes_no_held_child_stays_or_runs(machine: Machine, number: signal.Signals) -> None:
    machine.write(JOBS)
    daemon = machine.start(quiet=True)
    held = until(lambda: held_by_keeper(machine), "children that are held")
    daemon.send_signal(number)
    daemon.ended()
    until(lambda: all(is_gone(pid) for pid in held), "the end of the held children")
    # Where the instant came before the signal was handled, they rightly ran, and that is on record.
    assert runs(machine).keys() <= recorded(machine).keys(), "one ran whose start is not on record"


MOST = 100
ASKER = Actor("somebody", "cli", "here")


def requested(launches: list[Launch]) -> list[AttemptRequest]:
    """What would run: the part of an order that a prepared child must agree with."""
    return [request_from_records(one.job, one.task, one.occurrence, one.attempt) for one in launches]


AS_ORDERED: dict[str, dict[str, Any]] = {
    "one task": {},
    "the first of several in turn": {"tasks": (ONE, TWO)},
    "all that run side by side": {"tasks": (ONE, TWO), "mode": TaskMode.PARALLEL},
    "an interval": {"schedule": "@every 60s"},
    "several within a pool of one": {"tasks": (ONE,), "places": 1},
    "a key of its own": {"tasks": (replace(ONE, idempotency_key="{job}-{date}"),)},
    "parallel to itself": {"overlap": OverlapPolicy.ALLOW},
}


@pytest.mark.parametrize("policy", AS_ORDERED.values(), ids=AS_ORDERED)
def test_what_is_foreseen_is_what_the_tick_orders(policy: dict[str, Any]) -> None:
    machine = SteppedEngine(**policy)
    foreseen = next_tick_guess(machine.engine, FIRST, MOST)
    assert foreseen
    assert requested(foreseen) == requested(machine.tick(FIRST))


def test_the_time_of_the_last_run_is_foreseen_as_well() -> None:
    machine = SteppedEngine()
    (first,) = machine.tick(FIRST)
    machine.end(first, "success", FIRST + 100)
    (foreseen,) = requested(next_tick_guess(machine.engine, FIRST + MINUTE, MOST))
    assert foreseen.last_run_ms == FIRST
    assert [foreseen] == requested(machine.tick(FIRST + MINUTE))


def test_a_jittered_run_is_foreseen_once_its_moment_is_drawn() -> None:
    machine = SteppedEngine("* * * * * <jitter:30s>")
    assert machine.tick(FIRST) == []
    due = machine.occurrence(FIRST).due_ms
    assert due > FIRST
    assert requested(next_tick_guess(machine.engine, due, MOST)) == requested(machine.tick(due))


def _pause(machine: SteppedEngine) -> None:
    machine.store.update(lambda tx: pause(Records(tx, START), "job", ASKER))


NOTHING: dict[str, tuple[dict[str, Any], Callable[[SteppedEngine], object]]] = {
    "a function of ours": ({"tasks": (Task(name="one", run=Call("module:function")),)}, lambda machine: None),
    "what waits for its hook": ({"on_start": ("true",)}, lambda machine: None),
    "a paused job": ({}, _pause),
    "a disabled job": ({"enabled": False}, lambda machine: None),
    "a full pool": ({"places": 0}, lambda machine: None),
    "a scheduler that stops": ({}, lambda machine: setattr(machine.engine, "stopping", True)),
}


@pytest.mark.parametrize(("policy", "act"), NOTHING.values(), ids=NOTHING)
def test_nothing_is_prepared_for(policy: dict[str, Any], act: Callable[[SteppedEngine], object]) -> None:
    machine = SteppedEngine(**policy)
    act(machine)
    assert next_tick_guess(machine.engine, FIRST, MOST) == []


def test_nothing_is_prepared_while_the_run_before_it_runs() -> None:
    machine = SteppedEngine()
    machine.tick(FIRST)
    assert next_tick_guess(machine.engine, FIRST + MINUTE, MOST) == []


def test_no_more_is_prepared_than_was_asked_for() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO), mode=TaskMode.PARALLEL)
    assert len(next_tick_guess(machine.engine, FIRST, 1)) == 1


def test_looking_ahead_writes_nothing() -> None:
    machine = SteppedEngine()
    before = machine.store.wait(-1, 0)
    next_tick_guess(machine.engine, FIRST, MOST)
    assert machine.store.wait(-1, 0) == before
