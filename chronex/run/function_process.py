"""A function in a process of its own: a command like any other, so it is recorded, timed out and ended like one.

The scheduler's side writes what the function needs into a file and starts this module as a command; the other side
reads it, calls the function and leaves what came of it beside that file. What it prints is in the attempt's log. It
ends by TERM and KILL: unlike a thread it cannot be stuck for good.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import runpy
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from chronex.clock import SYSTEM_CLOCK
from chronex.run.callables import (
    TaskContext,
    TaskFunction,
    TaskLog,
    TaskStateBuffer,
    bound,
    context_for,
    described,
    is_async,
)
from chronex.run.command_start import run_attempt
from chronex.run.functions import RegisteredFunction, WithoutContext, until_canceled
from chronex.run.request import AttemptRequest, AttemptResult, EndReason
from chronex.run.spawn import RunContext
from chronex.run.supervise import Cancellation, Hooks
from chronex.run.values_file import values_returned

CALL_VARIABLE = "CHRONEX_CALL"
_CALL, _OUTCOME = "call", "outcome"
_LOOK_S = 1.0


class FunctionCall(msgspec.Struct, frozen=True):
    """What the other process needs: the attempt, the function, the task's state, and how modules are found here."""

    request: AttemptRequest
    reference: str
    needs_context: bool
    state: dict[str, str]
    path: list[str]
    argv: list[str]
    main: str
    parent: int
    ends_with_program: bool = False


class FunctionOutcome(msgspec.Struct, frozen=True):
    """What came of it: the problem in words, or the changes of the task's state."""

    error: str = ""
    state_changes: dict[str, str | None] = {}
    values: dict[str, str] = {}
    values_problem: str = ""


# -- the scheduler's side -------------------------------------------------------------------------------------


async def run_in_process(
    request: AttemptRequest,
    function: RegisteredFunction,
    hooks: Hooks,
    run_context: RunContext,
    state: Mapping[str, str] | None = None,
    *,
    ends_with_program: bool = False,
) -> AttemptResult:
    """Call the function in a process of its own and say how it ended; it never raises for the function's sake.

    With `ends_with_program` it is ended where this process is gone: others may begin it anew then.
    """
    directory = Path(tempfile.mkdtemp(prefix="chronex-call-"))
    try:
        call = FunctionCall(
            request,
            function.reference,
            not isinstance(function.call, WithoutContext),
            dict(state or {}),
            [one or os.getcwd() for one in sys.path],
            sys.argv,
            _main_script(),
            os.getpid(),
            ends_with_program,
        )
        (directory / _CALL).write_bytes(msgspec.msgpack.encode(call))
        result = await run_attempt(_as_command(request, directory, call.path), hooks, run_context)
        return _with_outcome(result, _outcome(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _as_command(request: AttemptRequest, directory: Path, path: list[str]) -> AttemptRequest:
    """Unlike a command, a function has the whole environment of its program: it is a part of it."""
    ours = {CALL_VARIABLE: str(directory), "PYTHONPATH": os.pathsep.join(path)}
    command = (sys.executable, "-P", "-m", "chronex.run.function_process")
    return replace(request, command=command, env={**os.environ, **request.env, **ours})


def _main_script() -> str:
    """The file of this program, where it was started as one: functions of `__main__` are found in it."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return str(Path(file).absolute()) if file else ""


def _outcome(directory: Path) -> FunctionOutcome | None:
    try:
        return msgspec.msgpack.decode((directory / _OUTCOME).read_bytes(), type=FunctionOutcome)
    except (OSError, msgspec.MsgspecError):
        return None  # it was ended before it could say anything


def _with_outcome(result: AttemptResult, outcome: FunctionOutcome | None) -> AttemptResult:
    if outcome is None:
        return result
    if result.reason is EndReason.EXITED:
        changes, values = outcome.state_changes, outcome.values
        return replace(result, state_changes=changes, values=values, values_problem=outcome.values_problem)
    if result.reason is EndReason.EXIT_CODE and outcome.error:
        return replace(result, reason=EndReason.EXCEPTION, error=outcome.error, exit_code=None, retryable=True)
    return result


# -- the other side -------------------------------------------------------------------------------------------


class _Output:
    """Standard output, which is the attempt's log."""

    def write(self, chunk: bytes, /) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def main() -> int:
    """Read the call, make it, and leave its outcome. 0 for a success."""
    directory = Path(os.environ[CALL_VARIABLE])
    call = msgspec.msgpack.decode((directory / _CALL).read_bytes(), type=FunctionCall)
    state = TaskStateBuffer(call.state)
    cancellation = Cancellation()
    context = context_for(call.request, SYSTEM_CLOCK.wall_ms(), cancellation, state, TaskLog(_Output()))
    try:
        signal.signal(signal.SIGTERM, lambda *_: cancellation.request("it was asked to end"))
        if call.ends_with_program:
            threading.Thread(target=_end_with_program, args=(call,), daemon=True).start()
        handed = values_returned(_call(_function(call), context, call.request))
    except BaseException as problem:
        sys.stdout.flush()
        traceback.print_exception(problem)
        outcome = FunctionOutcome(error=described(problem))
    else:
        outcome = FunctionOutcome("", state.changes, handed.values, handed.problem)
    if os.getppid() != call.parent:  # the scheduler is gone: nobody reads this, or clears it away
        shutil.rmtree(directory, ignore_errors=True)
    else:
        (directory / _OUTCOME).write_bytes(msgspec.msgpack.encode(outcome))
    return 1 if outcome.error else 0


def _end_with_program(call: FunctionCall) -> None:
    """As the program would have done it: TERM, which the main thread hears, and KILL after the grace."""
    while os.getppid() == call.parent:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(call.request.grace_ms / 1000)
    shutil.rmtree(os.environ[CALL_VARIABLE], ignore_errors=True)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # and what it has started
    os.kill(os.getpid(), signal.SIGKILL)


def _function(call: FunctionCall) -> TaskFunction:
    sys.argv[:] = call.argv  # what is imported may look at it, as it did in the program
    module_name, _, path = call.reference.partition(":")
    found: Any = _main_module(call.main) if module_name == "__main__" else importlib.import_module(module_name)
    for name in path.split("."):
        found = getattr(found, name)
    function: TaskFunction = found
    return function if call.needs_context else WithoutContext(function)


def _main_module(script: str) -> types.ModuleType:
    """The script of the program under another name, as multiprocessing does: its `if __name__` part does not run."""
    module = types.ModuleType("__mp_main__")
    module.__dict__.update(runpy.run_path(script, run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    return module


def _call(function: TaskFunction, context: TaskContext, request: AttemptRequest) -> Any:
    work = bound(function, context, request)
    if not is_async(function):
        returned = work()
        if not inspect.isawaitable(returned):
            return returned
        work = partial(_same, returned)
    return asyncio.run(until_canceled(work, context.cancellation))


def _same(value: Any) -> Any:
    return value


if __name__ == "__main__":
    sys.exit(main())
