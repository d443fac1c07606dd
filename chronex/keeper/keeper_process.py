"""The keeper itself: one process beside a scheduler, which starts its commands, watches them and keeps their ends.

It knows no store, no job and no schedule. It ends by itself once no scheduler is connected and no command runs; ends
that nobody has recorded stay in its file. Signals that stop a service do not stop it: it ends with its commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from chronex.failpoints import fail_point
from chronex.keeper.ends_file import ENDS_NAME, EndsFile
from chronex.keeper.messages import (
    PROTOCOL,
    SOCKET_NAME,
    Discard,
    Ended,
    FrameReader,
    FrameTooLongError,
    Held,
    Message,
    Open,
    Opened,
    Recorded,
    Start,
    Stop,
    Trust,
    Welcome,
    frame,
    socket_path,
)
from chronex.model import AttemptState, ProcessIdentity
from chronex.run.attempt_log import LogDirectory
from chronex.run.command_start import start_prepared
from chronex.run.environment import Inheritance
from chronex.run.launcher import load as load_launcher
from chronex.run.process import identity_of, signal_group
from chronex.run.request import AttemptResult, EndReason, NotStarted
from chronex.run.spawn import PreparedCommand, RunContext, seal_descriptors
from chronex.run.supervise import (
    Cancellation,
    Hooks,
    Started,
    Supervision,
    never_started,
    not_started,
    unknown_exit,
)
from chronex.version import __version__

LOCK_NAME, ERRORS_NAME = "lock", "errors"
READY = b"ready\n"
MOST_ERRORS = 64 << 10  # characters; what repeats itself every second must fill no disk
EXECUTION_TIMEOUT = "execution_timeout"
CUT_OFF = "cut_off"
# How often a keeper whose node shares its store looks whether it is still trusted.
_CHECK_S = 1.0
# A keeper whose scheduler died before it connected has nothing to keep.
_FIRST_CONNECTION_S = 30.0
_AGAIN_S = 1.0  # how often it tries to write what a full disk did not take


class _NotOpenedError(Exception):
    """The scheduler is gone, or does not need the command: its barrier stays shut. It says why."""


_DIED = "its scheduler died before the command could begin"
_TOO_LATE = "no heartbeat of its node had arrived in time for the command to begin"


class KeptCommand:
    """One command between its start and its end."""

    def __init__(self, command: PreparedCommand, client: Client) -> None:
        self.rules = command.rules
        self.client: Client | None = client  # who may open its barrier
        self.barrier: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.cancellation = Cancellation()
        self.keeps_end = True
        self.process: ProcessIdentity | None = None
        self.deadline: asyncio.TimerHandle | None = None
        self.supervision: Supervision | None = None

    @property
    def is_open(self) -> bool:
        """Whatever a scheduler believes, the end of what runs is on no record."""
        return self.barrier.done() and not self.barrier.cancelled() and self.barrier.exception() is None

    def open(self, deadline_in_ms: int | None) -> None:
        if self.barrier.done():
            return
        self.barrier.set_result(None)
        if deadline_in_ms is not None:
            seconds = max(0, deadline_in_ms) / 1000
            loop = asyncio.get_running_loop()
            self.deadline = loop.call_later(seconds, self.stop, EXECUTION_TIMEOUT, "out of time")

    def discard(self, *, keeps_end: bool, why: str = _DIED) -> None:
        if not self.barrier.done():
            self.keeps_end = keeps_end
            self.barrier.set_exception(_NotOpenedError(why))
            self.barrier.exception()  # its process may not be there yet, and then nobody waits for it

    def stop(self, code: str, words: str) -> None:
        """The first reason stays."""
        if not self.cancellation.requested:
            self.cancellation.code = code
            self.cancellation.request(words)

    def kill(self) -> None:
        if self.process is not None and not self.barrier.cancelled():
            signal_group(self.process, signal.SIGKILL)

    def over(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        if not self.barrier.done():
            self.barrier.cancel()


class Client(asyncio.Protocol):
    """One scheduler that is connected."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._keeper.joined(self)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._keeper.received(self, message)
        except FrameTooLongError:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._keeper.left(self)

    def send(self, message: Message) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(message))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Keeper:
    """Everything that is kept, and everybody who is connected."""

    def __init__(self, run_context: RunContext, ends: EndsFile) -> None:
        self._run_context = run_context
        self._ends = ends
        self._clients: set[Client] = set()
        self._commands: dict[str, KeptCommand] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._trust: Trust | None = None
        self._writing: asyncio.TimerHandle | None = None  # when what a full disk did not take is tried again
        self.over = asyncio.Event()

    # -- schedulers ----------------------------------------------------------------------------------------------

    def joined(self, client: Client) -> None:
        if self.over.is_set():  # nobody would read what it says; what it wants to know is in the file
            client.close()
            return
        process = identity_of(os.getpid())
        assert process is not None, "this process exists"
        # The welcome comes last: who has read it knows everything that is kept here.
        for ended in self._ends.ends.values():
            client.send(ended)
        running = tuple(self._commands)
        client.send(Welcome(PROTOCOL, __version__, process, len(self._clients), running))
        self._clients.add(client)

    def left(self, client: Client) -> None:
        """What it had not opened must never run: nobody knows whether its start is on record."""
        self._clients.discard(client)
        for kept in self._commands.values():
            if kept.client is client:
                kept.discard(keeps_end=True)
        self.end_if_idle()

    def received(self, client: Client, message: Message) -> None:
        if isinstance(message, Start):
            self._begin(message.command, client)
        elif isinstance(message, Recorded):
            self._ends.recorded(message.attempt_id)
            kept = self._commands.get(message.attempt_id)
            if kept is not None and not kept.is_open:  # it is on record before its process is gone
                kept.keeps_end = False
        elif isinstance(message, Trust):
            is_first, self._trust = self._trust is None, message
            if is_first:
                self._enforce_trust()
        elif isinstance(message, Open | Discard | Stop):
            kept = self._commands.get(message.attempt_id)
            if kept is None:
                return
            if isinstance(message, Open) and self._is_past(message.until_ms):
                kept.discard(keeps_end=True, why=_TOO_LATE)
            elif isinstance(message, Open):
                kept.open(message.deadline_in_ms)
            elif isinstance(message, Discard):
                kept.discard(keeps_end=message.keeps_end)
            else:
                kept.stop(message.code, message.words)

    def _is_past(self, boottime_ms: int | None) -> bool:
        return boottime_ms is not None and self._run_context.clock.boottime_ms() >= boottime_ms

    def _enforce_trust(self) -> None:
        """Whatever became of the scheduler: past its time others begin its work anew, so here it must have ended."""
        assert self._trust is not None
        # Before anything that may fail: it must go on being looked at.
        asyncio.get_running_loop().call_later(_CHECK_S, self._enforce_trust)
        if self._is_past(self._trust.stop_ms):
            for kept in self._commands.values():
                kept.discard(keeps_end=True)
                kept.stop(CUT_OFF, "its machine was cut off from the store")
                if self._is_past(self._trust.kill_ms):
                    kept.kill()

    def _broadcast(self, message: Message) -> None:
        for client in self._clients:
            client.send(message)

    # -- commands ------------------------------------------------------------------------------------------------

    def _begin(self, command: PreparedCommand, client: Client) -> None:
        assert command.rules.attempt_id not in self._commands, "a scheduler waits until what it discarded is gone"
        kept = self._commands[command.rules.attempt_id] = KeptCommand(command, client)
        task = asyncio.get_running_loop().create_task(self._keep(command, kept))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _keep(self, command: PreparedCommand, kept: KeptCommand) -> None:
        try:
            result = await self._run(command, kept)
        except _NotOpenedError as shut:
            result = _never_opened(self._run_context, str(shut), kept.process)
        except Exception as problem:  # a fault of ours: whoever waits for the command must be told all the same
            traceback.print_exc()
            result = _fault(self._run_context, problem, kept)
        kept.over()
        del self._commands[kept.rules.attempt_id]
        ended = Ended(kept.rules.attempt_id, result)
        if kept.keeps_end:
            self._ends.ended(ended)
        fail_point("end kept")
        self._broadcast(ended)
        self._write_rest_later()
        self.end_if_idle()

    async def _run(self, command: PreparedCommand, kept: KeptCommand) -> AttemptResult:
        async with self._run_context.pace.start():
            if kept.barrier.done() and (shut := kept.barrier.exception()) is not None:
                raise shut
            started = await start_prepared(command, self._run_context)
        if isinstance(started, NotStarted):
            return _sendable(not_started(started, self._run_context.clock), kept)
        kept.supervision = started

        async def hold(held: Started) -> None:
            assert held.process is not None, "a command has a process"
            kept.process = held.process
            if kept.client is not None:
                kept.client.send(Held(kept.rules.attempt_id, held.process))
            await kept.barrier
            kept.client = None
            self._ends.opened(Opened(kept.rules.attempt_id, held.process))

        return _sendable(await started.supervise(Hooks(hold, kept.cancellation), report=True), kept)

    # -- its own end ---------------------------------------------------------------------------------------------

    def end_if_idle(self) -> None:
        if not self._clients and not self._commands and not self._ends.is_behind:
            self.over.set()

    def _write_rest_later(self) -> None:
        """One timer for all of it, however many commands end while the disk is full."""
        if self._ends.is_behind and self._writing is None:
            self._writing = asyncio.get_running_loop().call_later(_AGAIN_S, self._write_rest)

    def _write_rest(self) -> None:
        self._writing = None
        self._ends.write_rest()
        self._write_rest_later()
        self.end_if_idle()

    @property
    def has_unrecorded_ends(self) -> bool:
        return bool(self._ends.ends)


def _never_opened(run_context: RunContext, why: str, process: ProcessIdentity | None) -> AttemptResult:
    return AttemptResult(
        state=AttemptState.CRASHED,
        reason=EndReason.NEVER_STARTED,
        retryable=True,
        error=why,
        finished_ms=run_context.clock.wall_ms(),
        process=process,
    )


def _fault(run_context: RunContext, problem: Exception, kept: KeptCommand) -> AttemptResult:
    """Its end, where that was seen; else it was killed with its supervision, or never began, and nobody knows."""
    seen = None if kept.supervision is None else kept.supervision.end_seen()
    if seen is not None:
        return seen
    verdict = unknown_exit(f"its keeper had a fault: {type(problem).__name__}")
    return never_started(verdict, run_context.clock)


def _sendable(result: AttemptResult, kept: KeptCommand) -> AttemptResult:
    """Paths in its words may hold bytes that are no text."""
    error = result.error.encode("utf-8", "backslashreplace").decode()
    return replace(result, error=error, stop_code=kept.cancellation.code)


# -- the process -------------------------------------------------------------------------------------------------


async def keep(directory: Path, logs: Path, on_ready: Callable[[], None]) -> None:
    """Serve until nothing is left to keep; then remove what nobody needs any more."""
    fail_point("keeper begins")
    held = os.open(directory, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    lock = os.open(LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=held)
    fcntl.flock(lock, fcntl.LOCK_EX)  # whoever looks whether it is held has it shared for a moment
    run_context = RunContext(LogDirectory(logs), Inheritance({}))
    keeper = Keeper(run_context, EndsFile(held))
    loop = asyncio.get_running_loop()
    server = await loop.create_unix_server(lambda: Client(keeper), sock=listening_socket(held, directory))
    loop.call_later(_FIRST_CONNECTION_S, keeper.end_if_idle)
    on_ready()
    fail_point("keeper listens")
    await keeper.over.wait()
    server.close()
    _remove(held, directory, keeps_ends=keeper.has_unrecorded_ends)


def _remove(held: int, directory: Path, *, keeps_ends: bool) -> None:
    """Everything, or all but the ends that no scheduler has recorded yet."""
    with contextlib.suppress(OSError):
        if not os.stat(ERRORS_NAME, dir_fd=held).st_size:
            os.unlink(ERRORS_NAME, dir_fd=held)
    # The lock goes last: where there is none, nothing is left that would be worth a word.
    for name in (SOCKET_NAME,) if keeps_ends else (SOCKET_NAME, ENDS_NAME, LOCK_NAME):
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=held)
    with contextlib.suppress(OSError):  # something is left in it
        os.rmdir(_path_now(held, directory))


def _path_now(held: int, directory: Path) -> str:
    """Where the directory is by now: the store may have been moved."""
    try:
        return os.readlink(f"/proc/self/fd/{held}")
    except OSError:
        return str(directory)


def listening_socket(held: int, directory: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(socket_path(held, directory))
    return listener


class BoundedErrors(io.TextIOBase):
    """What the keeper has to say of itself, up to a bound. A full disk must not keep it from its commands."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._left = MOST_ERRORS

    def write(self, text: str) -> int:
        shown, self._left = text[: self._left], max(self._left - len(text), 0)
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(shown)
            self._stream.flush()
        return len(text)


def main(directory: str, logs: str) -> None:
    """Standard output is the pipe of whoever started it: one line says that it is ready, or why it is not."""
    if os.fork():
        os._exit(0)  # its parent is then the init process, and waits for nothing
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text("chronex-keeper", encoding="ascii")

    def ready() -> None:
        with contextlib.suppress(OSError):
            os.write(1, READY)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.close(nowhere)

    seal_descriptors()
    load_launcher()
    try:
        with contextlib.redirect_stderr(BoundedErrors(sys.stderr)):
            asyncio.run(keep(Path(directory), Path(logs), ready))
    except OSError as problem:
        with contextlib.suppress(OSError):
            os.write(1, f"{problem.strerror or problem}\n".encode())
        sys.exit(1)
