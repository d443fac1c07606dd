"""Ends that a check decides about: one that nobody saw (`on_crash`), and one of a task with a `check`."""

from __future__ import annotations

from chronex.engine.orders import AttemptEnd
from chronex.model.job import Job, TaskCheck
from chronex.model.policies import CrashCheck
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


# `on_crash = { check = … }`: a command that looks whether the work of an attempt was done, where nobody saw its
# end.
#
# The attempt stays on record as running until the check has answered. So a scheduler that dies meanwhile loses
# nothing: the next one finds the same unknown end, and asks again.


def asks(job: Job | None) -> bool:
    """An unknown end of this job is asked for."""
    return job is not None and isinstance(job.on_crash, CrashCheck)


def is_unknown(end: AttemptEnd) -> bool:
    """The command may have done its work, and nobody knows."""
    return end.state == AttemptState.CRASHED and end.reason.code is not ReasonCode.NEVER_STARTED


def answered(end: AttemptEnd, exit_code: int | None, problem: str) -> AttemptEnd:
    """The end by the check's own: 0 is done, another code is not done, and None says that the check gave no answer.

    What may have been done is not done again for want of an answer.
    """
    if exit_code is None:
        return end._replace(reason=Reason(ReasonCode.CHECK_UNCLEAR, problem), error=problem)
    if exit_code == 0:
        return end._replace(state=AttemptState.SUCCESS, reason=Reason(ReasonCode.CHECK_DONE), error="")
    return end._replace(reason=Reason(ReasonCode.CHECK_UNDONE, problem), error=problem)
