"""Which tasks of an occurrence may begin, which never will, and how the occurrence ends: from the states of its runs.

Pure functions (specs/graphs.md). Three ways say in what order tasks run: `needs` on tasks, else the job's mode, where
`sequential` is a chain and `parallel` has no order at all. The combinations of a matrix are one step of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import chain
from typing import NamedTuple

from chronex.model.job import Job, Task
from chronex.model.occurrence import Run
from chronex.model.policies import FailureStrategy, TaskMode, When
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, of_task
from chronex.model.states import OccurrenceState, RunState

Runs = Mapping[str, Run]
ENDED_BADLY = (RunState.FAILED, RunState.DLQ)
# It holds its place among those of its matrix, also while it waits for its next attempt.
UNDER_WAY = (RunState.CLAIMED, RunState.RUNNING, RunState.RETRY)


# -- what became of a need ---------------------------------------------------------------------------------


class NeedEnd(Enum):
    """How a task ended, as those that need it see it."""

    OPEN = "open"
    SUCCESS = "success"
    # It failed, and is set to `continue`: its failure stops nobody, and can still be reacted to.
    TOLERATED = "tolerated"
    FAILURE = "failure"
    LEFT_OUT = "left out"
    CANCELED = "canceled"


# What a failure before it, of a need or of any other task, kept from running or stopped.
_FAILED_WITH_ANOTHER = (ReasonCode.NEED_FAILED, ReasonCode.PEER_FAILED)


def need_end(job: Job, run: Run) -> NeedEnd:
    if run.state is RunState.SUCCESS or is_done_already(run):
        return NeedEnd.SUCCESS
    if run.state in ENDED_BADLY:
        return NeedEnd.TOLERATED if goes_on(job, run) else NeedEnd.FAILURE
    if run.state in (RunState.SKIPPED, RunState.CANCELED) and run.reason.code in _FAILED_WITH_ANOTHER:
        return NeedEnd.FAILURE
    if run.state is RunState.SKIPPED:
        canceled = run.reason.code is ReasonCode.NEED_CANCELED
        return NeedEnd.CANCELED if canceled else NeedEnd.LEFT_OUT
    return NeedEnd.CANCELED if run.state is RunState.CANCELED else NeedEnd.OPEN


class _Need(NamedTuple):
    task: str
    end: NeedEnd


def _needs(job: Job, task: Task, runs: Runs) -> list[_Need]:
    """Those that are a part of this occurrence: one that was asked for without them does not wait for them."""
    return [
        _Need(name, need_end(job, runs[name])) for need in task.needs or () for name in tasks_meant(job, need, runs)
    ]


def tasks_meant(job: Job, need: str, runs: Runs) -> Iterator[str]:
    """The task of this name, or all combinations of the matrix of this name."""
    return (one.name for one in job.tasks if need in (one.name, one.matrix_of) and one.name in runs)


class Readiness(Enum):
    WAITS = "waits"
    READY = "ready"
    NEVER = "never"


class Answer(NamedTuple):
    readiness: Readiness
    reason: Reason = NO_REASON


_WAITS, _READY = Answer(Readiness.WAITS), Answer(Readiness.READY)
_WHY_NOT = {
    NeedEnd.FAILURE: ReasonCode.NEED_FAILED,
    NeedEnd.LEFT_OUT: ReasonCode.NEED_LEFT_OUT,
    NeedEnd.CANCELED: ReasonCode.NEED_CANCELED,
}


def readiness(job: Job, task: Task, runs: Runs) -> Answer:
    """May the task begin now, by what it needs? A reason comes with NEVER."""
    needs = _needs(job, task, runs)
    match task.when:
        case When.SUCCESS:
            return _after_success(needs)
        case When.FAILURE:
            return _after_failure(needs)
        case When.DONE:
            return _after_any_end(needs, also_canceled=False)
        case When.ALWAYS:
            return _after_any_end(needs, also_canceled=True)


def _after_success(needs: list[_Need]) -> Answer:
    """The first need that did not succeed decides at once: nobody waits for the others."""
    hopeless = next((need for need in needs if need.end in _WHY_NOT), None)
    if hopeless is not None:
        return Answer(Readiness.NEVER, Reason(_WHY_NOT[hopeless.end], hopeless.task))
    return _WAITS if any(need.end is NeedEnd.OPEN for need in needs) else _READY


def _after_failure(needs: list[_Need]) -> Answer:
    """All have ended, and one of them failed, or was kept from running by a failure before it."""
    canceled = next((need for need in needs if need.end is NeedEnd.CANCELED), None)
    if canceled is not None:
        return Answer(Readiness.NEVER, Reason(ReasonCode.NEED_CANCELED, canceled.task))
    if any(need.end is NeedEnd.OPEN for need in needs):
        return _WAITS
    if any(need.end in (NeedEnd.FAILURE, NeedEnd.TOLERATED) for need in needs):
        return _READY
    return Answer(Readiness.NEVER, Reason(ReasonCode.NOTHING_FAILED))


def _after_any_end(needs: list[_Need], *, also_canceled: bool) -> Answer:
    canceled = next((need for need in needs if need.end is NeedEnd.CANCELED), None)
    if canceled is not None and not also_canceled:
        return Answer(Readiness.NEVER, Reason(ReasonCode.NEED_CANCELED, canceled.task))
    return _WAITS if any(need.end is NeedEnd.OPEN for need in needs) else _READY


# -- what begins -------------------------------------------------------------------------------------------


def left_out(job: Job, runs: Runs) -> list[tuple[Run, Reason]]:
    """The runs that wait and never can begin, as far as the ends so far tell; the ends of these may tell more."""
    if not job.has_needs:
        return []
    waiting = [task for task in job.tasks if task.name in runs and runs[task.name].state is RunState.SCHEDULED]
    answers = ((runs[task.name], readiness(job, task, runs)) for task in waiting)
    return [(run, answer.reason) for run, answer in answers if answer.readiness is Readiness.NEVER]


def startable(job: Job, runs: Runs) -> list[Task]:
    """The tasks that wait and may begin now, in their order, as many of a matrix as may run at once."""
    waiting = [task for task in _next_in_order(job, runs) if runs[task.name].state is RunState.SCHEDULED]
    found: list[Task] = []
    for task in waiting:
        limit = task.at_most
        if limit is None or _under_way(job, task, runs) + sum(one.step == task.step for one in found) < limit:
            found.append(task)
    return found


def _next_in_order(job: Job, runs: Runs) -> list[Task]:
    tasks = [task for task in job.tasks if task.name in runs]
    if job.has_needs:
        return [task for task in tasks if readiness(job, task, runs) == _READY]
    if len(tasks) == 1 or job.mode is TaskMode.PARALLEL:
        return tasks
    first = next((task for task in tasks if not is_over(runs[task.name])), None)
    return [] if first is None else [task for task in tasks if task.step == first.step]


def _under_way(job: Job, task: Task, runs: Runs) -> int:
    peers = (runs[one.name] for one in job.tasks if one.step == task.step and one.name in runs)
    return sum(run.state in UNDER_WAY for run in peers)


def is_over(run: Run) -> bool:
    return run.state not in UNDER_WAY and run.state is not RunState.SCHEDULED


# -- what a failure stops ----------------------------------------------------------------------------------


def goes_on(job: Job, run: Run) -> bool:
    """Its task is set to `continue`, by itself or by its job: it stops no other one, and no other one stops it."""
    task = job.task(run.task)
    return task is not None and job.failure_for(task) is FailureStrategy.CONTINUE


def outlives_failure(job: Job, run: Run) -> bool:
    """The failure of another task neither stops it nor keeps it from beginning: it goes on, or is there for that."""
    task = job.task(run.task)
    return goes_on(job, run) or (task is not None and task.when is not When.SUCCESS)


def outlives_cancel(job: Job, run: Run) -> bool:
    """It begins also where its occurrence was canceled."""
    task = job.task(run.task)
    return task is not None and task.when is When.ALWAYS


def stopping_run(job: Job, runs: Runs) -> Run | None:
    """A run that was canceled, or failed for good under a strategy that does not go on."""
    found = [runs[task.name] for task in job.tasks if task.name in runs]
    canceled = [run for run in found if run.state is RunState.CANCELED and not is_done_already(run)]
    failed = (run for run in found if run.state in ENDED_BADLY and not goes_on(job, run))
    # What a failed peer has canceled says nothing of its own.
    stopped = (run for run in canceled if run.reason.code is not ReasonCode.PEER_FAILED)
    return next(chain(stopped, failed, canceled), None)


# -- how it ends -------------------------------------------------------------------------------------------


def outcome_of(job: Job, runs: Iterable[Run]) -> tuple[OccurrenceState, Reason, int]:
    """How an occurrence ends whose runs are all over, why, and how many of its tasks failed though it completed.

    A task that reacts to a failure does not make it undone: whatever came after, the occurrence has failed.
    """
    over = [run for run in runs if not is_done_already(run)]
    failed = [run for run in over if run.state in ENDED_BADLY]
    stoppers = [run for run in failed if not goes_on(job, run)]
    if stoppers:
        first = min(stoppers, key=lambda run: run.finished_ms or 0)
        return OccurrenceState.FAILED, of_task(first.task, first.reason), 0
    canceled = next((run for run in over if run.state is RunState.CANCELED), None)
    if canceled is not None and canceled.reason.code is ReasonCode.EXECUTION_TIMEOUT:
        return OccurrenceState.FAILED, of_task(canceled.task, canceled.reason), 0  # there was no time left for it
    if canceled is not None:
        return OccurrenceState.CANCELED, canceled.reason, 0
    if failed:
        return OccurrenceState.COMPLETED, of_task(failed[0].task, failed[0].reason), len(failed)
    return OccurrenceState.COMPLETED, NO_REASON, 0


def is_done_already(run: Run) -> bool:
    """It was left out because its key has been executed; its peers go on as if it had succeeded."""
    return run.state is RunState.CANCELED and run.reason.code is ReasonCode.IDEMPOTENT
