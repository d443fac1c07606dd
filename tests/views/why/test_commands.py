"""Why of what people asked for: who triggered, canceled or replayed it, and whose key was in the way."""

from __future__ import annotations

from typing import Any

import pytest

from chronex.engine.commands import cancel, replay, trigger
from chronex.engine.orders import Launch
from chronex.model.event import EVENTS, Event
from chronex.model.job import Task
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import AttemptState
from chronex.storage.records import Reading, Records
from chronex.testing import MINUTE
from chronex.timing.zones import load_zone
from chronex.views.why import WhyAnswer, why
from chronex.views.why.answer import Cause
from chronex.views.why.evidence import _event_links
from tests.kit.machine import ANN, SteppedEngine

NOON = 1_800_000_000_000 // 3_600_000 * 3_600_000


class AskedEngine(SteppedEngine):
    """What it launches ends when the test says so, the latest first; `why` is asked of its job "j"."""

    def __init__(self, *, task: str = "main", **options: Any) -> None:
        self.launched: list[Launch] = []
        tasks = (Task(name=task, run=("true",), **options),)
        super().__init__("0 * * * *", name="j", start=NOON - MINUTE, tasks=tasks)

    def run_due(self, now: int) -> None:
        self.launched += self.tick(now)

    def end_latest(self, state: AttemptState, now: int, **more: Any) -> None:
        self.launched += self.launches_after(self.launched.pop(), state, now, retryable=False, **more)

    def why(self, instant: int, now: int) -> WhyAnswer:
        answer = self.read(lambda reading: why(reading, "j", instant, now))
        assert answer is not None
        return answer


def words(answer: WhyAnswer) -> str:
    return "\n".join([answer.summary, *(link.fact for link in answer.links)])


def test_a_run_that_was_canceled_names_who_and_why() -> None:
    machine = AskedEngine()
    machine.run_due(NOON)
    found = machine.store.view(lambda tx: Reading(tx).occurrence("j", NOON))
    assert found is not None
    machine.store.update(lambda tx: cancel(Records(tx, NOON + 1000), found.id, ANN, "wrong disk"))
    machine.run_due(NOON + 1001)
    machine.end_latest(AttemptState.CANCELED, NOON + 2000)
    answer = machine.why(NOON, NOON + MINUTE)
    assert answer.cause is Cause.CANCELED
    assert "ann@desk" in words(answer)
    assert "wrong disk" in words(answer)


def test_a_trigger_is_answered_at_its_own_instant() -> None:
    machine = AskedEngine()
    machine.run_due(NOON)
    machine.end_latest(AttemptState.SUCCESS, NOON + 1000)
    done = machine.store.update(lambda tx: trigger(Records(tx, NOON + 5 * MINUTE), "j", ANN))
    machine.run_due(NOON + 5 * MINUTE + 1)
    nominal = machine.launched[-1].occurrence.nominal_ms
    machine.end_latest(AttemptState.SUCCESS, NOON + 6 * MINUTE)
    answer = machine.why(nominal, NOON + 7 * MINUTE)
    assert done.occurrence.nominal_ms == nominal
    assert answer.cause is Cause.COMPLETED
    assert "ann@desk" in words(answer)


def test_a_replay_says_of_what_it_is_one() -> None:
    machine = AskedEngine()
    machine.run_due(NOON)
    machine.end_latest(AttemptState.FAILED, NOON + 1000)
    original = machine.store.view(lambda tx: Reading(tx).occurrence("j", NOON))
    assert original is not None
    machine.store.update(lambda tx: replay(Records(tx, NOON + MINUTE), original.id, ANN, "fixed"))
    machine.run_due(NOON + MINUTE + 1)
    nominal = machine.launched[-1].occurrence.nominal_ms
    machine.end_latest(AttemptState.SUCCESS, NOON + 2 * MINUTE)
    answer = machine.why(nominal, NOON + 3 * MINUTE)
    assert answer.cause is Cause.COMPLETED
    assert original.id in words(answer) or "replay" in words(answer)
    assert "ann@desk" in words(answer)


@pytest.mark.parametrize("ending", [AttemptState.SUCCESS, AttemptState.FAILED])
def test_a_key_that_was_executed_already_is_the_cause(ending: AttemptState) -> None:
    machine = AskedEngine(idempotency_key="once", idempotency_ttl_ms=86_400_000)
    machine.run_due(NOON)
    machine.end_latest(ending, NOON + 1000)
    machine.run_due(NOON + 60 * MINUTE)
    answer = machine.why(NOON + 60 * MINUTE, NOON + 61 * MINUTE)
    assert answer.cause is Cause.IDEMPOTENT
    assert "idempotency key" in words(answer)


def test_no_name_of_an_event_is_shown_to_people() -> None:
    for name in EVENTS:
        for link in _event_links(Event(name=name, at_ms=0, actor="ada"), load_zone("UTC")):
            assert name not in link.fact


def test_a_failed_task_that_is_called_paused_is_a_failure() -> None:
    machine = AskedEngine(task="paused")
    machine.run_due(NOON)
    reason = Reason(ReasonCode.EXIT_CODE, "exit code 1")
    machine.end_latest(AttemptState.FAILED, NOON + 5, reason=reason, exit_code=1)
    answer = machine.why(NOON, NOON + 10)
    assert (answer.cause, answer.names["reason"]) == (Cause.FAILED, "paused: exit code 1")
    assert answer.summary.startswith("it ran and failed: paused: exit code 1; ")
