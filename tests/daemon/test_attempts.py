"""What the daemon records of its attempts: what they left behind, why they never began, and when their time was up."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.engine.ledger import Reading
from chronex.model.records import Attempt, Occurrence
from chronex_store import LmdbStore
from tests.daemon.machine import Machine

ONCE = 'schedule = "@every 1s {max:1}"\n'


def outcome(machine: Machine, job: str, seconds: str = "2500ms") -> tuple[Occurrence, list[Attempt]]:
    machine.write(f'[scheduler]\ngrace_period = "500ms"\n[jobs.one]\n{ONCE}{job}')
    done = machine.chronex("run", "--headless", "--for", seconds)
    assert done.returncode == 0, done.stderr
    with LmdbStore.open(machine.directory / "store", create=False) as store:
        (found,) = store.view(lambda tx: Reading(tx).occurrences("one"))
        return found, store.view(lambda tx: Reading(tx).attempts("one", found.nominal_ms))


@pytest.fixture
def strays(tmp_path: Path) -> Iterator[Path]:
    """A file for the pids of processes that a command leaves behind; they do not outlive the test."""
    path = tmp_path / "strays"
    yield path
    for pid in path.read_text().split() if path.exists() else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize(("policy", "left"), [("keep", 1), ("kill", 0)])
@pytest.mark.parametrize("way", ["sleep 300 &", "setsid sleep 300 &", "(sleep 300 > /dev/null 2>&1 &)"])
def test_what_a_command_leaves_behind_is_counted_or_killed(
    machine: Machine, strays: Path, policy: str, left: int, way: str
) -> None:
    command = f"{way} echo $! >> {strays}" if "(" not in way else f"(sleep 300 >/dev/null 2>&1 & echo $! >> {strays})"
    found, (attempt,) = outcome(machine, f'leftovers = "{policy}"\nrun = "{command}"\n', "4s")
    assert (found.state, attempt.state) == ("completed", "success")
    assert attempt.leftovers == left
    (pid,) = (int(text) for text in strays.read_text().split())
    alive = os.path.exists(f"/proc/{pid}") and "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]
    assert alive == bool(left)


def test_a_command_that_cannot_begin_is_recorded_with_its_error(machine: Machine) -> None:
    found, (attempt,) = outcome(machine, 'run = ["/no/such/program"]\n')
    assert (found.state, attempt.errno) == ("failed", errno.ENOENT)
    assert found.reason == "main: /no/such/program: no such program (ENOENT)"


def test_an_execution_timeout_is_kept_to_the_moment(machine: Machine) -> None:
    found, (attempt,) = outcome(machine, 'execution_timeout = "300ms"\nrun = ["sleep", "60"]\n')
    assert (found.state, attempt.state) == ("failed", "timeout")
    assert found.reason == "main: the execution timeout passed"
    assert found.started_ms is not None
    assert found.finished_ms is not None
    assert 300 <= found.finished_ms - found.started_ms < 2000


def test_a_jobs_own_log_limit_is_kept(machine: Machine) -> None:
    _, (attempt,) = outcome(machine, 'log_limit = "4KiB"\nrun = "head -c 100000 /dev/zero"\n')
    assert attempt.log_bytes <= 4096 + 200
    assert attempt.log_dropped >= 95_000
