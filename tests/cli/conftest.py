from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.small_store import Place
from tests.kit.forked import run_chronex


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Chronex = Callable[..., Done]


# Resolved now: tests change their directory.
BINARY = os.path.abspath(os.environ["CHRONEX_BINARY"]) if os.environ.get("CHRONEX_BINARY") else ""


def program() -> list[str]:
    """The program under test: the source, or the binary that CHRONEX_BINARY names (`make binary`)."""
    return [BINARY] if BINARY else [sys.executable, "-m", "chronex"]


@pytest.fixture(scope="session")
def chronex() -> Chronex:
    """Run the real program as a user's shell would, in a plain environment."""

    def run(*arguments: str, stdin: str | bytes = "", **environment: str) -> Done:
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", **environment}
        given = stdin.encode() if isinstance(stdin, str) else stdin
        if BINARY:
            command = [BINARY, *arguments]
            done = subprocess.run(command, input=given, capture_output=True, env=env, timeout=60, check=False)
        else:
            done = run_chronex(arguments, given, env=env)
        out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        assert "Traceback" not in out + err, out + err
        return Done(done.returncode, out, err)

    return run


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "store")
