"""Runs one attempt of a Python callable, with a context: names, instants, its state, its log, its cancellation.

run/functions.py has the functions that a program registers.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from chronex.engine.task_state import MAX_NAMES, check_state
from chronex.errors import TaskStateError
from chronex.model import AttemptState
from chronex.run.attempt_log import BoundedLog
from chronex.run.request import AttemptRequest, AttemptResult, EndReason, ExitVerdict, NotStarted
from chronex.run.spawn import RunContext
from chronex.run.supervise import (
    Cancellation,
    Hooks,
    Started,
    canceled,
    finish_log,
    never_started,
    not_started,
    timed_out,
)
from chronex.run.values_file import NOTHING_HANDED, values_returned
from chronex.text.instants import utc_datetime


class TaskStateBuffer:
    """Small values that a task keeps. Changes are buffered; they count once the attempt has succeeded."""

    def __init__(self, committed: Mapping[str, str]) -> None:
        self._committed = dict(committed)
        self.changes: dict[str, str | None] = {}

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value as this attempt sees it: its own change first, then what was there before."""
        value = self.changes[key] if key in self.changes else self._committed.get(key)
        return default if value is None else value

    def set(self, key: str, value: str) -> None:
        """Keep `value` under `key` if this attempt succeeds. TaskStateError for what is too long or too many."""
        if not isinstance(value, str):
            raise TypeError(f"the state {key!r} must be text, not {type(value).__name__}")
        self._change(key, value)

    def remove(self, key: str) -> None:
        """Forget `key` if this attempt succeeds."""
        self._change(key, None)

    def names(self) -> tuple[str, ...]:
        """Every key that has a value as this attempt sees it, in order."""
        return tuple(sorted(key for key in {*self._committed, *self.changes} if self.get(key) is not None))

    def _change(self, key: str, value: str | None) -> None:
        check_state(key, value)
        if key not in self.changes and len(self.changes) >= MAX_NAMES:
            raise TaskStateError(f"one attempt can change at most {MAX_NAMES} names of its task's state")
        self.changes[key] = value


class ByteSink(Protocol):
    def write(self, chunk: bytes, /) -> object: ...


class TaskLog:
    """Lines for the attempt's log, from any thread. `print` does not come here."""

    def __init__(self, log: ByteSink) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._open = True

    def __call__(self, text: str) -> None:
        """Write one line."""
        self.write(text + "\n")

    def write(self, text: str) -> None:
        """Write text as it is. After the attempt has ended it goes nowhere."""
        with self._lock:
            if self._open:
                self._log.write(text.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        with self._lock:
            self._open = False


@dataclass(frozen=True, slots=True)
class TaskContext:
    """One attempt, as the callable sees it. All times are aware, in UTC.

    `version` is that of the job's definition, `recovery` says that the instant was missed and is made up for, and
    `fire_count` is which execution of the job this is, from 1 (0 where that was not recorded). `inputs` has what the
    tasks that it needs have handed over, `inputs["extract"]["rows"]`, and those of jobs before it,
    `inputs["etl.load"]["rows"]`; `matrix` is its combination, where it is one of a matrix. `fence` grows with every
    attempt of the job: who remembers the greatest it has seen can refuse one that was given up and lives on.
    """

    job: str
    task: str
    occurrence_id: str
    run_id: str
    attempt_id: str
    attempt: int
    scheduled: datetime
    actual: datetime
    last_run: datetime | None
    version: int
    recovery: bool
    fire_count: int
    fence: int
    span_start: datetime | None
    span_end: datetime | None
    idempotency_key: str
    metadata: Mapping[str, str]
    parameters: Mapping[str, str]
    inputs: Mapping[str, Mapping[str, str]]
    matrix: Mapping[str, str]
    cancellation: Cancellation
    state: TaskStateBuffer
    log: TaskLog


def context_for(
    request: AttemptRequest, actual_ms: int, cancellation: Cancellation, state: TaskStateBuffer, log: TaskLog
) -> TaskContext:
    return TaskContext(
        job=request.job,
        task=request.task,
        occurrence_id=request.occurrence_id,
        run_id=request.run_id,
        attempt_id=request.attempt_id,
        attempt=request.number,
        scheduled=_instant(request.nominal_ms),
        actual=_instant(actual_ms),
        last_run=_if_given(_instant, request.last_run_ms),
        version=request.version,
        recovery=request.recovery,
        fire_count=request.fire_count,
        fence=request.fence,
        span_start=_if_given(_instant, request.span_start_ms),
        span_end=_if_given(_instant, request.span_end_ms),
        idempotency_key=request.idempotency_key,
        metadata=dict(request.metadata),
        parameters=dict(request.parameters),
        inputs={source: dict(values) for source, values in request.inputs.items()},
        matrix=dict(request.matrix),
        cancellation=cancellation,
        state=state,
        log=log,
    )


def _instant(at_ms: int) -> datetime:
    return utc_datetime(at_ms)


def _if_given(make: Callable[[int], datetime], value: int | None) -> datetime | None:
    return None if value is None else make(value)


# It is called with the context, and behind it with the arguments that its job has for it.
TaskFunction = Callable[..., Any]
_SUCCESS = ExitVerdict(AttemptState.SUCCESS, EndReason.EXITED, False, "")
_MAX_MESSAGE = 500


async def run_callable(
    request: AttemptRequest,
    target: str | TaskFunction | NotStarted,
    hooks: Hooks,
    run_context: RunContext,
    state: Mapping[str, str] | None = None,
) -> AttemptResult:
    """Call `target` (a function, or "module:function") with a TaskContext and say how it ended; it never raises.

    On timeout or cancellation `context.cancellation` is requested and an async callable is cancelled; what has not
    ended after the grace is left behind: Python cannot end a thread. `state` is the task's committed state.
    """
    function = await resolve(target)
    if isinstance(function, NotStarted):
        return not_started(function, run_context.clock)
    if (stopped := _stopped_before(hooks, run_context)) is not None:
        return stopped
    attempt = _CallableAttempt(request, function, run_context, dict(state or {}))
    try:
        await hooks.started(Started(None, attempt.started_ms, f"{request.attempt_id}.log"))
        stopped = _stopped_before(hooks, run_context)  # while its start was recorded
        return stopped or await attempt.finish(hooks.cancellation)
    finally:
        attempt.close()


def _stopped_before(hooks: Hooks, run_context: RunContext) -> AttemptResult | None:
    if not hooks.cancellation.requested:
        return None
    return never_started(canceled(hooks.cancellation.reason), run_context.clock)


async def resolve(target: str | TaskFunction | NotStarted) -> TaskFunction | NotStarted:
    """The function that "module:function" names. A module that is not loaded yet is imported in a thread."""
    if not isinstance(target, str):
        return target
    module_name, _, path = target.partition(":")
    try:
        found: Any = await asyncio.get_running_loop().run_in_executor(None, importlib.import_module, module_name)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as problem:
        return NotStarted(f"{target!r} cannot be loaded: {described(problem)}", retryable=False)
    if not callable(found):
        return NotStarted(f"{target!r} is not callable", retryable=False)
    function: TaskFunction = found
    return function


def described(problem: BaseException) -> str:
    """Type and message on one line."""
    try:
        message = " ".join(str(problem).split())
    except Exception:
        message = "(its message could not be read)"
    return f"{type(problem).__name__}: {message[:_MAX_MESSAGE]}" if message else type(problem).__name__


class _CallableAttempt:
    def __init__(
        self, request: AttemptRequest, function: TaskFunction, run_context: RunContext, state: dict[str, str]
    ) -> None:
        self.request = request
        self.function = function
        self.clock = run_context.clock
        self.started_ms = self.clock.wall_ms()
        self.began = self.clock.monotonic_ms()
        self.bounded_log = BoundedLog(run_context.logs, request.attempt_id, request.log_limit)
        self.log = TaskLog(self.bounded_log)
        self.state = TaskStateBuffer(state)
        self.returned: Any = None
        # Its own, so that a timeout reaches the callable without cancelling what the engine's signal is for.
        self.cancellation = Cancellation()
        self.context = context_for(request, self.started_ms, self.cancellation, self.state, self.log)
        self.bound = bound(function, self.context, request)

    async def finish(self, requested_stop: Cancellation) -> AttemptResult:
        work = asyncio.ensure_future(self._call())
        stop: asyncio.Future[ExitVerdict] = asyncio.get_running_loop().create_future()

        def on_cancel() -> None:
            stop.set_result(canceled(requested_stop.reason))

        requested_stop.listen(on_cancel)
        try:
            verdict = await self._until_done_or_stopped(work, stop)
        except asyncio.CancelledError:
            self.cancellation.request("the scheduler is stopping")
            work.cancel()
            raise
        finally:
            requested_stop.forget(on_cancel)
        return await self._result(verdict, left_behind=not work.done())

    async def _until_done_or_stopped(
        self, work: asyncio.Future[BaseException | None], stop: asyncio.Future[ExitVerdict]
    ) -> ExitVerdict:
        timeout = self.request.timeout_ms
        either: list[asyncio.Future[Any]] = [work, stop]
        seconds = None if timeout is None else timeout / 1000
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return self._judge(work.result())
        verdict = stop.result() if stop.done() else timed_out(timeout or 0)
        self.cancellation.request(verdict.error)
        if is_async(self.function):
            work.cancel()
        await asyncio.wait([work], timeout=self.request.grace_ms / 1000)
        return verdict

    async def _call(self) -> BaseException | None:
        """The exception, if any. Also SystemExit: asyncio would let that end the whole daemon."""
        try:
            if is_async(self.function):
                self.returned = await self.bound()
                return None
            returned, problem = await _in_thread(self.bound, self.context)
            if problem is not None:
                return problem
            self.returned = await _awaited(returned) if inspect.isawaitable(returned) else returned
        except BaseException as raised:
            return raised
        return None

    def _judge(self, problem: BaseException | None) -> ExitVerdict:
        if problem is None:
            return _SUCCESS
        self.log.write("".join(traceback.format_exception(problem)))
        return ExitVerdict(AttemptState.FAILED, EndReason.EXCEPTION, True, described(problem))

    async def _result(self, verdict: ExitVerdict, *, left_behind: bool) -> AttemptResult:
        self.log.close()
        error = verdict.error + ("; it still runs" if left_behind else "")
        handed = values_returned(self.returned) if verdict.state is AttemptState.SUCCESS else NOTHING_HANDED
        return AttemptResult(
            state=verdict.state,
            reason=verdict.reason,
            retryable=verdict.retryable,
            error=error,
            started_ms=self.started_ms,
            finished_ms=self.clock.wall_ms(),
            duration_ms=self.clock.monotonic_ms() - self.began,
            log=await finish_log(self.bounded_log),
            state_changes=dict(self.state.changes) if verdict.state is AttemptState.SUCCESS else {},
            values=handed.values,
            values_problem=handed.problem,
        )

    def close(self) -> None:
        self.log.close()


def bound(function: TaskFunction, context: TaskContext, request: AttemptRequest) -> Callable[[], Any]:
    """The call with the context and the arguments of the job; without the context where it cannot take that."""
    with_context = functools.partial(function, context, *request.args, **request.kwargs)
    if can_be_called(function, context, *request.args, **request.kwargs):
        return with_context
    plain = functools.partial(function, *request.args, **request.kwargs)
    return plain if can_be_called(function, *request.args, **request.kwargs) else with_context


def can_be_called(function: TaskFunction, *args: Any, **kwargs: Any) -> bool:
    """Whether it takes these arguments, also where Python cannot tell, as for some built-in functions."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def is_async(function: TaskFunction) -> bool:
    """Whether calling it gives a coroutine: also behind functools.partial, and for an object with `__call__`."""
    return inspect.iscoroutinefunction(_unwrapped(function))


def _unwrapped(function: TaskFunction) -> Any:
    """What decides whether it is async: behind functools.partial, or the `__call__` of an object."""
    inner: Any = inspect.unwrap(function)
    while hasattr(inner, "func"):
        inner = inner.func
    return inner if inspect.isroutine(inner) else getattr(inner, "__call__", inner)  # noqa: B004


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


async def _in_thread(function: Callable[[], Any], context: TaskContext) -> tuple[Any, BaseException | None]:
    """What it returned and what it raised.

    A thread of its own, and one that does not keep the program alive: a pool would be filled by what hangs.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def set_result(returned: Any, problem: BaseException | None) -> None:
        if not done.done():
            done.set_result((returned, problem))

    def work() -> None:
        returned, problem = None, None
        try:
            returned = function()
        except BaseException as raised:
            problem = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits for the result
            loop.call_soon_threadsafe(set_result, returned, problem)

    threading.Thread(target=work, name=f"chronex {context.job}/{context.task}", daemon=True).start()
    return await done
