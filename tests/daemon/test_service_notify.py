"""What a service manager with a notify socket is told."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from chronex.daemon.sign_of_life import ALIVE, READY, STOPPING, ServiceNotify
from tests.daemon.machine import Machine
from tests.kit.waits import DEADLINE_S


def listening(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(str(path))
    made.settimeout(DEADLINE_S)
    return made


def test_the_daemon_tells_that_it_is_ready_alive_and_stopping(machine: Machine, tmp_path: Path) -> None:
    machine.write('[jobs.a]\nschedule = "0 0 1 1 *"\nrun = ["true"]\n')
    with listening(tmp_path / "n") as manager:
        machine.env |= {"NOTIFY_SOCKET": str(tmp_path / "n"), "WATCHDOG_USEC": "30000"}
        daemon = machine.start(quiet=True)
        assert manager.recv(100).decode() == READY
        assert [manager.recv(100).decode() for _ in range(2)] == [ALIVE, ALIVE]
        daemon.send_signal(signal.SIGTERM)
        while (told := manager.recv(100).decode()) == ALIVE:
            continue
        assert told.splitlines() == [ALIVE, STOPPING, "EXTEND_TIMEOUT_USEC=30000"]
        assert daemon.ended() == 0


@pytest.mark.parametrize(
    ("environ", "every_s"),
    [
        ({}, 0.0),
        ({"WATCHDOG_USEC": "60000000"}, 0.0),
        ({"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "60000000"}, 20.0),
        ({"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 20.0),
        ({"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "3000000"}, 1.0),
        # Nobody waits for these; but a manager must hear of a stop that takes long.
        ({"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, 20.0),
        ({"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "soon"}, 20.0),
        ({"NOTIFY_SOCKET": "/s"}, 20.0),
    ],
)
def test_signs_of_life_come_three_times_as_often_as_they_are_wanted(environ: dict[str, str], every_s: float) -> None:
    assert ServiceNotify(environ).alive_every_s == every_s


@pytest.mark.parametrize("address", ["", "/no/such/socket", "@no-such-socket", "nonsense"])
def test_a_manager_that_does_not_listen_disturbs_nobody(address: str) -> None:
    ServiceNotify({"NOTIFY_SOCKET": address}).send(READY)
