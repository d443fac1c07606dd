"""Signals at the real daemon: asked to stop, asked twice, stopped and continued, and with no reader of its log."""

from __future__ import annotations

import os
import signal
from functools import partial

from chronex.engine.commands import ask_to_stop
from chronex.engine.commands.actor import Actor
from chronex.model.event import Event
from chronex.storage import journal
from chronex.storage.records import Records
from chronex_store import LmdbStore
from tests.daemon.machine import EVERY_SECOND, LoggedDaemon, Machine
from tests.kit.waits import DEADLINE_S, until

QUICK = f'[jobs.quick]\n{EVERY_SECOND}run = ["true"]\n'
SLOW = f'[jobs.slow]\n{EVERY_SECOND}run = ": > runs; exec sleep 60"\n'


def events(machine: Machine) -> list[Event]:
    with LmdbStore.open(machine.directory / "store", create=False) as store:
        return [event for _, event in store.view(lambda tx: journal.tail(tx, limit=10_000))]


def started(machine: Machine) -> int:
    return sum(1 for event in events(machine) if event.name == "OccurrenceStarted")


def test_after_term_nothing_is_claimed_and_everything_is_recorded(machine: Machine) -> None:
    machine.write(QUICK + SLOW)
    daemon = machine.start()
    until((machine.directory / "runs").exists, "the file that the command makes")
    assert daemon.stopped() == 0
    names = [event.name for event in events(machine)]
    asked = names.index("SchedulerStopRequested")
    assert "OccurrenceStarted" not in names[asked:]
    assert "TaskRunStarted" not in names[asked:]
    assert names[-1] == "SchedulerStopped"
    assert {row["state"] for row in machine.history()} <= {"completed", "running", "skipped", "missed"}


def test_a_second_signal_ends_it_at_once_and_the_next_daemon_takes_up(machine: Machine) -> None:
    stubborn = "trap '' TERM INT; : > runs; while [ ! -e release ]; do sleep 0.05; done"
    machine.write(
        f'[scheduler]\ngrace_period = "10m"\non_stop = "cancel"\n[jobs.stubborn]\nschedule = "@once +1s"\nrun = "{stubborn}"\n'
    )
    for first, second, begun in (
        (signal.SIGTERM, signal.SIGINT, "attempt started"),
        (signal.SIGINT, signal.SIGINT, "attempt adopted"),
    ):
        daemon = machine.start()
        daemon.until_logged(begun)
        until((machine.directory / "runs").exists, "the file that the command makes")
        daemon.send_signal(first)
        daemon.until_logged("SchedulerStopRequested")
        assert daemon.poll() is None, "it waits for its command"
        until(partial(ended_by, daemon, second), "the end by a second signal, long before the grace of ten minutes")
        assert daemon.returncode == 1
    successor = machine.start()
    successor.until_logged("attempt adopted")
    (machine.directory / "release").touch()
    successor.until_logged("attempt ended")
    assert successor.stopped() == 0
    (row,) = machine.history()
    assert row["state"] == "canceled", "it was asked to end by the first signal, and did"


def test_who_waits_for_commands_can_be_asked_for_something_else(machine: Machine) -> None:
    """A drain that takes too long: whoever then asks to cancel, or to restart, has that done, and not the end at once."""
    machine.write(SLOW.replace("* * * * * *", "@once +1s"))
    daemon = machine.start()
    until((machine.directory / "runs").exists, "the file that the command makes")
    daemon.until_logged("attempt started")
    ask(daemon, machine, "--drain")
    assert machine.chronex("restart").stdout.startswith("restarted in ")
    daemon.until_logged("attempt adopted")
    ask(daemon, machine, "--drain")
    assert machine.chronex("stop", "--cancel").stdout == "stopped\n"
    assert daemon.ended() == 0
    assert [row["state"] for row in machine.history()] == ["canceled"]


def ask(daemon: LoggedDaemon, machine: Machine, how: str) -> None:
    """As `chronex stop` does, and without its wait: what runs here has a minute to go."""
    with LmdbStore.open(machine.store, create=False) as store:
        actor = Actor("somebody", "cli", "here")
        store.update(lambda tx: ask_to_stop(Records(tx, store.now()), daemon.pid, how.lstrip("-"), None, actor))
    daemon.send_signal(signal.SIGTERM)
    daemon.until_logged("SchedulerStopRequested")


def ended_by(daemon: LoggedDaemon, number: signal.Signals) -> bool:
    """Signals within 100 ms of the first count as one with it; so it is sent until it is heard as another."""
    if daemon.poll() is None:
        daemon.send_signal(number)
    return daemon.poll() is not None


def test_stopping_continuing_and_stray_signals_harm_nothing(machine: Machine) -> None:
    machine.write(QUICK)
    assert machine.chronex("apply").returncode == 0
    daemon = machine.start(quiet=True)
    until(lambda: started(machine) >= 1, "the first start")
    for number in (signal.SIGPIPE, signal.SIGTSTP, signal.SIGCONT, signal.SIGSTOP, signal.SIGCONT):
        daemon.send_signal(number)
    before = started(machine)
    until(lambda: started(machine) >= before + 2, "two more starts")
    assert daemon.stopped() == 0


def test_a_daemon_whose_listener_has_gone_goes_on(machine: Machine) -> None:
    """`chronex run --headless 2>&1 | head`: the pipe of its log is broken, its jobs are not."""
    machine.write(QUICK)
    daemon = machine.start()
    daemon.until_logged("attempt ended")
    assert daemon.stderr is not None
    daemon.stderr.close()
    before = started(machine)
    until(lambda: started(machine) >= before + 2, "two more starts")
    assert daemon.stopped() == 0


def test_ctrl_c_before_the_program_is_loaded_shows_no_traceback(machine: Machine) -> None:
    machine.write(QUICK)
    (machine.directory / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    machine.env["PYTHONPATH"] = f"{machine.directory}{os.pathsep}{machine.env['PYTHONPATH']}"
    daemon = machine.start(starts_whole=True)
    _, said = daemon.communicate(timeout=DEADLINE_S)
    assert (daemon.returncode, said) == (130, "")
