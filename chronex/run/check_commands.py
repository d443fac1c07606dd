"""Commands that look: at the work of an attempt whose end nobody saw, and at that of one that ended well."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from chronex.model.job import Command, TaskCheck
from chronex.model.states import AttemptState
from chronex.run.attempt_log import LogReader
from chronex.run.command_start import run_attempt
from chronex.run.request import AttemptRequest, AttemptResult
from chronex.run.side_threads import NoAnswerError, SideThreads
from chronex.run.spawn import RunContext
from chronex.run.supervise import Cancellation, Hooks
from chronex.text.instants import rfc3339
from chronex.text.sizes import size_text

# Asks the command of `on_crash = { check = … }` whether an attempt has done its work.

CHECK_TIMEOUT_MS = 60_000
_KEPT_OUTPUT = 4_096


class CheckAnswer(NamedTuple):
    """`exit_code` is None where the check gave no answer: it could not be started, was killed, or took too long."""

    exit_code: int | None
    problem: str = ""
    canceled: AttemptResult | None = None  # the attempt was canceled meanwhile


async def ask_check(
    check: Command, request: AttemptRequest, cancellation: Cancellation, run_context: RunContext
) -> CheckAnswer:
    """The check runs where its task runs: the same directory, environment and CHRONEX_* variables."""
    asked = replace(
        request,
        command=check,
        timeout_ms=CHECK_TIMEOUT_MS,
        success_codes=(0,),
        log_limit=_KEPT_OUTPUT,
    )
    result = await run_attempt(asked, Hooks(cancellation=cancellation), run_context)
    last = _last_line(result, run_context)
    if result.state is AttemptState.CANCELED:
        return CheckAnswer(None, canceled=result)
    if result.exit_code is not None and result.state is not AttemptState.TIMEOUT:
        return CheckAnswer(result.exit_code, ": ".join(filter(None, (result.error, last))))
    return CheckAnswer(None, result.error)


def _last_line(result: AttemptResult, run_context: RunContext) -> str:
    """What it said is part of the reason; its log is not kept."""
    if not result.log.name:
        return ""
    reader = LogReader(run_context.logs.path)
    try:
        said = reader.whole(result.log.name, _KEPT_OUTPUT)
    except OSError:
        said = b""
    finally:
        reader.close()
    with contextlib.suppress(OSError):
        run_context.logs.remove(result.log.name)
    return said.decode("utf-8", "replace").strip().rpartition("\n")[2]


# Whether a command that ended well has done anything: the `check` of its task, asked before the end is recorded.
#
# Until then the attempt is on record as running, and its keeper knows the end. So a scheduler that dies meanwhile
# loses nothing: the next one finds the same end, and asks again.

CHECK_S = 30.0
# Some file systems keep times in steps of two seconds.
STEP_OF_TIMES_MS = 2_000


async def ask_task_check(
    check: TaskCheck,
    request: AttemptRequest,
    started_ms: int,
    cancellation: Cancellation,
    run_context: RunContext,
    threads: SideThreads,
) -> CheckAnswer:
    """Exit code 0 where all is as it should be. A command runs as its task's command does."""
    if check.run:
        return await ask_check(check.run, request, cancellation, run_context)
    path = Path(request.directory or ".") / check.file
    try:
        problem = await threads.run(lambda: check_file(path, check, started_ms), CHECK_S)
    except NoAnswerError as error:
        problem = f"{check.file}: {error}"
    return CheckAnswer(1 if problem else 0, problem)


def check_file(path: Path, check: TaskCheck, started_ms: int) -> str:
    """What is wrong with the file; empty where nothing is."""
    try:
        found = path.stat()
    except OSError as error:
        return f"{check.file}: {os.strerror(error.errno or 0).lower()}"
    if stat.S_ISDIR(found.st_mode):
        return f"{check.file} is a directory"
    if found.st_size < check.min_size:
        return f"{check.file} has {size_text(found.st_size)}, and at least {size_text(check.min_size)} were expected"
    written_ms = found.st_mtime_ns // 1_000_000
    if check.newer and written_ms + STEP_OF_TIMES_MS < started_ms:
        return f"{check.file} was last written at {rfc3339(written_ms)}, before the command began"
    return ""
