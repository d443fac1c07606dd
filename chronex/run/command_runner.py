"""How commands are run: the port, and commands as children of this process."""

from __future__ import annotations

from typing import Protocol

from chronex.model import ProcessIdentity
from chronex.run.adopt import adopt_attempt
from chronex.run.command_start import run_attempt, start_held
from chronex.run.request import AttemptRequest, AttemptResult, NotStarted
from chronex.run.spawn import RunContext
from chronex.run.supervise import Hooks, Supervision


class HeldCommand(Protocol):
    """A command that waits at its start barrier."""

    @property
    def is_held(self) -> bool: ...

    @property
    def is_gone(self) -> bool:
        """It was discarded, and its process is no more."""
        ...

    def discard(self) -> None: ...


class CommandRunner(Protocol):
    """How commands are run. With `has_keeper` they go on when our task that waits for them is cancelled, and when
    this process ends: our successor finds them, and as a rule their exit codes."""

    has_keeper: bool

    def hold(self, request: AttemptRequest) -> HeldCommand | NotStarted:
        """Start it, and hold it at its start barrier."""
        ...

    async def run(self, request: AttemptRequest, hooks: Hooks, held: HeldCommand | None) -> AttemptResult: ...

    async def adopt(
        self, request: AttemptRequest, identity: ProcessIdentity, started_ms: int, log_name: str, hooks: Hooks
    ) -> AttemptResult:
        """See through to its end what another scheduler had started."""
        ...

    def recorded(self, attempt_id: str) -> None:
        """Its end is on record."""
        ...


class OwnChildren:
    """Commands as children of this process. Where it dies they go on, and their exit codes are lost."""

    has_keeper = False

    def __init__(self, run_context: RunContext) -> None:
        self._run_context = run_context

    def hold(self, request: AttemptRequest) -> HeldCommand | NotStarted:
        return start_held(request, self._run_context)

    async def run(self, request: AttemptRequest, hooks: Hooks, held: HeldCommand | None) -> AttemptResult:
        assert held is None or isinstance(held, Supervision)
        return await run_attempt(request, hooks, self._run_context, held)

    async def adopt(
        self, request: AttemptRequest, identity: ProcessIdentity, started_ms: int, log_name: str, hooks: Hooks
    ) -> AttemptResult:
        return await adopt_attempt(request, identity, started_ms, log_name, hooks, self._run_context)

    def recorded(self, attempt_id: str) -> None:
        return
