"""What a dead daemon left is watched, stopped and recorded as what it is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed

from chronex.model import AttemptState, ProcessIdentity
from chronex.run import (
    AttemptRequest,
    Cancellation,
    EndReason,
    Hooks,
    RunContext,
    adopt_attempt,
    is_alive,
    stop_process,
)
from chronex.run.environment import Inheritance
from tests.kit.forked import run_python
from tests.kit.waits import until_async
from tests.run.requests import request, waiting

DAEMON = """
import asyncio, json, os, sys
from pathlib import Path
from chronex.run import *
from chronex.run.request import AttemptRequest
values = json.loads(sys.argv[2])
async def recorded(started):
    asyncio.get_running_loop().call_later(0.05, die, started)  # at its next turn the barrier is open
def die(started):
    print(json.dumps([started.process.pid, started.process.boot_id, started.process.start_time, started.process.group,
                      started.started_ms, started.log_name]), flush=True)
    os.kill(os.getpid(), 9)
run_context = RunContext.of_this_process(LogDirectory(Path(sys.argv[1])))
asyncio.run(run_attempt(AttemptRequest(**values), Hooks(started=recorded), run_context))
"""


@pytest.fixture(scope="module", autouse=True)
def whoever_forks_is_there() -> None:
    """Its connection lasts as long as the tests do, and is none that a test has left behind."""
    run_python(["-c", "pass"], env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.getcwd(), "TOKEN": "hunter2"}


def orphaned(asked: AttemptRequest, logs: Path) -> tuple[ProcessIdentity, int, str]:
    """Start the attempt in a daemon of its own, and kill that daemon."""
    values = {
        name: getattr(asked, name)
        for name in ("attempt_id", "number", "job", "task", "occurrence_id", "nominal_ms", "command", "secrets")
    }
    command = ["-c", DAEMON, str(logs), json.dumps(values)]
    daemon = run_python(command, env=_environment())
    assert daemon.returncode == -signal.SIGKILL
    pid, boot, start, group, started_ms, log_name = json.loads(daemon.stdout)
    return ProcessIdentity(pid, boot, start, group), started_ms, log_name


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """Where a staged command finds out how far things have come."""
    place = tmp_path / "stage"
    place.mkdir()
    return place


def staged(stage: Path, first: str = ":", meanwhile: str = ":", last: str = ":") -> str:
    """A command that does `first` under its daemon, `meanwhile` without one, and `last` when it is adopted."""
    return (
        f"{first}; {waiting(stage / 'dead')}; {meanwhile}; touch {stage / 'ready'}; {waiting(stage / 'go')}; {last}"
    )


async def adopted(
    run_context: RunContext,
    asked: AttemptRequest,
    stage: Path,
    hooks: Hooks | None = None,
    now: AttemptRequest | None = None,
) -> Any:
    """The result of a staged command whose daemon is killed; once it is adopted, it is let go or canceled.

    `now` is the attempt as its job would have it by now.
    """
    left = await asyncio.to_thread(orphaned, asked, Path(run_context.logs.path))
    (stage / "dead").touch()
    await until_async((stage / "ready").exists, "the command that goes on without its daemon")
    assert is_alive(left[0])
    adoption = asyncio.create_task(adopt_attempt(now or asked, *left, hooks or Hooks(), run_context))
    await asyncio.sleep(0)  # it is adopted by now: nothing of that waits
    if hooks is None:
        (stage / "go").touch()
    else:
        hooks.cancellation.request("no longer wanted")
    return await adoption


async def test_an_orphan_is_watched_to_its_end_and_its_exit_code_is_unknown(
    run_context: RunContext, stage: Path
) -> None:
    result = await adopted(run_context, request(staged(stage, first="sleep 0.5", last="exit 0")), stage)
    assert (result.state, result.reason, result.exit_code) == (AttemptState.CRASHED, EndReason.UNKNOWN_EXIT, None)
    assert "exit code is not known: whoever watched it had died" in result.error
    assert result.retryable
    assert result.duration_ms >= 500
    assert not is_alive(result.process)


async def test_its_output_goes_on_into_the_same_log(run_context: RunContext, stage: Path) -> None:
    """The pipe outlives the daemon: nothing written meanwhile is lost, and no process dies of SIGPIPE."""
    asked = request(staged(stage, "echo before", "echo meanwhile", "echo after"))
    result = await adopted(run_context, asked, stage)
    assert result.log.name == f"{asked.attempt_id}.log"
    assert (Path(run_context.logs.path) / result.log.name).read_bytes() == b"before\nmeanwhile\nafter\n"


async def test_a_pipe_that_is_not_ours_is_left_to_its_reader(
    run_context: RunContext, stage: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    command = ("bash", "-c", staged(stage, f"exec > >(cat >{kept}) 2>&1; echo one", last="echo two"))
    result = await adopted(run_context, request(command), stage)
    assert result.log.name == ""
    await until_async(lambda: kept.read_bytes() == b"one\ntwo\n", "both lines in the file of the pipe's own reader")


async def test_a_log_that_nobody_began_is_begun(run_context: RunContext, stage: Path) -> None:
    result = await adopted(run_context, request(staged(stage, last="echo first")), stage)
    assert (Path(run_context.logs.path) / result.log.name).read_bytes() == b"first\n"


@pytest.mark.parametrize("value", ["hunter2", "rotated", None], ids=["the same", "rotated", "not set"])
async def test_its_secrets_stay_secret(run_context: RunContext, stage: Path, value: str | None) -> None:
    """What the process was started with counts, not what the next daemon has."""
    around = replace(run_context, inheritance=Inheritance({} if value is None else {"TOKEN": value}))
    await adopted(around, request(staged(stage, last="echo my $TOKEN"), secrets=("TOKEN",)), stage)
    kept = b"".join(path.read_bytes() for path in Path(run_context.logs.path).iterdir())
    assert kept == b"my [redacted]\n"


async def test_of_a_job_that_names_its_secrets_no_more_nothing_is_kept(run_context: RunContext, stage: Path) -> None:
    asked = request(staged(stage, last="echo my $TOKEN"), secrets=("TOKEN",))
    result = await adopted(run_context, asked, stage, now=changed(asked, secrets=()))
    assert b"".join(path.read_bytes() for path in Path(run_context.logs.path).iterdir()) == b""
    assert "it is not known whether 'TOKEN' is a secret" in result.log.error


async def test_its_timeout_counts_from_its_real_start(run_context: RunContext, stage: Path) -> None:
    result = await adopted(run_context, request(staged(stage, last="exec sleep 60"), timeout_ms=700), stage)
    assert (result.state, result.reason) == (AttemptState.TIMEOUT, EndReason.TIMEOUT)
    assert result.duration_ms >= 650
    assert not is_alive(result.process)


async def test_a_clock_that_was_set_forward_meanwhile_does_not_time_it_out(
    run_context: RunContext, stage: Path
) -> None:
    """By the clock it began an hour ago, and its process is a moment old."""
    asked = request(staged(stage), timeout_ms=1_800_000)
    identity, started_ms, log_name = await asyncio.to_thread(orphaned, asked, Path(run_context.logs.path))
    (stage / "dead").touch()
    (stage / "go").touch()
    result = await adopt_attempt(asked, identity, started_ms - 3_600_000, log_name, Hooks(), run_context)
    assert result.reason is EndReason.UNKNOWN_EXIT


async def test_it_can_be_cancelled(run_context: RunContext, stage: Path) -> None:
    result = await adopted(run_context, request(staged(stage, first="trap '' TERM")), stage, Hooks())
    assert (result.state, result.error) == (AttemptState.CANCELED, "no longer wanted")
    assert not is_alive(result.process)


async def test_without_pidfds_it_is_looked_at_again_and_again(
    run_context: RunContext, stage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    result = await adopted(run_context, request(staged(stage)), stage)
    assert result.reason is EndReason.UNKNOWN_EXIT


@pytest.mark.parametrize("forged", [{"start_time": 1}, {"boot_id": "other"}, {"pid": 2**22 + 5}])
async def test_a_stranger_is_neither_adopted_nor_touched(run_context: RunContext, forged: dict[str, Any]) -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    from chronex.run import identity_of

    real = identity_of(stranger.pid)
    assert real is not None
    cancellation = Cancellation()
    cancellation.request("stop")
    asked = request(("sleep", "60"), timeout_ms=0)
    result = await adopt_attempt(asked, changed(real, **forged), 0, "", Hooks(cancellation=cancellation), run_context)
    assert (result.state, result.reason) == (AttemptState.CRASHED, EndReason.UNKNOWN_EXIT)
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize(
    "command", ["sleep 300", "trap '' TERM; while :; do sleep 1; done"], ids=["heeds", "ignores"]
)
async def test_the_process_of_a_node_that_hangs_is_stopped(tmp_path: Path, command: str) -> None:
    identity, _, _ = orphaned(request(command), tmp_path)
    assert is_alive(identity)
    assert await stop_process(identity, 300)
    assert not is_alive(identity)


async def test_a_process_that_is_another_one_is_not_stopped(tmp_path: Path) -> None:
    identity, _, _ = orphaned(request("sleep 300"), tmp_path)
    assert await stop_process(changed(identity, start_time=identity.start_time + 1), 300), "that one is gone"
    assert is_alive(identity)
    assert await stop_process(identity, 300)
