"""The tasks of a job as a graph, with how they stand in one occurrence, and the path that its length depends on."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from chronex.engine.usual import band_of, completed_runs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence, Run
from chronex.model.policies import TaskMode, When
from chronex.model.states import RunState
from chronex.storage.records import Reading

# How many occurrences tell what a task usually takes.
_RUNS_MEASURED = 20


class GraphStep(NamedTuple):
    """One box: a task, or a matrix with all its combinations. `state` is empty where nothing ran yet."""

    name: str
    needs: tuple[str, ...] = ()
    when: When = When.SUCCESS
    state: str = ""
    # Of the combinations of a matrix: how many there are, and how many are over.
    combinations: int = 1
    over: int = 0
    duration_ms: int | None = None
    is_critical: bool = False


class JobGraph(NamedTuple):
    """The steps in the order of the job file; the critical path from its first task to its last."""

    job: str
    occurrence: Occurrence | None
    steps: tuple[GraphStep, ...]
    critical: tuple[str, ...] = ()
    critical_ms: int | None = None
    parents: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


def graph_of(reading: Reading, job: Job, occurrence: Occurrence | None) -> JobGraph:
    """The graph with the states of this occurrence; of no run, where the job has had none."""
    runs: dict[str, Run] = {}
    if occurrence is not None:
        job = reading.version_run(occurrence) or job
        runs = {run.task: run for run in reading.runs(job.id, occurrence.nominal_ms)}
    path = critical_path(job, runs)
    steps = tuple(_step(job, name, runs, path) for name in dict.fromkeys(task.step for task in job.tasks))
    length = _span([runs[name] for name in path])
    children = tuple(reading.children(job.id))
    return JobGraph(job.id, occurrence, steps, path, length, job.after, children)


UNKNOWN_STATE = "unknown"
_IN_FLIGHT = (RunState.RUNNING.value, RunState.CLAIMED.value)


def unwatched(graph: JobGraph, alive: Container[str] = ()) -> JobGraph:
    """The same where no scheduler watches it: of a step that is in flight nobody knows the outcome, unless it is one
    of those whose command is seen to be `alive`."""

    def state(step: GraphStep) -> str:
        return UNKNOWN_STATE if step.state in _IN_FLIGHT and step.name not in alive else step.state

    return graph._replace(steps=tuple(step._replace(state=state(step)) for step in graph.steps))


def latest_occurrence(reading: Reading, job: str) -> Occurrence | None:
    """The one that runs, else the last one that ran."""
    active = reading.active(job, limit=1)
    if active:
        return active[0]
    found = reading.occurrences(job, limit=200)
    return next((one for one in found if one.started_ms is not None), None)


def _step(job: Job, name: str, runs: Mapping[str, Run], path: Sequence[str]) -> GraphStep:
    tasks = [task for task in job.tasks if task.step == name]
    found = [runs[task.name] for task in tasks if task.name in runs]
    return GraphStep(
        name=name,
        needs=tuple(dict.fromkeys(steps_before(job, tasks[0]))),
        when=tasks[0].when,
        state=_worst(found),
        combinations=len(tasks),
        over=sum(run.finished_ms is not None for run in found),
        duration_ms=_span(found),
        is_critical=any(task.name in path for task in tasks),
    )


# Of several combinations the first of these that one of them is in.
_ORDER = (
    RunState.RUNNING, RunState.CLAIMED, RunState.RETRY, RunState.DLQ, RunState.FAILED, RunState.CANCELED,
    RunState.SCHEDULED, RunState.SUCCESS, RunState.SKIPPED,
)  # fmt: skip


def _worst(runs: Sequence[Run]) -> str:
    return next((state.value for state in _ORDER if any(run.state is state for run in runs)), "")


def _span(runs: Sequence[Run]) -> int | None:
    began = [run.started_ms for run in runs if run.started_ms is not None]
    ended = [run.finished_ms for run in runs if run.finished_ms is not None]
    return max(0, max(ended) - min(began)) if began and ended else None


def steps_before(job: Job, task: Task) -> list[str]:
    """The steps that this one comes right after."""
    if job.has_needs:
        steps = {one.name: one.step for one in job.tasks}
        return [steps.get(need, need) for need in task.needs or ()]
    if job.mode is TaskMode.PARALLEL:
        return []
    order = list(dict.fromkeys(one.step for one in job.tasks))
    at = order.index(task.step)
    return order[at - 1 : at] if at else []


def tasks_before(job: Job, task: Task) -> list[Task]:
    """The tasks that must have ended before this one begins."""
    steps = set(steps_before(job, task))
    by_name = set(task.needs or ())
    if job.has_needs:
        return [one for one in job.tasks if one.name in by_name or (one.matrix_of and one.matrix_of in by_name)]
    return [one for one in job.tasks if one.step in steps]


# -- the critical path -------------------------------------------------------------------------------------


def critical_path(job: Job, runs: Mapping[str, Run]) -> tuple[str, ...]:
    """From the task that ended last, back by the one before it that ended last: a shorter one changes nothing."""
    ran = {name: run for name, run in runs.items() if run.started_ms is not None}
    if not ran:
        return ()
    at: Task | None = job.task(max(ran.values(), key=lambda run: (run.finished_ms or 1 << 62, run.task)).task)
    path: list[str] = []
    while at is not None and at.name not in path:
        path.append(at.name)
        before = [ran[one.name] for one in tasks_before(job, at) if one.name in ran]
        last = max(before, key=lambda run: (run.finished_ms or 0, run.task), default=None)
        at = None if last is None else job.task(last.task)
    return tuple(reversed(path))


class UsualPath(NamedTuple):
    """The longest way through a job or through jobs that follow each other, by what each part usually takes."""

    names: tuple[str, ...]
    durations_ms: tuple[int, ...]

    @property
    def total_ms(self) -> int:
        return sum(self.durations_ms)


def longest_path(
    names: Sequence[str], before: Callable[[str], Sequence[str]], takes: Callable[[str], int]
) -> UsualPath:
    """`names` in any order; what comes before each is acyclic."""
    best: dict[str, tuple[int, str | None]] = {}
    left = list(names)
    while left:
        ready = [name for name in left if all(one in best or one not in left for one in before(name))]
        if not ready:
            break
        for name in ready:
            earlier = max((one for one in before(name) if one in best), key=lambda one: best[one][0], default=None)
            best[name] = (takes(name) + (0 if earlier is None else best[earlier][0]), earlier)
        left = [name for name in left if name not in best]
    at: str | None = max(best, key=lambda name: best[name][0], default=None)
    found: list[str] = []
    while at is not None:
        found.append(at)
        at = best[at][1]
    found.reverse()
    return UsualPath(tuple(found), tuple(takes(name) for name in found))


def usual_path(job: Job, takes: Mapping[str, int], default_ms: int) -> UsualPath:
    """The critical path of a job by the usual durations of its tasks, where none of them fails."""
    before = {
        task.name: [one.name for one in tasks_before(job, task)]
        for task in job.tasks
        if task.when is not When.FAILURE
    }
    return longest_path(list(before), lambda name: before[name], lambda name: takes.get(name, default_ms))


def usual_task_durations(reading: Reading, job: Job) -> dict[str, int]:
    """The median of what each task took in the last occurrences that completed; tasks that never ran are left out."""
    found: dict[str, list[int]] = {}
    for occurrence in completed_runs(reading, job.id)[:_RUNS_MEASURED]:
        for run in reading.runs(job.id, occurrence.nominal_ms):
            if run.started_ms is not None and run.finished_ms is not None:
                found.setdefault(run.task, []).append(max(0, run.finished_ms - run.started_ms))
    bands = {name: band_of(values) for name, values in found.items()}
    return {name: band.median for name, band in bands.items() if band is not None}
