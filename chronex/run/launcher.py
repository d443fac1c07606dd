"""Starts a command through the launcher: as another user, with another umask or priority, or within limits.

The launcher (launcher_program.py) is a bare interpreter that gives up what the command must not have, waits at the
start barrier and becomes the command. A command without such settings is started without it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import tempfile
from functools import lru_cache
from importlib import import_module

from chronex.model.policies import ProcessSettings, ResourceLimits
from chronex.run import launcher_program as program
from chronex.run.environment import Variables
from chronex.run.posix_spawn import Dup2, spawn
from chronex.run.request import NotStarted
from chronex.run.spawn import Invocation, Refusal, refused_directory, refused_program, standard_descriptors

LAUNCHER_COMMAND = "launcher"  # of the command line, for a build that has no interpreter of its own
_PROGRAM = program.__name__
# The program comes with the order, so that a keeper which outlives an upgrade starts commands as it always did.
_STUB = (
    f"f = open({program.ORDER}, 'rb'); names = {{'__name__': 'launcher'}}; "
    "exec(f.read(int(f.read(8))), names); written = f.read(); f.close(); names['main'](written)"
)


@lru_cache(maxsize=1)
def _source() -> bytes:
    loader = getattr(import_module(_PROGRAM), "__loader__", None)
    source = loader.get_source(_PROGRAM) if loader is not None and hasattr(loader, "get_source") else None
    return (source or "").encode()


def load() -> None:
    """Read the program now: the files of the installation may be others when it is needed."""
    _source()


def start_through_launcher(
    settings: ProcessSettings,
    invocation: Invocation,
    variables: Variables,
    output: int,
    barrier: int,
    limits: ResourceLimits | None,
) -> int | NotStarted:
    """The pid of the launcher, which waits at `barrier` and becomes the command.

    `limits` are those that it must set itself, where no control group does.
    """
    try:
        argv = _launcher_command()
        order = _order_file(_order(settings, invocation, variables, limits))
    except OSError as problem:
        return NotStarted(f"no way to say how it is to be started: {problem.strerror}", problem.errno)
    actions = (*standard_descriptors(output, barrier), Dup2(order, program.ORDER))
    # A session of its own: another user must not reach the terminal of whoever started the scheduler.
    new_session = sys.platform == "linux"
    raw = [os.fsencode(argument) for argument in argv]
    try:
        # Its environment is empty: what a job's variables do to an interpreter, they must not do to root's.
        return spawn(raw[0], raw, {}, actions, new_session=new_session)
    except OSError as problem:
        return refused_program(problem.errno or 0, raw[0])
    finally:
        os.close(order)


def _launcher_command() -> list[str]:
    if getattr(sys, "frozen", False):
        return [sys.executable, LAUNCHER_COMMAND]
    if "python" not in os.path.basename(sys.executable or "").lower():
        raise OSError(errno.ENOEXEC, f"{sys.executable or 'this program'} is no Python interpreter")
    return [sys.executable, "-I", "-S", "-c", _STUB]


def _order(
    settings: ProcessSettings, invocation: Invocation, variables: Variables, limits: ResourceLimits | None
) -> bytes:
    own = limits or ResourceLimits()
    open_files = settings.limits.open_files if settings.limits is not None else None
    head = (settings.user, settings.group, settings.umask, settings.nice, open_files, own.tasks, own.memory)
    parts = [
        *(b"" if value is None else str(value).encode() for value in head),
        invocation.directory,
        str(len(invocation.argv)).encode(),
        *invocation.argv,
        *(name + b"=" + value for name, value in variables.items()),
    ]
    return b"\0".join(parts)


def _order_file(order: bytes) -> int:
    """In memory, or in a file without a name: it holds secrets."""
    source = b"" if getattr(sys, "frozen", False) else _source()
    with tempfile.TemporaryFile() if sys.platform != "linux" else os.fdopen(_memory_file(), "w+b") as file:
        file.write(b"%08d" % len(source) + source + order)
        file.flush()
        file.seek(0)
        # Never one of the numbers that the child is given.
        return fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, program.ORDER + 1)


def _memory_file() -> int:
    return os.memfd_create("chronex-order", os.MFD_CLOEXEC)


def run_order() -> None:
    """The launcher itself, in a build that brings it along."""
    with open(program.ORDER, "rb") as file:
        file.read(int(file.read(8)))
        written = file.read()
    program.main(written)


def refused_by_launcher(refusal: Refusal) -> NotStarted:
    """What the launcher's refusal means."""
    number, about = refusal.errno, os.fsdecode(refusal.about)
    shown = errno.errorcode.get(number, str(number))
    match refusal.step:
        case program.DIRECTORY:
            return refused_directory(number, refusal.about)
        case program.PROGRAM:
            if number == errno.ENOENT and "/" not in about:
                return NotStarted(f"{about}: no such program in PATH (ENOENT)", number, about)
            return refused_program(number, refusal.about)
        case program.USER:
            return NotStarted(f"no user {about!r} on this machine; make one, or name another in user", number)
        case program.GROUP:
            return NotStarted(f"no group {about!r} on this machine; make one, or name another in group", number)
        case program.NOT_ROOT:
            return NotStarted(NEEDS_ROOT.format(about), number, retryable=False)
        case program.NICE:
            return NotStarted(f"nice {about}: only root may raise a priority ({shown})", number, retryable=False)
        case program.LIMITS:
            return NotStarted(f"the system refuses the limit {about} ({shown})", number, retryable=False)
        case program.FAULT:
            return NotStarted(f"its launcher had a fault, and it was not run: {about}")
        case _:
            return NotStarted(f"it could not become user {about!r} completely, and was not run ({shown})", number)


NEEDS_ROOT = "only a scheduler that runs as root can run a command as another user or group ({})"
