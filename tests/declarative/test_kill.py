"""A real process with a real store, killed in the middle of a callback: the next one starts the run again at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from chronex.storage import journal
from chronex_store import LmdbStore
from tests.kit.forked import PythonProcess
from tests.verify.assertion import assert_verified

PROGRAM = """
import asyncio, sys
from datetime import timedelta
import chronex

async def main() -> None:
    done = asyncio.Event()

    async def callback() -> None:
        print("started", flush=True)
        if sys.argv[2] == "hang":
            await asyncio.Event().wait()
        done.set()

    scheduler = chronex.Scheduler(sys.argv[1])
    await scheduler.initialize([("a task", "* * * * *", callback, timedelta(hours=1))])
    await done.wait()
    await scheduler.stop()

asyncio.run(main())
"""


def start(store: Path, what: str) -> subprocess.Popen[str]:
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = ["-c", PROGRAM, str(store), what]
    return PythonProcess(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_run_that_a_kill_interrupted_is_started_again_by_the_next_process(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with start(store, "hang") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "started\n"
        first.kill()
    with start(store, "end") as second:
        printed, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    assert printed.startswith("started\n")
    with LmdbStore.open(store, create=False) as opened:
        names = [event.name for _, event in opened.view(journal.tail)]
        report = assert_verified(opened)
    assert "SchedulerCrashed" in names
    assert names.index("SchedulerCrashed") < names.index("TaskRunFailed")
    assert names[-1] == "SchedulerStopped"
    (restart,) = (result for result in report.properties if result.property == "L3")
    assert restart.checked == 1
