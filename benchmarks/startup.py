"""Commands in fresh processes beside the cost of importing the command-line library they are built on."""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import FULL, Row, Size, seconds

TOPIC = "startup"
COMMANDS = (
    ("next", "0 9 * * MON-FRI"),
    ("explain", "TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>"),
    ("--help",),
)


def notes() -> list[str]:
    base = 'Processor time of a fresh process, beside `python -c "import typer"`; the least of several.'
    return [base] if _has_commands() else [base, "Skipped: chronex.cli is not there yet."]


def run(size: Size = FULL) -> Iterator[Row]:
    base = _process(["-c", "import typer"], size)
    yield Row(TOPIC, "import typer", base * 1e3, " ms")
    if not _has_commands():
        return
    for command in COMMANDS:
        took = _process(["-c", "from chronex.cli import main; main()", *command], size)
        yield Row(TOPIC, f"chronex {command[0]}", took / base, "×", at_most=1.2, remark=f"{took * 1e3:.3g} ms")


def _has_commands() -> bool:
    return importlib.util.find_spec("chronex.cli") is not None


def _process(arguments: list[str], size: Size) -> float:
    command = [sys.executable, *arguments]
    return seconds(lambda: subprocess.run(command, check=True, capture_output=True), size.processes, _of_children)


def _of_children() -> float:
    """Processor time of the processes that have ended: what the wall shows on an idle machine, and no more on a busy
    one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
