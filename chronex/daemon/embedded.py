"""The engine inside a program of your own: started and stopped on its event loop, with its functions as tasks.

    async with EmbeddedEngine(Path("state")) as engine:
        engine.add_call("tidy", tidy)
        engine.apply([Job(id="tidy", schedule="@hourly", tasks=(Task(name="main", run=Call("tidy")),))])
        ...

It is the daemon of `chronex run`, without its signals, its lock and its terminal: several of them may work on one
store, also in several processes, and each occurrence still runs once.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.daemon.loop import Daemon, this_node
from chronex.daemon.maintenance import add_maintenance
from chronex.daemon.reload import is_gone_file
from chronex.engine.commands.names import job_named
from chronex.engine.engine import Engine
from chronex.engine.update import Changed, Policy, apply_jobs
from chronex.engine.update.sources import PROGRAM, JobSource
from chronex.errors import ChronexError
from chronex.jobfile import SchedulerSettings
from chronex.model.job import Call, Job
from chronex.run import Calls, LogDirectory, RunContext
from chronex.run.callables import TaskFunction
from chronex.storage.ports import Store
from chronex.storage.records import Reading
from chronex.timing.job_schedule import Schedule, register_schedule
from chronex.views.jobs import Row, row_of, rows_of
from chronex_store import LmdbStore
from chronex_store.daemon_lock import EngineLock, acquire_engine_lock


def program_name() -> str:
    """What this program was started as: the same at every start, and seldom that of another program."""
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"


class EmbeddedEngine:
    """One node on `store`: a path (opened here and closed at the end), or a store that the caller keeps.

    `calls` are functions that jobs may name in `Call`; with `can_import`, "module:function" is looked up too.
    `schedules` are registered for jobs of the dialect `custom`. `settings` are those of a job file's `[scheduler]`:
    limits of history and logs, the pool, metrics. Logs lie in `logs`, else in the directory of a
    store that has a path, else in a directory that is removed at the end. Its jobs belong to the program of this
    `name` (by default that of the script): programs that share a store need different ones.
    """

    def __init__(
        self,
        store: Store | Path,
        *,
        calls: Mapping[str, TaskFunction] | None = None,
        schedules: Mapping[str, Schedule] | None = None,
        can_import: bool = True,
        settings: SchedulerSettings | None = None,
        logs: Path | None = None,
        clock: Clock = SYSTEM_CLOCK,
        name: str | None = None,
    ) -> None:
        self._given = store
        self.source = PROGRAM + (name or program_name())
        self._log_path = logs
        self.calls = Calls(calls, can_import=can_import)
        self.settings = settings or SchedulerSettings()
        self._clock = clock
        self._store: Store | None = None
        self._daemon: Daemon | None = None
        self._work: asyncio.Task[None] | None = None
        self._logs: LogDirectory | None = None
        self._temporary: Path | None = None
        self._lock: EngineLock | None = None
        for known_as, schedule in (schedules or {}).items():
            register_schedule(known_as, schedule)

    # -- what it knows -----------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """Open between `start` and `stop`; for reading, and for the commands of `chronex.engine`."""
        if self._store is None:
            raise ChronexError("the engine is not started; await start() first")
        return self._store

    @property
    def is_running(self) -> bool:
        return self._work is not None and not self._work.done()

    def add_call(self, name: str, function: TaskFunction) -> Call:
        """Let jobs call `function`, sync or async, by `name`; returns what a task's `run` is to be."""
        call = self.calls.add(name, function)
        if self._daemon is not None and self.is_running:
            self._daemon.note_functions()
        return call

    def add_schedule(self, name: str, schedule: Schedule) -> None:
        """Let jobs of the dialect `custom` refer to `schedule` by `name`."""
        register_schedule(name, schedule)

    def apply(
        self,
        jobs: Iterable[Job],
        actor: str = "library",
        basis: int | None = None,
        *,
        policy: Policy = Policy.IMMEDIATE,
    ) -> list[Changed]:
        """Make these jobs exactly those of this program; the jobs of files and other programs are left alone.

        JobSourceError where one of them has a job of the same name. `basis` is the number of the journal's last event
        when you read the jobs; StaleUpdateError when jobs changed since. `policy` says when edits count.
        """
        owner = JobSource(self.source, is_gone_file)
        now_ms = self._clock.wall_ms()
        return apply_jobs(self.store, jobs, now_ms, actor=actor, policy=policy, basis=basis, owns=owner)

    def rows(self) -> list[Row]:
        """Every job: is_active, is_paused, is_enabled, is_running, next and last; asked of the store."""
        return self.store.view(lambda tx: rows_of(Reading(tx), self._clock.wall_ms()))

    def row(self, job: str) -> Row:
        """One job; UnknownJobError where there is none of that name."""
        return self.store.view(lambda tx: self._row(Reading(tx), job))

    def _row(self, reading: Reading, job: str) -> Row:
        return row_of(reading, job_named(reading, job), self._clock.wall_ms())

    # -- its life ----------------------------------------------------------------------------------------

    async def start(self, jobs: Iterable[Job] | None = None) -> None:
        """Open the store, apply `jobs` where some are given, and begin to run what is due."""
        if self._daemon is not None:
            raise ChronexError("the engine is started already; stop it first")
        try:
            self._open()
            if jobs is not None:
                self.apply(jobs)
            daemon = self._daemon = self._make_daemon()
        except BaseException:
            self._close()
            raise
        self._work = asyncio.get_running_loop().create_task(self._run(daemon), name="chronex engine")

    async def _run(self, daemon: Daemon) -> None:
        if self.settings.metrics is None:
            await daemon.run()
            return
        from chronex.daemon.metrics import serve_metrics  # its library takes a while to load

        async with serve_metrics(daemon, self.settings):
            await daemon.run()

    async def stop(self, *, drain: bool = False) -> None:
        """Claim nothing more, ask what runs to end (with `drain`: wait until it does), record it, close.

        Idempotent; raises what the engine died of.
        """
        daemon, work = self._daemon, self._work
        if daemon is None or work is None:
            return
        if drain:
            daemon.drain()
        else:
            daemon.stop()
        try:
            await asyncio.shield(work)
        finally:
            if work.done():
                self._daemon = self._work = None
                self._close()

    async def wait(self) -> None:
        """Until the engine ends by itself, which it does only when its store fails; raises why."""
        if self._work is not None:
            await asyncio.shield(self._work)

    async def __aenter__(self) -> EmbeddedEngine:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _open(self) -> None:
        self._store = LmdbStore.open(self._given) if isinstance(self._given, Path) else self._given
        if isinstance(self._store, LmdbStore):
            self._lock = acquire_engine_lock(self._store.path)
        directory = self._log_path
        if directory is None and self._path is not None:
            directory = self._path / "logs"
        if directory is None:
            directory = self._temporary = Path(tempfile.mkdtemp(prefix="chronex-"))
        self._logs = LogDirectory(directory)

    @property
    def _path(self) -> Path | None:
        """Where the store lies, for one that lies anywhere."""
        path = getattr(self._store, "path", None)
        return None if path is None else Path(path)

    def _make_daemon(self) -> Daemon:
        assert self._logs is not None
        node = this_node(self.settings.max_concurrent_jobs)
        engine = Engine(self.store, node.id, self.settings.max_concurrent_jobs)
        # A store in memory has no path; its commands must differ all the same from those of another process,
        # which may have the same jobs: a cancellation would find the other's processes by their id.
        own = {"CHRONEX_ENGINE": node.id} if self._path is None else {"CHRONEX_STORE": str(self._path.resolve())}
        run_context = RunContext.of_this_process(self._logs, self._clock, environment=own)
        daemon = Daemon(self.store, engine, run_context, node, self.settings, calls=self.calls)
        add_maintenance(daemon, self._logs, self.settings)
        return daemon

    def _close(self) -> None:
        if self._logs is not None:
            self._logs.close()
        if self._lock is not None:
            self._lock.release()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        if self._store is not None and isinstance(self._given, Path):
            self._store.close()
        self._store = self._logs = self._temporary = self._lock = None
