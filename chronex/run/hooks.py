"""Runs hooks and notify commands: each reads a message on its standard input. Time and output are bounded."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
from collections.abc import Mapping
from typing import Any

import msgspec

from chronex.engine.execution_report import Report
from chronex.model.job import Call, Command, Work
from chronex.run.callables import described, resolve
from chronex.run.functions import Calls
from chronex.run.request import NotStarted
from chronex.run.spawn import RunContext, prepare

_KEPT_OUTPUT = 2_000
_CHUNK = 65_536


async def send_to_command(
    command: Command, message: bytes, variables: Mapping[str, str], run_context: RunContext, timeout_s: float
) -> str:
    """Empty where it ended well, else the problem in words. The message never becomes part of a command."""
    named = {name.encode(): value.encode("utf-8", "surrogateescape") for name, value in variables.items()}
    environment = {**run_context.inheritance.variables, **named}
    invocation = prepare(command, None, environment)
    if isinstance(invocation, NotStarted):
        return invocation.error
    try:
        process = await asyncio.create_subprocess_exec(
            *invocation.argv,
            executable=invocation.path,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as problem:
        return problem.strerror or str(problem)
    try:
        output = await asyncio.wait_for(_exchange(process, message), timeout_s)
    except TimeoutError:
        return f"still running after {timeout_s:g} s"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return _exit_problem(process.returncode or 0, output)


def _exit_problem(code: int, output: bytes) -> str:
    if code == 0:
        return ""
    how = f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"
    last = output.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"{how}: {last}" if last else how


async def _exchange(process: asyncio.subprocess.Process, message: bytes) -> bytes:
    """Write the message and read until the process ends; it need not read, and only the last output is kept."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(message)
        await process.stdin.drain()
    process.stdin.close()
    output = b""
    while chunk := await process.stdout.read(_CHUNK):
        output = (output + chunk)[-_KEPT_OUTPUT:]
    await process.wait()
    return output


HOOK_TIMEOUT_S = 30.0


async def run_hook(
    work: Work, report: Report, run_context: RunContext, calls: Calls, timeout_s: float = HOOK_TIMEOUT_S
) -> str:
    """Empty where all went well, else what did not. Never raises for the hook's sake."""
    try:
        if isinstance(work, Call):
            return await asyncio.wait_for(_call(work, report, calls), timeout_s)
        return await _command(work, report, run_context, timeout_s)
    except TimeoutError:
        return f"still running after {timeout_s:g} s"
    except Exception as problem:
        return described(problem)


async def _call(work: Call, report: Report, calls: Calls) -> str:
    """The report as plain values; what is sync runs in a thread, and what hangs there is left behind."""
    function: Any = await resolve(calls.find(work.target))
    if isinstance(function, NotStarted):
        return function.error
    plain = msgspec.to_builtins(report)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        await function(plain)
        return ""
    returned = await asyncio.get_running_loop().run_in_executor(None, function, plain)
    if inspect.isawaitable(returned):
        await returned
    return ""


async def _command(command: Command, report: Report, run_context: RunContext, timeout_s: float) -> str:
    variables = _variables(report, run_context.environment)
    return await send_to_command(command, msgspec.json.encode(report) + b"\n", variables, run_context, timeout_s)


def _variables(report: Report, own: Mapping[str, str]) -> dict[str, str]:
    return {
        "CHRONEX_HOOK": report.hook,
        "CHRONEX_DELIVERY": report.delivery,
        "CHRONEX_JOB": report.job,
        "CHRONEX_OCCURRENCE": report.occurrence,
        "CHRONEX_SCHEDULED_TIME": report.nominal,
        "CHRONEX_STATE": report.state,
        "CHRONEX_REASON": report.reason.replace("\0", ""),
        **own,
    }
