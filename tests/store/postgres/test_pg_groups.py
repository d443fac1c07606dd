"""Groups over machines that share a store: two engines decide at once, and no limit and no rate is exceeded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from chronex.engine.orders import AttemptEnd, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import Job, Task
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage import scopes
from chronex.storage.records import Reading
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.racing import RacingNode
from tests.verify.assertion import broken

AT = 1_798_761_600_000
GROUPS = (GroupSettings("three", limit=3), GroupSettings("slow", rate=StartRate(2, 60_000)))
JOBS = 12


@pytest.fixture
def nodes(emptied_url: str) -> Iterator[list[RacingNode]]:
    with PostgresStore.open(emptied_url) as one, PostgresStore.open(emptied_url) as other:
        made = [RacingNode(store, name, 20) for store, name in ((one, "node-a"), (other, "node-b"))]
        yield made


def apply(store: PostgresStore, group: str) -> None:
    jobs = [
        Job(id=f"job-{n:02}", schedule="0 * * * *", tasks=(Task(name="main", run="true"),), groups={group: 1})
        for n in range(JOBS)
    ]
    apply_jobs(store, jobs, AT - 1000, owns=JobSource("", groups=GROUPS))


def launches(orders: Iterable[Order]) -> list[Launch]:
    return [order for order in orders if isinstance(order, Launch)]


def tick_all(nodes: list[RacingNode], now_ms: int) -> list[tuple[RacingNode, Launch]]:
    """All nodes at once, until none of them starts anything."""
    found: list[tuple[RacingNode, Launch]] = []
    with ThreadPoolExecutor(len(nodes)) as pool:
        while True:
            ticks = list(pool.map(lambda node: node.engine.tick(now_ms, AT - 60_000), nodes))
            began = [(node, one) for node, tick in zip(nodes, ticks, strict=True) for one in launches(tick.orders)]
            found += began
            if not began and not any(tick.has_more for tick in ticks):
                return found


def held(store: PostgresStore, group: str) -> int:
    return store.view(lambda tx: len(Reading(tx).holders(group)))


def test_a_limit_holds_while_two_machines_start_and_end_at_once(nodes: list[RacingNode]) -> None:
    store = nodes[0].store
    apply(store, "three")
    for node in nodes:
        node.register(AT)
    running, done = tick_all(nodes, AT), 0

    def end(pair: tuple[RacingNode, Launch]) -> list[tuple[RacingNode, Launch]]:
        node, launch = pair
        update = node.engine.ended(launch.attempt, AttemptEnd(AttemptState.SUCCESS, exit_code=0), AT)
        orders = node.store.update(update, use_reserve=True, scope=scopes.of_jobs(launch.attempt.job))
        return [(node, one) for one in launches(orders)]

    with ThreadPoolExecutor(4) as pool:
        while running:
            assert len(running) == held(store, "three") <= 3
            done += len(running)
            running = [pair for started in pool.map(end, running) for pair in started] + tick_all(nodes, AT)
    assert done == JOBS
    assert broken(store) == []


def test_a_rate_holds_while_two_machines_start_at_once(nodes: list[RacingNode]) -> None:
    store = nodes[0].store
    apply(store, "slow")
    for node in nodes:
        node.register(AT)
    started = [len(tick_all(nodes, AT + seconds * 1000)) for seconds in (0, 1, 59, 60, 119, 120)]
    assert started == [2, 0, 0, 2, 0, 2]
    waiting = store.view(lambda tx: Reading(tx).queued(limit=100))
    assert {(one.state, one.lines) for one in waiting} == {(OccurrenceState.QUEUED, ("slow",))}
    assert len(waiting) == JOBS - 6


def test_a_tick_of_jobs_without_groups_does_not_wait_for_those_with(nodes: list[RacingNode]) -> None:
    """Only who decides about a group has the store to itself."""
    store = nodes[0].store
    plain = [Job(id=f"plain-{n}", schedule="0 * * * *", tasks=(Task(name="main", run="true"),)) for n in range(4)]
    apply_jobs(store, plain, AT - 1000)
    for node in nodes:
        node.register(AT)
    before = store.run_again
    assert len(tick_all(nodes, AT)) == 4
    assert store.run_again == before
