"""Every pair of commands, in every order of their transactions: the store stays one that the transition table allows.

A command is one transaction, or a read and one transaction. So two of them can only meet in the orders of those,
and all of them are tried here, from every kind of situation a job can be in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.commands import (
    cancel,
    dead_letters,
    drop_dead_letter,
    pause,
    replay,
    replay_dead_letter,
    resume,
    trigger,
)
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Cancel, Launch
from chronex.engine.update import Policy, apply_jobs, roll_back
from chronex.errors import CommandError
from chronex.model.policies import OverlapPolicy, RetryPolicy, SpreadPolicy
from chronex.model.reasons import free_text
from chronex.model.states import OccurrenceState, is_final
from chronex.storage import journal
from chronex.storage.records import Records
from chronex.testing import HOUR, MINUTE
from tests.engine.commands.store_invariants import CheckedStore, assert_consistent, assert_settled
from tests.kit.machine import ANN, BOB, ONE, START, TWO, SteppedEngine, steady
from tests.kit.tables import table

Steps = Iterator[None]


class RacingEngine(SteppedEngine):
    """An engine on a checked store, whose daemon carries out its orders one step at a time."""

    def __init__(self, **policy: object) -> None:
        super().__init__(**{"schedule": "0 * * * *", "retry": steady(1, 1000), **policy})  # type: ignore[arg-type]
        self.now = START + HOUR
        self.store = CheckedStore(self.store)  # type: ignore[assignment]
        self.engine = Engine(self.store, "node-1", 10, Random(1))
        self.live: dict[str, Launch] = {}
        self.stopped: set[str] = set()

    def carry_out(self, orders: Any) -> None:
        for order in orders:
            if isinstance(order, Launch):
                self.live[order.attempt.id] = order
            elif isinstance(order, Cancel):
                self.stopped.add(order.attempt.id)

    def tick_once(self) -> None:
        self.now += 1
        self.carry_out(self.engine.tick(self.now, START).orders)

    def end_one(self, state: str) -> None:
        self.now += 1
        if self.live:
            name, launch = self.live.popitem()
            end = AttemptEnd("canceled" if name in self.stopped else state, free_text("the end"))
            self.carry_out(self.store.update(self.engine.ended(launch.attempt, end, self.now)))

    def do(self, act: Callable[[Records], Any]) -> Any:
        self.now += 1
        return self.store.update(lambda tx: act(Records(tx, self.now)))

    def run_until_idle(self) -> None:
        """No further command is given; the daemon goes on until no work is left."""
        end = START + HOUR + 31 * MINUTE
        while self.now < end:
            self.tick_once()
            while self.live:
                self.end_one("success")
            upcoming = self.read(lambda reading: reading.next_due_after(self.now))
            self.now = end if upcoming is None else min(max(upcoming, self.now + 1), end)
        self.tick_once()
        while self.live:
            self.end_one("success")


# -- situations ------------------------------------------------------------------------------------------


def idle() -> RacingEngine:
    return RacingEngine()


def running(state: str = "") -> RacingEngine:
    scene = RacingEngine(tasks=(ONE, TWO))
    scene.tick_once()
    if state:
        scene.end_one(state)
    return scene


def retrying() -> RacingEngine:
    return running("failed")


def queued() -> RacingEngine:
    scene = RacingEngine(overlap=OverlapPolicy.QUEUE)
    scene.tick_once()
    scene.do(lambda records: trigger(records, "job", BOB))
    return scene


def buried() -> RacingEngine:
    scene = RacingEngine(retry=RetryPolicy(max=0))
    scene.tick_once()
    scene.end_one("failed")
    return scene


def planned() -> RacingEngine:
    scene = RacingEngine(spread=SpreadPolicy(mode="before", duration_ms=30 * MINUTE), schedule="30 1 * * *")
    scene.tick_once()
    return scene


def stopping() -> RacingEngine:
    scene = running()
    scene.do(lambda records: cancel(records, records.active("job")[0], BOB))
    return scene


SITUATIONS = [idle, running, retrying, queued, buried, planned, stopping]


# -- commands, as the steps between which others may come ------------------------------------------------


def ticks(scene: RacingEngine) -> Steps:
    scene.tick_once()
    yield
    scene.end_one("success")


def completion(scene: RacingEngine) -> Steps:
    scene.end_one("success")
    yield


def failure(scene: RacingEngine) -> Steps:
    scene.end_one("failed")
    yield


def edit(scene: RacingEngine) -> Steps:
    basis = scene.store.view(journal.head)
    yield
    wanted = replace(scene.job, schedule="*/20 * * * *", tasks=(TWO,))
    scene.now += 1
    apply_jobs(scene.store, [wanted], scene.now, "edit", basis=basis)


def graceful_edit(scene: RacingEngine) -> Steps:
    basis = scene.store.view(journal.head)
    yield
    wanted = replace(scene.job, schedule="*/15 * * * *")
    scene.now += 1
    apply_jobs(scene.store, [wanted], scene.now, "graceful", policy=Policy.GRACEFUL, basis=basis)


def removal(scene: RacingEngine) -> Steps:
    scene.now += 1
    apply_jobs(scene.store, [], scene.now, "removal")
    yield


def way_back(scene: RacingEngine) -> Steps:
    scene.now += 1
    roll_back(scene.store, "job", 1, scene.now)
    yield


def triggers(scene: RacingEngine) -> Steps:
    scene.do(lambda records: trigger(records, "job", ANN, idempotency_key="key"))
    yield


def pauses(scene: RacingEngine) -> Steps:
    scene.do(lambda records: pause(records, "job", ANN))
    yield
    scene.do(lambda records: resume(records, "job", ANN))


def cancels(scene: RacingEngine) -> Steps:
    found = scene.read(lambda reading: [o for o in reading.occurrences("job") if not is_final(o.state)])
    yield
    if found:
        scene.do(lambda records: cancel(records, found[0], ANN))


def replays(scene: RacingEngine) -> Steps:
    found = scene.read(lambda reading: [o for o in reading.occurrences("job") if is_final(o.state)])
    yield
    if found:
        scene.do(lambda records: replay(records, found[0], ANN, "again"))


def letter_replays(scene: RacingEngine) -> Steps:
    found = scene.read(dead_letters)
    yield
    if found:
        scene.do(lambda records: replay_dead_letter(records, found[0], ANN))


def letter_drops(scene: RacingEngine) -> Steps:
    found = scene.read(dead_letters)
    yield
    if found:
        scene.do(lambda records: drop_dead_letter(records, found[0], ANN))


def death(scene: RacingEngine) -> Steps:
    """The daemon is killed with its children, and another one takes over."""
    scene.live.clear()
    scene.boot("node-2")
    scene.engine = Engine(scene.store, "node-2", 10, Random(1))
    yield
    scene.now += 1
    orders, adopted = scene.engine.take_over(lambda process: False, scene.now)
    assert adopted == []
    scene.carry_out(orders)


Command = Callable[[RacingEngine], Steps]
COMMANDS: list[Command] = [
    ticks, completion, failure, edit, graceful_edit, removal, way_back, triggers, pauses, cancels, replays,
    letter_replays, letter_drops, death,
]  # fmt: skip


# All others are one transaction.
STEPS: dict[Callable[[RacingEngine], Steps], int] = dict.fromkeys(
    (ticks, edit, graceful_edit, pauses, cancels, replays, letter_replays, letter_drops, death), 2
)


def orders_of(one: int, other: int) -> Iterator[str]:
    """Every order of `one` steps of a and `other` steps of b."""
    if not one or not other:
        yield "a" * one + "b" * other
        return
    yield from ("a" + rest for rest in orders_of(one - 1, other))
    yield from ("b" + rest for rest in orders_of(one, other - 1))


def play(
    scene: RacingEngine, first: Callable[[RacingEngine], Steps], second: Callable[[RacingEngine], Steps], order: str
) -> None:
    actors = {"a": first(scene), "b": second(scene)}
    for name in order:
        with suppress(CommandError):  # refused in one sentence: nothing was written
            next(actors[name], None)
        scene.store.view(assert_consistent)
    scene.run_until_idle()
    scene.store.view(assert_consistent)
    scene.store.view(lambda tx: assert_settled(tx, scene.now))


Meeting = tuple[Command, str]


def meetings_with(first: Command) -> Iterator[tuple[str, Meeting]]:
    """Itself and the commands after it in the list: those before it have met it already."""
    for second in COMMANDS[COMMANDS.index(first) :]:
        for order in orders_of(STEPS.get(first, 1), STEPS.get(second, 1)):
            yield f"{second.__name__} {order}", (second, order)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("first", COMMANDS, ids=lambda command: command.__name__)
def test_every_pair_in_every_order_leaves_what_the_table_allows(
    situation: Callable[[], RacingEngine], first: Command
) -> None:
    @table(meetings_with(first))
    def try_all(meeting: Meeting) -> None:
        play(situation(), first, *meeting)

    try_all()


def test_the_checked_store_sees_a_transition_that_the_table_does_not_have() -> None:
    scene = buried()
    record = scene.occurrence(START + HOUR)
    with pytest.raises(AssertionError):
        scene.do(lambda records: records.put(replace(record, state=OccurrenceState.RUNNING)))
