"""What is foreseen is what the tick then orders, or nothing; and looking changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.daemon.prestart import next_tick_guess
from chronex.engine.commands import Actor, pause
from chronex.engine.orders import Launch
from chronex.model.job import Call, Task
from chronex.model.policies import OverlapPolicy, TaskMode
from chronex.run import AttemptRequest
from chronex.storage.records import Records
from chronex.testing import MINUTE
from tests.kit.machine import FIRST, ONE, START, TWO, SteppedEngine

MOST = 100
ASKER = Actor("somebody", "cli", "here")


def requested(launches: list[Launch]) -> list[AttemptRequest]:
    """What would run: the part of an order that a prepared child must agree with."""
    return [AttemptRequest.of(one.job, one.task, one.occurrence, one.attempt) for one in launches]


AS_ORDERED: dict[str, dict[str, Any]] = {
    "one task": {},
    "the first of several in turn": {"tasks": (ONE, TWO)},
    "all that run side by side": {"tasks": (ONE, TWO), "mode": TaskMode.PARALLEL},
    "an interval": {"schedule": "@every 60s"},
    "several within a pool of one": {"tasks": (ONE,), "places": 1},
    "a key of its own": {"tasks": (replace(ONE, idempotency_key="{job}-{date}"),)},
    "parallel to itself": {"overlap": OverlapPolicy.ALLOW},
}


@pytest.mark.parametrize("policy", AS_ORDERED.values(), ids=AS_ORDERED)
def test_what_is_foreseen_is_what_the_tick_orders(policy: dict[str, Any]) -> None:
    world = SteppedEngine(**policy)
    foreseen = next_tick_guess(world.engine, FIRST, MOST)
    assert foreseen
    assert requested(foreseen) == requested(world.tick(FIRST))


def test_the_time_of_the_last_run_is_foreseen_as_well() -> None:
    world = SteppedEngine()
    (first,) = world.tick(FIRST)
    world.end(first, "success", FIRST + 100)
    (foreseen,) = requested(next_tick_guess(world.engine, FIRST + MINUTE, MOST))
    assert foreseen.last_run_ms == FIRST
    assert [foreseen] == requested(world.tick(FIRST + MINUTE))


def test_a_jittered_run_is_foreseen_once_its_moment_is_drawn() -> None:
    world = SteppedEngine("* * * * * <jitter:30s>")
    assert world.tick(FIRST) == []
    due = world.occurrence(FIRST).due_ms
    assert due > FIRST
    assert requested(next_tick_guess(world.engine, due, MOST)) == requested(world.tick(due))


def _pause(world: SteppedEngine) -> None:
    world.store.update(lambda tx: pause(Records(tx, START), "job", ASKER))


NOTHING: dict[str, tuple[dict[str, Any], Callable[[SteppedEngine], object]]] = {
    "a function of ours": ({"tasks": (Task(name="one", run=Call("module:function")),)}, lambda world: None),
    "what waits for its hook": ({"on_start": ("true",)}, lambda world: None),
    "a paused job": ({}, _pause),
    "a disabled job": ({"enabled": False}, lambda world: None),
    "a full pool": ({"places": 0}, lambda world: None),
    "a scheduler that stops": ({}, lambda world: setattr(world.engine, "stopping", True)),
}


@pytest.mark.parametrize(("policy", "act"), NOTHING.values(), ids=NOTHING)
def test_nothing_is_prepared_for(policy: dict[str, Any], act: Callable[[SteppedEngine], object]) -> None:
    world = SteppedEngine(**policy)
    act(world)
    assert next_tick_guess(world.engine, FIRST, MOST) == []


def test_nothing_is_prepared_while_the_run_before_it_runs() -> None:
    world = SteppedEngine()
    world.tick(FIRST)
    assert next_tick_guess(world.engine, FIRST + MINUTE, MOST) == []


def test_no_more_is_prepared_than_was_asked_for() -> None:
    world = SteppedEngine(tasks=(ONE, TWO), mode=TaskMode.PARALLEL)
    assert len(next_tick_guess(world.engine, FIRST, 1)) == 1


def test_looking_ahead_writes_nothing() -> None:
    world = SteppedEngine()
    before = world.store.wait(-1, 0)
    next_tick_guess(world.engine, FIRST, MOST)
    assert world.store.wait(-1, 0) == before
