"""The machine's own clock is set under a running daemon, and put right again.

Everybody on the machine sees it, so it must be asked for: `CHRONEX_SET_CLOCK=1 make torture`, with the right to do so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.daemon.machine import Machine
from tests.kit.waits import until

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif("CHRONEX_SET_CLOCK" not in os.environ, reason="sets the machine's clock: CHRONEX_SET_CLOCK=1"),
]

MINUTE, HOUR, YEAR = 60, 3_600, 365 * 86_400
AT_ONCE_S = 20.0  # the daemon wakes every 30 s to read the clock, so it was woken by the step itself


@contextmanager
def clock_set_by(seconds: int) -> Iterator[None]:
    """The true time is kept by the clock that no process can set."""
    true, began = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    try:
        time.clock_settime_ns(time.CLOCK_REALTIME, true + seconds * 10**9)
    except PermissionError:
        pytest.skip("this user may not set the clock")
    try:
        yield
    finally:
        elapsed = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - began
        time.clock_settime_ns(time.CLOCK_REALTIME, true + elapsed)


@pytest.mark.parametrize("by", [MINUTE, -MINUTE, HOUR, -HOUR, YEAR, -YEAR], ids=lambda by: f"{by:+d} s")
def test_a_set_clock_is_noticed_at_once_and_no_instant_runs_twice(machine: Machine, by: int) -> None:
    machine.write(
        '[jobs.seconds]\nschedule = "* * * * * *"\nrun = "echo $CHRONEX_SCHEDULED_TIME >> ran"\n'
        '[jobs.hours]\nschedule = "0 * * * *"\nrun = ["true"]\n'
    )
    ran = machine.directory / "ran"
    daemon = machine.start()
    daemon.until_logged("attempt ended")
    with clock_set_by(by):
        began = time.monotonic()
        daemon.until_logged("ClockStepped")
        assert time.monotonic() - began < AT_ONCE_S
        lines = len(ran.read_text().splitlines())
        until(lambda: len(ran.read_text().splitlines()) >= lines + 2, "two runs by the new time")
    began = time.monotonic()
    daemon.until_logged("ClockStepped")
    assert time.monotonic() - began < AT_ONCE_S
    if by < 0:  # set forwards, the instants to come were decided already: missed, and they stay missed
        lines = len(ran.read_text().splitlines())
        until(lambda: len(ran.read_text().splitlines()) >= lines + 2, "two more runs")
    assert machine.chronex("trigger", "hours").returncode == 0
    until(
        lambda: any(row["job"] == "hours" and row["state"] == "completed" for row in machine.history()),
        "the run that was triggered",
    )
    scheduled = ran.read_text().split()
    assert len(scheduled) == len(set(scheduled)), "an instant ran twice"
    assert daemon.stopped() == 0
