"""From the end of a process to the outcome of its attempt."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

from chronex.model import AttemptState
from chronex.run.request import AttemptRequest, Reason


class Verdict(NamedTuple):
    """The part of a result that follows from how the process ended and from who ended it."""

    state: AttemptState
    reason: Reason
    retryable: bool
    error: str
    exit_code: int | None = None
    signal: int | None = None


def judge(request: AttemptRequest, status: int | None, stop: Verdict | None = None, unknown: str = "") -> Verdict:
    """`status` as waitpid gives it; None where it is not known, and `unknown` why.

    `stop` is why Chronex ended the process, where it did.
    """
    if status is None:
        return stop or unknown_exit(unknown)
    code = os.waitstatus_to_exitcode(status)
    exit_code, number = (code, None) if code >= 0 else (None, -code)
    if stop is not None:
        return stop._replace(exit_code=exit_code, signal=number)
    if exit_code is not None and exit_code in request.success_codes:
        return Verdict(AttemptState.SUCCESS, Reason.EXITED, False, "", exit_code)
    # A shell reports a signal as 128 plus its number; the rule for retries reads both the same way.
    told = exit_code if exit_code is not None else 128 + (number or 0)
    retryable = request.retry_codes is None or told in request.retry_codes
    if number is not None:
        return Verdict(AttemptState.FAILED, Reason.SIGNAL, retryable, f"ended by {_name(number)}", None, number)
    return Verdict(AttemptState.FAILED, Reason.EXIT_CODE, retryable, f"exit code {exit_code}", exit_code)


def timed_out(timeout_ms: int) -> Verdict:
    return Verdict(AttemptState.TIMEOUT, Reason.TIMEOUT, True, f"still running after {timeout_ms / 1000:g} s")


def canceled(why: str) -> Verdict:
    return Verdict(AttemptState.CANCELED, Reason.CANCELED, False, why or "canceled")


def unknown_exit(why: str) -> Verdict:
    """It ended, nobody knows how; that is never a success."""
    return Verdict(AttemptState.CRASHED, Reason.UNKNOWN_EXIT, True, f"ended, and its exit code is not known: {why}")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
