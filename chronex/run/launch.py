"""Start one command behind its gate: its own process group, clean signals, three descriptors, and nothing of ours.

`os.posix_spawn` does it in one step that copies neither memory nor descriptors. It cannot change directory; the gate
does that before it becomes the command.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import sys
from functools import lru_cache
from typing import Any

from chronex.model.records import Command
from chronex.run.environment import Variables
from chronex.run.gate import DESCRIPTOR, Gate, Invocation, Refusal, behind
from chronex.run.request import NotStarted

_SHELL = "/bin/sh"
_EVERY_SIGNAL = tuple(int(number) for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})

_EXPLANATIONS = {
    errno.EACCES: "permission denied; is it executable?",
    errno.ENOEXEC: "not a program; a script begins with #! and its interpreter",
    errno.E2BIG: "the arguments and the environment are too long together, or one of them is",
    errno.EAGAIN: "no more processes are allowed now",
    errno.ENOMEM: "out of memory",
    errno.ETXTBSY: "the program is being written",
}


def seal_descriptors() -> None:
    """Keep from children what the daemon itself inherited; Python's own descriptors are closed on exec anyway."""
    listing = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    for name in os.listdir(listing):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the listing's own descriptor is closed by now
                os.set_inheritable(int(name), False)


@lru_cache(maxsize=1)
def _apart() -> dict[str, Any]:
    """A group of its own; a session of its own only where that keeps it from our terminal.

    Linux gives every session a share of the processor (autogroup), and on a busy machine a start then takes two to
    three times as long. macOS cannot start a process in a new session.
    """
    return {"setsid": True} if sys.platform == "linux" and _has_terminal() else {"setpgroup": 0}


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def prepare(command: Command, directory: str | None, variables: Variables) -> Invocation | NotStarted:
    """Find the program and look at the directory, so that what is missing is named before anything starts."""
    argv = (_SHELL, "-c", command) if isinstance(command, str) else command
    if not argv or not argv[0] or command == "":
        return NotStarted("the command is empty", retryable=False)
    try:
        raw = tuple([os.fsencode(argument) for argument in argv])
        where = b"" if directory is None else os.fsencode(os.path.abspath(directory))
    except UnicodeEncodeError:
        return NotStarted("the command contains text that cannot be written as bytes", retryable=False)
    if b"\0" in b"".join(raw) or b"\0" in where:
        return NotStarted("the command contains a NUL character", retryable=False)
    problem = _problem_with_directory(where) if where else None
    if problem is not None:
        return problem
    if isinstance(command, str):
        return Invocation(raw[0], raw, where, raw[2])
    program = _find_program(raw[0], variables, where)
    if isinstance(program, NotStarted):
        return program
    return Invocation(program, raw, where)


def start(invocation: Invocation, variables: Variables, output: int, gate: Gate, latch: int) -> int | NotStarted:
    """The pid of the new process, which waits at `latch`; its output and errors are `output`, its input is empty."""
    actions = (
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
        # After those: where the daemon itself has no standard descriptors, `output` may be any of these.
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, latch, DESCRIPTOR),
    )
    path, argv = behind(gate, invocation)
    try:
        return os.posix_spawn(
            path,
            argv,
            variables,
            file_actions=actions,
            setsigmask=(),
            setsigdef=_EVERY_SIGNAL,
            **_apart(),
        )
    except OSError as problem:
        return refused_program(problem.errno or 0, invocation.path)


def refused_at_the_gate(invocation: Invocation, refusal: Refusal) -> NotStarted:
    """The gate was open, and the system would not go on."""
    if refusal.of_directory:
        return _refused_directory(refusal.errno, invocation.directory)
    return refused_program(refusal.errno, invocation.path)


def refused_program(number: int, path: bytes) -> NotStarted:
    """What the system's refusal means for a program."""
    shown = os.fsdecode(path)
    if number == errno.ENOENT:
        told = "its interpreter does not exist" if os.path.exists(path) else "no such program"
    else:
        told = _EXPLANATIONS.get(number, os.strerror(number))
    return NotStarted(f"{shown}: {told} ({errno.errorcode.get(number, number)})", number, shown)


def _problem_with_directory(where: bytes) -> NotStarted | None:
    try:
        mode = os.stat(where).st_mode
    except OSError as problem:
        number = problem.errno or 0
    else:
        if not stat.S_ISDIR(mode):
            number = errno.ENOTDIR
        elif not os.access(where, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            number = errno.EACCES
        else:
            return None
    return _refused_directory(number, where)


def _refused_directory(number: int, where: bytes) -> NotStarted:
    shown = os.fsdecode(where)
    told = "no such directory" if number == errno.ENOENT else os.strerror(number).lower()
    return NotStarted(f"working directory {shown}: {told} ({errno.errorcode.get(number, number)})", number, shown)


def _find_program(name: bytes, variables: Variables, base: bytes) -> bytes | NotStarted:
    """By the child's PATH, or by its path as seen from the child's directory."""
    if b"/" in name:
        path = os.path.join(base, name) if base else name
        return _refused(path) or path
    seen_but_refused: NotStarted | None = None
    for entry in variables.get(b"PATH", b"").split(b":"):
        path = os.path.join(base, entry or b".", name)
        problem = _refused(path)
        if problem is None:
            return path
        if problem.errno == errno.EACCES:
            seen_but_refused = seen_but_refused or problem
    return seen_but_refused or NotStarted(
        f"{os.fsdecode(name)}: no such program in PATH (ENOENT)", errno.ENOENT, os.fsdecode(name)
    )


def _refused(path: bytes) -> NotStarted | None:
    try:
        mode = os.stat(path).st_mode
    except OSError as problem:
        return refused_program(problem.errno or 0, path)
    if stat.S_ISREG(mode) and os.access(path, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return None
    return refused_program(errno.EACCES, path)
