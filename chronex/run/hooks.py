"""on_start and on_complete: a command that reads the execution report, or a function that is given it.

A hook changes nothing of what it is told about. It is bounded in time and output, and what goes wrong with it comes
back as a sentence.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

from chronex.engine.reports import Report
from chronex.model.records import Call, Command, Work
from chronex.run.callables import Calls, described, resolve
from chronex.run.request import NotStarted
from chronex.run.surroundings import Surroundings
from chronex.run.telling import tell_command

HOOK_TIMEOUT_S = 30.0


async def run_hook(
    work: Work, report: Report, surroundings: Surroundings, calls: Calls, timeout_s: float = HOOK_TIMEOUT_S
) -> str:
    """Empty where all went well, else what did not. Never raises for the hook's sake."""
    try:
        if isinstance(work, Call):
            return await asyncio.wait_for(_call(work, report, calls), timeout_s)
        return await _command(work, report, surroundings, timeout_s)
    except TimeoutError:
        return f"still running after {timeout_s:g} s"
    except Exception as problem:
        return described(problem)


async def _call(work: Call, report: Report, calls: Calls) -> str:
    """The report as plain values; what is sync runs in a thread, and what hangs there is left behind."""
    function: Any = await resolve(calls.find(work.target))
    if isinstance(function, NotStarted):
        return function.error
    told = msgspec.to_builtins(report)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        await function(told)
        return ""
    returned = await asyncio.get_running_loop().run_in_executor(None, function, told)
    if inspect.isawaitable(returned):
        await returned
    return ""


async def _command(command: Command, report: Report, surroundings: Surroundings, timeout_s: float) -> str:
    variables = _variables(report, surroundings.environment)
    return await tell_command(command, msgspec.json.encode(report) + b"\n", variables, surroundings, timeout_s)


def _variables(report: Report, own: Mapping[str, str]) -> dict[str, str]:
    return {
        "CHRONEX_HOOK": report.hook,
        "CHRONEX_JOB": report.job,
        "CHRONEX_OCCURRENCE": report.occurrence,
        "CHRONEX_SCHEDULED_TIME": report.nominal,
        "CHRONEX_STATE": report.state,
        "CHRONEX_REASON": report.reason.replace("\0", ""),
        **own,
    }
