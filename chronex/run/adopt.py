"""Watches a process that a dead daemon left running, until it ends.

It is not our child, so its exit code cannot be read: the result is `crashed`, never a success.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from chronex.errors import LogDirectoryError
from chronex.model import ProcessIdentity
from chronex.model.occurrence import Usage
from chronex.run.attempt_log import BoundedLog, reopen_pipe
from chronex.run.confinement import confinement_left
from chronex.run.environment import rules_of, secrets_of_process
from chronex.run.process import OnExit, age_ms, is_alive, signal_group, signal_group_of, watcher_of
from chronex.run.request import AttemptRequest, AttemptResult
from chronex.run.spawn import RunContext
from chronex.run.supervise import Hooks, Supervision, unknown_exit
from chronex.run.values_file import ValuesFile

_POLL_AGAIN_S = 0.2
_KILLED_WITHIN_S = 10.0
_ORPHANED = "whoever watched it had died"


async def adopt_attempt(
    request: AttemptRequest,
    identity: ProcessIdentity,
    started_ms: int,
    log_name: str,
    hooks: Hooks,
    run_context: RunContext,
) -> AttemptResult:
    """See an attempt of a dead daemon through to its end; at once where it has ended already, or is not that process.

    Its timeout counts from `started_ms`, timeout and cancellation stop it like any other, and its output goes on
    into the same log where the system lets us have the pipe. `hooks.started` is not called: it is recorded.
    """
    orphan = Orphan(identity)
    pipe = reopen_pipe(identity.pid)
    environ = _environ_of(identity.pid)
    # Checked last: what was opened by number above is then known to be that process's.
    if not orphan.is_alive():
        orphan.close()
        if pipe is not None:
            os.close(pipe)
        ValuesFile(run_context.logs, request.attempt_id).remove()
        return _ended_unseen(request, identity, started_ms, run_context)
    log, secrets = _log_and_secrets(request, log_name, environ, run_context)
    supervision = Supervision(
        rules_of(request), run_context.clock, orphan, log, -1 if pipe is None else pipe, secrets
    )
    by_the_clock_ms = max(0, supervision.started_ms - started_ms)
    age = age_ms(identity)  # a clock that was set forward meanwhile must not time it out
    supervision.before_ms = by_the_clock_ms if age is None else min(by_the_clock_ms, age)
    supervision.started_ms = started_ms
    supervision.values_file = ValuesFile(run_context.logs, request.attempt_id)
    supervision.confinement = confinement_left(request.attempt_id, request.settings)
    return await supervision.supervise(hooks, report=False)


def _ended_unseen(
    request: AttemptRequest, identity: ProcessIdentity, started_ms: int, run_context: RunContext
) -> AttemptResult:
    """Its control group, where it had one, still knows what it took and whether that was too much."""
    verdict, usage = unknown_exit(_ORPHANED), None
    confinement = confinement_left(request.attempt_id, request.settings)
    if confinement is not None:
        usage = confinement.usage(None)
        verdict = confinement.verdict(verdict, usage, rules_of(request))
        confinement.close()
    return AttemptResult(
        state=verdict.state,
        reason=verdict.reason,
        retryable=verdict.retryable,
        error=verdict.error,
        signal=verdict.signal,
        usage=usage,
        process=identity,
        started_ms=started_ms,
        finished_ms=run_context.clock.wall_ms(),
    )


def _log_and_secrets(
    request: AttemptRequest, log_name: str, environ: bytes | None, run_context: RunContext
) -> tuple[BoundedLog, tuple[bytes, ...]]:
    try:
        log = BoundedLog.resume(run_context.logs, log_name, request.log_limit)
    except LogDirectoryError:  # it had written nothing yet, or its log is gone
        log = BoundedLog(run_context.logs, request.attempt_id, request.log_limit)
    secrets = secrets_of_process(request, environ)
    if isinstance(secrets, str):
        # Without the values they cannot be taken out, so the pipe is emptied and nothing is kept.
        log.error = f"output could not be kept: {secrets}"
        return log, ()
    return log, secrets


def _environ_of(pid: int) -> bytes | None:
    """The environment that the process began with; None where the system does not show it."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None


async def stop_process(identity: ProcessIdentity, grace_ms: int) -> bool:
    """Stop a process that is another node's to stop: TERM to its group, KILL after the grace; True when it is gone.

    Each signal compares boot, pid and start time anew, so that no other process is ever signalled.
    """
    loop = asyncio.get_running_loop()
    for number, seconds in ((signal.SIGTERM, grace_ms / 1000), (signal.SIGKILL, _KILLED_WITHIN_S)):
        signal_group(identity, number)
        signal_group(identity, signal.SIGCONT)
        end = loop.time() + seconds
        while is_alive(identity) and loop.time() < end:
            await asyncio.sleep(_POLL_AGAIN_S)
        if not is_alive(identity):
            return True
    return False


class Orphan:
    """A process that is not our child. Its pidfd is opened before its identity is read."""

    unknown_because = _ORPHANED
    usage: Usage | None = None  # the system tells it to its parent alone

    def __init__(self, identity: ProcessIdentity) -> None:
        self.identity = identity
        self._on_exit: OnExit | None = None
        self._loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(identity.pid)
        except (AttributeError, OSError):
            self._pidfd = -1

    def is_alive(self) -> bool:
        return is_alive(self.identity)

    def has_ended(self) -> bool:
        return not self.is_alive()

    @property
    def is_reaped(self) -> bool:
        """That is for its own parent to do."""
        return True

    def watch(self, on_exit: OnExit) -> None:
        self._on_exit = on_exit
        if self._pidfd >= 0:
            watcher_of(self._loop).add(self._pidfd, self._ended)
        else:
            self._poll()

    def _poll(self) -> None:
        if self.is_alive():
            self._loop.call_later(_POLL_AGAIN_S, self._poll)
        else:
            self._ended()

    def _ended(self) -> None:
        if self._pidfd >= 0:
            watcher_of(self._loop).remove(self._pidfd)
        if self._on_exit is not None:
            self._on_exit(None)
            self._on_exit = None

    def signal_group(self, number: int) -> bool:
        return signal_group(self.identity, number)

    def group_is_alive(self) -> bool:
        """By its pidfd only: once the leader is gone, its number proves nothing."""
        return self._pidfd >= 0 and signal_group_of(self._pidfd, self.identity.pid, 0)

    def close(self) -> None:
        if self._pidfd >= 0:
            watcher_of(self._loop).remove(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
