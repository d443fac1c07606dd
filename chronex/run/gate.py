"""The gate: a child waits behind it until its identity is on record, and only then becomes its command.

A daemon that is killed between a start and its record would leave a process that nobody knows, running beside the
retry of the same attempt. So what is started is the gate, which waits for one byte; when the daemon dies first, the
gate sees its end closed and goes without having run anything. Pid and start time stay the same when it becomes the
command, so the identity that was recorded is the command's.

Two gates do the same. The quick one is a program of 149 bytes (gate.S) in a sealed memory file; it costs a tenth of
a start, and what the system refuses comes back as an error number. The other is a line for /bin/sh, wherever the
first cannot be used; it costs as much as a second start (specs/run.md has the figures).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import socket
import struct
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

DESCRIPTOR = 3  # where every gate waits
SHUT = 125  # how it ends when nobody opens it

_SHELL = b"/bin/sh"
# Directory and command are arguments of this text, never part of it. The directory is absolute: a relative one would
# be looked up in CDPATH, and "-" would mean the one before.
_SCRIPT = b'read -r _ <&3 || exit 125; [ -z "$1" ] || cd "$1" || exit 126; shift; exec "$@" 3<&-'

# A text for the shell needs no gate before the shell: the shell itself waits. On the text's own first line, so that
# the shell counts lines as the user does.
_WAIT = b"read -r _ <&3 && exec 3<&- || exit 125; "

# gate.S, assembled.
_X86_64 = bytes.fromhex(
    "4889e34883ec1031c0bf030000004889e6ba010000000f054883f801756bb848000000bf03000000be02000000ba01000000"
    "0f0541bc01000000488b7b10803f00740cb8500000000f054885c0781d41bc02000000488b7b18488d7320488b03488d54c3"
    "10b83b0000000f05488904244c89642408b801000000bf030000004889e6ba100000000f05bf7d000000b83c0000000f05"
)
_BASE, _HEADERS = 0x400000, 64 + 2 * 56
_MFD_EXEC = 0x10  # since Linux 6.3 a memory file says whether it is a program
_SEALED = 0x0F  # nobody may write, grow or shrink it, nor take a seal off
_REFUSAL = struct.Struct("<qq")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command as the system takes it; an empty directory is the daemon's own."""

    path: bytes
    argv: tuple[bytes, ...]
    directory: bytes = b""
    script: bytes = b""  # where it is a text for /bin/sh


class Refusal(NamedTuple):
    """What the system said when the gate was open: an error number, of the directory or of the program."""

    errno: int
    of_directory: bool


class Gate(Protocol):
    """How to start a command so that it waits on DESCRIPTOR first."""

    def before(self, invocation: Invocation) -> tuple[bytes, tuple[bytes, ...]]:
        """The path and argv to start instead."""
        ...


class QuickGate:
    """`path` is the program of gate.S."""

    def __init__(self, path: bytes) -> None:
        self.path = path

    def before(self, invocation: Invocation) -> tuple[bytes, tuple[bytes, ...]]:
        return self.path, (b"chronex-gate", invocation.directory, invocation.path, *invocation.argv)


class ShellGate:
    """The command's argv[0] is its path here: a shell cannot give it another name."""

    def before(self, invocation: Invocation) -> tuple[bytes, tuple[bytes, ...]]:
        command = (invocation.directory, invocation.path, *invocation.argv[1:])
        return _SHELL, (_SHELL, b"-c", _SCRIPT, b"chronex-gate", *command)


def behind(gate: Gate, invocation: Invocation) -> tuple[bytes, tuple[bytes, ...]]:
    """What to start instead of the command: the gate, or the command's own shell where that can wait by itself."""
    if invocation.script and not invocation.directory:
        return _SHELL, (_SHELL, b"-c", _WAIT + invocation.script)
    return gate.before(invocation)


class Latch:
    """Our side of one child's gate."""

    __slots__ = ("_ours", "theirs")

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.theirs = _out_of_the_way(theirs.detach())  # may fail; then `ours` closes itself
        self._ours = ours.detach()

    def started(self) -> None:
        """The child has its end; from now on its death, and ours, is seen by the other."""
        os.close(self.theirs)

    def open(self) -> None:
        try:
            os.write(self._ours, b"\n")
        except OSError:  # the child is dead already, and that is seen elsewhere
            return

    def refusal(self) -> Refusal | None:
        """After the child ended as a gate that is SHUT: why it never became the command, where it did not."""
        os.set_blocking(self._ours, False)
        try:
            told = os.read(self._ours, _REFUSAL.size)
        except OSError:
            return None
        if len(told) < _REFUSAL.size:
            return None
        number, step = _REFUSAL.unpack(told)
        return Refusal(-number, of_directory=step == 1)

    def close(self) -> None:
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1


@lru_cache(maxsize=1)
def the_gate() -> Gate:
    """The quick one where it works; it is tried once, without letting anything pass."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        with contextlib.suppress(OSError):
            quick = QuickGate(_as_program(_X86_64))
            if _ends_shut(quick):
                return quick
    return ShellGate()


def _as_program(code: bytes) -> bytes:
    """The path of a sealed memory file that holds the code as the smallest program there can be."""
    size, entry = _HEADERS + len(code), _BASE + _HEADERS
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, entry, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    loaded = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    plain_stack = struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)
    descriptor = _memory_file()
    try:
        os.write(descriptor, header + loaded + plain_stack + code)
        os.fchmod(descriptor, 0o500)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALED)
        # A program that is open for writing cannot be started, so it is opened anew and kept open for good.
        kept = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        return b"/proc/self/fd/%d" % _out_of_the_way(kept)
    finally:
        os.close(descriptor)


def _out_of_the_way(descriptor: int) -> int:
    """Never one of the child's own numbers, which a daemon without standard descriptors could be given."""
    if descriptor > DESCRIPTOR:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, DESCRIPTOR + 1)
    finally:
        os.close(descriptor)


def _memory_file() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("chronex-gate", flags | _MFD_EXEC)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
        return os.memfd_create("chronex-gate", flags)


def _ends_shut(gate: Gate) -> bool:
    path, argv = gate.before(Invocation(_SHELL, (_SHELL, b"-c", b"exit 1")))
    latch = Latch()
    try:
        pid = os.posix_spawn(path, argv, {}, file_actions=((os.POSIX_SPAWN_DUP2, latch.theirs, DESCRIPTOR),))
    finally:
        latch.started()
        latch.close()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == SHUT
