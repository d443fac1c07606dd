"""The values that tasks hand over to those that need them, within an occurrence and from one job to the next."""

from __future__ import annotations

from collections.abc import Iterator

from chronex.engine.orders import NO_INPUTS, Inputs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence, Run
from chronex.model.policies import TaskMode
from chronex.model.states import RunState
from chronex.storage.records import Reading

# A replay of a part of a replay of a part: so far back the values of the tasks that it leaves out are looked for.
_MOST_REPLAYS = 20


def inputs_of(reading: Reading, job: Job, occurrence: Occurrence, task: Task) -> Inputs:
    """What this task is given: by the name of the task that wrote it, or "job.task" for one of a parent job."""
    found: dict[str, dict[str, str]] = {}
    for name in _before(job, task):
        if values := _values(reading, occurrence, name):
            found[name] = values
    for parent, nominal_ms in sorted(occurrence.parents.items()):
        for run in reading.runs(parent, nominal_ms):
            if values := _values_of(reading, run):
                found[f"{parent}.{run.task}"] = values
    return found or NO_INPUTS


def _before(job: Job, task: Task) -> Iterator[str]:
    """The tasks that it needs; in a sequence all that come before it."""
    if job.has_needs:
        yield from (one.name for one in job.tasks for need in task.needs or () if need in (one.name, one.matrix_of))
    elif job.mode is TaskMode.SEQUENTIAL:
        for one in job.tasks:
            if one.step == task.step:
                return
            yield one.name


def _values(reading: Reading, occurrence: Occurrence, task: str) -> dict[str, str]:
    """Of the task in this occurrence; where it is not a part of a replay, of what that repeats."""
    nominal_ms: int | None = occurrence.nominal_ms
    for _ in range(_MOST_REPLAYS):
        if nominal_ms is None:
            return {}
        run = reading.run(occurrence.job, nominal_ms, task)
        if run is not None:
            return _values_of(reading, run)
        earlier = reading.occurrence(occurrence.job, nominal_ms)
        nominal_ms = None if earlier is None else earlier.repeats_ms
    return {}


def _values_of(reading: Reading, run: Run) -> dict[str, str]:
    if run.state is not RunState.SUCCESS:
        return {}
    attempt = reading.attempt(run.job, run.nominal_ms, run.task, run.attempts)
    return {} if attempt is None else attempt.values
