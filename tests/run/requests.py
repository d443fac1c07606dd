"""Requests for tests, and their quickest way through."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

from chronex.model import attempt_id
from chronex.model.job import Command
from chronex.run import AttemptRequest, AttemptResult, Hooks, RunContext, run_attempt

_numbers = itertools.count(1)


def request(command: Command = (), **changes: Any) -> AttemptRequest:
    values: dict[str, Any] = {
        "attempt_id": attempt_id(f"run_test_{os.getpid()}", next(_numbers)),
        "number": 1,
        "job": "backup",
        "task": "dump",
        "occurrence_id": "occ_1",
        "nominal_ms": 1_772_334_000_000,
        "grace_ms": 300,
        "command": command,
    }
    return AttemptRequest(**(values | changes))


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code, *arguments)


async def outcome(run_context: RunContext, command: Command, **changes: Any) -> AttemptResult:
    return await run_attempt(request(command, **changes), Hooks(), run_context)


def waiting(file: Path) -> str:
    """Shell that waits for the file."""
    return f"until [ -e {file} ]; do sleep 0.02; done"


def output(run_context: RunContext, result: AttemptResult) -> bytes:
    return (Path(run_context.logs.path) / result.log.name).read_bytes() if result.log.name else b""


def children() -> set[int]:
    """Of the main thread, which starts them all; living and dead."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
