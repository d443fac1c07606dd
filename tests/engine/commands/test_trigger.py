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
    world = SteppedEngine()
    asked = world.ask(trigger, "job", at=START + 10, parameters={"day": "monday"})
    assert asked.answer is TriggerAnswer.PENDING
    (launch,) = world.tick(START + 11)
    assert launch.occurrence.id == asked.occurrence.id
    assert launch.occurrence.parameters == {"day": "monday"}
    assert (launch.occurrence.manual, launch.occurrence.triggered_by) == (True, "ann@desk (cli)")


def test_a_trigger_without_a_daemon_waits_for_the_next_one() -> None:
    world = SteppedEngine("0 0 1 1 *")
    asked = world.ask(trigger, "job", at=START + 10)
    world.boot("node-2")
    (launch,) = world.tick(START + 30 * MINUTE, awake_since=START + 30 * MINUTE)
    assert launch.occurrence.id == asked.occurrence.id


@pytest.mark.parametrize("at", [FIRST, FIRST + 1, FIRST + 999])
def test_triggers_never_take_an_instant_of_the_schedule_nor_of_each_other(at: int) -> None:
    world = SteppedEngine("@every 1m", overlap=OverlapPolicy.ALLOW)
    asked = [world.ask(trigger, "job", at=at).occurrence.nominal_ms for _ in range(5)]
    assert len(set(asked)) == 5
    assert all(nominal % 1000 and nominal != FIRST for nominal in asked)
    launched = {launch.occurrence.nominal_ms for launch in world.tick(at + 5)}
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
    world = SteppedEngine(overlap=policy)
    (running,) = world.tick(FIRST)
    asked = world.ask(trigger, "job")
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
    world = SteppedEngine(overlap=policy, retry=retry)
    (first,) = world.tick(FIRST)
    world.end(first, "failed", FIRST + 5)
    asked = world.ask(trigger, "job", at=FIRST + 10)
    assert asked.answer is answer
    if answer is not TriggerAnswer.PENDING:
        assert asked.reason.code is ReasonCode.RETRY_WAITS
    assert len(world.tick(FIRST + 11)) == (policy is OverlapPolicy.ALLOW)
    assert world.occurrence(FIRST).state is OccurrenceState.RUNNING
    (again,) = world.tick(FIRST + 5 + MINUTE // 2)
    assert (again.occurrence.nominal_ms, again.attempt.number) == (FIRST, 2)


def test_a_trigger_runs_while_the_job_is_paused() -> None:
    world = SteppedEngine()
    world.ask(pause, "job", at=START + 5)
    world.ask(trigger, "job", at=START + 10)
    assert [launch.occurrence.manual for launch in world.tick(START + 11)] == [True]


def test_a_live_key_answers_skipped_and_an_expired_one_does_not() -> None:
    world = SteppedEngine(overlap=OverlapPolicy.ALLOW)
    first = world.ask(trigger, "job", at=START + 10, idempotency_key="k", ttl_ms=1000)
    second = world.ask(trigger, "job", at=START + 20, idempotency_key="k", ttl_ms=1000)
    third = world.ask(trigger, "job", at=START + 1010, idempotency_key="k", ttl_ms=1000)
    assert [one.answer for one in (first, second, third)] == [
        TriggerAnswer.PENDING,
        TriggerAnswer.SKIPPED,
        TriggerAnswer.PENDING,
    ]
    assert second.reason == Reason(ReasonCode.IDEMPOTENT, first.occurrence.id)
    assert second.occurrence.state is OccurrenceState.SKIPPED


def test_the_key_of_a_trigger_is_not_the_key_of_a_task_with_the_same_text() -> None:
    world = SteppedEngine(tasks=(replace(ONE, idempotency_key="k", idempotency_ttl_ms=MINUTE),))
    world.ask(trigger, "job", at=START + 10, idempotency_key="k")
    assert len(world.tick(START + 11)) == 1


def test_a_holder_that_never_ran_gives_its_key_back() -> None:
    world = SteppedEngine()
    (running,) = world.tick(FIRST)
    skipped = world.ask(trigger, "job", idempotency_key="k")
    assert skipped.answer is TriggerAnswer.SKIPPED
    world.end(running, "success", FIRST + 2)
    assert world.ask(trigger, "job", at=FIRST + 3, idempotency_key="k").answer is TriggerAnswer.PENDING


def test_an_unknown_job_is_named_with_its_neighbour_and_nothing_is_written() -> None:
    world = SteppedEngine()
    before = world.events()
    with pytest.raises(UnknownJobError, match=r"no job 'jub'; did you mean job\?"):
        world.ask(trigger, "jub")
    with pytest.raises(UnknownJobError, match="chronex list"):
        world.ask(trigger, "../../etc")
    assert world.events() == before


@pytest.mark.parametrize("parameters", [{"": "x"}, {"a": "b\0c"}, {str(n): "" for n in range(101)}])
def test_parameters_that_no_command_could_be_given_are_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(NotPossibleError):
        SteppedEngine().ask(trigger, "job", parameters=parameters)


# -- replay ----------------------------------------------------------------------------------------------


def ended(world: SteppedEngine, state: str = "failed") -> str:
    (launch,) = world.tick(FIRST)
    world.end(launch, state, FIRST + 5)
    return launch.occurrence.id


def again(world: SteppedEngine, named: Any, at: int = FIRST + 100, reason: str = "fixed", **more: Any) -> Any:
    return world.store.update(lambda tx: replay(_ledger(tx, at), named, BOB, reason, **more))


def _ledger(tx: Any, at: int) -> Any:
    from chronex.storage.records import Records

    return Records(tx, at)


def test_a_replay_is_a_new_occurrence_at_the_old_scheduled_time() -> None:
    world = SteppedEngine()
    original = ended(world)
    asked = again(world, original)
    (launch,) = world.tick(FIRST + 101)
    assert launch.occurrence.replay_of == original
    assert launch.occurrence.scheduled_ms == FIRST
    assert launch.occurrence.id == asked.occurrence.id != original
    events = world.events()[-3:]
    replayed = next(event for event in world.events() if event.name == "OccurrenceReplayed")
    assert (replayed.actor, str(replayed.reason), replayed.data["replay_of"]) == (str(BOB), "fixed", original)
    assert events[-1].name == "TaskRunStarted"


@pytest.mark.parametrize(("as_of", "tasks"), [("then", ["one"]), ("now", ["two"])])
def test_a_replay_runs_the_version_of_then_or_of_now(as_of: str, tasks: list[str]) -> None:
    world = SteppedEngine()
    original = ended(world)
    apply_jobs(world.store, [replace(world.job, tasks=(TWO,))], FIRST + 50)
    again(world, original, as_of=as_of)
    assert [launch.task.name for launch in world.tick(FIRST + 101)] == tasks


def test_replays_wait_for_each_other_instead_of_being_dropped() -> None:
    world = SteppedEngine(overlap=OverlapPolicy.SKIP)
    original = ended(world)
    for n in range(3):
        again(world, original, at=FIRST + 100 + n)
    (launch,) = world.tick(FIRST + 200)
    seen = 1
    while launch is not None:
        following = world.launches_after(launch, "success", FIRST + 300 + seen)
        if not following:
            break
        (launch,) = following
        seen += 1
    assert seen == 3


def test_what_has_not_ended_cannot_be_replayed() -> None:
    world = SteppedEngine()
    (launch,) = world.tick(FIRST)
    with pytest.raises(NotPossibleError, match="still running; cancel it, or wait"):
        again(world, launch.occurrence.id)


def test_what_never_ran_can_be_replayed() -> None:
    world = SteppedEngine()
    world.tick(FIRST + MINUTE, awake_since=FIRST + MINUTE + 1)  # both were missed; the last one runs
    missed = next(o for o in world.read(lambda r: r.occurrences("job")) if o.nominal_ms == FIRST)
    assert again(world, missed.id[:16], at=FIRST + MINUTE + 100).original.nominal_ms == FIRST


# -- tasks and policies of one occurrence -----------------------------------------------------------------------


def test_policies_of_one_occurrence_hold_for_it_alone() -> None:
    world = SteppedEngine("@every 1h", execution_timeout_ms=5 * MINUTE, task_timeout_ms=MINUTE)
    given = Overrides(timeout_ms=9 * MINUTE, retries=1)
    asked = world.ask(trigger, "job", at=START + 10, overrides=given)
    (launch,) = world.tick(START + 11)
    assert launch.occurrence.deadline_ms == START + 11 + 9 * MINUTE
    assert launch.job.timeout_for(launch.task) is None
    world.end(launch, AttemptState.FAILED, START + 12)
    assert world.occurrence(asked.occurrence.nominal_ms).state is OccurrenceState.RUNNING
    (again,) = world.tick(START + MINUTE * 8)
    world.end(again, AttemptState.FAILED, START + MINUTE * 8 + 1)
    assert world.occurrence(asked.occurrence.nominal_ms).state is OccurrenceState.FAILED
    (plain,) = world.tick(START + 60 * MINUTE)
    assert plain.job.timeout_for(plain.task) == MINUTE
    assert plain.occurrence.deadline_ms == START + 65 * MINUTE


@pytest.mark.parametrize("own", [None, FailureStrategy.RETRY_ON_FAILURE])
def test_no_retries_for_one_occurrence_are_none(own: FailureStrategy | None) -> None:
    world = SteppedEngine("@every 1h", retry=RetryPolicy(max=3), tasks=(replace(ONE, on_failure=own),))
    asked = world.ask(trigger, "job", at=START + 10, overrides=Overrides(retries=0))
    (launch,) = world.tick(START + 11)
    world.end(launch, AttemptState.FAILED, START + 12)
    assert world.occurrence(asked.occurrence.nominal_ms).state is OccurrenceState.FAILED


def test_a_failure_strategy_of_one_occurrence_holds_for_all_its_tasks() -> None:
    world = SteppedEngine("@every 1h", tasks=(replace(ONE, on_failure=FailureStrategy.FAIL_FAST), TWO))
    given = Overrides(on_failure=FailureStrategy.CONTINUE)
    world.ask(trigger, "job", at=START + 10, overrides=given)
    (first,) = world.tick(START + 11)
    (second,) = world.launches_after(first, AttemptState.FAILED, START + 12)
    assert second.task.name == TWO.name


def test_only_the_named_tasks_run_in_the_order_of_the_job() -> None:
    world = SteppedEngine("@every 1h", tasks=(ONE, TWO))
    world.ask(trigger, "job", at=START + 10, only=(TWO.name,))
    (launch,) = world.tick(START + 11)
    assert launch.task.name == TWO.name
    assert world.launches_after(launch, AttemptState.SUCCESS, START + 12) == []
    with pytest.raises(NotPossibleError, match="has no task 'three'"):
        world.ask(trigger, "job", at=START + 20, only=("three",))


def test_a_replay_of_one_task_keeps_the_policies_of_the_original() -> None:
    world = SteppedEngine("@every 1h", tasks=(ONE, TWO))
    given = Overrides(timeout_ms=MINUTE)
    asked = world.ask(trigger, "job", at=START + 10, overrides=given)
    (launch,) = world.tick(START + 11)
    world.end(launch, AttemptState.FAILED, START + 12)
    again = world.ask(replay, asked.occurrence.id, at=START + 20, reason="fixed", only=(ONE.name,)).occurrence
    assert (again.only, again.overrides, again.asked_for) == ((ONE.name,), given, "fixed")
