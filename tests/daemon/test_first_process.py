"""As process 1 of a container the program reaps orphans, hands signals on, and ends as its scheduler does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chronex.daemon.first_process import end_of, is_first_process
from tests.kit.waits import DEADLINE_S

ROOT = Path(__file__).parents[2]
# The child of the first process: it leaves two orphans, waits until somebody has reaped them, and ends as it is told.
CHILD = """
import os, signal, sys, time
from chronex.daemon.first_process import leave_first_process
leave_first_process()
assert os.getpid() != 1 and os.getppid() == 1
middle = os.fork()
if middle == 0:
    for _ in range(2):
        if os.fork() == 0:
            time.sleep(0.05)
            os._exit(0)
    os._exit(0)
os.waitpid(middle, 0)
def others():
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
begin = time.monotonic()
while others() and time.monotonic() - begin < 60:
    time.sleep(0.02)
print("left:", len(others()), flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
"""


def can_unshare() -> bool:
    done = subprocess.run(["unshare", "-p", "-f", "--mount-proc", "true"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.skipif(sys.platform != "linux" or not can_unshare(), reason="no process namespaces here")
def test_orphans_are_reaped_and_a_signal_reaches_the_scheduler() -> None:
    first = subprocess.Popen(
        ["unshare", "-p", "-f", "--kill-child", "--mount-proc", sys.executable, "-c", CHILD],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'store'}"}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "left: 0\n"
        assert first.stdout.readline() == "ready\n"
        child = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
        os.kill(int(child[0]), signal.SIGTERM)  # to process 1 of the container
        assert first.wait(DEADLINE_S) == 7
    finally:
        first.kill()
        first.communicate()


def test_only_process_one_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_first_process()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert is_first_process()


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ([], None),
        ([(8, 0)], None),
        ([(8, 0), (9, 0)], 0),
        ([(9, 3 << 8), (8, 0)], 3),
        ([(9, signal.SIGKILL)], 137),
    ],
)
def test_the_end_of_the_scheduler_is_the_end(ended: list[tuple[int, int]], code: int | None) -> None:
    assert end_of(9, ended) == code
