"""The engine inside a program of your own: `chronex.Engine`.

    engine = Engine("state")

    @engine.job("0 3 * * *", retry=3)
    def tidy(): ...

    with engine:          # on a thread of its own; `async with` runs it on your event loop
        ...

It is the daemon of `chronex run`, without its signals, its lock and its terminal: several of them may work on one
store, also in several processes, and each occurrence still runs once.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.daemon.event_feed import MAX_WAIT_S, EventCallback, JournalFeed, Subscription, check_event_names
from chronex.daemon.job_control import JobControl
from chronex.daemon.loop import Daemon
from chronex.daemon.maintenance import add_maintenance
from chronex.daemon.registration import Workplace, location_of, node_at, workplace_on
from chronex.daemon.reload import is_gone_file
from chronex.engine.commands import Triggered
from chronex.engine.engine import Engine
from chronex.engine.update.sources import none_is_gone
from chronex.errors import ChronexError
from chronex.jobfile import SchedulerSettings
from chronex.jobfile.program_jobs import read_program_channels
from chronex.jobfile.trigger_definition import DefinitionSource, TriggerDefinition, trigger_definition
from chronex.keeper.keepers import Keepers
from chronex.model.job import Call, Job
from chronex.model.states import is_final
from chronex.run import LogDirectory, RunContext
from chronex.run.callables import TaskFunction
from chronex.run.functions import Calls, registered
from chronex.storage import journal
from chronex.storage.ports import Store
from chronex.timing.job_schedule import Schedule, register_schedule
from chronex.views.past_runs import PastRun
from chronex_store import LmdbStore
from chronex_store.daemon_lock import EngineLock, acquire_engine_lock
from chronex_store.opening import StoreLocation, open_location, problem_of_store_name, read_location
from chronex_store.postgres.pg_address import PostgresAddress

F = TypeVar("F", bound=Callable[..., Any])


def program_name() -> str:
    """What this program was started as: the same at every start, and seldom that of another program."""
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"


class EmbeddedEngine(JobControl):
    """One node on `store`: a path or a postgresql:// address (opened here and closed at the end), or a store that the
    caller keeps.

    `calls` are functions that jobs may name in `Call`; with `can_import`, "module:function" is looked up too.
    `schedules` are registered for jobs of the dialect `custom`. `settings` are those of a job file's `[scheduler]`:
    limits of history and logs, the pool, metrics. Logs lie in `logs`, else in the directory of the store, or in what
    this machine keeps of its work on a database (CHRONEX_STATE_DIR), else in a directory that is removed at the end.
    Its jobs belong to the program of this `name` (by default that of the script): programs that share a store need
    different ones. `channels` are the tables of [notify] in a job file, by their names, which jobs name in `notify`.
    `clock` is for a store of this machine alone: where machines share one, its own counts.
    """

    def __init__(  # noqa: PLR0913  each is a keyword of a constructor that programs use
        self,
        store: Store | Path | str,
        *,
        calls: Mapping[str, TaskFunction] | None = None,
        schedules: Mapping[str, Schedule] | None = None,
        can_import: bool = True,
        settings: SchedulerSettings | None = None,
        logs: Path | None = None,
        clock: Clock = SYSTEM_CLOCK,
        name: str | None = None,
        channels: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        functions = Calls(calls, can_import=can_import)
        own_channels = read_program_channels(channels or {})
        super().__init__(name or program_name(), functions, settings or SchedulerSettings(), clock, own_channels)
        self._given = _location_or_store(store)
        self._own_clock = clock
        self._place: Workplace | None = None
        self._log_path = logs
        self._store: Store | None = None
        self._daemon: Daemon | None = None
        self._work: asyncio.Task[None] | None = None
        self._is_stopping = self._has_started = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._loop_of_thread: asyncio.AbstractEventLoop | None = None
        self._logs: LogDirectory | None = None
        self._remove_temporary: Callable[[], object] | None = None
        self._lock: EngineLock | None = None
        self._subscriptions: list[Subscription] = []
        self._feed: JournalFeed | None = None
        for known_as, schedule in (schedules or {}).items():
            register_schedule(known_as, schedule)

    def __repr__(self) -> str:
        return f"<chronex.Engine of {self.program!r}{', running' if self.is_running else ''}>"

    # -- what it knows -----------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """Open between start and stop; for reading, and for the commands of `chronex.engine`."""
        if self._store is None:
            raise ChronexError("the engine is not started; use it inside `with engine:`, or await start() first")
        return self._store

    @property
    def is_running(self) -> bool:
        return self._work is not None and not self._work.done()

    @property
    def _is_open(self) -> bool:
        return self._store is not None

    def add_call(self, name: str, function: TaskFunction, *, executor: str | None = None) -> Call:
        """Let jobs call `function`, sync or async, by `name`; returns what a task's `run` is to be.

        It is given the TaskContext first, then the arguments of the Call.
        """
        call = self.calls.add(name, registered(function, executor))
        self.note_functions()
        return call

    def note_functions(self) -> None:
        """Tell others that this program has a further function, and look again at what is due."""
        daemon, loop = self._daemon, self._loop
        if daemon is None or loop is None or not self.is_running:
            return
        if _running_loop() is loop:
            daemon.note_functions()
        else:
            loop.call_soon_threadsafe(daemon.note_functions)

    async def all_noted(self) -> None:
        """Until what this program has told of itself is in the store."""
        if self._daemon is not None:
            await self._daemon.notes.all_noted()

    def add_schedule(self, name: str, schedule: Schedule) -> None:
        """Let jobs of the dialect `custom` refer to `schedule` by `name`."""
        register_schedule(name, schedule)

    # -- what its code declares ----------------------------------------------------------------------------

    def job(
        self,
        schedule: str = "",
        *,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        executor: str | None = None,
        **keys: Any,
    ) -> Callable[[F], F]:
        """Make a job of a function: `@engine.job("0 3 * * *", retry=3, overlap="skip")`, `@engine.job(after="etl")`.

        `name` is by default that of the function, `executor` async, thread or process (by default what fits the
        function), and `keys` are those of a job in the job file, and of its only task. The function is given a
        TaskContext where its first parameter is called `context`, then `args` and `kwargs`.
        """

        def declare(function: F) -> F:
            job = name or str(getattr(function, "__name__", ""))
            self.declare(self._new_job(job, schedule, self._call(job, function, args, kwargs, executor), keys))
            return function

        return declare

    def register(
        self, definition: DefinitionSource, handler: TaskFunction, *, executor: str | None = None
    ) -> TriggerDefinition:
        """Let `handler` do what a trigger definition asks for; that may be a dict, JSON text or the path of a file.

        The handler is given the metadata of the definition in `context.metadata`.
        """
        found = trigger_definition(definition, self.settings.timezone)
        work = self._call(found.id, handler, executor=executor)
        assert isinstance(work.run, Call)
        self._know(work)
        self.declare(found.job(work.run))
        return found

    # -- events --------------------------------------------------------------------------------------------

    def on(self, event: str | Iterable[str], callback: EventCallback, *, job: str | None = None) -> Subscription:
        """Call `callback` with each EngineEvent of that name (or of these, or of all for "*"), of one job or of all.

        It is given what happens from now on, in order, on a thread of its own; one that is async runs on the engine's
        loop. What it raises is logged. `cancel()` of the subscription ends it.
        """
        names = check_event_names([event] if isinstance(event, str) else event)
        if not callable(callback):
            raise ChronexError(f"{callback!r} cannot be called; give a function that takes an event"[:300])
        subscription = Subscription(names, job, callback)
        if self._store is not None:
            subscription.after = self._store.view(journal.head)
        self._subscriptions = [*(one for one in self._subscriptions if not one.is_over), subscription]
        feed, loop = self._feed, self._loop
        if feed is not None and loop is not None:
            feed.subscriptions = self._subscriptions
            loop.call_soon_threadsafe(feed.follow)
        return subscription

    # -- its life on an event loop ---------------------------------------------------------------------------

    async def start(self, jobs: Iterable[Job] | None = None) -> None:
        """Open the store, apply `jobs` and what decorators declared, and begin to run what is due."""
        if self._daemon is not None:
            raise ChronexError("the engine is started already; stop it first")
        try:
            self._open()
            if jobs is not None or self._declared:
                self.apply(jobs or ())
            daemon = self._daemon = self._make_daemon()
            self._feed = JournalFeed(self.store, self._subscriptions, daemon.faults)
        except BaseException:
            self._close()
            raise
        self._loop, self._is_stopping, self._has_started = asyncio.get_running_loop(), False, True
        self._work = self._loop.create_task(self._run(daemon), name="chronex engine")
        if self._subscriptions:
            self._feed.follow()

    async def _run(self, daemon: Daemon) -> None:
        await self._run_node(daemon)
        while daemon.must_restart and not self._is_stopping:  # others have given it up, or cannot be sure of it
            daemon = self._daemon = self._make_daemon()
            await self._run_node(daemon)

    async def _run_node(self, daemon: Daemon) -> None:
        async with AsyncExitStack() as services:  # their libraries take a while to load
            if self.settings.metrics is not None:
                from chronex.daemon.metrics_server import serve_metrics

                await services.enter_async_context(serve_metrics(daemon, self.settings))
            if self.settings.otlp is not None:
                from chronex.daemon.otlp_export import export_spans

                await services.enter_async_context(export_spans(daemon, self.settings.otlp))
            await daemon.run()

    async def stop(self, *, drain: bool = False) -> None:
        """Claim nothing more, leave commands running for the next engine, wait for functions, record it, close.

        Functions have the grace period, and are then interrupted: their outcome is not known, and `on_crash` decides.
        With `drain` everything is waited for. A store in memory ends with the program: what runs is then
        asked to end. Idempotent; raises what the engine died of.
        """
        daemon, work = self._daemon, self._work
        if daemon is None or work is None:
            return
        self._is_stopping = True
        if drain:
            daemon.drain()
        else:
            daemon.stop()
        try:
            await asyncio.shield(work)
        finally:
            if work.done():
                if self._feed is not None:
                    await self._feed.close()
                self._daemon = self._work = self._loop = self._feed = None
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

    # -- its life on a thread of its own -----------------------------------------------------------------------

    def open(self, jobs: Iterable[Job] | None = None) -> None:
        """`start` for a program without an event loop: the engine has one on a thread of its own, until `close`."""
        if self._daemon is not None or self._thread is not None:
            raise ChronexError("the engine is started already; stop it first")
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._live, args=(ready, jobs), name="chronex engine", daemon=True)
        self._thread.start()
        try:
            ready.result()
        except BaseException:
            self._thread = None
            raise

    def _live(self, ready: Future[None], jobs: Iterable[Job] | None) -> None:
        with asyncio.Runner() as runner:
            try:
                runner.run(self.start(jobs))
            except BaseException as problem:
                ready.set_exception(problem)
                return
            self._loop_of_thread = runner.get_loop()
            ready.set_result(None)
            runner.get_loop().run_forever()

    def close(self, *, drain: bool = False) -> None:
        """`stop` for what `open` started. Idempotent; raises what the engine died of."""
        thread, loop = self._thread, self._loop_of_thread
        if thread is None or loop is None:
            return
        if threading.current_thread() is thread:
            raise ChronexError("a function on the engine's loop would wait for itself; close it from another thread")
        try:
            asyncio.run_coroutine_threadsafe(self.stop(drain=drain), loop).result()
        finally:
            if not self.is_running:
                loop.call_soon_threadsafe(loop.stop)
                thread.join()
                self._thread = self._loop_of_thread = None

    def join(self, timeout: float | None = None) -> None:
        """Wait until the engine ends by itself, which it does only when its store fails, or so many seconds."""
        loop = self._loop
        if loop is None:
            if not self._has_started:
                raise ChronexError("the engine is not started; join it inside `with engine:`")
            return
        waiting = asyncio.run_coroutine_threadsafe(self.wait(), loop)
        try:
            waiting.result(timeout)
        except TimeoutError:
            waiting.cancel()

    def wait_for(self, occurrence: str | PastRun | Triggered, timeout: float | None = None) -> PastRun:
        """Wait until an occurrence has ended, and return what became of it; TimeoutError after so many seconds.

        It blocks its thread: on an event loop, `await asyncio.to_thread(engine.wait_for, occurrence)`.
        """
        if self._loop is not None and _running_loop() is self._loop:
            raise ChronexError("the engine would wait for itself; await asyncio.to_thread(engine.wait_for, …)")
        begun_ms = self._clock.monotonic_ms()
        while True:
            seen = self.store.wait(-1, 0)
            found = self.occurrence(occurrence)
            if is_final(found.state):
                return found
            left = MAX_WAIT_S if timeout is None else timeout - (self._clock.monotonic_ms() - begun_ms) / 1000
            if left <= 0:
                raise TimeoutError(f"{found.id} is still {found.state} after {timeout:g} s")
            self.store.wait(seen, min(left, MAX_WAIT_S))

    def __enter__(self) -> EmbeddedEngine:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what it opens -------------------------------------------------------------------------------------------

    def _open(self) -> None:
        given = self._given
        self._store = open_location(given) if isinstance(given, Path | PostgresAddress) else given
        location = location_of(self._store)
        if isinstance(self._store, LmdbStore):
            self._lock = acquire_engine_lock(self._store.path)
        if location is not None:
            self._place = workplace_on(self._store, location, self._own_clock)
            self._clock = self._place.clock
            # A job file that is not here may well be on another machine.
            self._use_sources(none_is_gone if self._place.host_id else is_gone_file)
        directory = self._log_path
        if directory is None and self._place is not None:
            directory = self._place.state / "logs"
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix="chronex-"))
            # Also of a program that ends without `stop`.
            self._remove_temporary = weakref.finalize(self, _remove_own, directory, os.getpid())
        self._logs = LogDirectory(directory)

    def _make_daemon(self) -> Daemon:
        assert self._logs is not None
        place = self._place or Workplace(Path(), "", self._clock)
        node = node_at(place, self.settings, self.program)
        engine = Engine(self.store, node.id, self.settings.max_concurrent_jobs)
        # A store in memory lies nowhere; its commands must differ all the same from those of another process,
        # which may have the same jobs: a cancellation would find the other's processes by their id.
        own = {"CHRONEX_STORE": place.named} if place.named else {"CHRONEX_ENGINE": node.id}
        run_context = RunContext.of_this_process(self._logs, self._clock, environment=own)
        keepers = Keepers(place.state.resolve(), self._logs.path.resolve(), node.id) if place.named else None
        daemon = Daemon(self.store, engine, run_context, node, self.settings, calls=self.calls, keepers=keepers)
        add_maintenance(daemon, self._logs, self.settings)
        return daemon

    def _close(self) -> None:
        if self._logs is not None:
            self._logs.close()
        if self._lock is not None:
            self._lock.release()
        if self._remove_temporary is not None:
            self._remove_temporary()
        if self._store is not None and isinstance(self._given, Path | PostgresAddress):
            self._store.close()
        self._store = self._logs = self._remove_temporary = self._lock = self._place = None
        self._clock = self._own_clock


def _location_or_store(given: Store | Path | str) -> Store | StoreLocation:
    if isinstance(given, str):
        if problem := problem_of_store_name(given, "the store"):
            raise ChronexError(problem)
        return read_location(given)
    if not isinstance(given, Path) and not hasattr(given, "view"):
        kinds = "the path of a directory, a postgresql:// address or an open store"
        raise ChronexError(f"a store is {kinds}, not {type(given).__name__}")
    return given


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _remove_own(directory: Path, maker: int) -> None:
    """Not by a process that was forked from its maker: the engine may live on there."""
    if os.getpid() == maker:
        shutil.rmtree(directory, ignore_errors=True)
