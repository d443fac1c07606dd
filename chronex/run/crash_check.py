"""Asks the command of `on_crash = { check = … }` whether an attempt has done its work."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import NamedTuple

from chronex.model.job import Command
from chronex.model.states import AttemptState
from chronex.run.attempt_log import LogReader
from chronex.run.request import AttemptRequest, AttemptResult
from chronex.run.spawn import RunContext
from chronex.run.supervise import Cancellation, Hooks, run_attempt

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
    asked = dataclasses.replace(
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
