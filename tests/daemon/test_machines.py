"""Real daemons on one PostgreSQL: each as a machine of its own, with its own state and its own keeper."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chronex.model.states import OccurrenceState
from chronex.storage import journal
from chronex.storage.records import EVERYTHING, Reading
from chronex_store.postgres.pg_store import PostgresStore
from tests.daemon.machine import Machine
from tests.kit.postgres import WHY_MISSING, PostgresServer, begin_server, end_server, find_programs
from tests.kit.processes import end_all
from tests.kit.waits import until
from tests.verify.assertion import assert_verified


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that the test may stop."""
    if find_programs() is None:
        pytest.skip(WHY_MISSING)
    found = begin_server()
    yield found
    end_server(found)


class Machines:
    """Machines that share a store and a directory into which their commands write what they did."""

    def __init__(self, url: str, directory: Path, count: int) -> None:
        self.url = url
        self.witness = directory / "witness"
        self.all = [self._machine(directory / f"host-{number}") for number in range(count)]

    def _machine(self, directory: Path) -> Machine:
        directory.mkdir()
        machine = Machine(directory)
        machine.env |= {
            "CHRONEX_STORE": self.url,
            "CHRONEX_STATE_DIR": str(directory / "state"),
            "WITNESS": str(self.witness),
        }
        return machine

    def apply(self, text: str) -> None:
        machine = self.all[0]
        machine.write(text.replace("WITNESS", str(self.witness)))
        done = machine.chronex("apply")
        assert done.returncode == 0, done.stderr
        (machine.directory / "chronex.toml").unlink()

    def lines(self) -> list[str]:
        return self.witness.read_text().splitlines() if self.witness.exists() else []

    @property
    def store(self) -> PostgresStore:
        return PostgresStore.open(self.url, create=False)


@contextmanager
def machines(url: str, directory: Path, count: int) -> Iterator[Machines]:
    """However the test ends, no daemon, keeper or command is left; and the journal holds the formal model."""
    made = Machines(url, directory, count)
    try:
        yield made
    finally:
        for machine in made.all:
            for daemon in machine.daemons:
                daemon.kill()
                daemon.wait()
                if daemon.stderr is not None:
                    daemon.stderr.close()
            end_all(machine.directory / "state")
    with made.store as store:
        assert_verified(store)


TICKS = """
[jobs.tick]
schedule = "* * * * * *"
run = "echo $CHRONEX_SCHEDULED_TIME >> WITNESS"
recovery = "execute_all"
overlap = "queue"
"""


def test_two_machines_run_every_instant_once_also_when_the_database_is_restarted(
    server: PostgresServer, tmp_path: Path
) -> None:
    with machines(server.url(), tmp_path, 2) as found:
        found.apply(TICKS)
        daemons = [machine.start(quiet=True) for machine in found.all]
        until(lambda: len(found.lines()) >= 2, "runs before the outage")
        server.stop("immediate")
        server.start()
        before = len(found.lines())
        until(lambda: len(found.lines()) >= before + 2, "runs after the outage")
        assert [daemon.poll() for daemon in daemons] == [None, None], "an outage ends no daemon"
        for daemon in daemons:
            daemon.send_signal(signal.SIGTERM)
        assert [daemon.ended() for daemon in daemons] == [0, 0]
        doubled = [line for line, count in Counter(found.lines()).items() if count > 1]
        assert doubled == []
        with found.store as store:
            occurrences = store.view(lambda tx: Reading(tx).occurrences("tick", limit=EVERYTHING))
        nominal = sorted(one.nominal_ms for one in occurrences)
        assert nominal == list(range(nominal[0], nominal[-1] + 1, 1_000)), "an instant has no outcome"
        assert {one.state for one in occurrences} <= {
            OccurrenceState.COMPLETED,
            OccurrenceState.PENDING,
            OccurrenceState.QUEUED,
            OccurrenceState.RUNNING,  # a daemon that stops leaves what runs to its keeper
        }


SLOW = """
[jobs.slow]
schedule = "@once +1s"
run = "echo began $$ >> WITNESS; while [ ! -e WITNESS.release ]; do sleep 0.05; done; echo ended >> WITNESS"
"""


def test_a_daemon_that_was_killed_finds_its_command_again_at_once(server: PostgresServer, tmp_path: Path) -> None:
    """On its own machine nobody waits for a lease: the process is there to be seen."""
    with machines(server.url(), tmp_path, 1) as found:
        found.apply(SLOW)
        (machine,) = found.all
        daemon = machine.start()
        daemon.until_logged("attempt started")
        until(found.lines, "the command")
        daemon.kill()
        successor = machine.start()
        successor.until_logged("attempt adopted")
        Path(f"{found.witness}.release").touch()
        successor.until_logged("attempt ended")
        assert successor.stopped() == 0
        assert [line.split()[0] for line in found.lines()] == ["began", "ended"]


def test_a_command_gets_no_password(server: PostgresServer, tmp_path: Path) -> None:
    with machines(server.url() + "&password=s3cret", tmp_path, 1) as found:
        found.apply('[jobs.show]\nschedule = "@once +1s"\nrun = "env > WITNESS.env; echo done >> WITNESS"\n')
        daemon = found.all[0].start()
        daemon.until_logged("attempt ended")
        assert daemon.stopped() == 0
        seen = Path(f"{found.witness}.env").read_text()
        assert "CHRONEX_STORE=postgresql://" in seen
        assert "s3cret" not in seen


@pytest.mark.torture
def test_a_frozen_daemon_is_given_up_and_comes_back_under_another_name(
    server: PostgresServer, tmp_path: Path
) -> None:
    """SIGSTOP for longer than its lease while a command runs: the command goes on, and is adopted by its own machine."""
    with machines(server.url(), tmp_path, 2) as found:
        found.apply(SLOW)
        first = found.all[0].start()
        first.until_logged("attempt started")
        second = found.all[1].start(quiet=True)
        first.send_signal(signal.SIGSTOP)
        with found.store as store:
            until(lambda: "NodeLost" in _names(store), "that it is given up", deadline=60)
            first.send_signal(signal.SIGCONT)
            first.until_logged("attempt adopted")
            Path(f"{found.witness}.release").touch()
            first.until_logged("attempt ended")
        assert [line.split()[0] for line in found.lines()] == ["began", "ended"]
        assert (first.stopped(), second.stopped()) == (0, 0)


def _names(store: PostgresStore) -> set[str]:
    return {event.name for _, event in store.view(lambda tx: journal.tail(tx, limit=EVERYTHING))}


# "taken over" and "node registered" are passed by every daemon that begins.
KILLED_AT = [
    "tick decided", "shared update written:6", "shared update committed:6", "held told", "before opening",
    "opening asked", "end told", "end recorded", "node registered", "taken over",
]  # fmt: skip


@pytest.mark.torture
@pytest.mark.parametrize("point", KILLED_AT)
def test_a_daemon_that_is_killed_anywhere_loses_and_doubles_nothing(
    point: str, server: PostgresServer, tmp_path: Path
) -> None:
    """Two machines; one is killed at a point on the way of a run, again and again, and begins anew each time."""
    with machines(server.url(), tmp_path, 2) as found:
        found.apply(TICKS)
        steady = found.all[1].start(quiet=True)
        for _ in range(4):
            killed = found.all[0].start(quiet=True, fail_at=point)
            until(lambda killed=killed: killed.poll() is not None, f"its end at {point}")  # type: ignore[misc]
        last = found.all[0].start()
        last.until_logged("SchedulerStarted")
        before = len(found.lines())
        until(lambda: len(found.lines()) >= before + 3, "runs after it")
        for daemon in (steady, last):
            daemon.send_signal(signal.SIGTERM)
        assert (steady.ended(), last.ended()) == (0, 0)
        assert [line for line, count in Counter(found.lines()).items() if count > 1] == []
