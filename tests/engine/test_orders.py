"""When hooks are ordered, and what their report says."""

from __future__ import annotations

from typing import Any

import msgspec

from chronex.engine.orders import Launch, Order, RunHook
from chronex.model.reasons import free_text
from chronex.model.states import AttemptState
from tests.kit.machine import FIRST, ONE, START, TWO, SteppedEngine, steady

HOOKED: Any = {"on_start": ("say", "start"), "on_complete": "say end"}


def kinds(orders: tuple[object, ...] | tuple[Order, ...]) -> list[str]:
    return [order.report.hook if isinstance(order, RunHook) else type(order).__name__ for order in orders]


def test_on_start_comes_before_the_first_task_and_on_complete_after_the_last() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO), **HOOKED)
    orders = machine.engine.tick(FIRST, START).orders
    assert kinds(orders) == ["on_start", "Launch"]
    assert isinstance(orders[0], RunHook)
    assert (orders[0].work, orders[0].report.state) == (("say", "start"), "running")
    assert isinstance(orders[1], Launch)
    following = machine.end(orders[1], AttemptState.SUCCESS, FIRST + 1_000)
    assert kinds(following) == ["Launch"]
    assert isinstance(following[0], Launch)
    (hook,) = machine.end(
        following[0], AttemptState.FAILED, FIRST + 2_000, reason=free_text("exit code 3"), exit_code=3
    )
    assert isinstance(hook, RunHook)
    report = msgspec.to_builtins(hook.report)
    assert (report["hook"], report["state"], report["reason"]) == ("on_complete", "failed", "two: exit code 3")
    assert (report["nominal"], report["started"], report["ended"]) == (
        "2027-01-01T00:01:00.000Z", "2027-01-01T00:01:00.000Z", "2027-01-01T00:01:02.000Z",
    )  # fmt: skip
    assert [(task["task"], task["state"], task["attempts"], task["exit_code"]) for task in report["tasks"]] == [
        ("one", "success", 1, None),
        ("two", "dlq", 1, 3),
    ]


def test_a_retry_calls_no_hook_and_is_counted_in_the_report() -> None:
    machine = SteppedEngine("0 * * * *", retry=steady(1, 1_000), **HOOKED)
    hour = FIRST + 59 * 60_000
    start, launch = machine.engine.tick(hour, START).orders
    assert isinstance(launch, Launch)
    assert machine.end(launch, AttemptState.FAILED, hour + 1) == ()
    (again,) = machine.tick(hour + 1_001)
    (hook,) = machine.end(again, AttemptState.SUCCESS, hour + 1_002)
    assert isinstance(start, RunHook)
    assert isinstance(hook, RunHook)
    assert hook.report.tasks[0].attempts == 2


def test_what_never_started_has_no_hooks() -> None:
    machine = SteppedEngine(**HOOKED)
    machine.tick(FIRST)
    later = machine.engine.tick(FIRST + 60_000, START).orders
    assert later == (), "skipped because of the one that runs"
