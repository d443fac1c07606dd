"""Processes of an attempt that outlived its main process: how they are found, and killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

from chronex.model import ProcessIdentity
from chronex.run.environment import ATTEMPT_VARIABLE
from chronex.run.identity import boot_id, is_alive, signal_process, status_of
from chronex.run.request import AttemptRequest

_ROUNDS = 40
_BETWEEN_ROUNDS_S = 0.02

Marks = frozenset[bytes]


def marks_of(request: AttemptRequest) -> Marks:
    """What every process of the attempt has in its environment, and no other process of this machine.

    Its id alone is not enough: job and second make it, and a scheduler on another store may have the same of both.
    """
    marks = {ATTEMPT_VARIABLE: request.attempt_id, **request.extra_environment}
    return frozenset(f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in marks.items())


def find_leftovers(main: ProcessIdentity, marks: Marks) -> tuple[ProcessIdentity, ...]:
    """Living processes of the main process's group or session, or with the attempt's marks in their environment.

    The last finds those that left for a session of their own. Reads every process: not for the event loop.
    Without /proc nothing is found.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return ()
    # While members live, the number of their group cannot be given to a new process. So another process that has
    # it now means that there are none, and that group and session of that number are a stranger's.
    now = status_of(main.pid)
    by_number = now is None or now.start_time == main.start_time
    found = []
    for pid in (int(name) for name in names if name.isdigit()):
        status = status_of(pid)
        if pid in (main.pid, os.getpid()) or status is None or status.dead:
            continue
        if (by_number and main.pid in (status.group, status.session)) or marks <= _environment_of(pid):
            found.append(ProcessIdentity(pid, boot_id(), status.start_time, status.group))
    return tuple(found)


def kill_leftovers(
    found: Iterable[ProcessIdentity], main: ProcessIdentity, marks: Marks
) -> tuple[tuple[ProcessIdentity, ...], int]:
    """Kill them, and what they start meanwhile, for about a second: all that were seen, and how many are gone."""
    seen: dict[ProcessIdentity, None] = {}
    current = tuple(found)
    for _ in range(_ROUNDS):
        if not current:
            break
        seen.update(dict.fromkeys(current))
        for identity in current:
            signal_process(identity, signal.SIGKILL)
        time.sleep(_BETWEEN_ROUNDS_S)
        current = find_leftovers(main, marks)
    return tuple(seen), sum(not is_alive(identity) for identity in seen)


def _environment_of(pid: int) -> Marks:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as source:
            return frozenset(source.read(256 * 1024).split(b"\0"))
    except OSError:
        return frozenset()
