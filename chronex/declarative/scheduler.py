"""The `Scheduler`: `initialize` makes a list of registrations run, `stop` ends it in good order.

A listener gets the events of the specification from the `EventFeed`: each once, in the order of the journal, when it
is durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from msgspec.structs import replace
from platformdirs import user_state_path

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.daemon.embedded import EmbeddedEngine, program_name
from chronex.daemon.log_handlers import log_event
from chronex.daemon.registration import location_of
from chronex.declarative.persistence import TaskResolution, resolve_tasks
from chronex.declarative.registrations import Callback, Registration, TaskDefinition, check_registrations
from chronex.declarative.scheduler_errors import SchedulerError, ScheduleTaskError, StopSchedulerError
from chronex.declarative.scheduler_states import (
    PollingState,
    SchedulerState,
    TaskStatus,
    change_state,
    task_statuses,
)
from chronex.engine.update.diff import Change
from chronex.engine.update.sources import DECLARATIVE
from chronex.errors import ChronexError
from chronex.jobfile import SchedulerSettings
from chronex.model.event import Event
from chronex.model.groups import CatchUpPace
from chronex.model.job import task_job_id
from chronex.model.reasons import text_of
from chronex.run import is_alive
from chronex.run.callables import TaskContext, TaskFunction
from chronex.storage import journal
from chronex.storage.ports import Store, Transaction
from chronex.storage.records import Reading, Records
from chronex.text.instants import utc_datetime
from chronex.text.terminal import escaped, quoted
from chronex.timing.zones import host_zone
from chronex_store import LmdbStore
from chronex_store.opening import StoreLocation, problem_of_store_name, read_location
from chronex_store.postgres.pg_address import PostgresAddress

log = logging.getLogger(__name__)
# Everything that is due starts; the engine wants a bound, and no program has this many tasks at once.
MAX_CONCURRENT = 10_000
_calling: ContextVar[Scheduler | None] = ContextVar("the scheduler whose callback runs", default=None)


class Scheduler:
    """Runs the registered callbacks by strict POSIX cron in the host's zone, and records every run in a store.

    `store` is a directory (LMDB; by default one of its own in the user's state directory) or any open store, which
    the caller closes. `on_event` is called with every SchedulerEvent, on the event loop. `clock` and `timezone` are
    those of the host unless a test gives others. `settings` limit history and logs, and say where
    metrics are served. The tasks belong to the program of this `name` (by default that of the script): programs that
    share a store leave the tasks of the others alone, and need different names.
    """

    def __init__(
        self,
        store: Store | Path | str | None = None,
        *,
        on_event: Listener | None = None,
        clock: Clock = SYSTEM_CLOCK,
        timezone: str | None = None,
        settings: SchedulerSettings | None = None,
        name: str | None = None,
    ) -> None:
        self._store_or_path = _of_this_machine(store) or default_store()
        self._listener = on_event
        self._clock = clock
        self._zone = timezone
        self._source = DECLARATIVE + (name or program_name())
        # Of what was missed at most one run of each task is due, and it is due now: nothing is spaced.
        at_once = CatchUpPace(spacing_ms=0, share=1.0)
        self._settings = replace(
            settings or SchedulerSettings(), max_concurrent_jobs=MAX_CONCURRENT, catch_up=at_once
        )
        self._state = SchedulerState.UNINITIALIZED
        self._polling = PollingState.INACTIVE
        self._identifier = ""
        self._lock = asyncio.Lock()  # one initialize or stop at a time, in the order of the calls
        self._store: Store | None = None
        self._engine: EmbeddedEngine | None = None
        self._draining: set[asyncio.Task[None]] = set()
        self._feed: EventFeed | None = None
        self._callbacks: dict[str, Callback] = {}
        self._names: dict[str, str] = {}
        # What the engine calls. It stays the same when a registration brings a new callback.
        self._functions: dict[str, TaskFunction] = {}
        self._last_tasks: dict[str, TaskStatus] = {}
        self._resolved: tuple[TaskResolution, ...] = ()

    # -- properties --------------------------------------------------------------------------------------

    @property
    def state(self) -> SchedulerState:
        return self._state

    @property
    def polling(self) -> PollingState:
        return self._polling

    @property
    def identifier(self) -> str:
        """The identifier of this instance, from its first initialization on; every task's record has it."""
        return self._identifier

    @property
    def tasks(self) -> dict[str, TaskStatus]:
        """Every task with its state and timestamps, as the store has them; after a stop, as they were at its end."""
        if self._store is None:
            return dict(self._last_tasks)
        return self._store.view(lambda tx: task_statuses(Reading(tx), self._source))

    @property
    def resolution(self) -> tuple[TaskResolution, ...]:
        """How the last initialization classified each task."""
        return self._resolved

    # -- the two methods ---------------------------------------------------------------------------------

    def initialize(self, registrations: Sequence[Registration]) -> Coroutine[Any, Any, None]:
        """Schedule exactly these tasks. Invalid registrations raise at the call, before anything is awaited.

        A second call applies the difference; with the same registrations it has no effect.
        """
        return self._initialize(check_registrations(registrations))

    async def stop(self) -> None:
        """Start nothing more, wait for running callbacks, close the store. Without an initialization, do nothing."""
        if _calling.get() is self:
            raise StopSchedulerError(RuntimeError("a callback of the scheduler would wait for itself"))
        async with self._lock:
            if self._state is SchedulerState.RUNNING:
                await self._stop()

    # -- initialize --------------------------------------------------------------------------------------

    async def _initialize(self, definitions: tuple[TaskDefinition, ...]) -> None:
        async with self._lock:
            again = self._state is SchedulerState.RUNNING
            begun = SchedulerState.REINITIALIZING if again else SchedulerState.INITIALIZING
            self._state = change_state(self._state, begun)
            try:
                if not again:
                    await self._wait_until_drained()
                self._open()
                self._journal("SchedulerReinitializationStarted" if again else "SchedulerInitializationStarted")
                self._schedule(definitions)
                await self._poll(wanted=bool(definitions))
                if self._engine is not None:
                    await self._engine.all_noted()
                self._journal("SchedulerInitializationCompleted", tasks=len(definitions))
            except BaseException as problem:
                await self._fail(problem)
                if isinstance(problem, SchedulerError) or not isinstance(problem, Exception):
                    raise
                raise _wrapped(problem, definitions) from problem
            self._state = change_state(self._state, SchedulerState.RUNNING)

    def _open(self) -> None:
        self._identifier = self._identifier or f"scheduler-{uuid4().hex}"
        self._zone = self._zone or _zone_of_the_host()
        if self._store is None:
            given = self._store_or_path
            self._store = LmdbStore.open(given) if isinstance(given, Path) else given
        if self._feed is None and self._listener is not None:
            self._feed = EventFeed(self._store, self._identifier, self._names, self._listener)

    def _schedule(self, definitions: tuple[TaskDefinition, ...]) -> None:
        """Write all tasks to the store in one transaction, then set the functions that they call."""
        assert self._store is not None
        assert self._zone is not None
        zone = self._zone
        now_ms = self._clock.wall_ms()

        def write(tx: Transaction) -> list[TaskResolution]:
            return resolve_tasks(Records(tx, now_ms), definitions, self._identifier, zone, self._source)

        self._resolved = tuple(self._store.update(write))
        self._warn_of_the_living(self._store)
        self._callbacks = {task_job_id(one.name): one.callback for one in definitions}
        self._names.update({task_job_id(one.name): one.name for one in definitions})
        for job in self._callbacks:
            function = self._functions.setdefault(job, partial(self._call, job))
            if self._engine is not None:
                self._engine.add_call(job, function)

    def _warn_of_the_living(self, store: Store) -> None:
        """Tell of tasks that were removed from a scheduler of the same name which still runs."""
        removed = [one for one in self._resolved if one.classification is Change.REMOVED and one.scheduler]
        nodes = store.view(lambda tx: Reading(tx).nodes()) if removed else []
        living = [node for node in nodes if node.stopped_ms is None and is_alive(node.process)]
        for one in removed:
            owner = next((node for node in living if task_job_id(one.task) in (node.functions or ())), None)
            if owner is not None:
                advice = "give each program on this store a name of its own, chronex.Scheduler(name=…)"
                found = f"task {quoted(one.task)} was removed, though a scheduler that lives has it"
                log_event(log, f"{found} (pid {owner.process.pid}); {advice}", {"node": owner.id}, logging.WARNING)

    async def _fail(self, problem: BaseException) -> None:
        """Go back to Uninitialized. Running callbacks end in the background: one of them may be the caller."""
        engine, self._engine = self._engine, None
        if engine is not None:
            self._polling = change_state(self._polling, PollingState.INACTIVE)
            self._journal_if_possible("PollingStopped")
        self._journal_if_possible("SchedulerInitializationFailed", error=type(problem).__name__)
        self._state = change_state(self._state, SchedulerState.UNINITIALIZED)
        if engine is None and not self._draining:
            await self._close()
        else:
            self._run_in_background(self._drain_and_close(engine))

    # -- polling -----------------------------------------------------------------------------------------

    async def _poll(self, *, wanted: bool) -> None:
        """Poll while a task is scheduled, and only then."""
        if wanted and self._engine is None:
            await self._wait_until_drained()
            await self._start_polling()
        elif not wanted and self._engine is not None:
            self._run_in_background(self._engine.stop(drain=True))
            self._engine = None
            self._polling = change_state(self._polling, PollingState.INACTIVE)
            self._journal("PollingStopped")

    async def _start_polling(self) -> None:
        assert self._store is not None
        engine = EmbeddedEngine(
            self._store,
            calls=self._functions,
            can_import=False,
            settings=self._settings,
            clock=self._clock,
        )
        await engine.start()
        self._engine = engine
        self._polling = change_state(self._polling, PollingState.ACTIVE)
        self._journal("PollingStarted")

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
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

    async def _wait_until_drained(self) -> None:
        while self._draining:
            await asyncio.wait(set(self._draining))

    async def _call(self, job: str, _context: TaskContext) -> None:
        """One attempt of a task."""
        callback = self._callbacks.get(job)
        if callback is None:
            raise LookupError(f"the task {self._names.get(job, job)!r} is registered no longer")
        token = _calling.set(self)
        try:
            await callback()
        except Exception as problem:
            name, error = quoted(self._names.get(job, job)), escaped(f"{type(problem).__name__}: {problem}")
            log_event(log, f"task {name} failed: {error}", {"job": job}, logging.WARNING)
            raise
        finally:
            _calling.reset(token)

    # -- stop --------------------------------------------------------------------------------------------

    async def _stop(self) -> None:
        self._state = change_state(self._state, SchedulerState.STOPPING)
        try:
            try:
                self._journal("SchedulerStopRequested")
            finally:
                await self._stop_polling()
            self._journal("SchedulerStopped")
        except Exception as problem:
            raise StopSchedulerError(problem) from problem
        finally:
            self._state = change_state(self._state, SchedulerState.STOPPED)
            await self._close()

    async def _stop_polling(self) -> None:
        engine, self._engine = self._engine, None
        if engine is None:
            await self._wait_until_drained()
            return
        self._polling = change_state(self._polling, PollingState.STOPPING)
        try:
            try:
                self._journal("PollingStopRequested")
            finally:
                await engine.stop(drain=True)
                await self._wait_until_drained()
        finally:
            self._polling = change_state(self._polling, PollingState.INACTIVE)
        self._journal("PollingStopped")

    async def _close(self) -> None:
        feed = self._feed
        store = self._store
        self._feed = None
        self._store = None
        if feed is not None:
            await feed.close()
        if store is not None:
            with suppress(ChronexError):  # the error of a failing store was raised before
                self._last_tasks = store.view(lambda tx: task_statuses(Reading(tx), self._source))
            if isinstance(self._store_or_path, Path):
                store.close()

    # -- the journal -------------------------------------------------------------------------------------

    def _journal(self, name: str, **data: Any) -> None:
        assert self._store is not None
        named = {"node": self._identifier, "scheduler": self._identifier, **data}
        event = Event(name=name, at_ms=self._clock.wall_ms(), actor="declarative", data=named)
        self._store.update(lambda tx: journal.append(tx, event))

    def _journal_if_possible(self, name: str, **data: Any) -> None:
        """Journal a failure; when the store itself failed, the listener gets the event directly."""
        try:
            self._journal(name, **data)
        except Exception:
            if self._listener is not None:
                self._listener(SchedulerEvent(name, utc_datetime(self._clock.wall_ms()), "", data))


def default_store() -> Path:
    """A store apart from that of `chronex run`, which could not call a function of this program."""
    return user_state_path("chronex", appauthor=False) / "declarative"


def _of_this_machine(store: Store | Path | str | None) -> Store | Path | None:
    """ChronexError for what machines share: a Scheduler has the only polling cycle on its store."""
    if isinstance(store, str):
        problem = problem_of_store_name(store, "the store")
        if problem:
            raise ChronexError(problem)
        location: StoreLocation | None = read_location(store)
    else:
        location = store if isinstance(store, Path | None) else location_of(store)
    if isinstance(location, PostgresAddress):
        raise ChronexError("a Scheduler has its store to itself; name a directory, or use chronex.Engine")
    return location if isinstance(store, str) else store


def _zone_of_the_host() -> str:
    """Its name; a TZ variable that cannot be used is told, because every task would run at other times."""
    choice = host_zone()
    if choice.unused:
        import warnings

        advice = "give chronex.Scheduler(timezone=…) an IANA name such as Europe/Berlin, or set TZ to one"
        message = f"TZ={choice.unused!r} is no zone name; tasks run in {choice.zone.name} ({advice})"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return choice.zone.name


def _wrapped(problem: Exception, definitions: tuple[TaskDefinition, ...]) -> ScheduleTaskError:
    """An unexpected error, with the first of the tasks that it kept from being scheduled."""
    first = definitions[0] if definitions else None
    return ScheduleTaskError(first.name if first else "", first.cron if first else "", problem)


LIFECYCLE_EVENTS = frozenset(
    {
        "SchedulerInitializationStarted",
        "SchedulerInitializationCompleted",
        "SchedulerInitializationFailed",
        "SchedulerReinitializationStarted",
        "SchedulerStopRequested",
        "SchedulerStopped",
        "PollingStarted",
        "PollingStopRequested",
        "PollingStopped",
    }
)
TASK_EVENTS = frozenset(
    {"TaskRunStarted", "TaskRunCompleted", "TaskRunFailed", "TaskRetryStarted", "TaskRetryPreempted"}
)
# A store that waits in a thread keeps the program from ending for as long as that thread waits.
_MAX_WAIT_S = 1.0


class SchedulerEvent(NamedTuple):
    """One event as a listener gets it: the journal's, with the task's own name. `at` is aware, in UTC."""

    name: str
    at: datetime
    task: str
    data: dict[str, Any]


Listener = Callable[[SchedulerEvent], Any]


class EventFeed:
    """Follows the journal of one store for one scheduler. A listener that raises is reported to the event loop.

    `names` has the name of each task by the id of its job; the scheduler adds to it.
    """

    def __init__(self, store: Store, scheduler: str, names: Mapping[str, str], listener: Listener) -> None:
        self._store = store
        self._scheduler = scheduler
        self._names = names
        self._listener = listener
        self._position = store.view(journal.head)
        self._is_closing = False
        self._following = asyncio.get_running_loop().create_task(self._follow(), name="chronex events")

    async def _follow(self) -> None:
        while not self._is_closing:
            seen = self._store.wait(-1, 0)
            self.deliver()
            await self._store.wait_async(seen, _MAX_WAIT_S)

    def deliver(self) -> None:
        """Hand over every event beyond the last one that was handed over."""
        while lines := self._store.view(lambda tx: journal.tail(tx, self._position)):
            for number, event in lines:
                self._position = number
                self._deliver_one(event)

    def _deliver_one(self, event: Event) -> None:
        is_ours = event.name in LIFECYCLE_EVENTS and event.data.get("scheduler") == self._scheduler
        if not is_ours and not (event.name in TASK_EVENTS and event.job in self._names):
            return
        task = self._names.get(event.job, "")
        try:
            self._listener(SchedulerEvent(event.name, utc_datetime(event.at_ms), task, _event_data(event)))
        except Exception as problem:
            context = {"message": "a listener of the scheduler failed", "exception": problem}
            asyncio.get_running_loop().call_exception_handler(context)

    async def close(self) -> None:
        """Hand over the rest and stop.

        The flag is needed because a cancellation may be lost: asyncio.wait_for of Python 3.11 swallows one that
        comes together with what it waits for.
        """
        self._is_closing = True
        self._following.cancel()
        await asyncio.wait([self._following])
        self.deliver()


def _event_data(event: Event) -> dict[str, Any]:
    extra = {
        "attempt": event.attempt,
        "scheduled_at": None if event.nominal_ms is None else utc_datetime(event.nominal_ms),
        "reason": text_of(event.reason) or None,
    }
    return {**event.data, **{key: value for key, value in extra.items() if value is not None}}
