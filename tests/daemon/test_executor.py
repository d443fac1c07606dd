"""What the daemon records of its attempts: what they left behind, why they never began, and when their time was up."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.model.occurrence import Attempt, Occurrence
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from tests.daemon.machine import Machine
from tests.kit.waits import until

ONCE = 'schedule = "@once +1s"\n'


def outcome(machine: Machine, job: str) -> tuple[Occurrence, list[Attempt]]:
    machine.write(f'[scheduler]\ngrace_period = "500ms"\n[jobs.one]\n{ONCE}{job}')
    live(machine, ends=1)
    return recorded(machine, "one")


def live(machine: Machine, ends: int) -> None:
    """Until so many attempts have ended."""
    daemon = machine.start()
    daemon.until_logged("attempt ended", times=ends)
    assert daemon.stopped() == 0


def recorded(machine: Machine, job: str) -> tuple[Occurrence, list[Attempt]]:
    with LmdbStore.open(machine.directory / "store", create=False) as store:
        (found,) = store.view(lambda tx: Reading(tx).occurrences(job))
        return found, store.view(lambda tx: Reading(tx).attempts(job, found.nominal_ms))


@pytest.fixture
def strays(tmp_path: Path) -> Iterator[Path]:
    """A file for the pids of processes that a command leaves behind; they do not outlive the test."""
    path = tmp_path / "strays"
    yield path
    for pid in path.read_text().split() if path.exists() else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


WAYS = {
    "background": "sleep 300 & echo $! >> strays",
    "session": "setsid sleep 300 & echo $! >> strays",
    "silent": "(sleep 300 >/dev/null 2>&1 & echo $! >> strays)",
}


@pytest.mark.parametrize(("policy", "left"), [("keep", 1), ("kill", 0)])
def test_what_a_command_leaves_behind_is_counted_or_killed(
    machine: Machine, strays: Path, policy: str, left: int
) -> None:
    jobs = "".join(f'[jobs.{way}]\n{ONCE}leftovers = "{policy}"\nrun = "{run}"\n' for way, run in WAYS.items())
    machine.write(f'[scheduler]\ngrace_period = "500ms"\n{jobs}')
    live(machine, ends=len(WAYS))
    for way in WAYS:
        found, (attempt,) = recorded(machine, way)
        assert (found.state, attempt.state, attempt.leftovers) == ("completed", "success", left), way
    pids = [int(text) for text in strays.read_text().split()]
    assert len(pids) == len(WAYS)
    if policy == "keep":
        assert all(is_alive(pid) for pid in pids)
    else:
        until(lambda: not any(is_alive(pid) for pid in pids), "the end of the processes that were killed")


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and "Z" not in stat.read_text().split(")")[1][:3]


def test_a_command_that_cannot_begin_is_recorded_with_its_error(machine: Machine) -> None:
    found, (attempt,) = outcome(machine, 'run = ["/no/such/program"]\n')
    assert (found.state, attempt.errno) == ("failed", errno.ENOENT)
    assert str(found.reason) == "main: /no/such/program: no such program (ENOENT)"


def test_an_execution_timeout_ends_the_run_and_not_before(machine: Machine) -> None:
    found, (attempt,) = outcome(machine, 'execution_timeout = "300ms"\nrun = ["sleep", "60"]\n')
    assert (found.state, attempt.state) == ("failed", "timeout")
    assert str(found.reason) == "main: the execution timeout passed"
    assert found.started_ms is not None
    assert found.finished_ms is not None
    assert 300 <= found.finished_ms - found.started_ms < 60_000, "the command would have slept for a minute"


def test_a_jobs_own_log_limit_is_kept(machine: Machine) -> None:
    _, (attempt,) = outcome(machine, 'log_limit = "4KiB"\nrun = "head -c 100000 /dev/zero"\n')
    assert attempt.log_bytes <= 4096 + 200
    assert attempt.log_dropped >= 95_000


def test_an_orphan_keeps_its_timeout_when_its_job_is_removed(machine: Machine) -> None:
    machine.write(f'[scheduler]\ngrace_period = "500ms"\n[jobs.one]\n{ONCE}task_timeout = "4s"\nrun = "sleep 300"')
    first = machine.start()
    first.until_logged("attempt started")
    first.kill()
    first.ended()
    machine.write("[scheduler]\n")
    assert machine.chronex("apply", "--prune").returncode == 0
    assert "one since" in machine.chronex("status").stdout, "what runs is listed, though its job is gone"
    second = machine.start()
    second.until_logged("attempt adopted")
    second.until_logged("attempt ended")
    assert second.stopped() == 0
    found, (attempt,) = recorded(machine, "one")
    assert (found.state, attempt.state) == ("failed", "timeout")
