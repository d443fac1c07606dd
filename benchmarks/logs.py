"""How long a search of all output takes, beside ripgrep on the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.filled import fill
from benchmarks.measure import FULL, Row, Size, wall_seconds

_ATTEMPTS = 100_000
_LINES = 20
_WORD = "out of memory"
_EVERY = 1_000  # one log in so many has the word


def notes() -> list[str]:
    missing = "" if shutil.which("rg") else "; ripgrep is not installed, so nothing is compared"
    return [f"{_ATTEMPTS:,} attempts with {_LINES} lines each, warm, both as programs{missing}."]


def run(size: Size = FULL) -> Iterator[Row]:
    ripgrep = shutil.which("rg")
    count = _ATTEMPTS if size is FULL else 20
    with tempfile.TemporaryDirectory(prefix="chronex-bench-") as directory:
        store = Path(directory) / "store"
        logs = store / "logs"
        fill(store, jobs=min(count, 100), past=count, logs=logs, text_of=_text)
        own = [sys.executable, "-m", "chronex", "logs", "--grep", _WORD, "--store", str(store)]
        found = _matches(own)
        assert found == len(range(0, count, _EVERY)), f"{found} matches"
        taken = wall_seconds(lambda: _matches(own), size.repeats)
        yield Row("logs", f"logs --grep, {count:,} attempts", taken, " s")
        if ripgrep is not None:
            theirs = wall_seconds(lambda: _matches([ripgrep, "--fixed-strings", _WORD, str(logs)]), size.repeats)
            yield Row("logs", "logs --grep: times ripgrep", taken / theirs, "×", at_most=3)


def _text(number: int) -> bytes:
    lines = [f"line {at} of attempt {number}: all is well" for at in range(_LINES)]
    if number % _EVERY == 0:
        lines[_LINES // 2] += f", {_WORD}"
    return "\n".join(lines).encode() + b"\n"


def _matches(command: list[str]) -> int:
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TZ": "UTC"})
    return sum(_WORD in line for line in done.stdout.splitlines())
