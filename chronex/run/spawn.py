"""Starts one command behind its start barrier: own process group, clean signals, three descriptors, nothing of ours.

The start barrier is a small program that waits for one byte and then becomes the command, so that nothing runs before
its start is on record. `posix_spawn` starts it in one step that copies neither memory nor descriptors. It cannot
change directory; the barrier program does that before it becomes the command.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import platform
import signal
import socket
import stat
import struct
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

from msgspec import Struct

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.model.job import Command
from chronex.model.policies import ProcessSettings
from chronex.run.attempt_log import LogDirectory
from chronex.run.environment import Inheritance, Variables
from chronex.run.posix_spawn import Dup2, OpenForReading, is_dumpable, spawn
from chronex.run.request import CommandRules, NotStarted

_DEFAULT_SHELL = "/bin/sh"
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
def _needs_session() -> bool:
    """A group of its own will do; a session of its own only where that keeps it from our terminal.

    Linux gives every session a share of the processor (autogroup), and on a busy machine a start then takes two to
    three times as long. macOS cannot start a process in a new session.
    """
    return sys.platform == "linux" and _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def prepare(command: Command, directory: str | None, variables: Variables) -> Invocation | NotStarted:
    """Find the program and check the directory, so that what is missing is named before anything starts."""
    found = prepare_unseen(command, directory)
    if isinstance(found, NotStarted):
        return found
    problem = _problem_with_directory(found.directory) if found.directory else None
    if problem is not None:
        return problem
    if found.script:
        return found
    program = _find_program(found.path, variables, found.directory)
    if isinstance(program, NotStarted):
        return program
    return Invocation(program, found.argv, found.directory)


def prepare_unseen(command: Command, directory: str | None) -> Invocation | NotStarted:
    """The command in bytes. Directory and program are not looked at: that is for the user who will run it."""
    argv = (_DEFAULT_SHELL, "-c", command) if isinstance(command, str) else command
    if not argv or not argv[0] or command == "":
        return NotStarted("the command is empty", retryable=False)
    try:
        raw = tuple([os.fsencode(argument) for argument in argv])
        where = b"" if directory is None else os.fsencode(os.path.abspath(directory))
    except UnicodeEncodeError:
        return NotStarted("the command contains text that cannot be written as bytes", retryable=False)
    if b"\0" in b"".join(raw) or b"\0" in where:
        return NotStarted("the command contains a NUL character", retryable=False)
    return Invocation(raw[0], raw, where, raw[2] if isinstance(command, str) else b"")


def start(
    invocation: Invocation, variables: Variables, output: int, barrier_program: BarrierProgram, barrier: int
) -> int | NotStarted:
    """The pid of the new process, which waits at `barrier`; output and errors go to `output`, its input is empty."""
    path, argv = behind_barrier(barrier_program, invocation)
    try:
        return spawn(path, argv, variables, standard_descriptors(output, barrier), new_session=_needs_session())
    except OSError as problem:
        return refused_program(problem.errno or 0, invocation.path)


def standard_descriptors(output: int, barrier: int) -> tuple[Dup2 | OpenForReading, ...]:
    """Output and errors of the child go to `output`, its input is empty, and it waits at `barrier`."""
    return (
        Dup2(output, 1),
        Dup2(output, 2),
        # After those: where the daemon itself has no standard descriptors, `output` may be any of these.
        OpenForReading(b"/dev/null", 0),
        Dup2(barrier, BARRIER_DESCRIPTOR),
    )


def refused_after_barrier(invocation: Invocation, refusal: Refusal) -> NotStarted:
    """The barrier was open, and the system refused the directory or the program."""
    if refusal.of_directory:
        return refused_directory(refusal.errno, invocation.directory)
    return refused_program(refusal.errno, invocation.path)


def refused_program(number: int, path: bytes) -> NotStarted:
    """What the system's refusal means for a program."""
    shown = os.fsdecode(path)
    if number == errno.ENOENT:
        problem = "its interpreter does not exist" if os.path.exists(path) else "no such program"
    else:
        problem = _EXPLANATIONS.get(number, os.strerror(number))
    return NotStarted(f"{shown}: {problem} ({errno.errorcode.get(number, number)})", number, shown)


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
    return refused_directory(number, where)


def refused_directory(number: int, where: bytes) -> NotStarted:
    shown = os.fsdecode(where)
    problem = "no such directory" if number == errno.ENOENT else os.strerror(number).lower()
    return NotStarted(f"working directory {shown}: {problem} ({errno.errorcode.get(number, number)})", number, shown)


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


BARRIER_DESCRIPTOR = 3  # where every barrier program waits
BARRIER_SHUT = 125  # its exit code when the barrier is never opened

_SHELL = b"/bin/sh"
# Directory and command are arguments of this text, never part of it. The directory is absolute: a relative one would
# be looked up in CDPATH, and "-" would mean the one before.
_SCRIPT = b'read -r _ <&3 || exit 125; [ -z "$1" ] || cd "$1" || exit 126; shift; exec "$@" 3<&-'

# A text for the shell needs no barrier program before the shell: the shell itself waits. It does so on the text's own
# first line, so that the shell counts lines as the user does.
_WAIT = b"read -r _ <&3 && exec 3<&- || exit 125; "

# barrier.S, assembled.
_X86_64 = bytes.fromhex(
    "4889e34883ec1031c0bf030000004889e6ba010000000f054883f801756bb848000000bf03000000be02000000ba01000000"
    "0f0541bc01000000488b7b10803f00740cb8500000000f054885c0781d41bc02000000488b7b18488d7320488b03488d54c3"
    "10b83b0000000f05488904244c89642408b801000000bf030000004889e6ba100000000f05bf7d000000b83c0000000f05"
)
_BASE, _HEADERS = 0x400000, 64 + 2 * 56
_MFD_EXEC = 0x10  # since Linux 6.3 a memory file says whether it is a program
_SEALED = 0x0F  # no process may write, grow or shrink it, nor take a seal off
_REFUSAL = struct.Struct("<qq")
_LONGEST_ABOUT = 1_000


class Invocation(Struct, frozen=True):
    """A command as the system takes it; an empty directory is the daemon's own."""

    path: bytes
    argv: tuple[bytes, ...]
    directory: bytes = b""
    script: bytes = b""  # where it is a text for /bin/sh


class PreparedCommand(Struct, frozen=True):
    """All that is needed to start a command and to watch it: plain values, which another process can be sent.

    `secrets` are the values that must not appear in the log. With `settings` it is started through the launcher.
    """

    rules: CommandRules
    invocation: Invocation
    variables: Variables
    secrets: tuple[bytes, ...] = ()
    settings: ProcessSettings | None = None


class Refusal(NamedTuple):
    """Why there was no command: an error number and the step that it stopped; the launcher says of what, too."""

    errno: int
    step: int
    about: bytes = b""

    @property
    def of_directory(self) -> bool:
        return self.step == 1


class BarrierProgram(Protocol):
    """How to start a command so that it waits on DESCRIPTOR first."""

    def before(self, invocation: Invocation) -> tuple[bytes, tuple[bytes, ...]]:
        """The path and argv to start instead."""
        ...


class NativeBarrier:
    """The program of barrier.S, in a file that this process and those it forks have open as `descriptor`.

    `number` is that of this process in /proc, by which the system finds the file sooner: by /proc/self it first makes
    the entries of the child, for this one question, which is 40 µs of 60 that the barrier takes.
    """

    def __init__(self, descriptor: int, number: int | None = None) -> None:
        self._by_child = b"/proc/self/fd/%d" % descriptor
        self._by_number = None if number is None else b"/proc/%d/fd/%d" % (number, descriptor)
        self._pid = os.getpid()

    @property
    def path(self) -> bytes:
        """After a fork the number is another's; after a change of user others may not look into this process."""
        if self._by_number is None or self._pid != os.getpid() or not is_dumpable():
            return self._by_child
        return self._by_number

    def before(self, invocation: Invocation) -> tuple[bytes, tuple[bytes, ...]]:
        return self.path, (b"chronex-barrier", invocation.directory, invocation.path, *invocation.argv)


class ShellBarrier:
    """The command's argv[0] is its path here: a shell cannot give it another name."""

    def before(self, invocation: Invocation) -> tuple[bytes, tuple[bytes, ...]]:
        command = (invocation.directory, invocation.path, *invocation.argv[1:])
        return _SHELL, (_SHELL, b"-c", _SCRIPT, b"chronex-barrier", *command)


def behind_barrier(barrier_program: BarrierProgram, invocation: Invocation) -> tuple[bytes, tuple[bytes, ...]]:
    """What to start instead of the command: the barrier program, or the command's own shell where that can wait."""
    if invocation.script and not invocation.directory:
        return _SHELL, (_SHELL, b"-c", _WAIT + invocation.script)
    return barrier_program.before(invocation)


class StartBarrier:
    """Our side of one child's start barrier."""

    __slots__ = ("_ours", "theirs")

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.theirs = _above_standard_descriptors(theirs.detach())  # may fail; then `ours` closes itself
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
        """After the child exited with BARRIER_SHUT: why it never became the command, where it did not."""
        os.set_blocking(self._ours, False)
        try:
            refused = os.read(self._ours, _REFUSAL.size + _LONGEST_ABOUT)
        except OSError:
            return None
        if len(refused) < _REFUSAL.size:
            return None
        number, step = _REFUSAL.unpack_from(refused)
        return Refusal(-number, step, refused[_REFUSAL.size :])

    def close(self) -> None:
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1


@lru_cache(maxsize=1)
def barrier_program() -> BarrierProgram:
    """The native one where it works; it is tried once, with a barrier that is never opened."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        with contextlib.suppress(OSError):
            descriptor = _as_program(_X86_64)
            # As /proc counts: it may belong to a namespace in which this process has another number.
            for number in (int(os.readlink("/proc/self")), None):
                quick = NativeBarrier(descriptor, number)
                if _ends_when_shut(quick):
                    return quick
    return ShellBarrier()


def _as_program(code: bytes) -> int:
    """A descriptor of a sealed memory file that holds the code as the smallest program there can be."""
    size, entry = _HEADERS + len(code), _BASE + _HEADERS
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, entry, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    loaded = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    plain_stack = struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)
    descriptor = _memory_file()
    try:
        os.write(descriptor, header + loaded + plain_stack + code)
        os.fchmod(descriptor, 0o555)  # also for the user that this process becomes later on
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALED)
        # A program that is open for writing cannot be started, so it is opened anew and kept open for good.
        kept = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        return _above_standard_descriptors(kept)
    finally:
        os.close(descriptor)


def _above_standard_descriptors(descriptor: int) -> int:
    """Never one of the child's own numbers, which a daemon without standard descriptors could be given."""
    if descriptor > BARRIER_DESCRIPTOR:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, BARRIER_DESCRIPTOR + 1)
    finally:
        os.close(descriptor)


def _memory_file() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("chronex-barrier", flags | _MFD_EXEC)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
        return os.memfd_create("chronex-barrier", flags)


def _ends_when_shut(barrier_program: BarrierProgram) -> bool:
    path, argv = barrier_program.before(Invocation(_SHELL, (_SHELL, b"-c", b"exit 1")))
    barrier = StartBarrier()
    try:
        pid = os.posix_spawn(
            path, argv, {}, file_actions=((os.POSIX_SPAWN_DUP2, barrier.theirs, BARRIER_DESCRIPTOR),)
        )
    except OSError:
        return False
    finally:
        barrier.started()
        barrier.close()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == BARRIER_SHUT


# So many starts may wait for the loop at once: it serves what runs already between two of them.
_STARTS_AT_ONCE = 16


class StartPace:
    """Lets a few starts be under way at once, in the order in which they were asked for."""

    def __init__(self, at_once: int = _STARTS_AT_ONCE) -> None:
        self._at_once = at_once
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starts = asyncio.Semaphore(at_once)

    def start(self) -> asyncio.Semaphore:
        """`async with` it, a start is under way. The loop that was used before may have been closed."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._starts = loop, asyncio.Semaphore(self._at_once)
        return self._starts


@dataclass(frozen=True, slots=True)
class RunContext:
    """Made once, in the main thread, by the daemon or by the owner of a library scheduler."""

    logs: LogDirectory
    inheritance: Inheritance
    clock: Clock = SYSTEM_CLOCK
    pace: StartPace = field(default_factory=StartPace)
    barrier_program: BarrierProgram = field(default_factory=barrier_program)
    environment: Mapping[str, str] = field(default_factory=dict)  # the scheduler's own; wins over a task's

    @classmethod
    def of_this_process(
        cls,
        logs: LogDirectory,
        clock: Clock = SYSTEM_CLOCK,
        environ: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> RunContext:
        """Also keeps the descriptors that this process inherited from its children, and makes it able to wait."""
        seal_descriptors()
        # Our parent process may have ignored SIGCHLD; then the system would throw every exit code away.
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
        ):
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        frozen = bool(getattr(sys, "frozen", False))
        inheritance = Inheritance(os.environ if environ is None else environ, frozen=frozen)
        return cls(logs, inheritance, clock, environment=dict(environment or {}))
