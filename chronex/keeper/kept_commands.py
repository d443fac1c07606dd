"""Runs commands through keepers, so that they outlive the scheduler; as children of its own where there is none.

Those outlive it too, and then nobody knows their exit codes.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from chronex.failpoints import fail_point
from chronex.keeper.keepers import KeeperNotStartedError, Keepers
from chronex.keeper.link import KeeperLink, KeeperLostError, KeeperSilentError
from chronex.keeper.messages import Discard, Ended, Open, Start, Stop
from chronex.model import AttemptState, ProcessIdentity
from chronex.run.command_runner import HeldCommand, OwnChildren
from chronex.run.command_start import prepare_command, run_attempt
from chronex.run.request import AttemptRequest, AttemptResult, EndReason, NotStarted
from chronex.run.secret_values import fetch_printed, needs_commands
from chronex.run.spawn import PreparedCommand, RunContext
from chronex.run.supervise import (
    Hooks,
    Started,
    canceled,
    never_started,
    not_started,
)

log = logging.getLogger(__name__)
_ASK_AGAIN_S = 0.2
# A keeper that says nothing at all for so long is not slow: it is stopped, or hangs.
SILENT_S = 60.0


class _HeldByKeeper:
    """A command that our keeper was asked to hold."""

    def __init__(self, attempt_id: str, link: KeeperLink) -> None:
        self.attempt_id = attempt_id
        self.link = link
        self._ended = link.ended(attempt_id)

    @property
    def is_held(self) -> bool:
        return not self._ended.done()

    @property
    def is_gone(self) -> bool:
        return self._ended.done()

    def discard(self) -> None:
        self._ended.add_done_callback(lambda _ended: self.link.forget(self.attempt_id))
        self.link.send(Discard(self.attempt_id))


def _ask_to_hold(link: KeeperLink, command: PreparedCommand) -> None:
    link.ended(command.rules.attempt_id)  # from here on the keeper has it, until its end is on record
    link.send(Start(command))
    fail_point("start asked")


class KeptCommands:
    """Commands that our keeper starts; what other keepers have is seen through to its end there."""

    has_keeper = True

    def __init__(self, keepers: Keepers, run_context: RunContext) -> None:
        self._keepers = keepers
        self._run_context = run_context
        self._children = OwnChildren(run_context)
        self._logged_why_not = False

    def hold(self, request: AttemptRequest) -> HeldCommand | NotStarted:
        link = self._keepers.ready
        if link is None:
            return NotStarted("the keeper is not there yet")
        command = prepare_command(request, self._run_context)
        if isinstance(command, NotStarted):
            return command
        if link.keeps(request.attempt_id):
            return NotStarted("it was held and discarded a moment ago, and its process is not gone yet")
        _ask_to_hold(link, command)
        return _HeldByKeeper(request.attempt_id, link)

    async def run(self, request: AttemptRequest, hooks: Hooks, held: HeldCommand | None) -> AttemptResult:
        if hooks.cancellation.requested:
            if held is not None:
                held.discard()
            return never_started(canceled(hooks.cancellation.reason), self._run_context.clock)
        if held is None:
            command = await self._prepared(request)
            if isinstance(command, NotStarted):
                return not_started(command, self._run_context.clock)
            try:
                link = self._keepers.own_link
                if link is None or link.is_lost:
                    link = await self._keepers.own()
            except KeeperNotStartedError as problem:
                self._log_why_not(problem)
                return await run_attempt(request, hooks, self._run_context, outlives=True)
            if link.keeps(request.attempt_id):  # held for another command, and discarded: until that is gone
                await asyncio.wait([link.ended(request.attempt_id)])
            _ask_to_hold(link, command)
        else:
            assert isinstance(held, _HeldByKeeper)
            link = held.link
            if link is not self._keepers.own_link:  # it was given up meanwhile
                held.discard()
                return self._never_began("does not answer")
        return await self._see_through(request, hooks, link)

    async def _prepared(self, request: AttemptRequest) -> PreparedCommand | NotStarted:
        if not request.secret_sources or not needs_commands(request):
            return prepare_command(request, self._run_context)
        printed = await fetch_printed(request, self._run_context.inheritance)
        return printed if isinstance(printed, NotStarted) else prepare_command(request, self._run_context, printed)

    def _log_why_not(self, problem: KeeperNotStartedError) -> None:
        if not self._logged_why_not:
            self._logged_why_not = True
            log.warning(
                "no keeper could be started, so the exit codes of commands are lost with this scheduler: %s", problem
            )

    async def _see_through(self, request: AttemptRequest, hooks: Hooks, link: KeeperLink) -> AttemptResult:
        """From the barrier to the end. Where our own task is cancelled, what has begun is left to the keeper."""
        attempt_id = request.attempt_id
        try:
            held = await link.held_soon(attempt_id, SILENT_S)
        except KeeperLostError:
            return self._never_began("died before the command could begin")
        except KeeperSilentError:  # the same attempt must not be held by two keepers, so the next one is another
            link.send(Discard(attempt_id))
            self._keepers.give_up(link)
            return self._never_began("does not answer")
        except asyncio.CancelledError:
            link.send(Discard(attempt_id))
            raise
        if isinstance(held, Ended):
            return held.result
        fail_point("held told")
        started_ms = self._run_context.clock.wall_ms()
        try:
            deadline_in_ms = await hooks.started(Started(held.process, started_ms, f"{attempt_id}.log"))
            if self._keepers.open_until_ms is not None:  # other machines may take its node for dead
                await self._keepers.await_trust(self._run_context.clock.boottime_ms())
        except BaseException:
            link.send(Discard(attempt_id, keeps_end=True))
            raise
        if hooks.cancellation.requested:  # before it could do anything
            link.send(Discard(attempt_id, keeps_end=True))
            return never_started(canceled(hooks.cancellation.reason), self._run_context.clock)
        fail_point("before opening")
        link.send(Open(attempt_id, deadline_in_ms, self._keepers.open_until_ms))
        fail_point("opening asked")
        return await self._until_end(request, held.process, started_ms, f"{attempt_id}.log", hooks, link)

    async def _until_end(
        self,
        request: AttemptRequest,
        identity: ProcessIdentity,
        started_ms: int,
        log_name: str,
        hooks: Hooks,
        link: KeeperLink,
    ) -> AttemptResult:
        def stop() -> None:
            link.send(Stop(request.attempt_id, hooks.cancellation.code, hooks.cancellation.reason))

        hooks.cancellation.listen(stop)
        try:
            ended = await link.ended(request.attempt_id)
            if ended.is_of(identity):
                fail_point("end told")
                return ended.result
            link.recorded(request.attempt_id)  # it was held there before, and never began: nobody waits for that
        except KeeperLostError:
            pass
        finally:
            hooks.cancellation.forget(stop)
        return await self._after_keeper(request, identity, started_ms, log_name, hooks, link.directory)

    async def _after_keeper(
        self,
        request: AttemptRequest,
        identity: ProcessIdentity,
        started_ms: int,
        log_name: str,
        hooks: Hooks,
        directory: Path | None = None,
    ) -> AttemptResult:
        """The keeper is gone. It may have written the end down; else the process is watched by its identity.

        One that lives and does not answer is waited for: what it holds is its own, and only it knows the end.
        """
        await self._keepers.visit_lost()
        while self._keepers.is_stuck(request.attempt_id, identity, directory):
            await asyncio.sleep(_ASK_AGAIN_S)
            await self._keepers.visit_stuck()
        link = self._keepers.link_of(request.attempt_id, identity)
        if link is not None:
            return await self._until_end(request, identity, started_ms, log_name, hooks, link)
        ended = self._keepers.end_from_file(request.attempt_id, identity)
        if ended is not None:
            return ended.result
        return await self._children.adopt(request, identity, started_ms, log_name, hooks)

    async def adopt(
        self, request: AttemptRequest, identity: ProcessIdentity, started_ms: int, log_name: str, hooks: Hooks
    ) -> AttemptResult:
        return await self._after_keeper(request, identity, started_ms, log_name, hooks)

    def recorded(self, attempt_id: str) -> None:
        keepers = self._keepers
        if keepers.own_link is not None:
            keepers.own_link.recorded(attempt_id)
        if keepers.others or keepers.dead:
            keepers.tidy(lambda other: other != attempt_id)

    def _never_began(self, why: str) -> AttemptResult:
        return AttemptResult(
            state=AttemptState.CRASHED,
            reason=EndReason.NEVER_STARTED,
            retryable=True,
            error=f"its keeper {why}",
            finished_ms=self._run_context.clock.wall_ms(),
        )
