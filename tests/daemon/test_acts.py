"""Acts beside a running daemon, and beside one that was killed: real processes, real signals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.machine import Machine
from tests.kit.waits import until

JOBS = """
[jobs.quick]
schedule = "0 0 1 1 *"
run = "test \\"$CHRONEX_PARAM_DAY\\" = monday"
[jobs.slow]
schedule = "0 0 1 1 *"
run = ["sleep", "600"]
retry = { max = 5, interval = "1s" }
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    found.write(JOBS)
    yield found
    for daemon in found.daemons:
        if daemon.poll() is None:
            daemon.kill()
        daemon.communicate()


def ask(machine: Machine, *arguments: str) -> tuple[int, Any]:
    done = machine.chronex(*arguments, "--format", "json")
    return done.returncode, json.loads(done.stdout)


def test_trigger_wait_gives_the_outcome_as_its_exit_code(machine: Machine) -> None:
    machine.start().until_logged("SchedulerStarted")
    code, answer = ask(machine, "trigger", "quick", "--param", "DAY=monday", "--wait")
    assert (code, answer["state"], answer["daemon"]) == (0, "completed", True)
    code, answer = ask(machine, "trigger", "quick", "--wait")
    assert (code, answer["state"]) == (1, "failed")
    code, letters = ask(machine, "dlq", "list")
    assert (code, [letter["job"] for letter in letters]) == (0, ["quick"])


def test_a_cancel_reaches_a_running_command_at_once_and_it_is_not_tried_again(machine: Machine) -> None:
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    code, answer = ask(machine, "trigger", "slow")
    assert (code, answer["state"]) == (0, "running")
    daemon.until_logged("attempt started")
    code, answer = ask(machine, "cancel", answer["id"], "--reason", "enough", "--wait")
    assert answer["state"] == "canceled"
    assert answer["reason"].endswith("(cli): enough")
    assert answer["stopping"] is False


def test_a_cancel_while_the_daemon_is_dead_is_done_by_the_next_one(machine: Machine) -> None:
    first = machine.start()
    first.until_logged("SchedulerStarted")
    _, answer = ask(machine, "trigger", "slow")
    first.until_logged("attempt started")
    first.kill()
    first.wait()
    code, asked = ask(machine, "cancel", answer["id"])
    assert (code, asked["stopping"]) == (0, True)
    heir = machine.start()
    heir.until_logged("attempt ended")  # its child lived on, was adopted, and got its TERM
    until(
        lambda: {row["id"]: row["state"] for row in machine.history()}.get(answer["id"]) == "canceled",
        "the canceled run in the history",
    )
