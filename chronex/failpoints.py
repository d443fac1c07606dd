"""Fail-points: the points where a test can kill this process, to see what the next one finds.

Off unless the environment names one. `CHRONEX_FAIL_POINT="start recorded:3"` kills the third time, as by
kill -9: nothing is flushed, closed or said. Every point is in this table, and a test holds table and code together.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

VARIABLE = "CHRONEX_FAIL_POINT"
# The same for the keeper that a scheduler starts, which does not inherit the other.
KEEPER_VARIABLE = "CHRONEX_KEEPER_FAIL_POINT"

POINTS: dict[str, str] = {
    "update begun": "a write transaction is open, and nothing is in it",
    "update written": "everything is in the transaction, and it is not committed",
    "shared update written": "the decision of a shared store is made, and nothing is sent",
    "shared update committed": "it is in the database, and nobody here knows it",
    "update committed": "it is on disk, and no waiting process has been notified",
    "node registered": "the daemon is on record, and has taken up nothing",
    "taken over": "what dead nodes left is recorded as ours, and nothing watches it",
    "adopted": "an orphan is about to be watched",
    "tick decided": "what is due is claimed, and nothing is started",
    "start asked": "the keeper was asked to hold a child, and has not answered",
    "held told": "the keeper has told which child it holds, and that is not on record",
    "before opening": "the child is on record, and the keeper was not told to open its barrier",
    "opening asked": "the keeper was told to open the barrier",
    "end told": "the keeper has told how the command ended, and that is not on record",
    "keeper begins": "the keeper is a process of its own, and holds no lock",
    "keeper listens": "the keeper has said that it is ready, and has welcomed nobody",
    "before spawn": "an attempt is about to be started",
    "spawned": "the child waits at its start barrier, and its identity is not known",
    "identified": "the child is known, and not on record",
    "start recorded": "the child is on record, and its start barrier is shut",
    "barrier opened": "the command runs",
    "process ended": "the command has ended, and its exit code is known here alone",
    "log finished": "the log is in order, and the end is not on record",
    "end kept": "the keeper has written the end down, and has told no scheduler",
    "check due": "the command has ended well, and its check was not asked",
    "end recorded": "the end is on record, and what follows from it is not started",
    "hook ended": "a hook was called, and that is not on record",
    "notice delivered": "a channel has taken a notice, and that is not on record",
    "history trimmed": "one step of retention is done",
    "stop asked": "no more is claimed, and running work has been asked to end",
    "node leaving": "all has ended, and that the daemon has stopped is not on record",
}


def _pass(_point: str) -> None:
    return


def armed(wanted: str) -> Callable[[str], None]:
    """What to do at every point when `wanted` is "point" or "point:n": count, and die at the n-th."""
    name, _, number = wanted.partition(":")
    if name not in POINTS:
        raise SystemExit(f"{VARIABLE}: there is no fail-point {name!r}")
    left = int(number or 1)

    def reach(point: str) -> None:
        nonlocal left
        if point == name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reach


fail_point: Callable[[str], None] = armed(os.environ[VARIABLE]) if VARIABLE in os.environ else _pass
