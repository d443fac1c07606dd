"""Why of what people asked for: who triggered, canceled or replayed it, and whose key was in the way."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from chronex.engine.commands import Asker, cancel, replay, trigger
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.model.events import EVENTS
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Event, Job, Task
from chronex.model.states import AttemptState
from chronex.storage.records import Ledger, Reading
from chronex.timing.zones import load_zone
from chronex.views.why import Answer, why
from chronex.views.why.causes import Cause
from chronex.views.why.evidence import _told
from chronex_store import MemoryStore

NOON = 1_800_000_000_000 // 3_600_000 * 3_600_000
MINUTE = 60_000
ANN = Asker("ann", "cli", "desk")


class World:
    """The real engine on a memory store; what it launches ends when the test says so."""

    def __init__(self, *, name: str = "main", **task: object) -> None:
        self.store = MemoryStore()
        self.engine = Engine(self.store, "node", 10, Random(1))
        self.launched: list[Launch] = []
        job = Job(id="j", schedule="0 * * * *", tasks=(Task(name=name, run=("true",), **task),))  # type: ignore[arg-type]
        apply_jobs(self.store, [job], NOON - MINUTE)

    def tick(self, now: int) -> None:
        self._carry_out(self.engine.tick(now, NOON - MINUTE).orders)

    def end(self, state: AttemptState, now: int, **more: Any) -> None:
        attempt = self.launched.pop().attempt
        end = AttemptEnd(state=state, retryable=False, **more)
        self._carry_out(self.store.update(self.engine.ended(attempt, end, now)))

    def _carry_out(self, orders: tuple[Order, ...]) -> None:
        self.launched += [order for order in orders if isinstance(order, Launch)]

    def why(self, instant: int, now: int) -> Answer:
        answer = self.store.view(lambda tx: why(Reading(tx), "j", instant, now))
        assert answer is not None
        return answer


def words(answer: Answer) -> str:
    return "\n".join([answer.summary, *(link.fact for link in answer.links)])


def test_a_run_that_was_canceled_names_who_and_why() -> None:
    world = World()
    world.tick(NOON)
    found = world.store.view(lambda tx: Reading(tx).occurrence("j", NOON))
    assert found is not None
    world.store.update(lambda tx: cancel(Ledger(tx, NOON + 1000), found.id, ANN, "wrong disk"))
    world.tick(NOON + 1001)
    world.end(AttemptState.CANCELED, NOON + 2000)
    answer = world.why(NOON, NOON + MINUTE)
    assert answer.cause is Cause.CANCELED
    assert "ann@desk" in words(answer)
    assert "wrong disk" in words(answer)


def test_a_trigger_is_answered_at_its_own_instant() -> None:
    world = World()
    world.tick(NOON)
    world.end(AttemptState.SUCCESS, NOON + 1000)
    done = world.store.update(lambda tx: trigger(Ledger(tx, NOON + 5 * MINUTE), "j", ANN))
    world.tick(NOON + 5 * MINUTE + 1)
    nominal = world.launched[-1].occurrence.nominal_ms
    world.end(AttemptState.SUCCESS, NOON + 6 * MINUTE)
    answer = world.why(nominal, NOON + 7 * MINUTE)
    assert done.occurrence.nominal_ms == nominal
    assert answer.cause is Cause.COMPLETED
    assert "ann@desk" in words(answer)


def test_a_replay_says_of_what_it_is_one() -> None:
    world = World()
    world.tick(NOON)
    world.end(AttemptState.FAILED, NOON + 1000)
    original = world.store.view(lambda tx: Reading(tx).occurrence("j", NOON))
    assert original is not None
    world.store.update(lambda tx: replay(Ledger(tx, NOON + MINUTE), original.id, ANN, "fixed"))
    world.tick(NOON + MINUTE + 1)
    nominal = world.launched[-1].occurrence.nominal_ms
    world.end(AttemptState.SUCCESS, NOON + 2 * MINUTE)
    answer = world.why(nominal, NOON + 3 * MINUTE)
    assert answer.cause is Cause.COMPLETED
    assert original.id in words(answer) or "replay" in words(answer)
    assert "ann@desk" in words(answer)


@pytest.mark.parametrize("ending", [AttemptState.SUCCESS, AttemptState.FAILED])
def test_a_key_that_was_executed_already_is_the_cause(ending: AttemptState) -> None:
    world = World(idempotency_key="once", idempotency_ttl_ms=86_400_000)
    world.tick(NOON)
    world.end(ending, NOON + 1000)
    world.tick(NOON + 60 * MINUTE)
    answer = world.why(NOON + 60 * MINUTE, NOON + 61 * MINUTE)
    assert answer.cause is Cause.IDEMPOTENT
    assert "idempotency key" in words(answer)


def test_no_name_of_an_event_is_shown_to_people() -> None:
    for name in EVENTS:
        for link in _told(Event(name=name, at_ms=0, actor="ada"), load_zone("UTC")):
            assert name not in link.fact


def test_a_failed_task_that_is_called_paused_is_a_failure() -> None:
    world = World(name="paused")
    world.tick(NOON)
    world.end(AttemptState.FAILED, NOON + 5, reason=Reason(ReasonCode.EXIT_CODE, "exit code 1"), exit_code=1)
    answer = world.why(NOON, NOON + 10)
    assert (answer.cause, answer.names["reason"]) == (Cause.FAILED, "paused: exit code 1")
    assert answer.summary.startswith("it ran and failed: paused: exit code 1; ")
