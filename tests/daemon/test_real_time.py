"""The whole daemon, stopped for eight hours, by libfaketime: it catches up once."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from chronex.model.event import Event
from chronex.model.occurrence import Occurrence
from chronex.storage import journal
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from tests.daemon.machine import Machine
from tests.kit.waits import until

LIBRARIES = [
    *Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"),
    *Path("/usr/lib").glob("faketime/libfaketimeMT.so.1"),
]
pytestmark = pytest.mark.skipif(not LIBRARIES or shutil.which("faketime") is None, reason="needs libfaketime")
HOUR = 3600
JOBS = '[scheduler]\ntimezone = "UTC"\n[jobs.often]\nschedule = "* * * * * *"\nrun = ["true"]\n[jobs.hourly]\nschedule = "@hourly"\nrun = ["true"]\n'


class Clock:
    """All clocks of one machine, moved together by writing to a file (libfaketime cannot move the wall alone: then
    no sleep works under it). So this is a machine on which a process was stopped."""

    def __init__(self, machine: Machine) -> None:
        self.file = machine.directory / "clock"
        self.set(0)
        machine.env |= {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
        }

    def set(self, seconds: int) -> None:
        temporary = self.file.with_suffix(".new")
        temporary.write_text(f"{seconds:+d}s\n")
        temporary.rename(self.file)


def seen(machine: Machine) -> tuple[list[Event], list[Occurrence]]:
    with LmdbStore.open(machine.directory / "store", create=False) as store:
        events = store.view(lambda tx: journal.tail(tx, limit=100_000))
        found = store.view(lambda tx: [o for job in ("often", "hourly") for o in Reading(tx).occurrences(job)])
        return [event for _, event in events], found


def names(machine: Machine) -> list[str]:
    return [event.name for event in seen(machine)[0]]


def test_a_daemon_that_was_stopped_for_eight_hours_catches_up_once(machine: Machine) -> None:
    machine.write(JOBS)
    assert machine.chronex("apply").returncode == 0
    clock = Clock(machine)
    daemon = machine.start(quiet=True)
    until(lambda: "OccurrenceStarted" in names(machine), "the first start")
    os.kill(daemon.pid, signal.SIGSTOP)
    clock.set(8 * HOUR)
    os.kill(daemon.pid, signal.SIGCONT)
    until(lambda: "SchedulerStalled" in names(machine), "the stall in the journal")
    until(
        lambda: any(one.job == "hourly" and one.recovery and one.state == "completed" for one in seen(machine)[1]),
        "the hourly run that catches up",
    )
    assert daemon.stopped() == 0
    # The hour may begin while the test runs, and then the run of that instant is another one.
    hourly = [one for one in seen(machine)[1] if one.job == "hourly" and one.recovery]
    assert Counter(one.state.value for one in hourly)["completed"] == 1
    assert Counter(one.state.value for one in hourly)["missed"] >= 7
