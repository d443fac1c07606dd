"""What the ends of an occurrence's tasks mean for it: pure answers from their runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chronex.engine import reasons
from chronex.model.policies import FailureStrategy
from chronex.model.records import Job, Run
from chronex.model.states import OccurrenceState, RunState

_ENDED_BADLY = (RunState.FAILED, RunState.DLQ)


def stopping_run(job: Job, runs: Mapping[str, Run]) -> Run | None:
    """A run that failed for good, or was canceled, under a strategy that does not go on."""
    for task in job.tasks:
        run = runs.get(task.name)
        if run is None or run.state not in (*_ENDED_BADLY, RunState.CANCELED) or is_done_already(run):
            continue
        if run.state is RunState.CANCELED or job.failure_for(task) is not FailureStrategy.CONTINUE:
            return run
    return None


def fate_of(runs: Iterable[Run]) -> tuple[OccurrenceState, str]:
    """How an occurrence ends whose runs are all over, and why."""
    over = [run for run in runs if not is_done_already(run)]
    failed = next((run for run in over if run.state in _ENDED_BADLY), None)
    if failed is not None:
        return OccurrenceState.FAILED, f"{failed.task}: {failed.reason}"
    canceled = next((run for run in over if run.state is RunState.CANCELED), None)
    if canceled is not None:
        return OccurrenceState.CANCELED, canceled.reason
    return OccurrenceState.COMPLETED, ""


def is_done_already(run: Run) -> bool:
    """It was left out because its key has been executed: its peers go on as if it had succeeded."""
    return run.state is RunState.CANCELED and run.reason.startswith(reasons.IDEMPOTENT)
