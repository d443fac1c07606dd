"""The real daemon on a real store with real commands: `chronex run --headless` as a user would start it."""

from __future__ import annotations

import signal
import time
from collections import Counter
from itertools import pairwise

import pytest

from tests.daemon.machine import EVERY_SECOND, Machine
from tests.kit.waits import until


def test_every_instant_ends_in_one_recorded_fate(machine: Machine) -> None:
    machine.write(f'[jobs.good]\n{EVERY_SECOND}run = ["true"]\n[jobs.bad]\n{EVERY_SECOND}run = ["false"]\n')
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    wanted = {("good", "completed"), ("bad", "failed")}

    def ends() -> Counter[tuple[str, str]]:
        return Counter((row["job"], row["state"]) for row in machine.history())

    until(lambda: all(ends()[one] >= 2 for one in wanted), "two ends of both jobs")
    assert daemon.stopped() == 0
    rows = machine.history()
    for job in ("good", "bad"):
        instants = sorted(row["nominal_ms"] for row in rows if row["job"] == job)
        assert all(after - before == 1000 for before, after in pairwise(instants)), "an instant is lost or doubled"
    # A busy machine may skip what came while an earlier run still ran, and the last one may run on after the stop.
    not_run = {(job, state) for job in ("good", "bad") for state in ("skipped", "missed", "running")}
    assert {(row["job"], row["state"]) for row in rows} - not_run == wanted
    assert {row["reason"] for row in rows if row["state"] == "failed"} == {"main: exit code 1"}


def test_a_second_daemon_exits_75_with_one_sentence(machine: Machine) -> None:
    machine.write(f'[jobs.a]\n{EVERY_SECOND}run = ["true"]\n')
    machine.start().until_logged("SchedulerStarted")
    second = machine.chronex("run", "--headless")
    assert second.returncode == 75
    assert second.stderr.startswith("chronex: another daemon")
    assert second.stderr.count("\n") == 1


def test_the_grace_period_of_the_file_is_kept(machine: Machine) -> None:
    stubborn = "trap '' TERM; while :; do sleep 0.05; done"
    settings = '[scheduler]\ngrace_period = "300ms"\non_stop = "cancel"\n'
    machine.write(f'{settings}[jobs.stubborn]\n{EVERY_SECOND}run = "{stubborn}"\n')
    daemon = machine.start()
    daemon.until_logged("attempt started")
    asked = time.monotonic()
    assert daemon.stopped() == 0
    assert time.monotonic() - asked < 30, "killed after its grace of 300 ms, not after the default of 30 s"


def test_once_runs_what_is_due_and_stops(machine: Machine) -> None:
    machine.write('[jobs.a]\nschedule = "@every 1s"\nrun = ["true"]\n')
    assert machine.chronex("apply").stdout == "new        a\n"
    assert machine.chronex("apply").stdout == "unchanged  a\n"
    until(lambda: machine.chronex("run", "--once").returncode == 0 and machine.history(), "a run that was due")
    # Where the machine took more than a second to come this far, the newest of what is due runs for the others.
    assert {row["state"] for row in machine.history()} - {"missed"} == {"completed"}


ONCE = """
[jobs.good]
schedule = "@every 1s"
run = ["true"]

[jobs.bad]
schedule = "@every 1s"
run = ["false"]
retry = { max = 1, interval = "1h" }
"""


@pytest.mark.parametrize(("jobs", "code"), [(ONCE, 1), (ONCE.partition("[jobs.bad]")[0], 0)], ids=["failed", "good"])
def test_once_ends_with_1_when_a_run_did_not_succeed(machine: Machine, jobs: str, code: int) -> None:
    machine.write(jobs)
    assert machine.chronex("apply").returncode == 0
    codes: list[int] = []

    def ran() -> bool:
        codes.append(machine.chronex("run", "--once").returncode)
        return bool(machine.history())

    until(ran, "a run that was due")
    assert codes[-1] == code
    assert set(codes[:-1]) <= {0}, "nothing was due yet"
    again = machine.chronex("run", "--once")
    assert again.returncode == code, "until its retry succeeds"
    assert ('reason="waits for its next attempt"' in again.stderr) == bool(code)


def test_once_stops_when_its_terminal_is_closed_and_the_command_goes_on(machine: Machine) -> None:
    wait = "until test -e go; do sleep 0.05; done"
    machine.write(f'[jobs.a]\nschedule = "@once +1ms"\nrun = "{wait}"\n')
    once = machine.start("--once")
    once.until_logged("attempt started")
    once.send_signal(signal.SIGHUP)
    assert once.ended() == 0
    assert [row["state"] for row in machine.history()] == ["running"]
    (machine.directory / "go").touch()
    assert machine.chronex("run", "--once").returncode == 0
    assert [row["state"] for row in machine.history()] == ["completed"]


CHAIN = """
[jobs.first]
schedule = "@once +1ms"
run = ["true"]

[jobs.second]
after = ["first"]
run = ["true"]
wait_for = ["path:/"]

[jobs.third]
after = ["second"]
run = ["true"]
"""


def test_once_runs_what_follows_from_what_was_due(machine: Machine) -> None:
    machine.write(CHAIN)
    assert machine.chronex("apply").returncode == 0
    until(lambda: machine.chronex("run", "--once").returncode == 0 and machine.history(), "a run that was due")
    assert {row["job"]: row["state"] for row in machine.history()} == dict.fromkeys(
        ("first", "second", "third"), "completed"
    )


def test_once_leaves_what_waits_for_a_condition_and_says_so(machine: Machine) -> None:
    there = machine.directory / "there"
    machine.write(f'[jobs.a]\nschedule = "@once +1ms"\nrun = ["true"]\nwait_for = ["path:{there}"]\n')
    left = machine.chronex("run", "--once")
    assert left.returncode == 0
    assert "left for the next call job=a nominal=" in left.stderr
    assert f'reason="waits for path:{there}' in left.stderr
    there.mkdir()
    assert machine.chronex("run", "--once").returncode == 0
    assert [row["state"] for row in machine.history()] == ["completed"]


def test_once_leaves_what_comes_due_while_it_runs(machine: Machine) -> None:
    """Else a job of every second would keep it running for ever."""
    long = '[jobs.long]\nschedule = "@once +1ms"\nrun = "until test -e go; do sleep 0.05; done"\n'
    machine.write(long)
    once = machine.start("--once")
    once.until_logged("attempt started")
    machine.write(f'{long}[jobs.late]\nschedule = "@once +1ms"\nrun = ["true"]\n')
    assert machine.chronex("apply").returncode == 0
    (machine.directory / "go").touch()
    assert once.ended() == 0
    assert [row["job"] for row in machine.history()] == ["long"]
    assert machine.chronex("run", "--once").returncode == 0
    assert {row["job"]: row["state"] for row in machine.history()} == dict.fromkeys(("long", "late"), "completed")


def test_once_stops_what_is_canceled_while_it_runs(machine: Machine) -> None:
    machine.write('[jobs.a]\nschedule = "@once +1ms"\nrun = "sleep 1000"\n')
    once = machine.start("--once")
    once.until_logged("attempt started")
    assert machine.chronex("cancel", "a").returncode == 0
    assert once.ended() == 1
    assert [row["state"] for row in machine.history()] == ["canceled"]


def test_a_bad_job_file_changes_nothing(machine: Machine) -> None:
    machine.write('[jobs.a]\nschedule = "0 25 * * *"\nrun = ["true"]\n')
    for command in (("apply",), ("run", "--headless")):
        done = machine.chronex(*command)
        assert done.returncode == 2
        assert "chronex.toml:2:15: hour: value 25 out of range [0, 23]" in done.stderr
    assert not (machine.directory / "store").exists()


def test_a_job_file_that_was_named_must_be_there(machine: Machine) -> None:
    done = machine.chronex("run", "--headless", "--once", CHRONEX_CONFIG="/nowhere/chronex.toml")
    assert done.returncode == 2
    assert "cannot read /nowhere/chronex.toml: no such file or directory; chronex init writes" in done.stderr
    assert not (machine.directory / "store").exists()


def test_without_a_job_file_it_is_said_where_one_was_looked_for(machine: Machine) -> None:
    done = machine.chronex("apply", XDG_CONFIG_HOME="/nowhere")
    assert done.returncode == 2
    assert "neither ./chronex.toml nor /nowhere/chronex/chronex.toml is there; chronex init writes" in done.stderr
    done = machine.chronex("run", "--headless", "--once", XDG_CONFIG_HOME="/nowhere")
    assert done.returncode == 0
    assert "no job file looked_for=/nowhere/chronex/chronex.toml" in done.stderr


def test_a_store_that_is_a_file_is_bad_input(machine: Machine) -> None:
    machine.write('[jobs.a]\nschedule = "@daily"\nrun = ["true"]\n')
    (machine.directory / "store").write_text("")
    for command in (("run", "--headless", "--once"), ("apply",), ("list",)):
        done = machine.chronex(*command)
        assert (done.returncode, "is not a directory; name the directory of the store" in done.stderr) == (2, True)
    (machine.directory / "store").unlink()


def test_looking_at_no_store_is_a_sentence_and_makes_none(machine: Machine) -> None:
    for command in (("list",), ("history",)):
        done = machine.chronex(*command)
        assert done.returncode == 2
        assert "no store at" in done.stderr
    assert not (machine.directory / "store").exists()
