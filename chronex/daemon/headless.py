"""`chronex run`: opens the store, builds the daemon, and runs it until a signal or its foreground stops it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeVar

from chronex.daemon.early_hangup import ignore_hangup
from chronex.daemon.log_handlers import log_event
from chronex.daemon.loop import Daemon
from chronex.daemon.maintenance import add_maintenance
from chronex.daemon.metrics_server import serve_metrics
from chronex.daemon.once import OnceEnds
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.daemon.registration import node_at, workplace_on
from chronex.daemon.reload import JobFileSource, Reloader, file_source
from chronex.daemon.sign_of_life import READY, STARTS_SLOWLY, ServiceNotify
from chronex.daemon.store_writes import FULL_PAUSE_S
from chronex.engine.engine import Engine
from chronex.engine.update import Policy, apply_jobs
from chronex.engine.update.diff import of_no_trigger_file
from chronex.errors import ChronexError, PruneError, StoreAwayError, StoreFullError
from chronex.jobfile import JobFileError, SchedulerSettings
from chronex.keeper.keepers import UNPACKED_ANEW, Keepers
from chronex.model.event import Event
from chronex.model.groups import CatchUpPace, GroupSettings
from chronex.model.job import Job
from chronex.model.policies import StopMode
from chronex.run import LogDirectory, RunContext
from chronex.storage.journal import append
from chronex.storage.records import Reading
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.directory_checks import DATA_FILE
from chronex_store.lmdb_store import LmdbStore
from chronex_store.opening import OpenedStore, StoreLocation, open_postgres
from chronex_store.postgres.pg_address import PostgresAddress

if TYPE_CHECKING:
    from chronex_store.postgres.pg_store import PostgresStore

log = logging.getLogger(__name__)
T = TypeVar("T")

# A full pool needs descriptors: three or four for each command that runs, and some for the daemon itself.
_DESCRIPTORS_EACH = 4
_DESCRIPTORS_OF_DAEMON = 256


# Who asks for what is due now to be run asks for all of it.
ALL_AT_ONCE = CatchUpPace(spacing_ms=0, share=1.0)


def raise_descriptor_limit(slots: int) -> None:
    """Raise our own limit as far as `slots` ask for and the system allows, and say where that is not far enough.

    Commands inherit it, so it is left alone where it is enough: programs that were written for 1,024 descriptors
    find them, unless the user asks for a pool of some two hundred and more.
    """
    needed = slots * _DESCRIPTORS_EACH + _DESCRIPTORS_OF_DAEMON
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= needed:
        return
    allowed = needed if hard in (resource.RLIM_INFINITY, -1) else min(needed, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        problem = f"max_concurrent_jobs = {slots} may need {needed} open files, and the system allows {allowed}"
        fields = {"told": f"{problem}; raise it with: ulimit -n {needed}"}
        log_event(log, "few descriptors", fields, logging.WARNING)


# How soon a database that is not there at the start is asked again.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
# A managed database fails over within two minutes.
_LONGEST_WAIT_MS = 180_000
# A one-file program unpacks itself first, on a machine that may be busy.
_VERSION_WITHIN_S = 30.0
Stop = Callable[[StopMode | None], None]


class Foreground(Protocol):
    """What has the terminal while the daemon works: the dashboard, in a process of its own.

    Whatever becomes of it, the daemon goes on. It may ask the daemon to stop, and it goes when the daemon does.
    """

    def begin(self, stop: Stop) -> None:
        """The daemon works. `stop` may be called from any thread; None stops it as the settings say."""

    def end(self) -> None:
        """The daemon stops: give the terminal back. It may be called more than once."""


def run_headless(
    location: StoreLocation,
    jobs: Iterable[Job] | None,
    settings: SchedulerSettings,
    *,
    once: bool,
    seconds: float | None,
    file: JobFileSource | None = None,
    foreground: Foreground | None = None,
    groups: tuple[GroupSettings, ...] | None = None,
) -> int:
    """Run until stopped; StoreInUseError when another daemon holds the store. A `file` that changes is read again.

    0 when it was stopped in good order; 1 when something could not be recorded, and with `once` when a run did not
    succeed. A `foreground` begins and ends with it.
    """
    is_service = not once and seconds is None and foreground is None
    with _open_to_work(location, waits=is_service) as store:
        if isinstance(location, PostgresAddress):
            _log_left_to_apply(jobs)
            jobs, file = None, None
        if jobs is not None:
            _when_there_is_space(lambda: _apply_at_start(store, jobs, settings, file, groups), waits=is_service)
        raise_descriptor_limit(settings.max_concurrent_jobs)
        daemon = _build_daemon(store, location, settings)
        ends = OnceEnds()
        if once:
            daemon.executor.on_end = ends.note
            daemon.engine.pace = ALL_AT_ONCE
        else:
            add_maintenance(daemon, daemon.executor.run_context.logs, settings)
        gc.freeze()  # what is loaded stays: no collection need walk through it again
        try:
            if once:
                asyncio.run(_run_once(daemon, settings, seconds))
            else:
                asyncio.run(_run(daemon, settings, file, seconds=seconds, foreground=foreground))
        finally:
            if daemon.must_restart and foreground is None:
                ignore_hangup()
            if foreground is not None:
                foreground.end()
        has_bad_end = once and store.view(lambda tx: ends.any_failed(Reading(tx)))
        if once and not isinstance(location, PostgresAddress):  # there others may take it up
            has_bad_end |= store.view(lambda tx: ends.any_left(Reading(tx)))
        code = 1 if daemon.has_failed or has_bad_end else 0
    _detach_broken_stderr()
    if daemon.must_restart:
        # What is installed by now takes this process over.
        os.execve(sys.executable, _same_command(), {**os.environ, **UNPACKED_ANEW})  # noqa: S606
    return code


def _apply_at_start(
    store: OpenedStore,
    jobs: Iterable[Job],
    settings: SchedulerSettings,
    file: JobFileSource | None,
    groups: tuple[GroupSettings, ...] | None,
) -> None:
    """A file that has lost most of its jobs keeps no scheduler from running, and takes no job away: that is said, and
    the jobs stay as they were."""
    owner = of_no_trigger_file if file is None else file_source(file.path)._replace(may_prune=False, groups=groups)
    policy = Policy(settings.update_policy)
    try:
        apply_jobs(store, jobs, store.now(), actor="run", policy=policy, owns=owner)
    except PruneError as error:
        data = {"file": error.source, "because": "start", "error": str(error)}
        log_event(log, "ConfigurationRejected", data, logging.WARNING)
        event = Event(name="ConfigurationRejected", at_ms=store.now(), data=dict(data))
        store.update(lambda tx: append(tx, event))


@contextlib.contextmanager
def _open_to_work(location: StoreLocation, *, waits: bool) -> Iterator[OpenedStore]:
    """One daemon has a directory to itself; a database is there for several."""
    if isinstance(location, PostgresAddress):
        with _open_when_there(location) if waits else open_postgres(location) as shared:
            shared.longest_wait_ms = _LONGEST_WAIT_MS
            yield shared
        return
    if not (location / DATA_FILE).exists():
        # A first run makes its store, with the right modes, before it locks it.
        _when_there_is_space(lambda: LmdbStore.open(location).close(), waits=waits)
    with (
        _when_there_is_space(lambda: acquire_daemon_lock(location), waits=waits) as lock,
        _when_there_is_space(
            lambda: LmdbStore.open(location, verify=lock.was_abandoned, held=lock), waits=waits
        ) as store,
    ):
        yield store


def _when_there_is_space(begin: Callable[[], T], *, waits: bool) -> T:
    """A disk that is full is waited for, as by a daemon that runs: nobody may be there to start another one."""
    is_told = False
    while True:
        try:
            return begin()
        except StoreFullError as error:
            if not waits:
                raise
            if not is_told:
                fields = {"so": "no runs start until there is free space; it is waited for", "reason": str(error)}
                log_event(log, "the store takes nothing", fields, logging.WARNING)
            is_told = True
        ServiceNotify(os.environ).send(STARTS_SLOWLY)
        time.sleep(FULL_PAUSE_S)


def _open_when_there(address: PostgresAddress) -> PostgresStore:
    """A machine may be up before its database is: that is waited for, as for one that goes away later."""
    manager, chance = ServiceNotify(os.environ), Random()  # noqa: S311  it spreads load, it guards nothing
    said, pause_s = "", _FIRST_PAUSE_S
    while True:
        try:
            return open_postgres(address)
        except StoreAwayError as error:
            if str(error) != said:
                said = str(error)
                fields = {"so": "no runs start until it answers; it is waited for", "reason": said}
                log_event(log, "the store does not answer", fields, logging.WARNING)
        manager.send(STARTS_SLOWLY)
        time.sleep(chance.uniform(pause_s / 2, pause_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _log_left_to_apply(jobs: Iterable[Job] | None) -> None:
    """Two machines with two versions of a file would take each other's jobs away at every start."""
    if jobs is not None:
        fields = {"so": "its settings count here, its jobs come with: chronex apply"}
        log_event(log, "the store is shared", fields)


def _same_command() -> list[str]:
    """As this process was started; a frozen program is its own interpreter."""
    return [sys.executable, *sys.argv[1:]] if getattr(sys, "frozen", False) else list(sys.orig_argv)


def _build_daemon(store: OpenedStore, location: StoreLocation, settings: SchedulerSettings) -> Daemon:
    """A new node on the store."""
    place = workplace_on(store, location)
    node = node_at(place, settings)
    logs = LogDirectory(place.state / "logs")
    run_context = RunContext.of_this_process(logs, place.clock, environment={"CHRONEX_STORE": place.named})
    engine = Engine(store, node.id, settings.max_concurrent_jobs)
    keepers = Keepers(place.state.resolve(), logs.path.resolve(), node.id, starts_at_once=True)
    return Daemon(store, engine, run_context, node, settings, keepers=keepers)


# One press of Ctrl-C reaches a one-file program twice: from the terminal, and from its starter, which passes it on.
_SAME_KEYPRESS_MS = 100


def _detach_broken_stderr() -> None:
    """Standard error has no reader any more: Python would exit with 120 because it cannot flush the last line."""
    try:
        sys.stderr.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def _stop_on_signals(daemon: Daemon, seconds: float | None) -> Stop:
    """SIGTERM, Ctrl-C and the end of `seconds` stop the daemon; what does, so that others can too.

    A second signal is for whoever has thought better of it: what `chronex stop` asks for anew, else the end at once.
    """
    loop = asyncio.get_running_loop()
    asked_ms: int | None = None

    def go_on() -> None:
        nonlocal asked_ms
        asked_ms = None

    def leave() -> None:
        """At once: what is recorded can be taken up by the next daemon, so that loses nothing."""
        if not daemon.registration.was_just_asked:
            os._exit(1)

    def stop(mode: StopMode | None = None) -> None:
        nonlocal asked_ms
        now = daemon.clock.monotonic_ms()
        if asked_ms is None:
            asked_ms = now
            daemon.stop_as_asked(on_refused=go_on) if mode is None else daemon.stop(mode)
            return
        is_another = now - asked_ms > _SAME_KEYPRESS_MS
        daemon.stop_as_asked(on_refused=go_on, on_nothing=leave if is_another else lambda: None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if seconds is not None:
        loop.call_later(seconds, daemon.stop)
    return stop


async def _run_once(daemon: Daemon, settings: SchedulerSettings, seconds: float | None) -> None:
    """What is due now, and nothing that a daemon does beside: the next one cleans up, and hands notices over."""
    stop = _stop_on_signals(daemon, seconds)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stop, None)  # its terminal is closed
    async with _spans_of(daemon, settings):
        await daemon.run(once=True)


async def _run(
    daemon: Daemon,
    settings: SchedulerSettings,
    file: JobFileSource | None,
    *,
    seconds: float | None,
    foreground: Foreground | None,
) -> None:
    loop, stop = asyncio.get_running_loop(), _stop_on_signals(daemon, seconds)
    daemon.problem_of_successor = partial(_problem_of_successor, file)
    _notify_service_manager(daemon)
    if foreground is not None:
        loop.add_signal_handler(signal.SIGHUP, stop, None)  # its terminal is closed
        _begin_foreground(daemon, foreground, stop)
    if file is not None:
        Reloader(daemon, file).attach()
    elif foreground is None:
        loop.add_signal_handler(signal.SIGHUP, partial(_say_no_file, daemon))
    async with serve_metrics(daemon, settings), _spans_of(daemon, settings):
        await daemon.run()


@contextlib.asynccontextmanager
async def _spans_of(daemon: Daemon, settings: SchedulerSettings) -> AsyncIterator[None]:
    """Tell a collector of every run, where one is set."""
    if settings.otlp is None:
        yield
        return
    from chronex.daemon.otlp_export import export_spans

    async with export_spans(daemon, settings.otlp):
        yield


def _say_no_file(daemon: Daemon) -> None:
    """A signal that asks for a job file must not end a daemon that has none."""
    problem = "this daemon has no job file of its own; bring jobs in with: chronex apply"
    daemon.journal("ConfigurationRejected", {"because": "SIGHUP", "error": problem})


def _begin_foreground(daemon: Daemon, foreground: Foreground, stop: Stop) -> None:
    """It begins now, and ends when the daemon begins to stop, whoever has asked for that."""
    loop, on_stopping = asyncio.get_running_loop(), daemon.on_stopping

    def stopping() -> None:
        on_stopping()
        loop.run_in_executor(None, foreground.end)

    def stop_from_thread(mode: StopMode | None) -> None:
        with contextlib.suppress(RuntimeError):  # the daemon has ended meanwhile
            loop.call_soon_threadsafe(stop, mode)

    daemon.on_stopping = stopping
    foreground.begin(stop_from_thread)


async def _problem_of_successor(file: JobFileSource | None) -> str:
    """Why a new daemon would not begin in our place; empty where nothing is known that would keep it from that."""
    problem = "" if file is None else _problem_of_file(file)
    return problem or await asyncio.get_running_loop().run_in_executor(None, _problem_of_program)


def _problem_of_program() -> str:
    """What is installed by now may be half of an upgrade, or gone: it is asked for its version."""
    command = _same_command()
    program = command[: len(command) - len(sys.argv[1:])]
    try:
        done = subprocess.run(  # noqa: S603
            [*program, "--version"],
            executable=sys.executable,
            env={**os.environ, **UNPACKED_ANEW},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_WITHIN_S,
            check=False,
        )
    except OSError as error:
        return f"{sys.executable}: {(error.strerror or str(error)).lower()}"
    except subprocess.TimeoutExpired:
        return f"{shlex.join(program)} --version has not ended within {_VERSION_WITHIN_S:g} s"
    if done.returncode == 0:
        return ""
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"{shlex.join(program)} --version ended with exit code {done.returncode}: {last}"


def _problem_of_file(file: JobFileSource) -> str:
    """The first mistake of the job file; empty where it has none."""
    try:
        file.load()
    except JobFileError as error:
        return str(error.problems[0])
    except ChronexError as error:
        return str(error)
    return ""


def _notify_service_manager(daemon: Daemon) -> None:
    notify = ServiceNotify(os.environ)
    daemon.on_begun = lambda: notify.send(READY)

    def on_stopping() -> None:
        """One that is replaced does not stop: the manager would end its successor for having taken too long."""
        notify.send_alive(is_stopping=daemon.is_stopping and not daemon.must_restart)

    daemon.on_stopping = on_stopping
    if notify.alive_every_s:

        async def alive() -> None:
            on_stopping()

        daemon.periodic.add(PeriodicTask("sign of life", notify.alive_every_s, alive, to_the_end=True))
