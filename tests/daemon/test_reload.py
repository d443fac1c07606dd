"""A daemon whose job file changes under it: the whole new configuration or the old one, and the journal says which."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.reload import _NEED_A_RESTART, JobFileSource, Reloader
from chronex.jobfile import JobFile, SchedulerSettings, read_job_file
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading
from chronex_store import LmdbStore, MemoryStore
from chronex_store.daemon_lock import is_daemon_alive
from tests.cli.conftest import Chronex
from tests.daemon.machine import LoggedDaemon, Machine
from tests.kit.waits import DEADLINE_S, until, until_async

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
    machine.write(QUIET.format("a") + QUIET.format("b"))
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("ConfigurationApplied")
    assert jobs(machine) == ["a", "b"]
    assert daemon.poll() is None


def test_a_hup_that_comes_before_the_daemon_can_listen_is_answered_later(machine: Machine) -> None:
    """A log rotation, or `chronex reload`, beside the start: it would end a process that does not listen yet."""
    machine.write(QUIET.format("a"))
    assert machine.chronex("apply").returncode == 0
    with LmdbStore.open(machine.store) as store:

        def meanwhile(_tx: Transaction) -> LoggedDaemon:
            daemon = machine.start()
            until(lambda: is_daemon_alive(machine.store), "a daemon that waits for the store")
            daemon.send_signal(signal.SIGHUP)
            return daemon

        daemon = store.update(meanwhile)
    daemon.until_logged("ConfigurationApplied")  # before or after SchedulerStarted, and only because it was asked for
    assert daemon.stopped() == 0


def test_a_hup_ends_no_daemon_that_is_replaced(machine: Machine) -> None:
    machine.write(QUIET.format("a"))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(machine.chronex, "restart")
        while not done.done():
            daemon.send_signal(signal.SIGHUP)
            time.sleep(0.005)
    assert "restarted in" in done.result().stdout, done.result().stderr
    assert daemon.stopped() == 0


WATCHED = "[scheduler]\nwatch = true\n"


def test_saving_is_not_applying(machine: Machine, chronex: Chronex) -> None:
    """With `watch` the same save is applied; the daemon that is told to reads the file with that key."""
    machine.write(QUIET.format("a"))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    store = str(machine.directory / "store")
    machine.write(QUIET.format("a") + QUIET.format("b"))
    chronex("trigger", "a", "--wait", "--store", store)  # takes the daemon's loop round
    assert jobs(machine) == ["a"]
    machine.write(WATCHED + QUIET.format("a") + QUIET.format("b"))
    done = chronex("reload", "--store", store)
    assert (done.code, done.out) == (0, "applied: 1 new, 1 unchanged\n")
    machine.write(WATCHED + QUIET.format("a") + QUIET.format("b") + QUIET.format("c"))
    until(lambda: jobs(machine) == ["a", "b", "c"], "the job of the saved file")


def test_reload_tells_what_is_wrong_and_the_old_jobs_go_on(machine: Machine, chronex: Chronex) -> None:
    machine.write(QUIET.format("a") + QUIET.format("b") + QUIET.format("c"))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    store = str(machine.directory / "store")
    for text, words in (("broken =", "chronex.toml:1:9: "), (QUIET.format("a"), "this would remove 2 of the 3 jobs")):
        machine.write(text)
        done = chronex("reload", "--store", store)
        assert (done.code, words in done.err) == (1, True), done.err
        assert jobs(machine) == ["a", "b", "c"]
    assert daemon.stopped() == 0
    done = chronex("reload", "--store", store)
    assert (done.code, "no daemon runs on this store" in done.err) == (1, True)


def test_a_file_that_was_rejected_is_told_until_it_is_put_right_or_applied(
    machine: Machine, chronex: Chronex
) -> None:
    """Whoever puts it right with `chronex apply` has told the daemon nothing, and `status` went on about it."""
    good = QUIET.format("a") + QUIET.format("b") + QUIET.format("c")
    machine.write(good)
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    store, file = str(machine.directory / "store"), str(machine.directory / "chronex.toml")

    def is_journaled() -> bool:
        return "the job file was rejected" in chronex("status", "--store", store).out

    for text in ("broken =", QUIET.format("a")):
        machine.write(text)
        chronex("reload", "--store", store)
        until(is_journaled, "the rejection to be told")
        if text == "broken =":
            machine.write(good)
        assert chronex("apply", file, "--prune", "--store", store).code == 0
        until(lambda: not is_journaled(), "the rejection to be over")
    assert jobs(machine) == ["a"]


def test_a_daemon_that_starts_with_a_file_that_lost_its_jobs_keeps_them(machine: Machine) -> None:
    machine.write(QUIET.format("a") + QUIET.format("b") + QUIET.format("c"))
    first = machine.start()
    first.until_logged("SchedulerStarted")
    assert first.stopped() == 0
    machine.write(WATCHED)
    daemon = machine.start()
    daemon.until_logged("this would remove all 3 jobs")
    daemon.until_logged("SchedulerStarted")
    assert jobs(machine) == ["a", "b", "c"]


def test_a_changed_file_is_noticed_by_itself_and_a_missing_one_changes_nothing(machine: Machine) -> None:
    machine.write(WATCHED + QUIET.format("a"))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    os.unlink(machine.directory / "chronex.toml")
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("ConfigurationRejected")
    machine.write(WATCHED + QUIET.format("a") + QUIET.format("b"))
    until(lambda: jobs(machine) == ["a", "b"], "the job of the changed file")


def test_an_empty_file_and_a_pipe_in_its_place_change_nothing(machine: Machine) -> None:
    machine.write(QUIET.format("a"))
    daemon = machine.start()
    daemon.until_logged("SchedulerStarted")
    machine.write("")
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("the file is empty; to remove all jobs run: chronex apply --prune")
    os.unlink(machine.directory / "chronex.toml")
    os.mkfifo(machine.directory / "chronex.toml")
    daemon.send_signal(signal.SIGHUP)
    daemon.until_logged("not a regular file")
    assert jobs(machine) == ["a"]
    assert daemon.stopped() == 0


async def test_a_reload_that_takes_long_is_seen_through(tmp_path: Path) -> None:
    """A large file on a slow disk: the look at the file was given up after 30 s, and the save was not applied at all."""
    path, begun, go_on, store = tmp_path / "chronex.toml", threading.Event(), threading.Event(), MemoryStore()
    path.write_text(QUIET.format("a"))

    def slowly() -> JobFile:
        begun.set()
        assert go_on.wait(DEADLINE_S)
        return read_job_file(path.read_text(), str(path), "UTC")

    async with EmbeddedEngine(store) as engine:
        assert engine._daemon is not None
        engine._daemon.executor.settings = SchedulerSettings(watch=True)
        reloader = Reloader(engine._daemon, JobFileSource(path, slowly))
        path.write_text(WATCHED + QUIET.format("a") + QUIET.format("b"))
        await reloader.check()  # it may still be being written
        given_up = asyncio.create_task(reloader.check())
        assert await asyncio.to_thread(begun.wait, DEADLINE_S)
        given_up.cancel()
        await asyncio.wait([given_up])
        go_on.set()
        await until_async(
            lambda: [job.id for job in store.view(lambda tx: Reading(tx).jobs())] == ["a", "b"], "the jobs"
        )


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
        "catch_up",
        "max_concurrent_jobs",
        "grace_ms",
        "history",
        "logs",
        "update_policy",
        "on_stop",
        "blackout",  # is stored with each job
        "smtp",
        "watch",
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
