"""Other processes beside the daemon: rivals for its lock, readers that stop, and retention that is cut short."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from chronex.clock import wall_ms
from chronex.engine.engine import Engine
from chronex.engine.update import apply_jobs
from chronex.failpoints import VARIABLE
from chronex.model.job import Job
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore
from tests.daemon.machine import EVERY_SECOND, Machine
from tests.daemon.test_signals import started
from tests.kit.forked import PythonProcess, run_python
from tests.kit.waits import DEADLINE_S, until
from tests.torture.in_parallel import run_in_parallel

QUICK = f'[jobs.quick]\n{EVERY_SECOND}run = ["true"]\n'


def test_of_daemons_started_at_once_one_works_and_the_others_say_so(machine: Machine) -> None:
    machine.write(QUICK)
    rivals = [machine.start("--for", "100s") for _ in range(3)]
    until(
        lambda: sum(rival.poll() is not None for rival in rivals) >= 2 and started(machine) >= 1,
        "the end of two rivals and a start by the third",
    )
    for rival in rivals:
        rival.send_signal(signal.SIGTERM)  # those that have ended do not hear it
    errors = [rival.communicate(timeout=DEADLINE_S)[1] for rival in rivals]
    codes = Counter(rival.returncode for rival in rivals)
    assert codes == {0: 1, 75: 2}, errors
    for rival, text in zip(rivals, errors, strict=True):
        if rival.returncode == 75:
            assert text.startswith("chronex: another daemon"), text
            assert text.count("\n") == 1


@pytest.mark.torture
@pytest.mark.parametrize("group", range(25))
def test_of_daemons_started_at_once_one_works_again_and_again(tmp_path: Path, group: int) -> None:
    rounds = [f"rivals, {group}, {number}" for number in range(4)]
    rivalry = test_of_daemons_started_at_once_one_works_and_the_others_say_so
    run_in_parallel(tmp_path, ((name, rivalry) for name in rounds))


TRIM = """
import sys
from pathlib import Path
from chronex_store import LmdbStore
from chronex_store.history_retention import RetentionPolicy, trim
with LmdbStore.open(Path(sys.argv[1])) as store:
    trim(store, RetentionPolicy(max_count=20, max_age_ms=None), int(sys.argv[2]), step=10)
"""


@pytest.mark.parametrize("passing", [1, 2, 5, 100])
def test_retention_that_is_killed_is_finished_by_the_next(tmp_path: Path, passing: int) -> None:
    place, now = tmp_path / "store", wall_ms()
    with LmdbStore.open(place) as store:
        apply_jobs(store, [Job(id="job", schedule="* * * * * *")], now - 120_000)
        node = Node(id="node", process=ProcessIdentity(1, "boot", 1))
        store.update(lambda tx: Records(tx, now).put(node))
        engine = Engine(store, "node", 10)
        for at in range(now - 120_000, now, 1000):
            engine.tick(at, now - 120_000)
        before = [one.nominal_ms for one in store.view(lambda tx: Reading(tx).occurrences("job"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = ["-c", TRIM, str(place), str(now)]
    killed = run_python(command, env={**environment, VARIABLE: f"history trimmed:{passing}"})
    assert killed.returncode in (0, -signal.SIGKILL)
    assert run_python(command, env=environment).returncode == 0
    with LmdbStore.open(place, create=False) as store:
        after = [one.nominal_ms for one in store.view(lambda tx: Reading(tx).occurrences("job"))]
    assert after == before[:20], "the newest stay, and nothing else is touched"


READER = """
import os, signal, sys
from pathlib import Path
from chronex_store import LmdbStore
with LmdbStore.open(Path(sys.argv[1]), create=False) as store:
    store.view(lambda tx: os.kill(os.getpid(), signal.SIGSTOP))
"""


def test_a_reader_that_is_stopped_in_the_middle_holds_up_nobody(machine: Machine) -> None:
    machine.write(QUICK)
    assert machine.chronex("apply").returncode == 0
    daemon = machine.start(quiet=True)
    until(lambda: started(machine) >= 1, "the first start")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    reader = PythonProcess(["-c", READER, str(machine.directory / "store")], env=environment)
    os.waitid(os.P_PID, reader.pid, os.WSTOPPED)
    before = started(machine)
    until(lambda: started(machine) >= before + 2, "two more starts")
    reader.kill()
    reader.wait()
    assert daemon.stopped() == 0
