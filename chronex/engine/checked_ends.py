"""The end of a command that ended well, and whose task has a check: a success only where the check says so."""

from __future__ import annotations

from chronex.engine.orders import AttemptEnd
from chronex.model.job import Job, TaskCheck
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import AttemptState


def check_of(job: Job | None, task: str, end: AttemptEnd) -> TaskCheck | None:
    """What is to be asked before this end counts."""
    found = job.task(task) if job is not None and end.state == AttemptState.SUCCESS else None
    return None if found is None else found.check


def after_check(end: AttemptEnd, exit_code: int | None, problem: str) -> AttemptEnd:
    """As it was, or a failure that says what was found; None is a check without an answer."""
    if exit_code == 0:
        return end
    reason = Reason(ReasonCode.NOTHING_DONE, problem or "it gave no answer")
    return end._replace(
        state=AttemptState.FAILED.value, reason=reason, error=str(reason), retryable=True, task_state=None
    )
