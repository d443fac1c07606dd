"""Ends that a check decides about: one that nobody saw (`on_crash`), and one that was well (`check`)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from chronex.daemon.log_handlers import log_event
from chronex.engine import checked_ends
from chronex.engine.checked_ends import after_check
from chronex.engine.orders import AttemptEnd
from chronex.model.job import TaskCheck
from chronex.model.occurrence import Attempt
from chronex.model.policies import CrashCheck
from chronex.run import AttemptRequest, AttemptResult, Cancellation, RunContext
from chronex.run.check_commands import CheckAnswer, ask_check, ask_task_check
from chronex.run.side_threads import SideThreads

log = logging.getLogger(__name__)
EndOf = Callable[[AttemptResult], AttemptEnd]


class EndChecks:
    """Asks the checks of one executor. A check that was canceled says nothing: the attempt is canceled."""

    def __init__(self, run_context: RunContext, threads: SideThreads) -> None:
        self._run_context, self._threads = run_context, threads

    async def after_crash(
        self, policy: CrashCheck, request: AttemptRequest, end: AttemptEnd, cancellation: Cancellation, end_of: EndOf
    ) -> AttemptEnd:
        answer = await ask_check(policy.check, request, cancellation, self._run_context)
        if answer.canceled is not None:
            return end_of(answer.canceled)
        _log("nobody saw its end, and its check was asked", request, answer)
        return checked_ends.answered(end, answer.exit_code, answer.problem)

    async def after_success(
        self, check: TaskCheck, request: AttemptRequest, end: AttemptEnd, attempt: Attempt,
        cancellation: Cancellation, end_of: EndOf,
    ) -> AttemptEnd:  # fmt: skip
        began_ms = attempt.started_ms or attempt.created_ms
        answer = await ask_task_check(check, request, began_ms, cancellation, self._run_context, self._threads)
        if answer.canceled is not None:
            return end_of(answer.canceled)
        _log("it ended well, and its check was asked", request, answer)
        return after_check(end, answer.exit_code, answer.problem)


def _log(what: str, request: AttemptRequest, answer: CheckAnswer) -> None:
    fields = {
        "job": request.job,
        "task": request.task,
        "attempt": request.number,
        "occurrence": request.occurrence_id,
    }
    log_event(log, what, {**fields, "exit_code": answer.exit_code, "said": answer.problem})
