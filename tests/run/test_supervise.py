"""One attempt from start to result: exit codes, timeouts, cancellation, what is left behind, and limits."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.clock import wall_ms
from chronex.model import AttemptState
from chronex.model.job import Command
from chronex.run import (
    AttemptResult,
    Cancellation,
    EndReason,
    Hooks,
    LeftoverPolicy,
    RunContext,
    Started,
    identity_of,
    is_alive,
    process,
    run_attempt,
    supervise,
)
from chronex.run.environment import marks_of
from chronex.run.process import find_leftovers
from tests.kit.loop_time import LoopTime
from tests.kit.waits import until_async
from tests.run.conftest import LASTING, descriptors, forbid_threads
from tests.run.requests import children, outcome, output, python, request, waiting


@pytest.mark.parametrize(
    ("command", "rules", "expected"),
    [
        ("exit 0", {}, (AttemptState.SUCCESS, EndReason.EXITED, False, 0, None)),
        ("exit 1", {}, (AttemptState.FAILED, EndReason.EXIT_CODE, True, 1, None)),
        ("exit 255", {}, (AttemptState.FAILED, EndReason.EXIT_CODE, True, 255, None)),
        ("exit 3", {"success_codes": (0, 3)}, (AttemptState.SUCCESS, EndReason.EXITED, False, 3, None)),
        ("exit 0", {"success_codes": (3,)}, (AttemptState.FAILED, EndReason.EXIT_CODE, True, 0, None)),
        ("exit 75", {"retry_codes": (75,)}, (AttemptState.FAILED, EndReason.EXIT_CODE, True, 75, None)),
        ("exit 1", {"retry_codes": (75,)}, (AttemptState.FAILED, EndReason.EXIT_CODE, False, 1, None)),
        ("exit 1", {"retry_codes": ()}, (AttemptState.FAILED, EndReason.EXIT_CODE, False, 1, None)),
        ("kill -9 $$", {}, (AttemptState.FAILED, EndReason.SIGNAL, True, None, 9)),
        ("kill -15 $$", {"retry_codes": (143,)}, (AttemptState.FAILED, EndReason.SIGNAL, True, None, 15)),
        ("kill -15 $$", {"retry_codes": (1,)}, (AttemptState.FAILED, EndReason.SIGNAL, False, None, 15)),
        ("kill -9 $$", {"success_codes": (137,)}, (AttemptState.FAILED, EndReason.SIGNAL, True, None, 9)),
    ],
)
async def test_exit_codes_decide(
    run_context: RunContext, command: str, rules: dict[str, Any], expected: tuple[object, ...]
) -> None:
    result = await outcome(run_context, command, **rules)
    assert (result.state, result.reason, result.retryable, result.exit_code, result.signal) == expected
    assert (result.error == "") == (result.state is AttemptState.SUCCESS)


async def test_the_identity_is_reported_while_the_process_lives(run_context: RunContext) -> None:
    seen: list[Started] = []

    async def note(started: Started) -> None:
        assert started.process is not None
        assert is_alive(started.process)
        assert started.process == identity_of(started.process.pid)
        seen.append(started)

    result = await run_attempt(request(("sleep", "0.1")), Hooks(started=note), run_context)
    assert [started.process for started in seen] == [result.process]
    assert result.started_ms == seen[0].started_ms
    assert result.duration_ms >= 90
    assert result.finished_ms >= seen[0].started_ms


async def test_a_slow_record_of_the_start_costs_no_output(run_context: RunContext) -> None:
    async def slowly(_started: Started) -> None:
        await asyncio.sleep(0.2)

    result = await run_attempt(request("head -c 300000 /dev/zero; exit 4"), Hooks(started=slowly), run_context)
    assert (result.exit_code, result.log.size) == (4, 300000)


async def test_a_process_that_could_not_be_recorded_is_killed(run_context: RunContext) -> None:
    seen: list[Started] = []

    async def fail(started: Started) -> None:
        seen.append(started)
        raise OSError("store is gone")

    with pytest.raises(OSError, match="store is gone"):
        await run_attempt(request(("sleep", "60")), Hooks(started=fail), run_context)
    await ended(seen)


async def test_a_cancelled_caller_leaves_no_process(run_context: RunContext) -> None:
    seen: list[Started] = []

    async def note(started: Started) -> None:
        seen.append(started)

    task = asyncio.create_task(run_attempt(request("sleep 60 & wait"), Hooks(started=note), run_context))
    await until_async(lambda: seen, "the start of the process")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended(seen)


async def ended(seen: list[Started]) -> None:
    assert seen[0].process is not None
    pid = seen[0].process.pid
    await until_async(lambda: identity_of(pid) is None, "the end of the process")


async def test_a_request_that_is_cancelled_already_starts_nothing(run_context: RunContext, tmp_path: Path) -> None:
    cancellation = Cancellation()
    cancellation.request("by alice")
    result = await run_attempt(request(("touch", str(tmp_path / "x"))), Hooks(cancellation=cancellation), run_context)
    assert (result.state, result.error, result.process) == (AttemptState.CANCELED, "by alice", None)
    assert not (tmp_path / "x").exists()


LONG_GRACE_MS = 30_000
TIMEOUTS = {
    "obeys TERM": (": > ready; exec sleep 60", signal.SIGTERM, LONG_GRACE_MS),
    "cleans up on TERM": (
        "trap 'echo bye; exit 7' TERM; : > ready; while :; do :; done",
        7,
        LONG_GRACE_MS,
    ),
    "ignores TERM": ("trap '' TERM; : > ready; while :; do sleep 0.05; done", signal.SIGKILL, 300),
    "stops itself": (": > ready; kill -STOP $$; sleep 60", signal.SIGTERM, LONG_GRACE_MS),
    "stops itself and ignores": (
        "trap '' TERM; : > ready; kill -STOP $$; kill -STOP $$; sleep 60",
        signal.SIGKILL,
        300,
    ),
}


@pytest.fixture
async def loop_time(monkeypatch: pytest.MonkeyPatch) -> LoopTime:
    return LoopTime(monkeypatch)


async def timed_out(
    run_context: RunContext, loop_time: LoopTime, directory: Path, command: Command, **changes: Any
) -> AttemptResult:
    """The result of a command whose timeout passes as soon as it has made the file `ready`."""
    attempt = asyncio.create_task(
        outcome(run_context, command, timeout_ms=100_000, directory=str(directory), **changes)
    )
    await until_async((directory / "ready").exists, "the file that says that the command is ready")
    loop_time.ahead += 100
    return await attempt


@pytest.mark.parametrize("name", TIMEOUTS)
async def test_a_timeout_is_term_then_kill(
    run_context: RunContext, loop_time: LoopTime, tmp_path: Path, name: str
) -> None:
    command, expected, grace_ms = TIMEOUTS[name]
    result = await timed_out(run_context, loop_time, tmp_path, command, grace_ms=grace_ms)
    assert (result.state, result.reason, result.retryable) == (AttemptState.TIMEOUT, EndReason.TIMEOUT, True)
    assert expected in (result.signal, result.exit_code)
    assert "still running after 100 s" in result.error
    assert (result.duration_ms >= grace_ms) == (expected is signal.SIGKILL), "the grace is for those who need it"
    assert result.process is not None
    assert not is_alive(result.process)


async def test_a_timeout_ends_a_thousand_forks(run_context: RunContext, loop_time: LoopTime, tmp_path: Path) -> None:
    fork = "import os, time, signal; signal.signal(15, signal.SIG_IGN)\nfor i in range(1000):\n if not os.fork(): time.sleep(60)\nopen('ready', 'w').close(); time.sleep(60)"
    asked = request(python(fork))
    result = await timed_out(run_context, loop_time, tmp_path, asked.command, attempt_id=asked.attempt_id)
    assert result.state is AttemptState.TIMEOUT
    assert result.signal == signal.SIGKILL
    assert result.process is not None
    assert find_leftovers(result.process, marks_of(asked)) == ()


async def test_members_of_the_group_get_the_whole_grace(
    run_context: RunContext, loop_time: LoopTime, tmp_path: Path
) -> None:
    """The shell dies of TERM at once; what it started cleans up for a moment and may finish that."""
    command = "(trap 'sleep 0.15; echo cleaned; exit' TERM; : > ready; while :; do :; done) & exec sleep 60"
    result = await timed_out(run_context, loop_time, tmp_path, command, grace_ms=LONG_GRACE_MS)
    assert result.state is AttemptState.TIMEOUT
    assert output(run_context, result) == b"cleaned\n"
    assert result.leftovers == ()


async def test_cancellation_is_term_then_kill_and_keeps_its_reason(run_context: RunContext) -> None:
    cancellation = Cancellation()
    asyncio.get_running_loop().call_later(0.1, cancellation.request, "pre-empted")
    result = await run_attempt(request(("sleep", "60")), Hooks(cancellation=cancellation), run_context)
    assert (result.state, result.reason, result.error) == (AttemptState.CANCELED, EndReason.CANCELED, "pre-empted")
    assert (result.signal, result.retryable) == (signal.SIGTERM, False)


async def test_the_same_attempt_of_another_store_is_a_stranger(run_context: RunContext) -> None:
    """Two stores with the same job have the same ids at the same second; neither may kill the other's commands."""
    here, there = {"CHRONEX_STORE": "/here"}, {"CHRONEX_STORE": "/there"}
    asked = request(LEFT_BEHIND["holds no pipe"], leftovers=LeftoverPolicy.KILL, extra_environment=here)
    theirs = replace(asked, command=("sleep", "60"), extra_environment=there)
    begun = asyncio.get_running_loop().create_future()

    async def on_start(started: Started) -> None:
        begun.set_result(started.process)

    cancellation = Cancellation()
    stranger = asyncio.create_task(run_attempt(theirs, Hooks(on_start, cancellation), run_context))
    process = await begun
    result = await run_attempt(asked, Hooks(), run_context)
    assert (len(result.leftovers), result.leftovers_killed) == (1, 1)
    assert is_alive(process)
    cancellation.request("enough")
    assert (await stranger).state is AttemptState.CANCELED


DETACH = "import os, sys, time\nif os.fork(): os._exit(0)\n{}\ntime.sleep(60)"
LEFT_BEHIND = {
    "holds the pipe": "sleep 60 & exit 0",
    "double fork": "(sleep 60 &) ; exit 0",
    "own session": f"{sys.executable} -I -S -c '{DETACH.format('os.setsid()')}'",
    "holds no pipe": "sleep 60 >/dev/null 2>&1 </dev/null & exit 0",
}


@pytest.mark.parametrize("policy", LeftoverPolicy)
@pytest.mark.parametrize("name", LEFT_BEHIND)
async def test_a_run_ends_with_its_main_process(
    run_context: RunContext, name: str, policy: LeftoverPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronex.run.supervise.HELD_PIPE_S", 0.2)
    before = descriptors()
    result = await outcome(run_context, LEFT_BEHIND[name], leftovers=policy)
    assert result.state is AttemptState.SUCCESS
    assert len(result.leftovers) == 1
    left = result.leftovers[0]
    if policy is LeftoverPolicy.KILL:
        assert result.leftovers_killed == 1
        assert not is_alive(left)
    else:
        assert result.leftovers_killed == 0
        assert is_alive(left)
        process.signal_process(left, signal.SIGKILL)
    # The pipe is emptied as long as it is held.
    await until_async(lambda: descriptors() - before <= LASTING, "the end of the pipe")


async def test_a_held_pipe_is_waited_for_two_seconds_at_most(
    run_context: RunContext, loop_time: LoopTime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert supervise.HELD_PIPE_S == 2.0
    monkeypatch.setattr(supervise, "HELD_PIPE_S", 1000.0)  # so that no machine is too slow
    begun: list[Started] = []

    async def note(started: Started) -> None:
        begun.append(started)

    command = f"({waiting(tmp_path / 'go')}; echo late; touch {tmp_path / 'ready'}; exec sleep 60) & echo early"
    asked = request(command, leftovers=LeftoverPolicy.KILL)
    attempt = asyncio.create_task(run_attempt(asked, Hooks(started=note), run_context))
    await until_async(lambda: begun, "the start of the command")
    await ended(begun)
    (tmp_path / "go").touch()
    await until_async((tmp_path / "ready").exists, "the late output")
    assert not attempt.done()
    late_ms = wall_ms()
    loop_time.ahead += 1000
    result = await attempt
    assert output(run_context, result) == b"early\nlate\n"
    assert result.leftovers_killed == len(result.leftovers) == 1
    assert result.finished_ms <= late_ms, "the run itself ended before that"


async def test_what_is_kept_running_may_go_on_writing(run_context: RunContext, tmp_path: Path) -> None:
    """Neither SIGPIPE nor a full pipe ends it."""
    mark = tmp_path / "alive"
    command = f"({waiting(tmp_path / 'go')}; head -c 1000000 /dev/zero && touch {mark}) & exit 0"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chronex.run.supervise.HELD_PIPE_S", 0.05)
        before = descriptors()
        result = await outcome(run_context, command)
    assert result.leftovers
    (tmp_path / "go").touch()
    await until_async(
        lambda: mark.exists() and not any(is_alive(left) for left in result.leftovers), "the end of what was left"
    )
    await until_async(lambda: descriptors() - before <= LASTING, "the end of the pipe")


async def test_after_a_timeout_those_who_fled_are_killed_too(
    run_context: RunContext, loop_time: LoopTime, tmp_path: Path
) -> None:
    code = "import os, time\nif not os.fork():\n os.setsid(); open('ready', 'w').close()\ntime.sleep(60)"
    result = await timed_out(run_context, loop_time, tmp_path, python(code))
    assert result.state is AttemptState.TIMEOUT
    assert result.leftovers_killed == len(result.leftovers) == 1


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.torture)])
async def test_no_zombie_lasts(run_context: RunContext, count: int) -> None:
    """Each is reaped by the turn of the loop that follows its end: no sample shows one that the last one showed."""
    numbers = iter(range(count))
    lasting: set[int] = set()
    others = _zombies()  # of tests whose loop ended before their last child did

    async def worker() -> None:
        for _ in numbers:
            assert (await outcome(run_context, ("true",))).exit_code == 0

    async def sample() -> None:
        before: set[int] = set()
        while True:
            await asyncio.sleep(0.1)
            for _ in range(3):  # on a busy machine a turn may take longer than that
                await asyncio.sleep(0)
            now = _zombies()
            lasting.update((before & now) - others)
            before = now

    sampler = asyncio.create_task(sample())
    await asyncio.gather(*(worker() for _ in range(20)))
    sampler.cancel()
    assert lasting == set()
    assert _zombies() - others == set()


def _zombies() -> set[int]:
    return {pid for pid in children() if (status := process.status_of(pid)) and status.dead}


async def test_without_pidfds_everything_works_a_little_later(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    process.groups_outlive_their_leader.cache_clear()
    assert (await outcome(run_context, "echo hi; exit 3")).exit_code == 3
    stopped = await outcome(run_context, "sleep 60 & wait", timeout_ms=100)
    assert (stopped.state, stopped.leftovers) == (AttemptState.TIMEOUT, ())
    monkeypatch.undo()
    process.groups_outlive_their_leader.cache_clear()


async def test_an_exit_code_taken_by_another_is_unknown_and_no_success(run_context: RunContext) -> None:
    async def take(started: Started) -> None:
        assert started.process is not None
        asyncio.get_running_loop().call_soon(os.waitpid, started.process.pid, 0)  # once the barrier is open

    result = await run_attempt(request(("true",)), Hooks(started=take), run_context)
    assert (result.state, result.reason) == (AttemptState.CRASHED, EndReason.UNKNOWN_EXIT)


async def test_without_descriptors_an_attempt_fails_and_the_daemon_goes_on(run_context: RunContext) -> None:
    await outcome(run_context, ("true",))  # the loop's watcher has its descriptor by now
    gc.collect()  # else a closed loop of an earlier test may give its descriptors back while they are counted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    held: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(0))
        for free in range(8):
            result = await outcome(run_context, "echo hi")
            assert result.state in (AttemptState.SUCCESS, AttemptState.FAILED), free
            assert result.error or result.exit_code == 0
            if free < 2:
                assert result.errno == errno.EMFILE
                assert "Too many open files" in result.error
            os.close(held.pop())
        assert result.state is AttemptState.SUCCESS
        assert output(run_context, result) == b"hi\n"
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_file_size_limit_costs_output_not_the_attempt(run_context: RunContext) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        result = await outcome(run_context, "head -c 50000 /dev/zero")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.state is AttemptState.SUCCESS
    assert "File too large" in result.log.error
    assert result.log.size <= 10_000
    assert result.log.dropped >= 40_000


REFUSALS = [
    ("posix_spawn", errno.EAGAIN, "no more processes"),
    ("posix_spawn", errno.ENOMEM, "out of memory"),
    ("pipe2", errno.EMFILE, "no pipe"),
    ("pidfd_open", errno.EMFILE, ""),
    ("open", errno.EMFILE, ""),
]


@pytest.mark.parametrize("nth", range(1, 5))
@pytest.mark.parametrize(("call", "number", "message"), REFUSALS)
async def test_every_refusal_of_the_system_is_a_result(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch, call: str, number: int, message: str, nth: int
) -> None:
    await outcome(run_context, ("true",))
    real, calls = getattr(os, call), 0

    def refusing(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, refusing)
    result = await outcome(run_context, ("echo", "hi"))
    monkeypatch.undo()
    if result.state is AttemptState.FAILED:
        assert result.reason is EndReason.NOT_STARTED
        assert message in result.error
    else:
        assert result.exit_code == 0
    assert (await outcome(run_context, ("true",))).state is AttemptState.SUCCESS


async def test_many_starts_at_once_leave_the_loop_its_turns(run_context: RunContext) -> None:
    """No command waits for all hundred and fifty: between two turns of the loop only some of them start."""
    starts, most = 0, 0

    async def note(_started: Started) -> None:
        nonlocal starts
        starts += 1

    async def beat() -> None:
        nonlocal starts, most
        while True:
            starts = 0
            await asyncio.sleep(0)
            most = max(most, starts)

    heart = asyncio.create_task(beat())
    attempts = (run_attempt(request(("true",)), Hooks(started=note), run_context) for _ in range(150))
    results = await asyncio.gather(*attempts)
    heart.cancel()
    assert {result.exit_code for result in results} == {0}
    assert 0 < most <= 150 // 4


def test_the_same_run_context_serve_one_loop_after_another(run_context: RunContext) -> None:
    others = children()

    async def cut_short() -> None:
        attempts = [asyncio.create_task(outcome(run_context, ("true",))) for _ in range(40)]
        await asyncio.sleep(0)
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
        await until_async(lambda: not children() - others, "the end of every child")

    for _ in range(3):
        asyncio.run(cut_short())
    assert asyncio.run(outcome(run_context, ("true",))).exit_code == 0


@pytest.mark.parametrize("shortage", ["threads", "descriptors"])
async def test_where_the_machine_has_nothing_left_the_end_of_a_command_is_known(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch, shortage: str
) -> None:
    """What it has left behind is looked for in a thread, by opening files: neither may cost its exit code."""

    async def run_out(_started: Started) -> int | None:
        if shortage == "threads":
            forbid_threads(monkeypatch)
        else:
            monkeypatch.setattr(supervise, "find_leftovers", refuse)
        return None

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(supervise, "HELD_PIPE_S", 0.01)
    before = descriptors()
    result = await run_attempt(request("sleep 60 & echo $!; exit 4"), Hooks(started=run_out), run_context)
    monkeypatch.undo()
    assert (result.state, result.exit_code) == (AttemptState.FAILED, 4)
    left = identity_of(int(output(run_context, result)))
    assert left is not None, "what is kept was killed"
    os.kill(left.pid, signal.SIGKILL)
    await until_async(lambda: descriptors() - before <= LASTING, "the end of its pipe")
