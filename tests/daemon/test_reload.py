"""A daemon whose job file changes under it: the whole new configuration or the old one, and the journal says which."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.daemon.reload import _NEED_A_RESTART
from chronex.jobfile import SchedulerSettings
from chronex.storage.records import Reading
from chronex_store import LmdbStore
from tests.daemon.machine import Machine
from tests.kit.waits import until

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
    daemon.until_logged("SchedulerStarted")
    machine.write(QUIET.format("b") + '[jobs.c]\nschedule = "0 25 * * *"\nrun = ["true"]\n')
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("ConfigurationRejected")
    assert jobs(machine) == ["a"]
    machine.write(QUIET.format("b"))
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("ConfigurationApplied")
    assert jobs(machine) == ["b"]
    assert daemon.poll() is None


def test_a_changed_file_is_noticed_by_itself_and_a_missing_one_changes_nothing(machine: Machine) -> None:
    machine.write(QUIET.format("a"))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    os.unlink(machine.directory / "chronex.toml")
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("ConfigurationRejected")
    machine.write(QUIET.format("b"))
    until(lambda: jobs(machine) == ["b"], "the job of the changed file")


def test_an_empty_file_and_a_pipe_in_its_place_change_nothing(machine: Machine) -> None:
    machine.write(QUIET.format("a"))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    machine.write("")
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("the file is empty; to remove all jobs run: chronex apply")
    os.unlink(machine.directory / "chronex.toml")
    os.mkfifo(machine.directory / "chronex.toml")
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("not a regular file")
    assert jobs(machine) == ["a"]
    assert daemon.stopped() == 0


def test_every_setting_takes_effect_or_is_named(machine: Machine) -> None:
    machine.write(QUIET.format("a"))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    machine.write('[scheduler]\nreaper_interval = "2m"\n' + QUIET.format("a"))
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("restart_for=reaper_interval_ms")
    known = {*SchedulerSettings.__struct_fields__}
    assert known == {
        *_NEED_A_RESTART,
        "timezone",
        "max_concurrent_jobs",
        "grace_ms",
        "history",
        "logs",
        "update_policy",
        "on_stop",
        "blackout",  # is stored with each job
        "smtp",
    }


def test_the_update_policy_of_the_file_holds_for_the_file_that_is_read_again(machine: Machine) -> None:
    text = '[scheduler]\nupdate_policy = "graceful"\ntimezone = "UTC"\n[jobs.a]\nschedule = "0 {} 1 1 *"\nrun = ["true"]\n'
    machine.write(text.format(3))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    machine.write(text.format(5))
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("ConfigurationApplied")
    with LmdbStore.open(machine.directory / "store", create=False) as store:
        (waiting,) = store.view(lambda tx: Reading(tx).occurrences("a"))
        version = store.view(lambda tx: Reading(tx).job("a"))
    assert version is not None
    assert (waiting.version, version.version) == (1, 2)
    assert waiting.nominal_ms // 3_600_000 % 24 == 3, "the next run of the old schedule still happens"
