"""Commands that outlive the daemon: however it ends, nothing is ended, doubled or forgotten."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.machine import LoggedDaemon, LoggedProgram, Machine
from tests.kit.forked import run_python
from tests.kit.processes import processes_of
from tests.kit.waits import is_gone, until

JOB = """
[jobs.slow]
schedule = "@once +1s"
run = "echo $$ >> ran; echo before; while [ ! -e release ]; do sleep 0.02; done; echo after; exit {code}"
retry = {{ max = 0 }}
"""


class Slow:
    """One command that waits to be released, and says itself how often it was started."""

    def __init__(self, machine: Machine, settings: str = "", code: int = 0) -> None:
        self.machine = machine
        machine.write(settings + JOB.format(code=code))

    def begin(self) -> LoggedDaemon:
        daemon = self.machine.start()
        until(self.ran, "the command")
        daemon.until_logged("attempt started")
        return daemon

    def ran(self) -> list[int]:
        path = self.machine.directory / "ran"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def release(self) -> None:
        (self.machine.directory / "release").touch()

    def runs(self) -> bool:
        return Path(f"/proc/{self.ran()[0]}").exists()

    def seen_through(self) -> dict[str, Any]:
        """A successor takes it up and records its end; the command has run once."""
        successor = self.machine.start()
        successor.until_logged("attempt adopted")
        self.release()
        successor.until_logged("attempt ended")
        (row,) = until(lambda: [one for one in self.machine.history() if one["state"] != "running"], "its end")
        assert successor.stopped() == 0
        assert len(self.ran()) == 1, "it was started again"
        return row


def is_keeper(pid: int) -> bool:
    with contextlib.suppress(OSError):  # a sleep of the command may have ended meanwhile
        return b"chronex-keeper" in Path(f"/proc/{pid}/comm").read_bytes()
    return False


def killed(_machine: Machine, daemon: LoggedDaemon) -> None:
    daemon.kill()
    daemon.wait()


def terminated(_machine: Machine, daemon: LoggedDaemon) -> None:
    assert daemon.stopped() == 0


def asked(machine: Machine, daemon: LoggedDaemon) -> None:
    done = machine.chronex("stop")
    assert (done.returncode, done.stdout) == (0, "stopped; slow: still running, and taken up by the next daemon\n")
    assert daemon.wait() == 0


@pytest.mark.parametrize(
    ("end", "code", "state"),
    [
        pytest.param(killed, 3, "failed", marks=pytest.mark.torture),
        pytest.param(terminated, 0, "completed", marks=pytest.mark.torture),
        (asked, 3, "failed"),
    ],
    ids=["killed", "SIGTERM", "chronex stop"],
)
def test_a_command_goes_on_and_its_exit_code_is_known(
    machine: Machine, end: Callable[[Machine, LoggedDaemon], None], code: int, state: str
) -> None:
    slow = Slow(machine, code=code)
    end(machine, slow.begin())
    assert slow.runs()
    row = slow.seen_through()
    assert (row["state"], row["reason"]) == (state, "main: exit code 3" if code else "")
    assert machine.chronex("logs", "slow").stdout == "before\nafter\n"
    until(lambda: not processes_of(machine.directory / "store"), "the end of every keeper")
    assert not list((machine.directory / "store" / "keepers").iterdir())


def test_an_end_while_no_daemon_lives_is_recorded_by_the_next_one(machine: Machine) -> None:
    slow = Slow(machine, code=3)
    killed(machine, slow.begin())
    slow.release()
    until(lambda: not slow.runs(), "the end of the command")
    successor = machine.start()
    successor.until_logged("attempt ended")
    assert successor.stopped() == 0
    assert [(row["state"], row["reason"]) for row in machine.history()] == [("failed", "main: exit code 3")]
    assert len(slow.ran()) == 1


def test_what_ended_while_no_daemon_lived_is_over_before_anything_is_decided(machine: Machine) -> None:
    """A run that was missed meanwhile was skipped, because "an earlier occurrence still runs"."""
    slow = Slow(machine)
    machine.write((machine.directory / "chronex.toml").read_text().replace("@once +1s", "* * * * * *"))
    killed(machine, slow.begin())
    slow.release()
    until(lambda: not slow.runs(), "the end of the command")
    over_s = time.time()
    until(lambda: time.time() > over_s + 2, "an instant that is missed")
    successor = machine.start()
    successor.until_logged("attempt ended", times=2)
    assert successor.stopped() == 0
    events = json.loads(machine.chronex("events", "-n", "1000", "--format", "json").stdout)
    begun = max(number for number, one in enumerate(events) if one["name"] == "SchedulerStarted")
    decided = [(one["name"], one["nominal"]) for one in events[begun:] if one["name"].startswith("Occurrence")]
    first = min(row["nominal"] for row in machine.history() if row["attempts"])
    assert decided[0] == ("OccurrenceCompleted", first)


def test_a_restart_replaces_the_daemon_and_the_command_runs_on(machine: Machine) -> None:
    slow = Slow(machine)
    daemon = slow.begin()
    done = machine.chronex("restart")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("restarted in ")
    assert done.stdout.endswith("; slow: ran on meanwhile\n")
    assert daemon.poll() is None, "the process is the same, so that a service manager sees no end"
    daemon.until_logged("attempt adopted")
    slow.release()
    daemon.until_logged("attempt ended")
    assert daemon.stopped() == 0
    assert [row["state"] for row in machine.history()] == ["completed"]
    assert len(slow.ran()) == 1


def test_what_is_due_during_a_restart_is_late_by_a_moment_and_not_missed(machine: Machine) -> None:
    """Also where a job makes up for nothing: one daemon takes the place of another, and that is no downtime."""
    job = '[jobs.often]\nschedule = "* * * * * *"\noverlap = "allow"\nrecovery = "mark_missed"\nrun = ["true"]\n'
    machine.write(job)
    assert machine.chronex("apply").returncode == 0
    daemon = machine.start(quiet=True)
    until(lambda: any(row["attempts"] for row in machine.history()), "its first run")
    began_s = int(time.time())
    while int(time.time()) < began_s + 2:  # a restart takes a part of a second: two instants come meanwhile
        assert machine.chronex("restart").returncode == 0
    seen = len(machine.history())
    until(lambda: len(machine.history()) > seen, "a run after the last restart")
    assert daemon.stopped() == 0
    rows = machine.history()
    begun = min(row["nominal"] for row in rows if row["attempts"])  # what was due before the daemon was, is missed
    rows = [row for row in rows if row["nominal"] >= begun]
    assert [row["nominal"] for row in rows if row["state"] == "missed"] == []
    instants = sorted(int(datetime.fromisoformat(row["nominal"]).timestamp()) for row in rows)
    assert instants == list(range(instants[0], instants[-1] + 1)), "each second once"
    assert instants[-1] >= began_s + 2


def test_a_restart_that_could_not_begin_again_is_refused(machine: Machine) -> None:
    """A job file with a mistake would leave nobody to schedule: the daemon goes on with what it has."""
    slow = Slow(machine)
    daemon = slow.begin()
    good = (machine.directory / "chronex.toml").read_text()
    machine.write(good.replace("schedule", "shedule"))
    done = machine.chronex("restart")
    assert done.returncode == 1
    assert done.stderr.startswith("not restarted, and the daemon goes on as it is: ")
    assert "job 'slow' has no schedule" in done.stderr
    assert daemon.poll() is None
    machine.write(good)
    done = machine.chronex("restart")
    assert done.stdout.endswith("; slow: ran on meanwhile\n"), done
    slow.release()
    daemon.until_logged("attempt ended")
    assert daemon.stopped() == 0
    assert len(slow.ran()) == 1


def test_a_restart_onto_a_program_that_is_gone_is_refused(machine: Machine) -> None:
    """Half of an upgrade would leave nobody to schedule."""
    slow = Slow(machine)
    python = machine.directory / "python"
    python.symlink_to(sys.executable)
    daemon = LoggedProgram(
        [str(python), "-m", "chronex", "run", "--headless"],
        cwd=machine.directory, env=machine.env, text=True, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        daemon.until_logged("attempt started")
        python.unlink()
        done = machine.chronex("restart")
        words = f"not restarted, and the daemon goes on as it is: {python}: no such file or directory\n"
        assert (done.returncode, done.stderr) == (1, words)
        assert daemon.poll() is None
        python.symlink_to(sys.executable)
        assert machine.chronex("restart").stdout.endswith("; slow: ran on meanwhile\n")
        slow.release()
        daemon.until_logged("attempt ended")
        assert daemon.stopped() == 0
    finally:
        daemon.kill()
        daemon.wait()
        assert daemon.stderr is not None
        daemon.stderr.close()
    assert len(slow.ran()) == 1


def test_who_asks_while_a_daemon_is_replaced_is_not_told_that_there_is_none(machine: Machine) -> None:
    """The old one has left the store, and the new one is not on record yet."""
    machine.write("")
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    with ThreadPoolExecutor(4) as pool:
        done = [one.result() for one in [pool.submit(machine.chronex, "restart") for _ in range(4)]]
    assert [(one.returncode, one.stdout[:13]) for one in done] == [(0, "restarted in ")] * 4, done
    assert machine.chronex("stop").stdout == "stopped\n"
    assert daemon.ended() == 0


def test_an_orphan_that_was_adopted_outlives_its_adopter_too(machine: Machine) -> None:
    """Its keeper is gone: it is watched by its identity alone, and a stop leaves it as it leaves others."""
    slow = Slow(machine, settings='[defaults]\non_crash = "fail"\n')
    daemon = slow.begin()
    for pid in filter(is_keeper, processes_of(machine.directory / "store")):
        os.kill(pid, signal.SIGKILL)
    killed(machine, daemon)
    adopter = machine.start()
    adopter.until_logged("attempt adopted")
    assert adopter.stopped() == 0
    assert slow.runs()
    row = slow.seen_through()
    assert (row["state"], row["reason"]) == (
        "failed",
        "main: ended, and its exit code is not known: whoever watched it had died",
    )


STOPPED_WHILE_IT_TAKES_OVER = """
import sys
from chronex.cli import main
from chronex.daemon import loop

def stop_before_it_watches(point):
    if point == "taken over":
        for daemon in loop._daemons_here.values():
            daemon.stop()

loop.fail_point = stop_before_it_watches
sys.argv = ["chronex", "run", "--headless"]
main()
"""


def test_a_daemon_that_is_stopped_while_it_takes_over_leaves_what_it_found(machine: Machine) -> None:
    """SIGTERM in the first moments of a daemon: what it had just made its own was asked to end."""
    slow = Slow(machine, code=3)
    killed(machine, slow.begin())
    done = run_python(["-c", STOPPED_WHILE_IT_TAKES_OVER], cwd=machine.directory, env=machine.env, text=True)
    assert done.returncode == 0, done.stderr
    assert slow.runs()
    row = slow.seen_through()
    assert (row["state"], row["reason"]) == ("failed", "main: exit code 3")


def test_a_keeper_that_was_about_to_end_when_it_was_looked_for_leaves_nothing_behind(machine: Machine) -> None:
    """It held its lock and answered nobody; with its end on record, nobody asked for it again."""
    machine.write('[jobs.never]\nschedule = "0 0 29 2 *"\nrun = "true"\n')
    assert machine.chronex("apply").returncode == 0
    place = machine.directory / "store" / "keepers" / "node-gone.1"
    place.mkdir(parents=True, mode=0o700)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        daemon = machine.start()
        daemon.until_logged("SchedulerStarted")
        assert place.exists()
    assert daemon.stopped() == 0
    assert not place.exists()


def test_cancel_stops_what_runs_and_drain_waits_for_it(machine: Machine) -> None:
    slow = Slow(machine)
    daemon = slow.begin()
    done = machine.chronex("stop", "--cancel")
    assert (done.returncode, done.stdout) == (0, "stopped\n")
    assert daemon.wait() == 0
    assert [(row["state"], row["reason"]) for row in machine.history()] == [("canceled", "the scheduler was stopped")]
    assert not slow.runs()


def test_a_drain_waits_for_the_end_and_begins_nothing(machine: Machine) -> None:
    slow = Slow(machine)
    daemon = slow.begin()
    daemon.send_signal(signal.SIGSTOP)
    daemon.send_signal(signal.SIGCONT)
    slow.machine.write((machine.directory / "chronex.toml").read_text())
    drained = machine.chronex("stop", "--drain", "--for", "1ms")
    assert drained.stdout == "stopped; slow: still running, and taken up by the next daemon\n"
    assert slow.runs()
    assert daemon.wait() == 0
    assert slow.seen_through()["state"] == "completed"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--leave", "--cancel"), "--leave and --cancel exclude each other; choose one"),
        (("--for", "10m"), "--for is for --drain: chronex stop --store {store} --drain --for 10m"),
        (("--drain", "--for", "soon"), "--for"),
    ],
)
def test_a_mistake_is_taught(machine: Machine, arguments: tuple[str, ...], words: str) -> None:
    done = machine.chronex("stop", *arguments)
    assert done.returncode == 2
    assert words.format(store=machine.store) in done.stderr


def test_without_a_daemon_there_is_nothing_to_stop(machine: Machine) -> None:
    machine.write(JOB.format(code=0))
    assert machine.chronex("apply").returncode == 0
    done = machine.chronex("stop")
    assert (done.returncode, done.stdout) == (0, "no daemon runs on this store\n")
    done = machine.chronex("restart")
    start = f"chronex run --store {machine.store} --config {machine.directory / 'chronex.toml'}"
    told = f"no daemon runs on this store; start one with: {start}\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_keeper_and_daemon_killed_together_leave_an_end_that_is_unknown(machine: Machine) -> None:
    """The command goes on; only its exit code is lost, and `on_crash` decides: by default it is tried again."""
    slow = Slow(machine)
    daemon = slow.begin()
    store = machine.directory / "store"
    for pid in filter(is_keeper, processes_of(store)):
        os.kill(pid, signal.SIGKILL)
    killed(machine, daemon)
    assert slow.runs()
    successor = machine.start()
    successor.until_logged("attempt adopted")
    slow.release()
    successor.until_logged("attempt=2")
    until(lambda: [row["state"] for row in machine.history()] == ["completed"], "the second attempt")
    assert successor.stopped() == 0
    assert len(slow.ran()) == 2


@pytest.mark.parametrize(
    ("check", "state", "reason", "runs"),
    [
        ('["test", "-e", "release"]', "completed", "", 1),
        pytest.param('"exit 1"', "completed", "", 2, marks=pytest.mark.torture),
        pytest.param(
            '"kill $$"',
            "failed",
            "main: nobody saw its end, and its check gave no answer: ended by SIGTERM",
            1,
            marks=pytest.mark.torture,
        ),
    ],
    ids=["done", "not done", "no answer"],
)
def test_where_nobody_saw_the_end_a_check_is_asked(
    machine: Machine, check: str, state: str, reason: str, runs: int
) -> None:
    """Keeper, daemon and command die together, as when the machine does."""
    slow = Slow(machine, settings=f'[defaults]\non_crash = {{ check = {check} }}\nretry = {{ interval = "1s" }}\n')
    daemon = slow.begin()
    for pid in filter(is_keeper, processes_of(machine.directory / "store")):
        os.kill(pid, signal.SIGKILL)
    killed(machine, daemon)
    os.killpg(slow.ran()[0], signal.SIGKILL)
    until(lambda: not slow.runs(), "the end of the command")
    slow.release()
    successor = machine.start()
    (row,) = until(lambda: [one for one in machine.history() if one["state"] != "running"], "its end")
    assert successor.stopped() == 0
    assert (row["state"], row["reason"], len(slow.ran())) == (state, reason, runs)


def test_doctor_tells_of_commands_without_a_scheduler_and_of_what_a_killed_keeper_left(machine: Machine) -> None:
    slow = Slow(machine)
    terminated(machine, slow.begin())
    told = machine.chronex("doctor").stdout
    assert "commands of a scheduler that is gone: 1 running, 0 ended and not on record" in told
    assert f"chronex run --store {machine.store} takes them up" in told
    (keeper,) = (pid for pid in processes_of(machine.directory / "store") if is_keeper(pid))
    slow.release()
    until(lambda: is_gone(keeper), "the keeper, which ends with its last command")
    told = machine.chronex("doctor").stdout
    assert "is left of a keeper that is gone: 0 running, 1 ended and not on record" in told
    assert f"chronex run --store {machine.store} records what it says and removes it" in told
    successor = machine.start()
    successor.until_logged("attempt ended")
    assert successor.stopped() == 0
    assert "keeper" not in machine.chronex("doctor").stdout


def test_doctor_tells_of_a_keeper_that_is_stopped_and_of_commands_that_are_watched(machine: Machine) -> None:
    slow = Slow(machine)
    killed(machine, slow.begin())
    (keeper,) = (pid for pid in processes_of(machine.directory / "store") if is_keeper(pid))
    successor = machine.start()
    successor.until_logged("attempt adopted")
    told = machine.chronex("doctor").stdout
    watched = "commands of an earlier scheduler, which this one watches: 1 running, 0 ended and not on record"
    assert watched in told
    assert "takes them up" not in told, "they are taken up already"
    os.kill(keeper, signal.SIGSTOP)
    try:
        told = machine.chronex("doctor").stdout
        assert f"process {keeper}, which alone knows the ends of its commands, is stopped: 1 running" in told
        assert f"kill -CONT {keeper}" in told
    finally:
        os.kill(keeper, signal.SIGCONT)
    slow.release()
    successor.until_logged("attempt ended")
    assert successor.stopped() == 0


def test_a_store_that_is_moved_away_takes_its_commands_along_and_leaves_nothing(machine: Machine) -> None:
    slow = Slow(machine, code=3)
    daemon = slow.begin()
    (keeper,) = (pid for pid in processes_of(machine.directory / "store") if is_keeper(pid))
    moved = machine.directory / "elsewhere"
    machine.store.rename(moved)
    assert daemon.ended() == 1
    assert daemon.stderr is not None
    said = daemon.unread + daemon.stderr.read()
    assert "The store was moved, removed, or replaced by a restore while it was open" in said
    assert "Traceback" not in said
    machine.store, machine.env["CHRONEX_STORE"] = moved, str(moved)
    row = slow.seen_through()
    assert (row["state"], row["reason"]) == ("failed", "main: exit code 3")
    until(lambda: is_gone(keeper), "the keeper, which ends with its last command")
    assert not list((moved / "keepers").iterdir())
