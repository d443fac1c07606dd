"""The job file read again, on SIGHUP, or when it was saved and `watch` is set: the whole new configuration, or the
old one."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from chronex.daemon.early_hangup import EarlyHangup
from chronex.daemon.loop import Daemon
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.engine.update import Change, Policy, UpdateOptions, apply_jobs
from chronex.engine.update.apply import refuse_if_stale
from chronex.engine.update.diff import plan_changes
from chronex.engine.update.sources import JobSource
from chronex.errors import ChronexError, StaleUpdateError
from chronex.jobfile import JobFile, JobFileError, SchedulerSettings
from chronex.model.reasons import TroubleCode
from chronex.storage.journal import head
from chronex.storage.records import Reading

CHECK_EVERY_S = 2.0
# What is set up once, when the daemon starts.
_NEED_A_RESTART = ("metrics", "metrics_public", "reaper_interval_ms", "labels", "heartbeat", "otlp")
Signature = tuple[int, int, int]


class JobFileSource(NamedTuple):
    """The job file, and how it is read: raises ChronexError, and then nothing is changed."""

    path: Path
    load: Callable[[], JobFile]
    hangup: EarlyHangup | None = None  # whether a SIGHUP has come before anybody could listen


def file_source(path: Path) -> JobSource:
    """The source of a file's jobs: its own path, wherever it is applied from."""
    return JobSource(str(path.resolve()), is_gone_file, position_of_parent=partial(_place_in, path))


def _place_in(path: Path, job: str, parent: str) -> str:
    from chronex.jobfile.graph_tables import position_of_parent  # only where an update is refused

    return position_of_parent(_texts(path), job, parent)


def _texts(path: Path) -> Iterator[tuple[str, bytes]]:
    """Of a file or a directory that has just been read; what cannot be read any more has no places."""
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    for file in files:
        with suppress(OSError):
            if file.is_file():
                yield str(file), file.read_bytes()


def is_gone_file(source: str) -> bool:
    return source.startswith("/") and not Path(source).exists()


class Reloader:
    """Keeps a daemon's jobs and settings to what its job file says."""

    def __init__(self, daemon: Daemon, file: JobFileSource) -> None:
        self._daemon = daemon
        self._file = file
        self._begun_with = daemon.executor.settings
        self._known = self._seen = _signature(file.path)
        self._at_work = asyncio.Lock()
        self._requests: set[asyncio.Task[None]] = set()
        self._rejected_at: int | None = None  # the journal's last number when the file was rejected

    def attach(self) -> None:
        """Listen to SIGHUP, and check the file every few seconds where `watch` asks for that."""
        loop = asyncio.get_running_loop()

        def on_request() -> None:
            self._begin("SIGHUP", "the reload that a signal asked for")

        with suppress(NotImplementedError, ValueError, RuntimeError):  # not the main thread, or no such signal
            loop.add_signal_handler(signal.SIGHUP, on_request)
        if self._file.hangup is not None and self._file.hangup.has_come:  # perhaps after the file was read
            on_request()
        self._daemon.periodic.add(PeriodicTask("job file", CHECK_EVERY_S, self.check))

    def _begin(self, why: str, what: str) -> asyncio.Task[None]:
        """It goes on whatever becomes of who asked: jobs without the settings beside them would be half a file."""
        task = self._daemon.faults.watched(self.reload(why), what)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        return task

    async def check(self) -> None:
        """Read a file that changed, once it has stayed the same for one check: it may still be being written."""
        await self._check_rejected()
        if not self._daemon.executor.settings.watch:
            return  # saving is not applying
        found = await asyncio.to_thread(_signature, self._file.path)
        is_still, self._seen = found == self._seen, found
        if found != self._known and is_still and found is not None:
            await asyncio.shield(self._begin("the file changed", "the reload of a file that changed"))

    async def _check_rejected(self) -> None:
        """What was rejected may have been put right, or applied by hand, since. What is still wrong with the file, or
        not applied of it, is told by those who look at it."""
        if self._rejected_at is not None and await asyncio.to_thread(self._is_overtaken, self._rejected_at):
            self._end_rejected()

    def _is_overtaken(self, basis: int) -> bool:
        if _signature(self._file.path) != self._known:
            return True
        self._rejected_at = self._daemon.store.view(head)
        try:
            self._daemon.store.view(lambda tx: refuse_if_stale(tx, basis))
        except StaleUpdateError:  # jobs were changed: by somebody who ran `chronex apply --prune`, say
            return self._is_applied()
        return False

    def _is_applied(self) -> bool:
        """Whether the store has what the file says."""
        try:
            found = self._file.load()
            options = UpdateOptions(owns=file_source(self._file.path)._replace(groups=found.groups))
            now_ms = self._daemon.clock.wall_ms()
            planned = self._daemon.store.view(lambda tx: plan_changes(Reading(tx), found.jobs, now_ms, options))
        except ChronexError:
            return False
        return all(change.kind is Change.UNCHANGED for change in planned)

    def _end_rejected(self) -> None:
        self._rejected_at = None
        self._daemon.troubles.end(TroubleCode.JOB_FILE_REJECTED)

    async def reload(self, why: str) -> None:
        async with self._at_work:
            self._known = self._seen = _signature(self._file.path)
            try:
                self._refuse_empty()
                found = await asyncio.to_thread(self._file.load)
                counts = await asyncio.to_thread(self._apply, found, why)
            except ChronexError as error:
                fields = _error_fields(error)
                self._journal("ConfigurationRejected", why, fields)
                self._daemon.troubles.begin(TroubleCode.JOB_FILE_REJECTED, f"{self._file.path}: {fields['error']}")
                self._rejected_at = self._daemon.store.view(head)
                return
            self._end_rejected()
            self._journal("ConfigurationApplied", why, {**counts, **self._use(found.settings)})

    def _refuse_empty(self) -> None:
        """A save that a full disk cut short must not remove every job; a user who means it runs apply."""
        if self._known is not None and self._known[1] == 0 and self._file.path.is_file():
            raise ChronexError("the file is empty; to remove all jobs run: chronex apply --prune")

    def _apply(self, found: JobFile, why: str) -> dict[str, Any]:
        daemon = self._daemon
        changes = apply_jobs(
            daemon.store,
            found.jobs,
            daemon.clock.wall_ms(),
            actor=f"run ({why})",
            policy=Policy(found.settings.update_policy),
            owns=file_source(self._file.path)._replace(may_prune=False, groups=found.groups),
        )
        counted = Counter(change.change for change in changes)
        return {change.value: counted[change] for change in Change if counted[change]}

    def _use(self, settings: SchedulerSettings) -> dict[str, Any]:
        """Settings that can change while it runs; those that cannot are named."""
        daemon = self._daemon
        daemon.engine.slots = settings.max_concurrent_jobs
        daemon.engine.pace = settings.catch_up
        daemon.executor.settings = settings
        daemon.clock_follower.zone = settings.timezone
        for use in daemon.settings_listeners:
            use(settings)
        fixed = [name for name in _NEED_A_RESTART if getattr(self._begun_with, name) != getattr(settings, name)]
        if fixed:
            names = ", ".join(name.removesuffix("_ms") for name in fixed)
            daemon.troubles.begin(TroubleCode.RESTART_NEEDED, names)
        else:
            daemon.troubles.end(TroubleCode.RESTART_NEEDED)
        return {"restart_for": ", ".join(fixed)} if fixed else {}

    def _journal(self, name: str, why: str, data: dict[str, Any]) -> None:
        self._daemon.journal(name, {"file": str(self._file.path), "because": why, **data})


def _error_fields(error: ChronexError) -> dict[str, Any]:
    if isinstance(error, JobFileError):
        return {"problems": len(error.problems), "error": str(error.problems[0])}
    return {"error": str(error)}


def _signature(path: Path) -> Signature | None:
    """What changes when the file does, or any job file of the directory."""
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            return _signature_of_directory(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _signature_of_directory(path: Path) -> Signature:
    with os.scandir(path) as entries:
        files = sorted((e.name, e.stat()) for e in entries if e.name.endswith(".toml") and not e.name.startswith("."))
    marks = [(name, found.st_mtime_ns, found.st_size, found.st_ino) for name, found in files]
    return hash(tuple(marks)), sum(found.st_size for _, found in files), len(files)
