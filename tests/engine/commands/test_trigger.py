"""trigger and replay: what is written, what overlap says to it, and that a daemon starts it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.commands import TriggerAnswer, pause, replay, trigger
from chronex.engine.update import apply_jobs
from chronex.errors import NotPossibleError, UnknownJobError
from chronex.model.policies import FailureStrategy, OverlapPolicy, Overrides, RetryPolicy
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import AttemptState, OccurrenceState
from chronex.testing import MINUTE
from tests.kit.machine import BOB, FIRST, ONE, START, TWO, SteppedEngine, steady


def test_a_trigger_is_due_at_once_and_the_next_tick_starts_it_with_its_parameters() -> None:
    machine = SteppedEngine()
    asked = machine.ask(trigger, "job", at=START + 10, parameters={"day": "monday"})
    assert asked.answer is TriggerAnswer.PENDING
    (launch,) = machine.tick(START + 11)
    assert launch.occurrence.id == asked.occurrence.id
    assert launch.occurrence.parameters == {"day": "monday"}
    assert (launch.occurrence.manual, launch.occurrence.triggered_by) == (True, "ann@desk (cli)")


def test_a_trigger_without_a_daemon_waits_for_the_next_one() -> None:
    machine = SteppedEngine("0 0 1 1 *")
    asked = machine.ask(trigger, "job", at=START + 10)
    machine.boot("node-2")
    (launch,) = machine.tick(START + 30 * MINUTE, awake_since=START + 30 * MINUTE)
    assert launch.occurrence.id == asked.occurrence.id


@pytest.mark.parametrize("at", [FIRST, FIRST + 1, FIRST + 999])
def test_triggers_never_take_an_instant_of_the_schedule_nor_of_each_other(at: int) -> None:
    machine = SteppedEngine("@every 1m", overlap=OverlapPolicy.ALLOW)
    asked = [machine.ask(trigger, "job", at=at).occurrence.nominal_ms for _ in range(5)]
    assert len(set(asked)) == 5
    assert all(nominal % 1000 and nominal != FIRST for nominal in asked)
    launched = {launch.occurrence.nominal_ms for launch in machine.tick(at + 5)}
    assert launched == {*asked, FIRST}


@pytest.mark.parametrize(
    ("policy", "answer"),
    [
        (OverlapPolicy.SKIP, TriggerAnswer.SKIPPED),
        (OverlapPolicy.QUEUE, TriggerAnswer.QUEUED),
        (OverlapPolicy.QUEUE_ONE, TriggerAnswer.QUEUED),
        (OverlapPolicy.ALLOW, TriggerAnswer.PENDING),
        (OverlapPolicy.CANCEL_RUNNING, TriggerAnswer.PENDING),
    ],
)
def test_overlap_is_answered_at_once_where_the_store_knows(policy: OverlapPolicy, answer: TriggerAnswer) -> None:
    machine = SteppedEngine(overlap=policy)
    (running,) = machine.tick(FIRST)
    asked = machine.ask(trigger, "job")
    assert asked.answer is answer
    if answer is not TriggerAnswer.PENDING:
        assert asked.reason == Reason(ReasonCode.OVERLAP, running.occurrence.id)
    assert asked.occurrence.state.value == answer.value


@pytest.mark.parametrize("newest_wins", [False, True])
@pytest.mark.parametrize(
    ("policy", "answer"),
    [
        (OverlapPolicy.SKIP, TriggerAnswer.SKIPPED),
        (OverlapPolicy.QUEUE, TriggerAnswer.QUEUED),
        (OverlapPolicy.QUEUE_ONE, TriggerAnswer.QUEUED),
        (OverlapPolicy.ALLOW, TriggerAnswer.PENDING),
        (OverlapPolicy.CANCEL_RUNNING, TriggerAnswer.QUEUED),
    ],
)
def test_a_trigger_never_discards_the_retry_of_another_one(
    policy: OverlapPolicy, answer: TriggerAnswer, newest_wins: bool
) -> None:
    retry = steady(3, MINUTE // 2, newest_wins=newest_wins)
    machine = SteppedEngine(overlap=policy, retry=retry)
    (first,) = machine.tick(FIRST)
    machine.end(first, "failed", FIRST + 5)
    asked = machine.ask(trigger, "job", at=FIRST + 10)
    assert asked.answer is answer
    if answer is not TriggerAnswer.PENDING:
        assert asked.reason.code is ReasonCode.RETRY_WAITS
    assert len(machine.tick(FIRST + 11)) == (policy is OverlapPolicy.ALLOW)
    assert machine.occurrence(FIRST).state is OccurrenceState.RUNNING
    (again,) = machine.tick(FIRST + 5 + MINUTE // 2)
    assert (again.occurrence.nominal_ms, again.attempt.number) == (FIRST, 2)


def test_a_trigger_runs_while_the_job_is_paused() -> None:
    machine = SteppedEngine()
    machine.ask(pause, "job", at=START + 5)
    machine.ask(trigger, "job", at=START + 10)
    assert [launch.occurrence.manual for launch in machine.tick(START + 11)] == [True]


def test_a_live_key_answers_skipped_and_an_expired_one_does_not() -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.ALLOW)
    first = machine.ask(trigger, "job", at=START + 10, idempotency_key="k", ttl_ms=1000)
    second = machine.ask(trigger, "job", at=START + 20, idempotency_key="k", ttl_ms=1000)
    third = machine.ask(trigger, "job", at=START + 1010, idempotency_key="k", ttl_ms=1000)
    assert [one.answer for one in (first, second, third)] == [
        TriggerAnswer.PENDING,
        TriggerAnswer.SKIPPED,
        TriggerAnswer.PENDING,
    ]
    assert second.reason == Reason(ReasonCode.IDEMPOTENT, first.occurrence.id)
    assert second.occurrence.state is OccurrenceState.SKIPPED


def test_the_key_of_a_trigger_is_not_the_key_of_a_task_with_the_same_text() -> None:
    machine = SteppedEngine(tasks=(replace(ONE, idempotency_key="k", idempotency_ttl_ms=MINUTE),))
    machine.ask(trigger, "job", at=START + 10, idempotency_key="k")
    assert len(machine.tick(START + 11)) == 1


def test_a_holder_that_never_ran_gives_its_key_back() -> None:
    machine = SteppedEngine()
    (running,) = machine.tick(FIRST)
    skipped = machine.ask(trigger, "job", idempotency_key="k")
    assert skipped.answer is TriggerAnswer.SKIPPED
    machine.end(running, "success", FIRST + 2)
    assert machine.ask(trigger, "job", at=FIRST + 3, idempotency_key="k").answer is TriggerAnswer.PENDING


def test_an_unknown_job_is_named_with_its_neighbour_and_nothing_is_written() -> None:
    machine = SteppedEngine()
    before = machine.events()
    with pytest.raises(UnknownJobError, match=r"no job 'jub'; did you mean job\?"):
        machine.ask(trigger, "jub")
    with pytest.raises(UnknownJobError, match="chronex list"):
        machine.ask(trigger, "../../etc")
    assert machine.events() == before


@pytest.mark.parametrize("parameters", [{"": "x"}, {"a": "b\0c"}, {str(n): "" for n in range(101)}])
def test_parameters_that_no_command_could_be_given_are_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(NotPossibleError):
        SteppedEngine().ask(trigger, "job", parameters=parameters)


# -- replay ----------------------------------------------------------------------------------------------


def ended(machine: SteppedEngine, state: str = "failed") -> str:
    (launch,) = machine.tick(FIRST)
    machine.end(launch, state, FIRST + 5)
    return launch.occurrence.id


def again(machine: SteppedEngine, named: Any, at: int = FIRST + 100, reason: str = "fixed", **more: Any) -> Any:
    return machine.store.update(lambda tx: replay(_ledger(tx, at), named, BOB, reason, **more))


def _ledger(tx: Any, at: int) -> Any:
    from chronex.storage.records import Records

    return Records(tx, at)


def test_a_replay_is_a_new_occurrence_at_the_old_scheduled_time() -> None:
    machine = SteppedEngine()
    original = ended(machine)
    asked = again(machine, original)
    (launch,) = machine.tick(FIRST + 101)
    assert launch.occurrence.replay_of == original
    assert launch.occurrence.scheduled_ms == FIRST
    assert launch.occurrence.id == asked.occurrence.id != original
    events = machine.events()[-3:]
    replayed = next(event for event in machine.events() if event.name == "OccurrenceReplayed")
    assert (replayed.actor, str(replayed.reason), replayed.data["replay_of"]) == (str(BOB), "fixed", original)
    assert events[-1].name == "TaskRunStarted"


@pytest.mark.parametrize(("as_of", "tasks"), [("then", ["one"]), ("now", ["two"])])
def test_a_replay_runs_the_version_of_then_or_of_now(as_of: str, tasks: list[str]) -> None:
    machine = SteppedEngine()
    original = ended(machine)
    apply_jobs(machine.store, [replace(machine.job, tasks=(TWO,))], FIRST + 50)
    again(machine, original, as_of=as_of)
    assert [launch.task.name for launch in machine.tick(FIRST + 101)] == tasks


def test_replays_wait_for_each_other_instead_of_being_dropped() -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.SKIP)
    original = ended(machine)
    for n in range(3):
        again(machine, original, at=FIRST + 100 + n)
    (launch,) = machine.tick(FIRST + 200)
    seen = 1
    while launch is not None:
        following = machine.launches_after(launch, "success", FIRST + 300 + seen)
        if not following:
            break
        (launch,) = following
        seen += 1
    assert seen == 3


def test_what_has_not_ended_cannot_be_replayed() -> None:
    machine = SteppedEngine()
    (launch,) = machine.tick(FIRST)
    with pytest.raises(NotPossibleError, match="still running; cancel it, or wait"):
        again(machine, launch.occurrence.id)


def test_what_never_ran_can_be_replayed() -> None:
    machine = SteppedEngine()
    machine.tick(FIRST + MINUTE, awake_since=FIRST + MINUTE + 1)  # both were missed; the last one runs
    missed = next(o for o in machine.read(lambda r: r.occurrences("job")) if o.nominal_ms == FIRST)
    assert again(machine, missed.id[:16], at=FIRST + MINUTE + 100).original.nominal_ms == FIRST


# -- tasks and policies of one occurrence -----------------------------------------------------------------------


def test_policies_of_one_occurrence_hold_for_it_alone() -> None:
    machine = SteppedEngine("@every 1h", execution_timeout_ms=5 * MINUTE, task_timeout_ms=MINUTE)
    given = Overrides(timeout_ms=9 * MINUTE, retries=1)
    asked = machine.ask(trigger, "job", at=START + 10, overrides=given)
    (launch,) = machine.tick(START + 11)
    assert launch.occurrence.deadline_ms == START + 11 + 9 * MINUTE
    assert launch.job.timeout_for(launch.task) is None
    machine.end(launch, AttemptState.FAILED, START + 12)
    assert machine.occurrence(asked.occurrence.nominal_ms).state is OccurrenceState.RUNNING
    (again,) = machine.tick(START + MINUTE * 8)
    machine.end(again, AttemptState.FAILED, START + MINUTE * 8 + 1)
    assert machine.occurrence(asked.occurrence.nominal_ms).state is OccurrenceState.FAILED
    (plain,) = machine.tick(START + 60 * MINUTE)
    assert plain.job.timeout_for(plain.task) == MINUTE
    assert plain.occurrence.deadline_ms == START + 65 * MINUTE


@pytest.mark.parametrize("own", [None, FailureStrategy.RETRY_ON_FAILURE])
def test_no_retries_for_one_occurrence_are_none(own: FailureStrategy | None) -> None:
    machine = SteppedEngine("@every 1h", retry=RetryPolicy(max=3), tasks=(replace(ONE, on_failure=own),))
    asked = machine.ask(trigger, "job", at=START + 10, overrides=Overrides(retries=0))
    (launch,) = machine.tick(START + 11)
    machine.end(launch, AttemptState.FAILED, START + 12)
    assert machine.occurrence(asked.occurrence.nominal_ms).state is OccurrenceState.FAILED


def test_a_failure_strategy_of_one_occurrence_holds_for_all_its_tasks() -> None:
    machine = SteppedEngine("@every 1h", tasks=(replace(ONE, on_failure=FailureStrategy.FAIL_FAST), TWO))
    given = Overrides(on_failure=FailureStrategy.CONTINUE)
    machine.ask(trigger, "job", at=START + 10, overrides=given)
    (first,) = machine.tick(START + 11)
    (second,) = machine.launches_after(first, AttemptState.FAILED, START + 12)
    assert second.task.name == TWO.name


def test_only_the_named_tasks_run_in_the_order_of_the_job() -> None:
    machine = SteppedEngine("@every 1h", tasks=(ONE, TWO))
    machine.ask(trigger, "job", at=START + 10, only=(TWO.name,))
    (launch,) = machine.tick(START + 11)
    assert launch.task.name == TWO.name
    assert machine.launches_after(launch, AttemptState.SUCCESS, START + 12) == []
    with pytest.raises(NotPossibleError, match="has no task 'three'"):
        machine.ask(trigger, "job", at=START + 20, only=("three",))


def test_a_replay_of_one_task_keeps_the_policies_of_the_original() -> None:
    machine = SteppedEngine("@every 1h", tasks=(ONE, TWO))
    given = Overrides(timeout_ms=MINUTE)
    asked = machine.ask(trigger, "job", at=START + 10, overrides=given)
    (launch,) = machine.tick(START + 11)
    machine.end(launch, AttemptState.FAILED, START + 12)
    again = machine.ask(replay, asked.occurrence.id, at=START + 20, reason="fixed", only=(ONE.name,)).occurrence
    assert (again.only, again.overrides, again.asked_for) == ((ONE.name,), given, "fixed")
