"""`needs` and `when`: what begins after which end, what never begins, and how the occurrence ends (specs/graphs.md)."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from chronex.engine.commands import cancel
from chronex.engine.orders import Cancel
from chronex.engine.task_graph import left_out, outcome_of, readiness, startable
from chronex.model.job import Job, Task
from chronex.model.occurrence import Run
from chronex.model.policies import FailureStrategy, TaskMode, When
from chronex.model.reasons import Reason, ReasonCode, text_of
from chronex.model.states import AttemptState, OccurrenceState, RunState
from tests.engine.test_continue import play
from tests.kit.machine import FIRST, SteppedEngine, steady

GOOD, BAD = AttemptState.SUCCESS, AttemptState.FAILED
CONTINUE = FailureStrategy.CONTINUE


def task(name: str, *needs: str, **more: object) -> Task:
    return Task(name=name, run=("true",), needs=needs, **more)  # type: ignore[arg-type]


def job_of(*tasks: Task, **more: object) -> Job:
    return Job(id="job", schedule="* * * * *", tasks=tasks, **more)  # type: ignore[arg-type]


def states(machine: SteppedEngine) -> dict[str, str]:
    return {run.task: run.state.value for run in machine.read(lambda reading: reading.runs("job", FIRST))}


# -- when ------------------------------------------------------------------------------------------------------

# How the need ended, and after which `when` a task that needs it runs: yes, no, or not yet.
_R, _C = RunState, ReasonCode
AFTER = [
    ("it runs", Run, _R.RUNNING, _C.NONE, "waits waits waits waits"),
    ("it waits for a retry", Run, _R.RETRY, _C.EXIT_CODE, "waits waits waits waits"),
    ("it succeeded", Run, _R.SUCCESS, _C.NONE, "ready never ready ready"),
    ("another run had done it", Run, _R.CANCELED, _C.IDEMPOTENT, "ready never ready ready"),
    ("it failed", Run, _R.DLQ, _C.EXIT_CODE, "never ready ready ready"),
    ("a peer's failure stopped it", Run, _R.CANCELED, _C.PEER_FAILED, "never ready ready ready"),
    ("a failure before kept it from running", Run, _R.SKIPPED, _C.NEED_FAILED, "never ready ready ready"),
    ("nothing failed, so it was left out", Run, _R.SKIPPED, _C.NOTHING_FAILED, "never never ready ready"),
    ("somebody canceled it", Run, _R.CANCELED, _C.CANCELED, "never never never ready"),
    ("a cancel before kept it from running", Run, _R.SKIPPED, _C.NEED_CANCELED, "never never never ready"),
]


@pytest.mark.parametrize(("state", "code", "answers"), [row[2:] for row in AFTER], ids=[row[0] for row in AFTER])
def test_when_says_after_which_end_a_task_runs(state: RunState, code: ReasonCode, answers: str) -> None:
    job = job_of(task("a"), *(task(when.value, "a", when=when) for when in When))
    runs = {"a": Run(job="job", nominal_ms=0, task="a", state=state, reason=Reason(code))}
    runs |= {when.value: Run(job="job", nominal_ms=0, task=when.value) for when in When}
    found = [readiness(job, one, runs) for one in job.tasks[1:]]
    assert [answer.readiness.value for answer in found] == answers.split()
    assert all(answer.reason.detail in ("a", "") and bool(answer.reason) for answer in found if answer.reason)


def test_a_failure_that_is_set_to_continue_is_no_failure_for_success_and_one_for_failure() -> None:
    job = job_of(task("a", on_failure=CONTINUE), task("then", "a"), task("react", "a", when=When.FAILURE))
    machine = SteppedEngine(tasks=job.tasks)
    assert play(machine, {"a": BAD, "then": GOOD, "react": GOOD}) == ["a", "then", "react"]
    ended = machine.occurrence(FIRST)
    assert (ended.state, ended.errors) == (OccurrenceState.COMPLETED, 1)


# -- whole occurrences -----------------------------------------------------------------------------------------

DIAMOND = (task("extract"), task("left", "extract"), task("right", "extract"), task("load", "left", "right"))
ETL = (
    task("extract"),
    task("transform", "extract"),
    task("load", "transform"),
    task("undo", "load", when=When.FAILURE),
    task("tidy", "load", "undo", when=When.DONE),
)


@pytest.mark.parametrize(
    ("tasks", "ends", "ran", "state", "reason"),
    [
        (DIAMOND, {}, "extract left right load", OccurrenceState.COMPLETED, ""),
        (DIAMOND, {"extract": BAD}, "extract", OccurrenceState.FAILED, "extract: exit code 3"),
        (DIAMOND, {"right": BAD}, "extract left right", OccurrenceState.FAILED, "right: exit code 3"),
        (ETL, {}, "extract transform load tidy", OccurrenceState.COMPLETED, ""),
        (ETL, {"load": BAD}, "extract transform load undo tidy", OccurrenceState.FAILED, "load: exit code 3"),
        (ETL, {"extract": BAD}, "extract undo tidy", OccurrenceState.FAILED, "extract: exit code 3"),
        (ETL, {"load": BAD, "undo": BAD}, "extract transform load undo tidy", OccurrenceState.FAILED,
         "load: exit code 3"),
        (ETL, {"tidy": BAD}, "extract transform load tidy", OccurrenceState.FAILED, "tidy: exit code 3"),
    ],
)  # fmt: skip
def test_an_occurrence_runs_what_its_needs_let_run(
    tasks: tuple[Task, ...], ends: dict[str, AttemptState], ran: str, state: OccurrenceState, reason: str
) -> None:
    machine = SteppedEngine(tasks=tasks)
    every = {one.name: ends.get(one.name, GOOD) for one in tasks}
    assert play(machine, every) == ran.split()
    ended = machine.occurrence(FIRST)
    assert (ended.state, text_of(ended.reason)) == (state, reason)
    left = {name: found for name, found in states(machine).items() if name not in ran.split()}
    assert set(left.values()) <= {"skipped"}


def test_a_task_that_never_begins_says_which_need_is_the_reason() -> None:
    machine = SteppedEngine(tasks=ETL)
    play(machine, {"extract": BAD, "undo": GOOD, "tidy": GOOD})
    assert text_of(machine.run(FIRST, "transform").reason) == "extract failed, which it needs"
    assert text_of(machine.run(FIRST, "load").reason) == "transform failed, which it needs"
    skipped = [event for event in machine.events() if event.name == "TaskRunSkipped"]
    assert [(event.task, event.reason.detail) for event in skipped] == [
        ("transform", "extract"),
        ("load", "transform"),
    ]


def test_independent_branches_run_at_once() -> None:
    machine = SteppedEngine(tasks=DIAMOND)
    (extract,) = machine.tick(FIRST)
    both = machine.launches_after(extract, GOOD, FIRST + 1)
    assert [launch.task.name for launch in both] == ["left", "right"]
    assert machine.launches_after(both[0], GOOD, FIRST + 2) == []
    assert [one.task.name for one in machine.launches_after(both[1], GOOD, FIRST + 3)] == ["load"]


def test_fail_fast_stops_other_branches_but_not_those_that_continue_or_react() -> None:
    tasks = (
        task("bad"),
        task("busy"),
        task("steady", on_failure=CONTINUE),
        task("later", "busy"),
        task("react", "bad", when=When.FAILURE),
    )
    machine = SteppedEngine(tasks=tasks)
    begun = {launch.task.name: launch for launch in machine.tick(FIRST)}
    orders = machine.end(begun["bad"], BAD, FIRST + 1, reason=Reason(ReasonCode.EXIT_CODE, "exit code 1"))
    assert [order.attempt.task for order in orders if isinstance(order, Cancel)] == ["busy"]
    react = next(order for order in orders if not isinstance(order, Cancel))
    assert react.task.name == "react"  # type: ignore[union-attr]
    assert states(machine)["later"] == "canceled"
    again = machine.end(begun["busy"], AttemptState.CANCELED, FIRST + 2, reason=Reason(ReasonCode.PEER_FAILED, "bad"))
    assert again == (), "the reaction and the steady one go on"


def test_a_need_that_is_tried_again_has_not_ended() -> None:
    machine = SteppedEngine(tasks=(task("a", retry=steady(1)), task("b", "a"), task("c", "a", when=When.FAILURE)))
    (first,) = machine.tick(FIRST)
    assert machine.launches_after(first, BAD, FIRST + 1) == []
    (second,) = machine.tick(FIRST + 30_001)
    assert [one.task.name for one in machine.launches_after(second, GOOD, FIRST + 30_002)] == ["b"]
    assert states(machine)["c"] == "skipped"


# -- cancel ----------------------------------------------------------------------------------------------------


def canceled_occurrence() -> tuple[SteppedEngine, list[object]]:
    tasks = (
        task("work"),
        task("next", "work"),
        task("tidy", "work", when=When.DONE),
        task("unlock", "work", when=When.ALWAYS),
    )
    machine = SteppedEngine(tasks=tasks)
    (work,) = machine.tick(FIRST)
    machine.ask(cancel, machine.occurrence(FIRST))
    machine.canceled(FIRST + 2)
    return machine, machine.launches_after(work, AttemptState.CANCELED, FIRST + 3)  # type: ignore[return-value]


def test_always_runs_also_where_somebody_canceled_the_occurrence() -> None:
    machine, begun = canceled_occurrence()
    (unlock,) = begun
    assert unlock.task.name == "unlock"  # type: ignore[attr-defined]
    machine.end(unlock, GOOD, FIRST + 4)  # type: ignore[arg-type]
    assert machine.occurrence(FIRST).state is OccurrenceState.CANCELED
    assert states(machine) == {"work": "canceled", "next": "canceled", "tidy": "canceled", "unlock": "success"}


def test_a_second_cancel_stops_that_too() -> None:
    machine, _ = canceled_occurrence()
    machine.ask(cancel, machine.occurrence(FIRST), at=FIRST + 5)
    (order,) = machine.canceled(FIRST + 6)
    assert order.attempt.task == "unlock"


def test_a_cancel_between_two_attempts_leaves_what_always_runs_to_the_daemon() -> None:
    """Nothing runs when the person cancels, and a person's command starts nothing: the next tick does."""
    tasks = (task("work", retry=steady(3)), task("unlock", "work", when=When.ALWAYS))
    machine = SteppedEngine(tasks=tasks)
    (work,) = machine.tick(FIRST)
    machine.end(work, BAD, FIRST + 1)
    answer = machine.ask(cancel, machine.occurrence(FIRST), at=FIRST + 2)
    assert not answer.is_over
    (unlock,) = machine.tick(FIRST + 3)
    assert unlock.task.name == "unlock"
    machine.end(unlock, GOOD, FIRST + 4)
    assert machine.occurrence(FIRST).state is OccurrenceState.CANCELED


# -- a matrix --------------------------------------------------------------------------------------------------


def cells(*names: str, at_most: int | None = None, **more: object) -> list[Task]:
    return [Task(name=f"load-{name}", run=("true",), matrix_of="load", at_most=at_most, **more) for name in names]  # type: ignore[arg-type]


def test_so_many_of_a_matrix_run_at_once_and_the_next_begins_when_one_has_ended() -> None:
    machine = SteppedEngine(tasks=(*cells("a", "b", "c", "d", at_most=2), Task(name="after", run=("true",))))
    first = machine.tick(FIRST)
    assert [one.task.name for one in first] == ["load-a", "load-b"]
    (third,) = machine.launches_after(first[0], GOOD, FIRST + 1)
    (fourth,) = machine.launches_after(third, GOOD, FIRST + 2)
    assert machine.launches_after(fourth, GOOD, FIRST + 3) == [], "load-b still runs, and `after` is the next step"
    assert [one.task.name for one in machine.launches_after(first[1], GOOD, FIRST + 4)] == ["after"]


def test_who_needs_a_matrix_needs_all_of_its_combinations() -> None:
    tasks = (*cells("a", "b", needs=()), task("one", "load-a"), task("all", "load"))
    machine = SteppedEngine(tasks=tasks)
    first, second = machine.tick(FIRST)
    assert [one.task.name for one in machine.launches_after(first, GOOD, FIRST + 1)] == ["one"]
    assert [one.task.name for one in machine.launches_after(second, GOOD, FIRST + 2)] == ["all"]


def test_a_combination_that_waits_for_its_retry_keeps_its_place() -> None:
    machine = SteppedEngine(tasks=tuple(cells("a", "b", at_most=1, retry=steady(1))))
    (first,) = machine.tick(FIRST)
    assert machine.launches_after(first, BAD, FIRST + 1) == []
    (again,) = machine.tick(FIRST + 30_001)
    assert (again.task.name, again.attempt.number) == ("load-a", 2)
    assert [one.task.name for one in machine.launches_after(again, GOOD, FIRST + 30_002)] == ["load-b"]


# -- every graph ends ------------------------------------------------------------------------------------------


def drawn_job(chance: Random) -> Job:
    count = chance.randrange(1, 7)
    tasks = []
    for number in range(count):
        needs = tuple(f"t{n}" for n in range(number) if chance.random() < 0.4)
        when = chance.choice(list(When)) if needs else When.SUCCESS
        on_failure = chance.choice([None, None, CONTINUE])
        tasks.append(Task(name=f"t{number}", run=("true",), needs=needs, when=when, on_failure=on_failure))
    chance.shuffle(tasks)
    return job_of(*tasks)


@pytest.mark.parametrize("seed", range(60))
def test_any_graph_comes_to_an_end_and_nothing_begins_before_its_needs_have_ended(seed: int) -> None:
    chance = Random(seed)
    job = drawn_job(chance)
    machine = SteppedEngine(tasks=job.tasks)
    now, waiting = FIRST, list(machine.tick(FIRST))
    while waiting:
        launch = waiting.pop(chance.randrange(len(waiting)))
        now += 1
        state = chance.choice([GOOD, GOOD, BAD])
        before = states(machine)
        for need in launch.task.needs or ():
            assert before[need] not in ("scheduled", "claimed", "running", "retry"), (launch.task.name, need)
        orders = machine.end(launch, state, now, reason=Reason(ReasonCode.EXIT_CODE, "exit code 1"))
        stopped = {order.attempt.task for order in orders if isinstance(order, Cancel)}
        waiting += [order for order in orders if not isinstance(order, Cancel)]  # type: ignore[misc]
        for peer in [one for one in waiting if one.task.name in stopped]:
            waiting.remove(peer)
            ended = machine.end(peer, AttemptState.CANCELED, now, reason=Reason(ReasonCode.PEER_FAILED, "x"))
            waiting += [order for order in ended if not isinstance(order, Cancel)]  # type: ignore[misc]
    last = machine.occurrence(FIRST)
    final = set(states(machine).values())
    assert final <= {"success", "dlq", "canceled", "skipped"}
    runs = machine.read(lambda reading: reading.runs("job", FIRST))
    bad = [run for run in runs if run.state is RunState.DLQ and job.task(run.task).on_failure is not CONTINUE]  # type: ignore[union-attr]
    assert (last.state is OccurrenceState.FAILED) == bool(bad)


@pytest.mark.parametrize(("mode", "names"), [(TaskMode.SEQUENTIAL, ["a"]), (TaskMode.PARALLEL, ["a", "b"])])
def test_without_needs_the_mode_says_what_begins(mode: TaskMode, names: list[str]) -> None:
    job = job_of(*(Task(name=name, run=("true",)) for name in "ab"), mode=mode)
    runs = {name: Run(job="job", nominal_ms=0, task=name) for name in "ab"}
    assert [one.name for one in startable(job, runs)] == names
    assert left_out(job, runs) == []


def test_what_was_asked_for_without_its_needs_does_not_wait_for_them() -> None:
    job = job_of(task("a"), task("b", "a"))
    assert [one.name for one in startable(job, {"b": Run(job="job", nominal_ms=0, task="b")})] == ["b"]


def test_the_outcome_does_not_depend_on_the_order_of_the_runs() -> None:
    job = job_of(task("a"), task("b"), task("c", on_failure=CONTINUE))
    ends = [
        Run(job="job", nominal_ms=0, task="a", state=RunState.DLQ, finished_ms=2, reason=Reason(_C.EXIT_CODE, "x")),
        Run(job="job", nominal_ms=0, task="b", state=RunState.DLQ, finished_ms=1, reason=Reason(_C.EXIT_CODE, "y")),
        Run(job="job", nominal_ms=0, task="c", state=RunState.SUCCESS, finished_ms=3),
    ]
    outcomes = {
        outcome_of(job, [ends[i] for i in order]) for order in product(range(3), repeat=3) if len(set(order)) == 3
    }
    assert outcomes == {(OccurrenceState.FAILED, Reason(_C.EXIT_CODE, "y", "b"), 0)}
