"""The processes that belong to a store: its keepers and commands, which outlive the daemon and the test."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from tests.kit.waits import is_gone, until


def processes_of(store: Path) -> set[int]:
    """Every process that has this store, or this state directory, in its environment, but ourselves."""
    place = os.fsencode(store.resolve())
    marks = {b"CHRONEX_STORE=" + place, b"CHRONEX_STATE_DIR=" + place}
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if not marks.isdisjoint(path.read_bytes().split(b"\0")):
                found.add(int(path.parent.name))
    return found - {os.getpid()}


def end_all(store: Path) -> None:
    """Kill what is left; a command may start another one before it is seen."""
    while found := processes_of(store):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            until(lambda pid=pid: is_gone(pid) or _is_dead(pid), f"the end of process {pid}")  # type: ignore[misc]


def _is_dead(pid: int) -> bool:
    """A zombie whose parent does not wait for it has no environment any more."""
    try:
        return not Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return True
