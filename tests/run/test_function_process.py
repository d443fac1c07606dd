"""Functions in processes of their own: what they are given, what is taken back, and that they can be ended."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chronex.model import AttemptState
from chronex.run import AttemptResult, Cancellation, EndReason, Hooks, RunContext, Started
from chronex.run.callables import TaskFunction
from chronex.run.function_process import run_in_process
from chronex.run.functions import registered
from tests.kit.waits import DEADLINE_S, until_async
from tests.run import functions_of_a_module as module
from tests.run.requests import output, request

NO_HURRY = {"grace_ms": round(DEADLINE_S * 1000)}


async def call(
    run_context: RunContext, function: TaskFunction, state: Mapping[str, str] | None = None, **changes: Any
) -> AttemptResult:
    given = registered(function, "process", by_name=True)
    return await run_in_process(request(**changes), given, Hooks(), run_context, state)


async def test_it_is_given_context_and_arguments_and_its_output_is_the_log(run_context: RunContext) -> None:
    given = {"args": ("ann",), "kwargs": {"copies": 2}, "metadata": {"m": "1"}}
    result = await call(run_context, module.work, {"n": "1"}, **given)
    assert (result.state, result.error) == (AttemptState.SUCCESS, "")
    assert output(run_context, result) == b"to ann, 2 copies\nbackup 1 03:00 {'m': '1'} was 1\n"
    assert result.state_changes == {"n": "2"}


async def test_it_may_be_async_or_need_no_context_and_has_the_environment_of_its_program(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_PROGRAM", "is here")
    awaited, plain = await asyncio.gather(
        call(run_context, module.awaits), call(run_context, module.plain, args=("this",))
    )
    assert (awaited.state, awaited.state_changes) == (AttemptState.SUCCESS, {"async": "yes"})
    assert (plain.state, output(run_context, plain)) == (AttemptState.SUCCESS, b"this is here\n")


@pytest.mark.parametrize(
    ("function", "error"), [(module.fails, "ValueError: boom"), (module.leaves, "SystemExit: good bye")]
)
async def test_what_it_raises_is_the_error_and_its_state_is_dropped(
    function: TaskFunction, error: str, run_context: RunContext
) -> None:
    result = await call(run_context, function)
    assert (result.state, result.reason, result.error) == (AttemptState.FAILED, EndReason.EXCEPTION, error)
    assert result.retryable
    assert result.state_changes == {}
    assert error.partition(":")[0].encode() in output(run_context, result)


@pytest.mark.parametrize(
    ("function", "printed"),
    [(module.polite, b"ready\nends in order\n"), (module.canceled, b"ready\ncanceled\n")],
    ids=["a function that asks", "an async function"],
)
async def test_it_is_asked_to_end_and_given_the_grace(
    function: TaskFunction, printed: bytes, run_context: RunContext
) -> None:
    result = await canceled_when_ready(run_context, function, **NO_HURRY)
    assert (result.state, result.error) == (AttemptState.CANCELED, "by bob")
    assert output(run_context, result).startswith(printed)


async def test_what_is_stuck_is_killed_after_the_grace(run_context: RunContext) -> None:
    result = await canceled_when_ready(run_context, module.deaf, grace_ms=50)
    assert (result.state, result.signal) == (AttemptState.CANCELED, 9)


async def canceled_when_ready(run_context: RunContext, function: TaskFunction, **changes: Any) -> AttemptResult:
    cancellation, began = Cancellation(), asyncio.Event()
    asked = request(**changes)
    log = Path(run_context.logs.path) / f"{asked.attempt_id}.log"

    async def note(_started: Started) -> None:
        began.set()

    given = registered(function, "process", by_name=True)
    work = asyncio.create_task(run_in_process(asked, given, Hooks(note, cancellation), run_context))
    await asyncio.wait_for(began.wait(), DEADLINE_S)
    await until_async(lambda: log.exists() and b"ready" in log.read_bytes(), "the function to begin")
    cancellation.request("by bob")
    return await work


PROGRAM = """
import asyncio, pathlib, sys
from chronex.run import Hooks, LogDirectory, RunContext
from chronex.run.function_process import run_in_process
from chronex.run.functions import registered
from tests.run.requests import request

def of_the_script(context):
    context.state.set("main", __name__)

async def main():
    run_context = RunContext.of_this_process(LogDirectory(pathlib.Path(sys.argv[1])))
    result = await run_in_process(request(), registered(of_the_script, "process"), Hooks(), run_context)
    print(result.state, result.error, dict(result.state_changes))

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["script.py"], "success  {'main': '__mp_main__'}"),
        (["-m", "script"], "success  {'main': 'script'}"),
        (["-c", PROGRAM], "another process cannot find of_the_script(), which is in no file; move it to a module"),
    ],
    ids=["a script", "a module", "a text"],
)
def test_a_function_of_the_program_itself_is_found(arguments: list[str], found: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PROGRAM)
    path = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    command = [sys.executable, *arguments, str(tmp_path / "logs")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=path, cwd=tmp_path)
    assert found in ended.stdout + ended.stderr
