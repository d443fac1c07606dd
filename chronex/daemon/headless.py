"""A full pool needs descriptors: three for each command that runs, some for ourselves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from chronex.clock import wall_ms
from chronex.daemon.engine_thread import EngineThread, run_beside
from chronex.daemon.executor import Tell
from chronex.daemon.loop import Daemon
from chronex.daemon.metrics import serve_metrics
from chronex.daemon.node import this_node
from chronex.daemon.notify import Notifier
from chronex.daemon.reload import Reloader, Reread
from chronex.daemon.retention import Upkeep, room_chore
from chronex.engine.engine import Engine
from chronex.engine.update import apply_jobs
from chronex.jobfile import SchedulerSettings
from chronex.model.records import Attempt, Job
from chronex.model.states import AttemptState
from chronex.run import LogDirectory, Surroundings
from chronex_store import LmdbStore
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.directory_checks import DATA_FILE

_EACH, _OURS = 4, 256


def make_room(places: int, tell: Callable[[str, dict[str, Any]], None]) -> None:
    """Raise our own limit as far as `places` ask for and the system allows, and say where that is not far enough.

    Commands inherit it, so it is left alone where it is enough: programs that were written for 1,024 descriptors
    find them, unless the user asks for a pool of some two hundred and more.
    """
    needed = places * _EACH + _OURS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= needed:
        return
    allowed = needed if hard in (resource.RLIM_INFINITY, -1) else min(needed, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        told = f"max_concurrent_jobs = {places} may need {needed} open files, and the system allows {allowed}"
        tell("few descriptors", {"told": f"{told}; raise it with: ulimit -n {needed}"})


Beside = Callable[[LmdbStore, EngineThread], int]


def run_headless(
    store_path: Path,
    jobs: Iterable[Job] | None,
    settings: SchedulerSettings,
    tell: Tell,
    *,
    once: bool,
    seconds: float | None,
    file: Reread | None = None,
    beside: Beside | None = None,
) -> int:
    """Run until stopped; StoreInUseError when another daemon holds the store. A `file` that changes is read again.

    0 when it was stopped in good order; 1 when something could not be recorded, and with `once` when a run did not
    succeed. With something `beside` it, the engine has a thread of its own, and ends when that has ended.
    """
    if not (store_path / DATA_FILE).exists():
        LmdbStore.open(store_path).close()  # a first run makes its store, with the right modes, before it locks it
    with acquire_daemon_lock(store_path) as lock, LmdbStore.open(store_path, verify=lock.was_abandoned) as store:
        if jobs is not None:
            apply_jobs(store, jobs, wall_ms(), actor="run")
        make_room(settings.max_concurrent_jobs, tell)
        node = this_node(settings.max_concurrent_jobs)
        logs = LogDirectory(store_path / "logs")
        environment = {"CHRONEX_STORE": str(store_path.resolve())}
        surroundings = Surroundings.of_this_process(logs, environment=environment)
        engine = Engine(store, node.id, settings.max_concurrent_jobs)
        ends = _Ends()
        daemon = Daemon(store, engine, surroundings, node, settings, tell)
        if once:
            daemon.attempts.on_end = ends.note
        daemon.chores.add(room_chore(store, daemon.journal))
        daemon.chores.add(Notifier(store, surroundings).chore())
        upkeep = Upkeep(store, logs, settings, daemon.clock)
        daemon.chores.add(upkeep.chore())
        daemon.settings_users.append(upkeep.use)
        gc.freeze()  # what is loaded stays: no collection need walk through it again
        if beside is not None:
            return run_beside(daemon, settings, file, lambda engine: beside(store, engine))
        asyncio.run(_run(daemon, settings, file, once=once, seconds=seconds))
    _let_go_of_a_broken_log()
    return 1 if daemon.has_failed or (once and ends.any_failed) else 0


class _Ends:
    """How the last attempt of each run has ended."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, int, str], AttemptState] = {}

    def note(self, attempt: Attempt, state: AttemptState) -> None:
        self._states[attempt.job, attempt.nominal_ms, attempt.task] = state

    @property
    def any_failed(self) -> bool:
        return any(state is not AttemptState.SUCCESS for state in self._states.values())


# One press of Ctrl-C reaches a one-file program twice: from the terminal, and from its starter, which passes it on.
_SAME_WISH_MS = 100


def _let_go_of_a_broken_log() -> None:
    """Nobody reads our standard error any more; Python would end with 120 because its last line cannot be said."""
    try:
        sys.stderr.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


async def _run(
    daemon: Daemon, settings: SchedulerSettings, file: Reread | None, *, once: bool, seconds: float | None
) -> None:
    loop = asyncio.get_running_loop()
    asked_ms: int | None = None

    def stop() -> None:
        nonlocal asked_ms
        now = daemon.clock.monotonic_ms()
        if asked_ms is None:
            asked_ms = now
            daemon.stop()
        elif now - asked_ms > _SAME_WISH_MS:
            # What is recorded can be taken up by the next daemon: leaving at once loses nothing.
            os._exit(1)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if file is not None:
        Reloader(daemon, file).attach()
    if seconds is not None:
        loop.call_later(seconds, daemon.stop)
    async with serve_metrics(daemon, settings):
        await daemon.run(once=once)
