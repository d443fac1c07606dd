"""A daemon whose job file changes under it: the whole new configuration or the old one, and the journal says which."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.engine.ledger import Reading
from chronex_store import LmdbStore
from tests.daemon.machine import Machine, until, until_told

QUIET = '[jobs.{}]\nschedule = "0 0 1 1 *"\nrun = ["true"]\n'


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    yield found
    for daemon in found.daemons:
        if daemon.poll() is None:
            daemon.kill()
        daemon.communicate()


def jobs(machine: Machine) -> list[str]:
    with LmdbStore.open(machine.directory / "store", create=False) as store:
        return store.view(lambda tx: [job.id for job in Reading(tx).jobs()])


def test_hup_applies_the_new_file_and_a_bad_one_leaves_the_old(machine: Machine) -> None:
    machine.write(QUIET.format("a"))
    daemon = machine.start()
    until_told(daemon, "SchedulerStarted")
    machine.write(QUIET.format("b") + '[jobs.c]\nschedule = "0 25 * * *"\nrun = ["true"]\n')
    daemon.send_signal(signal.SIGHUP)
    until_told(daemon, "ConfigurationRejected")
    assert jobs(machine) == ["a"]
    machine.write(QUIET.format("b"))
    daemon.send_signal(signal.SIGHUP)
    until_told(daemon, "ConfigurationApplied")
    assert jobs(machine) == ["b"]
    assert daemon.poll() is None


def test_a_changed_file_is_noticed_by_itself_and_a_missing_one_changes_nothing(machine: Machine) -> None:
    machine.write(QUIET.format("a"))
    daemon = machine.start()
    until_told(daemon, "SchedulerStarted")
    os.unlink(machine.directory / "chronex.toml")
    daemon.send_signal(signal.SIGHUP)
    until_told(daemon, "ConfigurationRejected")
    machine.write(QUIET.format("b"))
    until(lambda: jobs(machine) == ["b"], seconds=20)
