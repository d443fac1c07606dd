"""Whether a command that ended well has done anything: the `check` of its task, asked before the end is recorded.

Until then the attempt is on record as running, and its keeper knows the end. So a scheduler that dies meanwhile loses
nothing: the next one finds the same end, and asks again.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from chronex.model.job import TaskCheck
from chronex.run.crash_check import CheckAnswer, ask_check
from chronex.run.request import AttemptRequest
from chronex.run.side_threads import NoAnswerError, SideThreads
from chronex.run.spawn import RunContext
from chronex.run.supervise import Cancellation
from chronex.text.instants import rfc3339
from chronex.text.sizes import size_text

LOOK_S = 30.0
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
        problem = await threads.look(lambda: look_at_file(path, check, started_ms), LOOK_S)
    except NoAnswerError as error:
        problem = f"{check.file}: {error}"
    return CheckAnswer(1 if problem else 0, problem)


def look_at_file(path: Path, check: TaskCheck, started_ms: int) -> str:
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
