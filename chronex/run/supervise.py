"""One attempt of a command, from when it waits at its start barrier to its result."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from chronex.clock import Clock
from chronex.failpoints import fail_point
from chronex.model import AttemptState, LeftoverPolicy, ProcessIdentity
from chronex.run.attempt_log import BoundedLog, Capture, LogSummary
from chronex.run.confinement import Confinement
from chronex.run.launcher import refused_by_launcher
from chronex.run.process import SupervisedProcess, find_leftovers, kill_leftovers
from chronex.run.request import (
    AttemptResult,
    CommandRules,
    EndReason,
    ExitVerdict,
    NotStarted,
)
from chronex.run.side_threads import off_the_loop
from chronex.run.spawn import (
    BARRIER_SHUT,
    PreparedCommand,
    StartBarrier,
    refused_after_barrier,
)
from chronex.run.values_file import NOTHING_HANDED, HandedValues, ValuesFile

# How long output is waited for once the main process has ended and another process holds the pipe.
HELD_PIPE_S = 2.0
_BARRIER_SHUT_STATUS = BARRIER_SHUT << 8  # as waitpid returns it
_POLL_AGAIN_S = 0.02
_SLOWEST_POLL_S = 0.2


Listener = Callable[[], None]


class Cancellation:
    """The request that an attempt should end. Made on the event loop; seen from every thread."""

    __slots__ = ("_listeners", "_waiters", "code", "reason", "requested")

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self.code = ""  # the reason for programs
        self._listeners: list[Listener] = []
        self._waiters: list[threading.Event] = []  # one for each thread that waits; commands have none

    def request(self, reason: str = "") -> None:
        """The first reason stays."""
        if self.requested:
            return
        self.reason = reason
        self.requested = True
        for waiter in tuple(self._waiters):
            waiter.set()
        for listener in tuple(self._listeners):
            listener()

    def wait(self, timeout: float | None = None) -> bool:
        """For threads: wait until the end is requested; False where `timeout` seconds passed first."""
        waiter = threading.Event()
        self._waiters.append(waiter)
        # Read after entering: a request that came before has not set this waiter.
        if not self.requested:
            waiter.wait(timeout)
        self._waiters.remove(waiter)
        return self.requested

    def listen(self, listener: Listener) -> None:
        """Called once, at once where the request is there already."""
        if self.requested:
            listener()
        else:
            self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)


class Started(Struct, frozen=True):
    """An attempt has begun. `process` is None for a callable; output, if any comes, goes to `log_name`."""

    process: ProcessIdentity | None
    started_ms: int
    log_name: str


async def _nothing(_started: Started) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Hooks:
    """How the engine takes part in an attempt.

    `started` is awaited while the process waits at its start barrier, so the command begins only when this has
    returned; when it raises, the process is killed, and the exception is passed on. It returns how many milliseconds
    the occurrence has left until its deadline, where it has one.
    """

    started: Callable[[Started], Awaitable[int | None]] = _nothing
    cancellation: Cancellation = field(default_factory=Cancellation)


def not_started(problem: NotStarted, clock: Clock) -> AttemptResult:
    """The result of an attempt whose command never ran."""
    verdict = ExitVerdict(AttemptState.FAILED, EndReason.NOT_STARTED, problem.retryable, problem.error)
    return never_started(verdict, clock, errno=problem.errno)


def never_started(verdict: ExitVerdict, clock: Clock, errno: int | None = None) -> AttemptResult:
    return AttemptResult(
        state=verdict.state,
        reason=verdict.reason,
        retryable=verdict.retryable,
        error=verdict.error,
        errno=errno,
        finished_ms=clock.wall_ms(),
    )


class SignalTarget(Protocol):
    def signal_group(self, number: int) -> bool: ...


class Stopper:
    """TERM to the group, KILL after the grace. The first reason to stop is the one that is recorded."""

    __slots__ = ("_grace_s", "_loop", "_target", "_timer", "kill_at", "verdict")

    def __init__(self, loop: asyncio.AbstractEventLoop, target: SignalTarget, grace_ms: int) -> None:
        self._loop = loop
        self._target = target
        self._grace_s = grace_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self.verdict: ExitVerdict | None = None
        self.kill_at = 0.0

    def stop(self, verdict: ExitVerdict) -> None:
        if self.verdict is not None:
            return
        self.verdict = verdict
        self.kill_at = self._loop.time() + self._grace_s
        self._target.signal_group(signal.SIGTERM)
        # A stopped process does not see TERM before it goes on.
        self._target.signal_group(signal.SIGCONT)
        self._timer = self._loop.call_at(self.kill_at, self._target.signal_group, signal.SIGKILL)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Supervision:
    """The callbacks of one attempt while its main process runs, and the steps after that has ended."""

    def __init__(
        self,
        rules: CommandRules,
        clock: Clock,
        process: SupervisedProcess,
        log: BoundedLog,
        pipe: int,
        secrets: tuple[bytes, ...],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.rules = rules
        self.clock = clock
        self.process = process
        self.started_ms = clock.wall_ms()
        self.began = clock.monotonic_ms()
        self.before_ms = 0  # how long it had run already when it was adopted
        self.outlives = False  # it goes on when whoever waits for it is cancelled
        self.log = log
        self.capture = Capture(self.loop, pipe, log, secrets)
        self.stopper = Stopper(self.loop, process, rules.grace_ms)
        self.exited: asyncio.Future[int | None] = self.loop.create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.on_cancel = lambda: None
        self.command: PreparedCommand | None = None  # what waits at the barrier; an adopted process is past it
        self.barrier: StartBarrier | None = None
        self.confinement: Confinement | None = None  # where it has limits
        self.values_file: ValuesFile | None = None
        self.secrets = secrets

    async def supervise(self, hooks: Hooks, *, report: bool) -> AttemptResult:
        """Watch until the end. When the hook raises, or the caller is cancelled, the group of a child is killed."""
        must_die = report  # one that was adopted outlived its scheduler before, and outlives this one too
        if report:  # it may have been held at its barrier for a while
            self.started_ms, self.began = self.clock.wall_ms(), self.clock.monotonic_ms()
        try:
            self.watch(hooks)
            if report:
                started = Started(self.process.identity, self.started_ms, f"{self.rules.attempt_id}.log")
                fail_point("identified")
                await hooks.started(started)
                fail_point("start recorded")
            if self.barrier is not None:
                self.barrier.open()
                must_die = not self.outlives
                fail_point("barrier opened")
            self._begin_timeout()
            if self.confinement is not None:
                self.confinement.watch(self.process)
            return await self.finish()
        except BaseException:
            if must_die:
                self.process.signal_group(signal.SIGKILL)
            else:
                self.values_file = None  # it may still write there; whoever adopts it removes that
            self.capture.close()
            self.log.finish()
            raise
        finally:
            self.close(hooks)

    @property
    def is_held(self) -> bool:
        """It still waits at its start barrier; it may have been killed there."""
        return self.barrier is not None and not self.process.has_ended()

    @property
    def is_gone(self) -> bool:
        """It has ended, and was waited for."""
        return self.process.is_reaped

    def discard(self) -> None:
        """It is not needed: the barrier is closed for good, and the child exits without having run anything."""
        self.process.watch(lambda _status: None)
        self.process.close()
        self.capture.close()
        self.log.finish()
        if self.barrier is not None:
            self.barrier.close()
        if self.confinement is not None:
            self.confinement.close()
        if self.values_file is not None:
            self.values_file.remove()

    def watch(self, hooks: Hooks) -> None:
        self.capture.start()
        self.process.watch(self._on_exit)
        self.on_cancel = lambda: self.stopper.stop(canceled(hooks.cancellation.reason))
        hooks.cancellation.listen(self.on_cancel)

    def _begin_timeout(self) -> None:
        """From when the barrier is open: on a full disk a start waits for its record, and that is not its time."""
        timeout = self.rules.timeout_ms
        if self.barrier is not None:
            self.began = self.clock.monotonic_ms()
        if timeout is not None and not self.exited.done():
            left = max(0, timeout - self.before_ms)
            self.timer = self.loop.call_later(left / 1000, self.stopper.stop, timed_out(timeout))

    def _on_exit(self, status: int | None) -> None:
        self._no_more_stops()
        self.capture.pump()  # mostly the last output, and the end of the pipe, are there already
        if not self.exited.done():
            self.exited.set_result(status)

    def _no_more_stops(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.stopper.close()

    async def finish(self) -> AttemptResult:
        """Wait for the main process, then for the rest of its output, then find what it left behind."""
        status = await self.exited
        fail_point("process ended")
        stop = self.stopper.verdict
        finished_ms, duration_ms = self.clock.wall_ms(), self.before_ms + self.clock.monotonic_ms() - self.began
        if not self.capture.ended.done():
            await asyncio.wait([self.capture.ended], timeout=HELD_PIPE_S)
        leftovers, killed = await self._leftovers(must_die=stop is not None)
        if self.confinement is not None and (stop is not None or self.rules.leftovers is LeftoverPolicy.KILL):
            self.confinement.kill_rest()
        self.capture.finish()
        if status == _BARRIER_SHUT_STATUS and (refused := self._refused_after_barrier()) is not None:
            return refused
        verdict, usage = judge(self.rules, status, stop, self.process.unknown_because), self.process.usage
        if self.confinement is not None:
            usage = self.confinement.usage(usage)
            verdict = self.confinement.verdict(verdict, usage, self.rules)
        handed = self._handed(verdict)
        return AttemptResult(
            state=verdict.state,
            reason=verdict.reason,
            retryable=verdict.retryable,
            error=verdict.error,
            values=handed.values,
            values_problem=handed.problem,
            exit_code=verdict.exit_code,
            signal=verdict.signal,
            process=self.process.identity,
            started_ms=self.started_ms,
            finished_ms=finished_ms,
            duration_ms=duration_ms,
            log=await finish_log(self.log),
            leftovers=leftovers,
            leftovers_killed=killed,
            usage=usage,
        )

    def end_seen(self) -> AttemptResult | None:
        """How the main process ended, without all that is asked for afterwards; None where nobody has seen it."""
        status = self.exited.result() if self.exited.done() and not self.exited.cancelled() else None
        if status is None:
            return None
        verdict = judge(self.rules, status, self.stopper.verdict)
        return replace(
            never_started(verdict, self.clock),
            exit_code=verdict.exit_code,
            signal=verdict.signal,
            process=self.process.identity,
            started_ms=self.started_ms,
            usage=self.process.usage,
        )

    def _handed(self, verdict: ExitVerdict) -> HandedValues:
        """What it hands over; one that did not succeed hands over nothing."""
        if self.values_file is None:
            return NOTHING_HANDED
        handed = self.values_file.take(self.secrets)
        return handed if verdict.state is AttemptState.SUCCESS else NOTHING_HANDED

    def _refused_after_barrier(self) -> AttemptResult | None:
        refusal = self.barrier.refusal() if self.barrier is not None else None
        if refusal is None or self.command is None:
            return None
        if self.command.settings is not None:
            return not_started(refused_by_launcher(refusal), self.clock)
        return not_started(refused_after_barrier(self.command.invocation, refusal), self.clock)

    async def _leftovers(self, *, must_die: bool) -> tuple[tuple[ProcessIdentity, ...], int]:
        """Processes that live on, and how many of them were killed; after a stop they get the rest of the grace."""
        if self.capture.ended.done() and not self.process.group_is_alive():
            return (), 0
        find = partial(find_leftovers, self.process.identity, self.rules.marks)
        try:
            return await self._found_and_killed(find, must_die=must_die)
        except OSError:  # out of descriptors: how the command ended is known, and must not be lost for that
            return (), 0

    async def _found_and_killed(
        self, find: Callable[[], tuple[ProcessIdentity, ...]], *, must_die: bool
    ) -> tuple[tuple[ProcessIdentity, ...], int]:
        found = await off_the_loop(find)
        pause = _POLL_AGAIN_S
        while found and must_die and (left := self.stopper.kill_at - self.loop.time()) > 0:
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, _SLOWEST_POLL_S)
            found = await off_the_loop(find)
        if not found or not (must_die or self.rules.leftovers is LeftoverPolicy.KILL):
            return found, 0
        return await off_the_loop(partial(kill_leftovers, found, self.process.identity, self.rules.marks))

    def close(self, hooks: Hooks) -> None:
        self._no_more_stops()
        hooks.cancellation.forget(self.on_cancel)
        self.process.close()
        if self.barrier is not None:
            self.barrier.close()
        if self.confinement is not None:
            self.confinement.close()
        if self.values_file is not None:
            self.values_file.remove()


async def finish_log(log: BoundedLog) -> LogSummary:
    """Putting a long log in order is work for a thread."""
    if log.must_be_put_in_order:
        summary = await off_the_loop(log.finish)
    else:
        summary = log.finish()
    fail_point("log finished")
    return summary


def judge(rules: CommandRules, status: int | None, stop: ExitVerdict | None = None, unknown: str = "") -> ExitVerdict:
    """`status` as waitpid gives it; None where it is not known, and `unknown` why.

    `stop` is why Chronex ended the process, where it did.
    """
    if status is None:
        return stop or unknown_exit(unknown)
    code = os.waitstatus_to_exitcode(status)
    exit_code, number = (code, None) if code >= 0 else (None, -code)
    if stop is not None:
        return stop._replace(exit_code=exit_code, signal=number)
    if exit_code is not None and exit_code in rules.success_codes:
        return ExitVerdict(AttemptState.SUCCESS, EndReason.EXITED, False, "", exit_code)
    # A shell reports a signal as 128 plus its number; the rule for retries reads both the same way.
    shell_code = exit_code if exit_code is not None else 128 + (number or 0)
    retryable = rules.retry_codes is None or shell_code in rules.retry_codes
    if number is not None:
        return ExitVerdict(
            AttemptState.FAILED, EndReason.SIGNAL, retryable, f"ended by {_name(number)}", None, number
        )
    return ExitVerdict(AttemptState.FAILED, EndReason.EXIT_CODE, retryable, f"exit code {exit_code}", exit_code)


def timed_out(timeout_ms: int) -> ExitVerdict:
    return ExitVerdict(AttemptState.TIMEOUT, EndReason.TIMEOUT, True, f"still running after {timeout_ms / 1000:g} s")


def canceled(why: str) -> ExitVerdict:
    return ExitVerdict(AttemptState.CANCELED, EndReason.CANCELED, False, why or "canceled")


def unknown_exit(why: str) -> ExitVerdict:
    """It ended with an exit code that is not known; that is never a success."""
    return ExitVerdict(
        AttemptState.CRASHED, EndReason.UNKNOWN_EXIT, True, f"ended, and its exit code is not known: {why}"
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
