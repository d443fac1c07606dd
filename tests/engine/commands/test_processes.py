"""The same races with real processes on a real store, and applies that are killed on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chronex.cli.commands.apply import ApplyOptions, run_apply
from chronex.clock import wall_ms
from chronex.engine.update import apply_jobs, kept_versions
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from tests.engine.commands.store_invariants import assert_consistent
from tests.engine.commands.worker import JOBS
from tests.kit.forked import PythonProcess
from tests.store.processes import ENVIRONMENT, ROOT, assert_sound, needs_strace, traced

OLD = '[jobs.a]\nschedule = "0 3 * * *"\nrun = ["true"]\n[jobs.b]\nschedule = "@every 1h"\nrun = ["true"]\n'
NEW = '[jobs.a]\nschedule = "0 5 * * *"\nrun = ["false"]\n[jobs.c]\nschedule = "@daily"\nrun = ["true"]\n'


def start(role: str, path: Path, *numbers: int) -> subprocess.Popen[str]:
    command = ["-m", "tests.engine.commands.worker", role, str(path), *map(str, numbers)]
    return PythonProcess(command, cwd=ROOT, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def race(path: Path, seed: int, count: int) -> None:
    with LmdbStore.open(path) as store:
        apply_jobs(store, JOBS, wall_ms())
    runner = start("engine", path, 9)
    people = [start("people", path, seed + n, count) for n in range(3)]
    for person in people:
        said, _ = person.communicate(timeout=120)
        assert person.returncode == 0, "every update kept the invariants, and none ended in a traceback"
        assert 0 <= int(said) < count
    runner.communicate("stop\n", timeout=120)
    assert runner.returncode == 0
    with LmdbStore.open(path) as store:
        store.view(assert_consistent)
        assert store.view(lambda tx: Reading(tx).active_attempts()) == []
    assert_sound(path)


def test_people_and_an_engine_race_on_one_store(tmp_path: Path) -> None:
    race(tmp_path / "store", 1, 30)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10, 100, 10))
def test_people_and_an_engine_race_for_long(tmp_path: Path, seed: int) -> None:
    race(tmp_path / "store", seed, 300)


# -- an apply that is killed -----------------------------------------------------------------------------


def applied(directory: Path, *prefix: str) -> int:
    if not prefix:
        return run_apply(ApplyOptions(str(directory / "chronex.toml"), store=str(directory / "store")))
    command = [*prefix, sys.executable, "-m", "chronex", "apply", "chronex.toml", "--store", str(directory / "store")]
    done = subprocess.run(command, cwd=directory, env=ENVIRONMENT, capture_output=True, timeout=60, check=False)
    return done.returncode


def outcome(directory: Path) -> Any:
    """The jobs and their versions, without the times at which somebody happened to apply them."""

    def read(tx: Any) -> Any:
        reading = Reading(tx)
        jobs = [(job.as_written(), job.version) for job in reading.jobs()]
        return jobs, [[one.version for one in kept_versions(reading, name)] for name in "abc"]

    with LmdbStore.open(directory / "store", create=False) as store:
        store.view(assert_consistent)
        return store.view(read)


def killed_and_repeated(directory: Path, call: str, number: int) -> tuple[bool, Any]:
    """Apply one file; apply another and be killed at the Nth `call`; apply again. Was it killed, and what is left?"""
    directory.mkdir()
    (directory / "chronex.toml").write_text(OLD)
    assert applied(directory) == 0
    (directory / "chronex.toml").write_text(NEW)
    inject = traced([], f"{call}:signal=KILL:when={number}")
    code = applied(directory, *inject)
    assert code in (0, -9, 137)
    is_killed = code != 0
    before = outcome(directory)[0]
    assert {job.id for job, _ in before} in ({"a", "b"}, {"a", "c"}), "all of it or nothing"
    assert applied(directory) == 0
    return is_killed, outcome(directory)


def not_killed(directory: Path) -> Any:
    directory.mkdir()
    for text in (OLD, NEW):
        (directory / "chronex.toml").write_text(text)
        assert applied(directory) == 0
    return outcome(directory)


@needs_strace
def test_an_apply_that_is_killed_and_repeated_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole = not_killed(tmp_path / "whole")
    for call, number in (("pwrite64", 1), ("fdatasync", 1)):
        is_killed, found = killed_and_repeated(tmp_path / f"{call}-{number}", call, number)
        assert is_killed
        assert found == whole


@needs_strace
@pytest.mark.torture
@pytest.mark.parametrize("call", ["pwrite64", "writev", "fdatasync", "openat", "mmap"])
def test_an_apply_killed_at_every_call_and_repeated_ends_the_same(tmp_path: Path, call: str) -> None:
    whole = not_killed(tmp_path / "whole")
    number, is_killed = 1, True
    while is_killed:
        is_killed, found = killed_and_repeated(tmp_path / str(number), call, number)
        assert found == whole
        number += 1 if number < 20 else 37
