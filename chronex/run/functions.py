"""The functions of a program that jobs may call by name, and where each of them runs: loop, thread or process."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from chronex.errors import ChronexError
from chronex.model import Call
from chronex.run.callables import TaskContext, TaskFunction, can_be_called, is_async
from chronex.run.request import NotStarted
from chronex.run.supervise import Cancellation
from chronex.text.suggestions import nearest

# The name that asks for the TaskContext, where a function does not say its type.
CONTEXT_NAMES = ("context", "ctx", "_context")


class ExecutorKind(StrEnum):
    """Where a function runs. A process can be ended when it is stuck; a thread cannot."""

    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"


class RegisteredFunction(NamedTuple):
    """A function as the program gave it, what is called in its place, and for a process how that finds it."""

    function: TaskFunction
    call: TaskFunction
    kind: ExecutorKind
    reference: str = ""


def registered(function: TaskFunction, executor: str | None = None, *, by_name: bool = False) -> RegisteredFunction:
    """Check the function and the executor, which is by default the loop for an async function, else a thread.

    With `by_name` it is given the context only where its first parameter is called `context` or has that type.
    """
    if not callable(function):
        raise ChronexError(f"{function!r} cannot be called; give a function")
    kind = _kind(function, executor)
    call = WithoutContext(function) if by_name and not asks_for_context(function) else function
    if kind is ExecutorKind.PROCESS:
        return RegisteredFunction(function, call, kind, _reference(function))
    if kind is ExecutorKind.THREAD and is_async(function):
        call = AsyncInThread(call)
    return RegisteredFunction(function, call, kind)


def _kind(function: TaskFunction, executor: str | None) -> ExecutorKind:
    if executor is None:
        return ExecutorKind.ASYNC if is_async(function) else ExecutorKind.THREAD
    known = [kind.value for kind in ExecutorKind]
    if executor not in known:
        meant = nearest(str(executor), known)
        hint = f"did you mean {meant}?" if meant else f"it is one of {', '.join(known)}"
        raise ChronexError(f"executor cannot be {executor!r}; {hint}")
    kind = ExecutorKind(executor)
    if kind is ExecutorKind.ASYNC and not is_async(function):
        hint = "write async def, or executor='thread'"
        raise ChronexError(f"{shown(function)} is not async, and would hold up the event loop; {hint}")
    return kind


def _reference(function: TaskFunction) -> str:
    """Where another process finds it; a function inside a function is in no module."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    if not module or "<" in name or not inspect.isroutine(function):
        hint = "define it with def at the top of a module"
        raise ChronexError(f"another process cannot find {shown(function)}; {hint}, or use executor='thread'")
    if module == "__main__":
        module = _main_module(function)
    if getattr(sys, "frozen", False):
        raise ChronexError("a frozen program has no Python to start a process with; use executor='thread'")
    return f"{module}:{name}"


def _main_module(function: TaskFunction) -> str:
    """The name by which another process finds the module that this program was started as."""
    main = sys.modules["__main__"]
    if (spec := getattr(main, "__spec__", None)) is not None:
        return str(spec.name)  # python -m
    if not getattr(main, "__file__", None):
        hint = "move it to a module, or use executor='thread'"
        raise ChronexError(f"another process cannot find {shown(function)}, which is in no file; {hint}")
    return "__main__"


def shown(function: TaskFunction) -> str:
    return f"{getattr(function, '__qualname__', None) or repr(function)[:80]}()"


def asks_for_context(function: TaskFunction) -> bool:
    """Its first parameter is called `context`, or is said to be a TaskContext."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    if first is None or first.kind is first.KEYWORD_ONLY:
        return False
    is_annotated = first.annotation is TaskContext or str(first.annotation).rpartition(".")[2] == "TaskContext"
    return first.name in CONTEXT_NAMES or is_annotated


def check_arguments(function: TaskFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """ChronexError where a call with these arguments, and with the context where it asks for it, must fail."""
    if not callable(function):
        raise ChronexError(f"{function!r} cannot be called; give a function")
    before = (None,) if asks_for_context(function) else ()
    if can_be_called(function, *before, *args, **kwargs):
        return
    written = [*("context" for _ in before), *(repr(one)[:40] for one in args)]
    written += [f"{name}={value!r}"[:60] for name, value in kwargs.items()]
    raise ChronexError(
        f"{shown(function)} takes {inspect.signature(function)} and would be called with ({', '.join(written)}); "
        "give what is missing in args or kwargs"
    )


class WithoutContext:
    """A function that is called with its arguments alone."""

    def __init__(self, function: TaskFunction) -> None:
        self.func = function  # this name, so that it is seen to be async where it is

    def __call__(self, context: TaskContext, /, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)


class AsyncInThread:
    """An async function on an event loop of its own, so that what blocks in it holds up nobody else."""

    def __init__(self, function: TaskFunction) -> None:
        self._function = function

    def __call__(self, context: TaskContext, /, *args: Any, **kwargs: Any) -> Any:
        work = functools.partial(self._function, context, *args, **kwargs)
        return asyncio.run(until_canceled(work, context.cancellation))


async def until_canceled(work: Callable[[], Any], cancellation: Cancellation) -> Any:
    """Await what `work` gives; the request to end cancels it, from whatever thread that comes."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def cancel() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the function has ended
            loop.call_soon_threadsafe(task.cancel)

    cancellation.listen(cancel)
    try:
        return await work()
    finally:
        cancellation.forget(cancel)


class Calls:
    """The functions of this program that jobs may call by name. `can_import`: also "module:function"."""

    def __init__(self, functions: Mapping[str, TaskFunction] | None = None, *, can_import: bool = False) -> None:
        self._functions = {name: registered(function) for name, function in (functions or {}).items()}
        self.can_import = can_import

    def add(self, name: str, function: TaskFunction | RegisteredFunction) -> Call:
        """What a task's `run` is to be, so that it calls `function`. One name means one function."""
        given = function if isinstance(function, RegisteredFunction) else registered(function)
        known = self._functions.setdefault(name, given)
        if known.function != given.function:
            raise ChronexError(f"another function is registered as {name!r}; choose another name")
        if known.kind is not given.kind:
            hint = "give it one executor, or a second name by add_call"
            raise ChronexError(f"{shown(given.function)} has the executor {known.kind.value} already; {hint}")
        return Call(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._functions))

    def has(self, target: str) -> bool:
        """Whether this program can try to call it."""
        return target in self._functions or (self.can_import and ":" in target)

    def in_process(self, target: str) -> RegisteredFunction | None:
        """The function, where it runs in a process of its own."""
        known = self._functions.get(target)
        return known if known is not None and known.kind is ExecutorKind.PROCESS else None

    def find(self, target: str) -> TaskFunction | str | NotStarted:
        """What `run_callable` takes; NotStarted where this program does not have it."""
        known = self._functions.get(target)
        if known is not None:
            return known.call
        if self.can_import and ":" in target:
            return target
        hint = "run it from the program that registers it"
        return NotStarted(f"this scheduler has no function {target[:200]!r}; {hint}", retryable=False)
