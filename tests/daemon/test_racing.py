"""Several engines, each in a process of its own, on one LMDB store: every occurrence runs once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from chronex.clock import wall_ms
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from tests.kit.forked import PythonProcess
from tests.kit.waits import DEADLINE_S, until
from tests.verify.assertion import assert_verified

ENGINE = """
import asyncio, sys
from pathlib import Path
from chronex.daemon.embedded import EmbeddedEngine
async def main():
    async with EmbeddedEngine(Path(sys.argv[1])):
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until it is asked to stop
asyncio.run(main())
"""


def race(tmp_path: Path, engines: int, jobs: int, starts: int) -> None:
    """Until so many commands have begun."""
    place, noted = tmp_path / "store", tmp_path / "noted"
    command = f'echo "$CHRONEX_ATTEMPT" >> "{noted}"'
    wanted = [
        Job(
            id=f"job{n}", schedule="* * * * * *", overlap=OverlapPolicy.QUEUE, tasks=(Task(name="main", run=command),)
        )
        for n in range(jobs)
    ]
    with LmdbStore.open(place) as store:
        apply_jobs(store, wanted, wall_ms())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    racers = [
        PythonProcess(
            ["-c", ENGINE, str(place)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(engines)
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    until(lambda: noted.exists() and len(noted.read_text().split()) >= starts, f"{starts} starts", 5 * DEADLINE_S)
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
    for racer in racers:
        with racer:
            assert racer.wait(timeout=DEADLINE_S) == 0
    ran = Counter(noted.read_text().split())
    assert set(ran.values()) == {1}, "an attempt ran twice"
    with LmdbStore.open(place, create=False) as store:
        nodes: set[str] = set()
        for job in wanted:
            found = store.view(lambda tx, name=job.id: Reading(tx).occurrences(name))  # type: ignore[misc]
            instants = sorted(one.nominal_ms for one in found)
            assert instants == list(range(instants[0], instants[-1] + 1, 1000)), "an instant was lost"
            for one in found:
                tried = store.view(lambda tx, o=one: Reading(tx).attempts(o.job, o.nominal_ms))  # type: ignore[misc]
                assert len(tried) <= 1, "two winners"
                nodes.update(attempt.owner for attempt in tried)
                assert all(ran[attempt.id] == 1 for attempt in tried if one.state is OccurrenceState.COMPLETED)
        assert len(store.view(lambda tx: Reading(tx).nodes())) == engines, "all took part"
        assert nodes
    assert_verified(place)


@pytest.mark.parametrize("engines", [2, 4])
def test_each_occurrence_runs_once_however_many_engines_race(tmp_path: Path, engines: int) -> None:
    race(tmp_path, engines, jobs=6, starts=18)


@pytest.mark.torture
@pytest.mark.parametrize("round_", range(10))
def test_four_engines_race_for_half_a_minute(tmp_path: Path, round_: int) -> None:
    race(tmp_path, 4, jobs=30, starts=900)
