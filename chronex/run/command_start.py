"""Starts a command behind its start barrier: prepared, spawned on a thread, identified; then it is supervised."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from chronex.clock import SYSTEM_CLOCK
from chronex.failpoints import fail_point
from chronex.model import ProcessIdentity
from chronex.run.attempt_log import BoundedLog, open_pipe
from chronex.run.confinement import confinement_of
from chronex.run.environment import child_environment, rules_of
from chronex.run.launcher import start_through_launcher
from chronex.run.posix_spawn import spawn_threads
from chronex.run.process import Child, identity_of_child
from chronex.run.request import AttemptRequest, AttemptResult, NotStarted
from chronex.run.secret_values import fetch_printed, needs_commands, secret_values
from chronex.run.spawn import PreparedCommand, RunContext, StartBarrier, prepare, prepare_unseen, start
from chronex.run.supervise import Hooks, Supervision, canceled, never_started, not_started
from chronex.run.values_file import OUTPUT_VARIABLE, ValuesFile

NOTHING_PRINTED: Mapping[str, str] = {}


async def run_attempt(
    request: AttemptRequest,
    hooks: Hooks,
    run_context: RunContext,
    held: Supervision | None = None,
    *,
    outlives: bool = False,
) -> AttemptResult:
    """Run the command and say how it ended. What goes wrong with the command is a result, never an exception.

    `held` is the same attempt as `start_held` has started it ahead of its time. One that `outlives` its caller goes
    on when that is cancelled, where it has begun.
    """
    if hooks.cancellation.requested and held is not None:
        held.discard()
        return never_started(canceled(hooks.cancellation.reason), run_context.clock)
    attempt = held or await _started(request, hooks, run_context)
    if isinstance(attempt, AttemptResult):
        return attempt
    attempt.outlives = outlives
    return await attempt.supervise(hooks, report=True)


async def _started(request: AttemptRequest, hooks: Hooks, run_context: RunContext) -> Supervision | AttemptResult:
    """The command at its start barrier, or why there is none."""
    printed = NOTHING_PRINTED
    if request.secret_sources and needs_commands(request):
        fetched = await fetch_printed(request, run_context.inheritance)
        if isinstance(fetched, NotStarted):
            return not_started(fetched, run_context.clock)
        printed = fetched
    async with run_context.pace.start():
        if hooks.cancellation.requested:
            return never_started(canceled(hooks.cancellation.reason), run_context.clock)
        command = prepare_command(request, run_context, printed)
        started = command if isinstance(command, NotStarted) else await start_prepared(command, run_context)
    return not_started(started, run_context.clock) if isinstance(started, NotStarted) else started


def prepare_command(
    request: AttemptRequest, run_context: RunContext, printed: Mapping[str, str] = NOTHING_PRINTED
) -> PreparedCommand | NotStarted:
    """The request as the system takes it; what is missing is named before anything starts.

    `printed` are the secrets that commands have printed, where there are such.
    """
    secrets = secret_values(request, run_context.inheritance, printed) if request.secrets else {}
    if isinstance(secrets, NotStarted):
        return secrets
    environment = child_environment(request, run_context.inheritance, secrets)
    if isinstance(environment, NotStarted):
        return environment
    if request.settings is None:
        invocation = prepare(request.command, request.directory, environment.variables)
    else:
        invocation = prepare_unseen(request.command, request.directory)
    if isinstance(invocation, NotStarted):
        return invocation
    return PreparedCommand(
        rules_of(request), invocation, environment.variables, environment.secrets, request.settings
    )


def start_held(
    request: AttemptRequest, run_context: RunContext, printed: Mapping[str, str] = NOTHING_PRINTED
) -> Supervision | NotStarted:
    """Start what will become the command, and hold it at its start barrier."""
    command = prepare_command(request, run_context, printed)
    if isinstance(command, NotStarted):
        return command
    start = _CommandStart.of(command, run_context)
    return start if isinstance(start, NotStarted) else start.held(start.spawn())


async def start_prepared(command: PreparedCommand, run_context: RunContext) -> Supervision | NotStarted:
    """The same for a command that is prepared already; the loop goes on while the system starts it."""
    start = _CommandStart.of(command, run_context)
    if isinstance(start, NotStarted):
        return start
    return start.held(await spawn_threads().run(start.spawn, start.give_up))


class _Spawned(NamedTuple):
    """The pid of a child at its start barrier, and between which readings of the boot clock it was started."""

    pid: int | NotStarted
    before_ms: int
    after_ms: int


class _CommandStart:
    """One command on its way to its start barrier; what it opens is closed by `held` or by `give_up`."""

    def __init__(
        self, command: PreparedCommand, run_context: RunContext, values: ValuesFile, barrier: StartBarrier
    ) -> None:
        self._command, self._run_context = command, run_context
        self._values, self._barrier = values, barrier
        self._output, self._theirs = open_pipe()
        self._confinement = None if command.settings is None else confinement_of(command)

    @classmethod
    def of(cls, command: PreparedCommand, run_context: RunContext) -> _CommandStart | NotStarted:
        fail_point("before spawn")
        values = ValuesFile(run_context.logs, command.rules.attempt_id, command.settings)
        if values.path:
            given = {**command.variables, OUTPUT_VARIABLE.encode(): os.fsencode(values.path)}
            command = replace(command, variables=given)
        try:
            barrier = StartBarrier()
        except OSError as problem:
            values.remove()
            return NotStarted(f"no way to hold it until it is recorded: {problem.strerror}", problem.errno)
        try:
            return cls(command, run_context, values, barrier)
        except OSError as problem:
            values.remove()
            barrier.started()
            barrier.close()
            return NotStarted(f"no pipe for its output: {problem.strerror}", problem.errno)

    def spawn(self) -> _Spawned:
        """For any thread."""
        command, before_ms = self._command, SYSTEM_CLOCK.boottime_ms()
        if command.settings is None:
            pid = start(
                command.invocation,
                command.variables,
                self._theirs,
                self._run_context.barrier_program,
                self._barrier.theirs,
            )
        else:
            own_limits = None if self._confinement is None else self._confinement.of_process
            pid = start_through_launcher(
                command.settings,
                command.invocation,
                command.variables,
                self._theirs,
                self._barrier.theirs,
                own_limits,
            )
        return _Spawned(pid, before_ms, SYSTEM_CLOCK.boottime_ms())

    def held(self, spawned: _Spawned) -> Supervision | NotStarted:
        """The child that waits at its barrier."""
        fail_point("spawned")
        os.close(self._theirs)
        self._barrier.started()
        identity = spawned.pid if isinstance(spawned.pid, NotStarted) else _identity_or_end(spawned)
        if isinstance(identity, NotStarted):
            self._close()
            return identity
        if self._confinement is not None:
            self._confinement.join(identity.pid)
        rules = self._command.rules
        log = BoundedLog(self._run_context.logs, rules.attempt_id, rules.log_limit)
        child = Child(asyncio.get_running_loop(), identity)
        supervision = Supervision(rules, self._run_context.clock, child, log, self._output, self._command.secrets)
        supervision.command, supervision.barrier = self._command, self._barrier
        supervision.confinement, supervision.values_file = self._confinement, self._values
        return supervision

    def give_up(self, spawned: _Spawned) -> None:
        """Whoever wanted it was cancelled meanwhile: its barrier is shut for good, so it exits without having run."""
        os.close(self._theirs)
        self._barrier.started()
        self._close()
        if not isinstance(spawned.pid, NotStarted):
            _end_child(spawned.pid)

    def _close(self) -> None:
        os.close(self._output)
        self._barrier.close()
        self._values.remove()
        if self._confinement is not None:
            self._confinement.close()


def _identity_or_end(spawned: _Spawned) -> ProcessIdentity | NotStarted:
    assert isinstance(spawned.pid, int), "it was started"
    try:
        identity = identity_of_child(spawned.pid, spawned.before_ms, spawned.after_ms)
    except OSError:
        identity = None
    if identity is not None:
        return identity
    # Without an identity no daemon could prove that this process is ours, so it must not outlive this moment.
    _end_child(spawned.pid)
    return NotStarted("the system would not tell which process was started (out of descriptors?)")


def _end_child(pid: int) -> None:
    """A child at its barrier, which has run nothing."""
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
