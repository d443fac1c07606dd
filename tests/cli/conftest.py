from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.fork import Parent
from tests.cli.small_store import Place


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
def chronex() -> Iterator[Chronex]:
    """Run the real program as a user's shell would, in a plain environment."""

    def run(*arguments: str, stdin: str | bytes = "", **environment: str) -> Done:
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", **environment}
        given = stdin.encode() if isinstance(stdin, str) else stdin
        if BINARY or is_heard_at_the_start(environment):
            command = [*program(), *arguments]
            done = subprocess.run(command, input=given, capture_output=True, env=env, timeout=60, check=False)
            code, *told = done.returncode, done.stdout, done.stderr
        else:
            code, *told = parent.run(arguments, given, env)
        out, err = (text.decode("utf-8", "replace") for text in told)
        assert "Traceback" not in out + err, out + err
        return Done(code, out, err)

    with Parent() as parent:
        yield run


def is_heard_at_the_start(environment: dict[str, str]) -> bool:
    """Some variables speak to the interpreter, before any program begins."""
    return any(name.startswith(("PYTHON", "LC_", "LANG")) for name in environment)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "store")
