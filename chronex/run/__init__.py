"""Starts, supervises and records one attempt: a command in a process of its own, or a Python callable.

The keeper loads this for its commands, so what callables need is not loaded here.
"""

from __future__ import annotations

from chronex.model import LeftoverPolicy
from chronex.run.adopt import adopt_attempt, stop_process
from chronex.run.attempt_log import BoundedLog, LogDirectory, LogSummary
from chronex.run.command_start import run_attempt
from chronex.run.process import boot_id, identity_of, is_alive, signal_group
from chronex.run.request import AttemptRequest, AttemptResult, EndReason
from chronex.run.spawn import RunContext
from chronex.run.supervise import Cancellation, Hooks, Started

__all__ = [
    "AttemptRequest",
    "AttemptResult",
    "BoundedLog",
    "Cancellation",
    "EndReason",
    "Hooks",
    "LeftoverPolicy",
    "LogDirectory",
    "LogSummary",
    "RunContext",
    "Started",
    "adopt_attempt",
    "boot_id",
    "identity_of",
    "is_alive",
    "run_attempt",
    "signal_group",
    "stop_process",
]
