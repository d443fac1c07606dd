"""Starting the workers of `worker.py`, with or without strace, and checking what they leave behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chronex_store import LmdbStore
from chronex_store.doctor import check_pages, check_store
from tests.kit.forked import PythonProcess, run_python
from tests.kit.waits import DEADLINE_S

from .worker import KEYS_PER_UPDATE

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'store'}"}

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed (Debian package strace)"
)


def command(role: str, path: Path, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.store.worker", role, str(path), *map(str, arguments)]


def run_worker(argv: list[str], timeout: float = DEADLINE_S) -> tuple[int, list[str]]:
    """The exit code (strace passes a signal on as its own end) and the lines said."""
    if argv[0] == sys.executable:
        done = run_python(argv[1:], timeout=timeout, cwd=ROOT, env=ENVIRONMENT)
    else:
        done = subprocess.run(argv, cwd=ROOT, env=ENVIRONMENT, timeout=timeout, check=False, capture_output=True)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode, done.stdout.decode().splitlines()


def start_worker(argv: list[str]) -> subprocess.Popen[str]:
    return PythonProcess(
        argv[1:], cwd=ROOT, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def traced(argv: list[str], inject: str) -> list[str]:
    call = inject.partition(":")[0]
    return ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={inject}", *argv]


def assert_sound(path: Path) -> None:
    """What `doctor` would find, without its process: the pages first, then the records."""
    found: list[str] = []

    def report(severity: str, code: str, message: str, advice: str) -> None:
        if severity == "error" and code not in ("record", "more"):
            found.append(message)

    check_pages(path / "data.mdb", report)
    assert found == []
    with LmdbStore.open(path, create=False) as store:
        check_store(store, report)
    assert found == []


def triples(path: Path) -> set[int]:
    """The updates of `commit` that are in the store; every one of them must be whole."""
    with LmdbStore.open(path, create=False) as store:
        rows = store.view(lambda tx: tx.scan(b"Qtriple"))
    parts: dict[int, list[int]] = {}
    for key, value in rows:
        number, part = key.removeprefix(b"Qtriple").split(b".")
        parts.setdefault(int(number), []).append(int(part))
        assert value == b"%d" % int(number) * 40
    assert all(found == list(range(KEYS_PER_UPDATE)) for found in parts.values()), parts
    return set(parts)
