"""What every attempt of one daemon shares."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.model import ProcessIdentity
from chronex.run.attempt_log import LogDirectory
from chronex.run.environment import Inheritance
from chronex.run.request import Cancellation
from chronex.run.spawn import BarrierProgram, barrier_program, seal_descriptors

# A start takes about half a millisecond, so a turn of the loop stays under ten, however many are due at once.
_STARTS_PER_TURN = 16


class StartPace:
    """Lets a few starts pass in each turn of the loop, in order; what runs already is served between them."""

    def __init__(self, per_turn: int = _STARTS_PER_TURN) -> None:
        self._per_turn = per_turn
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin(None)

    def _begin(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self._left = self._per_turn
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turn_is_set = False

    async def enter(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the one before may have been closed between two turns
            self._begin(loop)
        if self._left and not self._waiting:
            self._left -= 1
            self._set_next_turn()
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        self._set_next_turn()
        await turn

    def _set_next_turn(self) -> None:
        if not self._turn_is_set:
            self._turn_is_set = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn_is_set = False
        self._left = self._per_turn
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        if self._waiting or self._left < self._per_turn:
            self._set_next_turn()


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


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt has begun. `process` is None for a callable; output, if any comes, goes to `log_name`."""

    process: ProcessIdentity | None
    started_ms: int
    log_name: str


async def _nothing(_started: Started) -> None:
    return


@dataclass(frozen=True, slots=True)
class Hooks:
    """How the engine takes part in an attempt.

    `started` is awaited while the process waits at its start barrier, so the command begins only when this has
    returned; when it raises, the process is killed, and the exception is passed on.
    """

    started: Callable[[Started], Awaitable[None]] = _nothing
    cancellation: Cancellation = field(default_factory=Cancellation)
