"""`wait_for` and `check` in a real daemon: real ports, paths and commands, and a death between an end and its check."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.daemon.machine import EVERY_SECOND, LoggedDaemon, Machine
from tests.kit.waits import until


def started(machine: Machine) -> LoggedDaemon:
    assert machine.chronex("apply").returncode == 0
    return machine.start(quiet=True)


def states_of(machine: Machine) -> list[str]:
    return [row["state"] for row in machine.history()]


def test_a_run_waits_until_its_port_its_path_and_its_command_are_there(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    machine.write(
        f'[scheduler]\nmax_concurrent_jobs = 1\n[jobs.waits]\n{EVERY_SECOND}run = "touch ran"\n'
        f'wait_for = ["tcp:127.0.0.1:{port}", "path:mounted", "command:test -e ready"]\n'
        f'[jobs.other]\n{EVERY_SECOND}run = "touch beside"\n'
    )
    daemon = started(machine)
    until(lambda: "connection refused" in machine.chronex("show", "waits").stdout, "the reason of the wait")
    until((machine.directory / "beside").exists, "a run beside it: who waits takes no slot")
    with socket.create_server(("127.0.0.1", port)):
        until(lambda: "path:mounted (no such file" in machine.chronex("show", "waits").stdout, "the next condition")
        (machine.directory / "mounted").mkdir()
        until(
            lambda: "command:test -e ready (exit code 1)" in machine.chronex("show", "waits").stdout, "the last one"
        )
        assert not (machine.directory / "ran").exists()
        (machine.directory / "ready").touch()
        until((machine.directory / "ran").exists, "the run")
    assert daemon.stopped() == 0


def test_a_run_that_waits_in_vain_is_skipped_with_what_was_lacking(machine: Machine) -> None:
    machine.write(f'[jobs.waits]\n{EVERY_SECOND}run = "touch ran"\nwait_for = ["path:never"]\nwait_at_most = "1s"\n')
    daemon = started(machine)
    wanted = "it waited in vain for path:never (no such file or directory)"
    until(lambda: any(row["reason"] == wanted for row in machine.history()), "a run that was skipped")
    assert daemon.stopped() == 0
    skipped = next(row for row in machine.history() if row["reason"] == wanted)
    assert '"cause": "not_met"' in machine.chronex("why", "waits", skipped["nominal"], "--format", "json").stdout
    assert not (machine.directory / "ran").exists()


def test_a_condition_that_hangs_keeps_no_other_job_waiting(machine: Machine) -> None:
    """All were looked at in one round, and the next began when the slowest command had been given up: after a minute."""
    machine.write(
        f'[jobs.hangs]\n{EVERY_SECOND}run = "true"\nwait_for = ["command:echo >> asked; exec sleep 600"]\n'
        f'[jobs.waits]\n{EVERY_SECOND}run = "touch ran"\nwait_for = ["path:mounted"]\n'
    )
    daemon = started(machine)
    asked = machine.directory / "asked"
    until(asked.exists, "the command of the first condition")
    until(lambda: "no such file" in machine.chronex("show", "waits").stdout, "a look at the other one")
    (machine.directory / "mounted").mkdir()
    until((machine.directory / "ran").exists, "the run that waited for the path")
    assert asked.read_text() == "\n", "the first command was still being waited for"
    assert daemon.stopped() == 0


def test_a_condition_that_nobody_waits_for_any_more_is_not_looked_at_further(machine: Machine) -> None:
    machine.write(
        '[jobs.hangs]\nschedule = "@every 1s {max:1}"\nrun = "true"\nwait_at_most = "2s"\n'
        'wait_for = ["command:echo $$ > asked; exec sleep 600"]\n'
    )
    daemon = started(machine)
    asked = machine.directory / "asked"
    until(lambda: asked.exists() and asked.read_text().strip().isdigit(), "the command of the condition")
    until(lambda: states_of(machine) == ["skipped"], "a run that waited in vain")
    until(lambda: not Path(f"/proc/{asked.read_text().strip()}").exists(), "the end of that command")
    assert daemon.stopped() == 0


def test_a_command_that_did_nothing_has_failed_and_is_tried_again(machine: Machine) -> None:
    machine.write(
        f'[jobs.dump]\n{EVERY_SECOND}run = "echo >> tries; if [ $(wc -l < tries) -gt 1 ]; then echo data > dump; fi"\n'
        'check = { file = "dump", min_size = 2, newer = true }\nretry = { max = 3, interval = "1s" }\n'
    )
    daemon = started(machine)
    until(lambda: "completed" in states_of(machine), "a run that is done")
    assert daemon.stopped() == 0
    first = next(row for row in machine.history()[::-1] if row["state"] == "completed")
    told = machine.chronex("why", "dump", first["nominal"]).stdout
    assert "the command ended well, and its check failed: dump: no such file or directory" in told


@pytest.mark.parametrize("is_done", [True, False])
def test_a_check_is_asked_again_where_the_daemon_died_before_it(machine: Machine, is_done: bool) -> None:
    """Between the end of the command and its check: the next daemon finds the same end."""
    machine.write(
        '[jobs.dump]\nschedule = "@every 1s {max:1}"\nrun = "echo >> ran"\n'
        f'check = "echo >> asked; {"true" if is_done else "false"}"\n'
    )
    daemon = machine.start(quiet=True, fail_at="check due")
    assert daemon.ended() == -9
    assert (machine.directory / "ran").read_text() == "\n"
    assert not (machine.directory / "asked").exists()
    daemon = started(machine)
    until(lambda: states_of(machine) == ["completed" if is_done else "failed"], "the end")
    assert daemon.stopped() == 0
    assert (machine.directory / "ran").read_text() == "\n", "the command itself ran once"
    assert (machine.directory / "asked").read_text() == "\n"
