"""`initialize` and `stop`: a list of registrations becomes a running scheduler that keeps its promises."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from platformdirs import user_state_path

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.daemon.embedded import EmbeddedEngine
from chronex.declarative.announcing import Announcer, Listener
from chronex.declarative.errors import SchedulerError, ScheduleTaskError, StopSchedulerError
from chronex.declarative.persistence import Resolved, job_id, resolve
from chronex.declarative.registrations import Callback, Definition, Registration, checked
from chronex.declarative.states import PollingState, SchedulerEvent, SchedulerState, TaskStatus, moved
from chronex.declarative.views import moment, statuses
from chronex.errors import ChronexError
from chronex.jobfile import SchedulerSettings
from chronex.model.records import Event
from chronex.run import TaskContext
from chronex.run.callables import TaskFunction
from chronex.storage import journal
from chronex.storage.ports import Store, Transaction
from chronex.storage.records import Ledger, Reading
from chronex.timing.host import host_zone
from chronex_store import LmdbStore

# All that is due starts; the bound is there so that nothing is without one.
MOST_AT_ONCE = 10_000
_inside: ContextVar[Scheduler | None] = ContextVar("the scheduler whose callback runs", default=None)


class Scheduler:
    """Runs the registered callbacks by strict POSIX cron in the host's zone, one at a time each, and remembers them.

    `store` is a directory (LMDB; by default one of its own in the user's state directory) or any open store, which
    the caller keeps. `on_event` is called with every SchedulerEvent, on the event loop. `clock` and `timezone` are
    the host's; tests bring their own.
    """

    def __init__(
        self,
        store: Store | Path | str | None = None,
        *,
        on_event: Listener | None = None,
        clock: Clock = SYSTEM_CLOCK,
        timezone: str | None = None,
    ) -> None:
        self._given = Path(store) if isinstance(store, str) else store or default_store()
        self._listener, self._clock, self._zone = on_event, clock, timezone
        self._state, self._polling = SchedulerState.UNINITIALIZED, PollingState.INACTIVE
        self._identifier = ""
        self._turn = asyncio.Lock()  # one initialize or stop at a time, in the order of the calls
        self._store: Store | None = None
        self._engine: EmbeddedEngine | None = None
        self._draining: set[asyncio.Task[None]] = set()
        self._announcer: Announcer | None = None
        self._callbacks: dict[str, Callback] = {}
        self._names: dict[str, str] = {}
        self._functions: dict[
            str, TaskFunction
        ] = {}  # what the engine calls; a new callback takes the old one's place
        self._last_tasks: dict[str, TaskStatus] = {}
        self._resolved: tuple[Resolved, ...] = ()

    # -- what can be seen --------------------------------------------------------------------------------

    @property
    def state(self) -> SchedulerState:
        return self._state

    @property
    def polling(self) -> PollingState:
        return self._polling

    @property
    def identifier(self) -> str:
        """Of this instance, from its first initialization on; every task's record has it."""
        return self._identifier

    @property
    def tasks(self) -> dict[str, TaskStatus]:
        """Every task with its state and timestamps, as the store has them; after a stop, as it had them last."""
        if self._store is None:
            return dict(self._last_tasks)
        return self._store.view(lambda tx: statuses(Reading(tx)))

    @property
    def resolution(self) -> tuple[Resolved, ...]:
        """How the last initialization classified each task."""
        return self._resolved

    # -- the two methods ---------------------------------------------------------------------------------

    def initialize(self, registrations: Sequence[Registration]) -> Coroutine[Any, Any, None]:
        """Schedule exactly these tasks. What is wrong with them is raised here and now, before anything is awaited.

        Called again it applies the difference; with the same registrations it has no effect.
        """
        return self._initialize(checked(registrations))

    async def stop(self) -> None:
        """Start nothing more, wait for what runs, let go. Without an initialization there is nothing to do."""
        if _inside.get() is self:
            raise StopSchedulerError(RuntimeError("a callback of the scheduler would wait for itself"))
        async with self._turn:
            if self._state is SchedulerState.RUNNING:
                await self._stop()

    # -- initialize --------------------------------------------------------------------------------------

    async def _initialize(self, definitions: tuple[Definition, ...]) -> None:
        async with self._turn:
            again = self._state is SchedulerState.RUNNING
            self._state = moved(self._state, SchedulerState.REINITIALIZING if again else SchedulerState.INITIALIZING)
            try:
                if not again:
                    await self._drained()
                self._open()
                self._tell("SchedulerReinitializationStarted" if again else "SchedulerInitializationStarted")
                self._schedule(definitions)
                await self._poll(wanted=bool(definitions))
                self._tell("SchedulerInitializationCompleted", tasks=len(definitions))
            except BaseException as problem:
                await self._fail(problem)
                if isinstance(problem, SchedulerError) or not isinstance(problem, Exception):
                    raise
                raise _explained(problem, definitions) from problem
            self._state = moved(self._state, SchedulerState.RUNNING)

    def _open(self) -> None:
        self._identifier = self._identifier or f"scheduler-{uuid4().hex}"
        self._zone = self._zone or host_zone().zone.name
        if self._store is None:
            self._store = LmdbStore.open(self._given) if isinstance(self._given, Path) else self._given
        if self._announcer is None and self._listener is not None:
            self._announcer = Announcer(self._store, self._identifier, self._names, self._listener)

    def _schedule(self, definitions: tuple[Definition, ...]) -> None:
        """The store first, all of it or nothing; then the functions that it now refers to."""
        assert self._store is not None
        assert self._zone is not None
        zone, now_ms = self._zone, self._clock.wall_ms()

        def write(tx: Transaction) -> list[Resolved]:
            return resolve(Ledger(tx, now_ms), definitions, self._identifier, zone)

        self._resolved = tuple(self._store.update(write))
        self._callbacks = {job_id(one.name): one.callback for one in definitions}
        self._names.update({job_id(one.name): one.name for one in definitions})
        for job in self._callbacks:
            function = self._functions.setdefault(job, partial(self._call, job))
            if self._engine is not None:
                self._engine.add_call(job, function)

    async def _fail(self, problem: BaseException) -> None:
        """Back to the beginning. What runs is seen to its end, but not waited for: a callback may have called us."""
        engine, self._engine = self._engine, None
        if engine is not None:
            self._polling = moved(self._polling, PollingState.INACTIVE)
            self._tell_if_possible("PollingStopped")
        self._tell_if_possible("SchedulerInitializationFailed", error=type(problem).__name__)
        self._state = moved(self._state, SchedulerState.UNINITIALIZED)
        if engine is None and not self._draining:
            await self._close()
        else:
            self._later(self._drain_and_close(engine))

    # -- polling -----------------------------------------------------------------------------------------

    async def _poll(self, *, wanted: bool) -> None:
        """Poll while there is something to poll for."""
        if wanted and self._engine is None:
            await self._drained()
            await self._start_polling()
        elif not wanted and self._engine is not None:
            self._later(self._engine.stop(drain=True))
            self._engine = None
            self._polling = moved(self._polling, PollingState.INACTIVE)
            self._tell("PollingStopped")

    async def _start_polling(self) -> None:
        assert self._store is not None
        engine = EmbeddedEngine(
            self._store,
            calls=self._functions,
            can_import=False,
            settings=SchedulerSettings(max_concurrent_jobs=MOST_AT_ONCE),
            clock=self._clock,
        )
        await engine.start()
        self._engine = engine
        self._polling = moved(self._polling, PollingState.ACTIVE)
        self._tell("PollingStarted")

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="chronex draining")
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    async def _drain_and_close(self, engine: EmbeddedEngine | None) -> None:
        others = self._draining - {asyncio.current_task()}
        if engine is not None:
            await engine.stop(drain=True)
        if others:
            await asyncio.wait(others)
        await self._close()

    async def _drained(self) -> None:
        while self._draining:
            await asyncio.wait(set(self._draining))

    async def _call(self, job: str, _context: TaskContext) -> None:
        """One attempt of a task."""
        callback = self._callbacks.get(job)
        if callback is None:
            raise LookupError(f"the task {self._names.get(job, job)!r} is registered no longer")
        token = _inside.set(self)
        try:
            await callback()
        finally:
            _inside.reset(token)

    # -- stop --------------------------------------------------------------------------------------------

    async def _stop(self) -> None:
        self._state = moved(self._state, SchedulerState.STOPPING)
        try:
            try:
                self._tell("SchedulerStopRequested")
            finally:
                await self._stop_polling()
            self._tell("SchedulerStopped")
        except Exception as problem:
            raise StopSchedulerError(problem) from problem
        finally:
            self._state = moved(self._state, SchedulerState.STOPPED)
            await self._close()

    async def _stop_polling(self) -> None:
        engine, self._engine = self._engine, None
        if engine is None:
            await self._drained()
            return
        self._polling = moved(self._polling, PollingState.STOPPING)
        try:
            try:
                self._tell("PollingStopRequested")
            finally:
                await engine.stop(drain=True)
                await self._drained()
        finally:
            self._polling = moved(self._polling, PollingState.INACTIVE)
        self._tell("PollingStopped")

    async def _close(self) -> None:
        announcer, store = self._announcer, self._store
        self._announcer = self._store = None
        if announcer is not None:
            await announcer.close()
        if store is not None:
            with suppress(ChronexError):  # a store that fails, or a record that cannot be read, has been told of
                self._last_tasks = store.view(lambda tx: statuses(Reading(tx)))
            if isinstance(self._given, Path):
                store.close()

    # -- the journal -------------------------------------------------------------------------------------

    def _tell(self, name: str, **data: Any) -> None:
        assert self._store is not None
        named = {"node": self._identifier, "scheduler": self._identifier, **data}
        event = Event(name=name, at_ms=self._clock.wall_ms(), actor="declarative", data=named)
        self._store.update(lambda tx: journal.append(tx, event))

    def _tell_if_possible(self, name: str, **data: Any) -> None:
        """A failure is told to the listener at least, where the store itself is what failed."""
        try:
            self._tell(name, **data)
        except Exception:
            at = moment(self._clock.wall_ms())
            if self._listener is not None and at is not None:
                self._listener(SchedulerEvent(name, at, "", data))


def default_store() -> Path:
    """A store of its own: `chronex run` could not call what only this program has."""
    return user_state_path("chronex", appauthor=False) / "declarative"


def _explained(problem: Exception, definitions: tuple[Definition, ...]) -> ScheduleTaskError:
    """What came unexpected, with the first of the tasks that it kept from being scheduled."""
    first = definitions[0] if definitions else None
    return ScheduleTaskError(first.name if first else "", first.cron if first else "", problem)
