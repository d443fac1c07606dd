"""Graphs and chains in the simulation: jobs whose tasks need each other, jobs that follow others, and what must hold.

The rules speak of records and of the processes that the machine saw; they know nothing of how the engine decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random

from chronex.engine.orders import Launch
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence, Run
from chronex.model.policies import (
    FailureStrategy,
    OverlapPolicy,
    RecoveryPolicy,
    RecoveryStrategy,
    RetryPolicy,
    TaskMode,
    When,
)
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState, RunState, is_final
from chronex.storage.records import Reading
from chronex.testing import DAY, MINUTE, SECOND, SimulatedProcess
from tests.engine.simulator.checker import MANY, Finding
from tests.engine.simulator.expected_schedule import Cron
from tests.engine.simulator.faults import draw_machine_faults, draw_store_faults
from tests.engine.simulator.faulty_machine import FaultyMachine
from tests.engine.simulator.workload import NEW_YEAR, DrawnJob
from tests.verify.assertion import broken

SCHEDULES = ("0 * * * *", "*/20 * * * *", "0,30 * * * *")


# -- workload ------------------------------------------------------------------------------------------------------


def draw_graphs(random: Random) -> list[Job]:
    """Two jobs with schedules, up to three that follow one or two of those before, and one that waits for some."""
    jobs = [_job(random, f"root-{n}", schedule=random.choice(SCHEDULES)) for n in range(2)]
    for number in range(random.choice((1, 2, 3))):
        parents = random.sample([job.id for job in jobs], random.choice((1, 1, 2)))
        jobs.append(_job(random, f"child-{number}", after=tuple(parents)))
    window = random.choice(("", " {window:10m}"))
    waits_for = tuple(random.sample([job.id for job in jobs], random.choice((1, 2))))
    # Its name comes before those of its parents, so that it is planned before them.
    jobs.append(_job(random, "a-waits", schedule=f"{random.choice(SCHEDULES)}{window}", after=waits_for))
    return jobs


def _job(random: Random, name: str, schedule: str = "", after: tuple[str, ...] = ()) -> Job:
    return Job(
        id=name,
        schedule=schedule,
        after=after,
        tasks=_tasks(random),
        mode=TaskMode.PARALLEL,
        overlap=random.choice((OverlapPolicy.SKIP, OverlapPolicy.QUEUE, OverlapPolicy.ALLOW)),
        recovery=RecoveryPolicy(random.choice((RecoveryStrategy.EXECUTE_LAST, RecoveryStrategy.EXECUTE_ALL))),
        retry=RetryPolicy(random.choice((0, 1)), 20 * SECOND, jitter=0.0),
        execution_timeout_ms=random.choice((None, None, 30 * MINUTE)),
    )


def _tasks(random: Random) -> tuple[Task, ...]:
    tasks: list[Task] = []
    for number in range(random.choice((1, 2, 3, 4, 5))):
        needs = tuple(task.name for task in tasks if random.random() < 0.5)
        on_failure = random.choice((None, None, FailureStrategy.CONTINUE))
        when = random.choice((When.SUCCESS, When.SUCCESS, *When)) if needs else When.SUCCESS
        tasks.append(Task(name=f"t{number}", run=("true",), needs=needs, when=when, on_failure=on_failure))
    if random.random() < 0.3:
        cells = [Task(name=f"m-{n}", run=("true",), needs=(), matrix_of="m", at_most=2) for n in range(4)]
        tasks = [*cells, *tasks, Task(name="last", run=("true",), needs=("m",))]
    random.shuffle(tasks)
    return tuple(tasks)


def simulate_graphs(seed: int, length: int = DAY, jobs: list[Job] | None = None) -> FaultyMachine:
    random = Random(seed)
    jobs = draw_graphs(random) if jobs is None else jobs
    drawn = [DrawnJob(job, Cron("0 0 1 1 *")) for job in jobs]
    faults = draw_machine_faults(random, NEW_YEAR, length, random.choice((0, 2, 4)))
    store_faults = draw_store_faults(random, random.choice((0, 2)), updates=400)
    machine = FaultyMachine(random, drawn, NEW_YEAR, random.choice((2, 3, 50)), store_faults)
    for planned in faults:
        if planned.at > machine.clock.boot:
            machine.run_until(planned.at)
        machine.inject(planned)
    boots = -1
    while boots != machine.boots:
        boots = machine.boots
        machine.run_until(max(NEW_YEAR + length, machine.clock.boot) + 5 * MINUTE)
    return machine


# -- what must hold ------------------------------------------------------------------------------------------------


class GraphHistory:
    """All that was recorded, and the processes of each occurrence in the order in which they began."""

    def __init__(self, machine: FaultyMachine) -> None:
        self.machine = machine
        self.jobs = {job.id: job for job, _ in machine.drawn}
        self.occurrences: dict[str, dict[int, Occurrence]] = {}
        self.runs: dict[tuple[str, int], dict[str, Run]] = {}
        machine.rows.view(lambda tx: self._read(Reading(tx)))
        self.processes: dict[tuple[str, int], list[SimulatedProcess]] = defaultdict(list)
        for process in sorted(machine.processes, key=lambda one: one.started_ms):
            self.processes[process.job, process.nominal_ms].append(process)

    def _read(self, reading: Reading) -> None:
        for name in self.jobs:
            found = reading.occurrences(name, limit=MANY)
            self.occurrences[name] = {one.nominal_ms: one for one in found}
            for one in found:
                if one.started_ms is not None:
                    self.runs[name, one.nominal_ms] = {run.task: run for run in reading.runs(name, one.nominal_ms)}

    def ended(self, process: SimulatedProcess) -> int:
        return self.machine.clock.boot if process.ended_ms is None else process.ended_ms


def check_graphs(machine: FaultyMachine) -> list[Finding]:
    history = GraphHistory(machine)
    found = [Finding("transitions", text) for text in machine.rows.findings]
    found += [Finding("formal model", f"{result.property}: {result.findings[0]}") for result in broken(machine.rows)]
    for rule in RULES:
        found += [Finding(rule.__name__.strip("_"), text) for text in rule(history)]
    return found


def _needs(history: GraphHistory) -> Iterator[str]:
    """No process begins while one of a task that it needs runs, or before that has had one or was left out."""
    for (name, nominal), processes in history.processes.items():
        job = history.jobs[name]
        for process in processes:
            needs = set(process.launch.task.needs or ())
            for other in processes:
                is_need = other.task in needs or (
                    other.launch.task.matrix_of and other.launch.task.matrix_of in needs
                )
                if is_need and other.started_ms <= process.started_ms < history.ended(other):
                    yield f"{name} {nominal}: {process.task} began while {other.task} ran"
                if is_need and other.started_ms > process.started_ms and other is not process:
                    yield f"{name} {nominal}: {other.task} began after {process.task}, which needs it"
        assert job.tasks


def _outcomes(history: GraphHistory) -> Iterator[str]:
    """A run is skipped or over where its occurrence is, and a failed task that does not continue fails it."""
    for (name, nominal), runs in history.runs.items():
        one, job = history.occurrences[name][nominal], history.jobs[name]
        if not is_final(one.state):
            continue
        still = [
            run.task for run in runs.values() if run.state in (RunState.SCHEDULED, RunState.RUNNING, RunState.RETRY)
        ]
        if still and one.state is not OccurrenceState.FAILED_STALE:
            yield f"{name} {nominal} is {one.state}, and {still} are not over"
        bad = [
            run.task
            for run in runs.values()
            if run.state in (RunState.DLQ, RunState.FAILED)
            and job.failure_for(job.task(run.task) or Task(name="?")) is not FailureStrategy.CONTINUE
        ]
        if bad and one.state is OccurrenceState.COMPLETED:
            yield f"{name} {nominal} is completed, and {bad} failed"
        if not bad and one.state is OccurrenceState.FAILED and one.reason.code is not ReasonCode.EXECUTION_TIMEOUT:
            yield f"{name} {nominal} is failed ({one.reason}), and nothing did"
        unnamed = [run.task for run in runs.values() if run.state is RunState.SKIPPED and not run.reason]
        if unnamed:
            yield f"{name} {nominal}: {unnamed} are skipped without a reason"


def _at_most(history: GraphHistory) -> Iterator[str]:
    """Never more of a matrix at once than the task says."""
    for (name, nominal), processes in history.processes.items():
        cells = [one for one in processes if one.launch.task.at_most is not None]
        for one in cells:
            at = one.started_ms
            alive = {other.task for other in cells if other.started_ms <= at < history.ended(other)}
            if len(alive) > (one.launch.task.at_most or 0):
                yield f"{name} {nominal}: {sorted(alive)} at once"


def _children(history: GraphHistory) -> Iterator[str]:
    """A child without a schedule has one occurrence for each time at which all parents have ended, with their outcome."""
    for name, job in history.jobs.items():
        if not job.follows:
            continue
        times = set.intersection(*({*history.occurrences[parent]} for parent in job.after))
        parents = {at: [history.occurrences[parent][at] for parent in job.after] for at in times}
        ended = {at for at, found in parents.items() if all(is_final(one.state) for one in found)}
        have = {*history.occurrences[name]}
        if lost := sorted(ended - have):
            yield f"{name} has nothing for {lost[:3]}, which its parents have ended"
        if extra := sorted(have - ended):
            yield f"{name} has {extra[:3]}, which its parents have not ended"
        for at in ended & have:
            good = all(one.state is OccurrenceState.COMPLETED for one in parents[at])
            child = history.occurrences[name][at]
            if child.reason.code.startswith("parent_") == good:
                yield f"{name} {at} is {child.state} ({child.reason}), and its parents {'did' if good else 'did not'} complete"
            if not good and child.started_ms is not None:
                yield f"{name} {at} started after a parent that did not complete"


def _waits(history: GraphHistory) -> Iterator[str]:
    """What starts has parents that had completed, and nobody waits for a parent that has ended."""
    for name, job in history.jobs.items():
        if not job.after:
            continue
        for at, one in history.occurrences[name].items():
            if one.started_ms is not None:
                missing = [parent for parent in job.after if parent not in one.parents]
                if missing:
                    yield f"{name} {at} started without {missing}"
                for parent, nominal in one.parents.items():
                    found = history.occurrences[parent].get(nominal)
                    if found is not None and found.state is not OccurrenceState.COMPLETED:
                        yield f"{name} {at} started, and {parent} {nominal} is {found.state}"
            for parent in one.waits_for if one.state is OccurrenceState.QUEUED else ():
                open_ones = [
                    other
                    for other in history.occurrences[parent].values()
                    if not is_final(other.state) and other.nominal_ms <= at
                ]
                if not open_ones and not history.jobs[parent].follows:
                    yield f"{name} {at} waits for {parent}, of which nothing is open"


def _doubled(history: GraphHistory) -> Iterator[str]:
    for processes in history.processes.values():
        ids = sorted(one.attempt_id for one in processes)
        yield from (f"{one} was started twice" for one, other in pairwise(ids) if one == other)


def _ends(history: GraphHistory) -> Iterator[str]:
    """Nothing hangs: what runs has a process, or waits for a retry."""
    living = {(one.job, one.nominal_ms) for one in history.machine.live.values()}
    for (name, nominal), runs in history.runs.items():
        one = history.occurrences[name][nominal]
        waits = any(run.state is RunState.RETRY or run.next_attempt_ms is not None for run in runs.values())
        if one.state is OccurrenceState.RUNNING and (name, nominal) not in living and not waits:
            yield f"{name} {nominal} runs, and nothing of it does"


RULES: tuple[Callable[[GraphHistory], Iterator[str]], ...] = (
    _needs, _outcomes, _at_most, _children, _waits, _doubled, _ends,
)  # fmt: skip
LaunchOutcome = Callable[[Launch], object]
