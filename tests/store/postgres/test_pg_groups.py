"""Groups over machines that share a store: two engines decide at once, and no limit and no rate is exceeded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from random import Random
from threading import Event

import pytest

from chronex.engine.orders import AttemptEnd, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import Job, Task
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage import scopes
from chronex.storage.ports import HeldGroups, Transaction
from chronex.storage.records import Reading
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.racing import RacingNode
from tests.kit.waits import DEADLINE_S, until
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
    store = nodes[0].store
    plain = [Job(id=f"plain-{n}", schedule="0 * * * *", tasks=(Task(name="main", run="true"),)) for n in range(4)]
    apply_jobs(store, plain, AT - 1000)
    for node in nodes:
        node.register(AT)
    before = store.run_again
    assert len(tick_all(nodes, AT)) == 4
    assert store.run_again == before


# -- who waits for whom -----------------------------------------------------------------------------------------------


def in_groups(**groups: str) -> list[Job]:
    return [
        Job(id=name, schedule="0 * * * *", tasks=(Task(name="main", run="true"),), groups={group: 1})
        for name, group in groups.items()
    ]


@contextmanager
def held_elsewhere(store: PostgresStore, *groups: str) -> Iterator[None]:
    """Another node is in the middle of a decision about these groups."""
    begun, may_go = Event(), Event()

    def decide(tx: Transaction) -> None:
        assert isinstance(tx, HeldGroups)
        assert all(tx.holds_group(group) for group in groups)
        begun.set()
        assert may_go.wait(DEADLINE_S)

    scope = scopes.Scope(shared=frozenset(map(scopes.shared_group, groups)))
    with ThreadPoolExecutor(1) as pool:
        deciding = pool.submit(store.update, decide, scope=scope)
        try:
            assert begun.wait(DEADLINE_S)
            yield
        finally:
            may_go.set()
            deciding.result()


def test_jobs_of_different_groups_on_different_nodes_do_not_wait_for_each_other(nodes: list[RacingNode]) -> None:
    """Start, end and the next in line of one group go on while another node decides about another one."""
    one, other = nodes
    apply_jobs(
        one.store, in_groups(a="left", b="left"), AT - 1000,
        owns=JobSource("", groups=(GroupSettings("left", limit=1), GroupSettings("right", limit=1))),
    )  # fmt: skip
    one.register(AT)
    with held_elsewhere(other.store, "right"):
        (first,) = launches(one.engine.tick(AT, AT - 60_000).orders)
        end = one.engine.ended(first.attempt, AttemptEnd(AttemptState.SUCCESS, exit_code=0), AT)
        (second,) = launches(one.store.update(end, use_reserve=True, scope=scopes.of_jobs(first.attempt.job)))
    assert (first.attempt.job, second.attempt.job) == ("a", "b")
    assert one.store.run_again == 0, "all that the decisions needed was held from the beginning"


def test_a_decision_about_a_group_waits_for_who_decides_about_it(nodes: list[RacingNode]) -> None:
    one, other = nodes
    apply_jobs(
        one.store, in_groups(a="left"), AT - 1000, owns=JobSource("", groups=(GroupSettings("left", limit=1),))
    )
    one.register(AT)
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(1) as pool:
        with held_elsewhere(other.store, "left"):
            tick = pool.submit(one.engine.tick, AT, AT - 60_000)
            with one.store.reading_connection() as connection:
                until(lambda: connection.execute(waiting).fetchone() == (1,), "the tick waits")
            assert not tick.done()
        assert len(tick.result(DEADLINE_S).orders) == 1


def test_who_has_places_is_read_and_not_locked(nodes: list[RacingNode]) -> None:
    """The jobs that run in a group may be decided on while another job of the group is."""
    one, other = nodes
    apply_jobs(
        one.store, in_groups(a="two", b="two"), AT - 1000, owns=JobSource("", groups=(GroupSettings("two", limit=2),))
    )
    for node in nodes:
        node.register(AT)
    assert len(tick_all(nodes, AT)) == 2
    for job in ("a", "b"):
        scope = scopes.of_jobs(job)
        found = other.store.update(lambda tx: [one.job for one in Reading(tx).holders("two")], scope=scope)
        assert found == ["a", "b"]
    assert other.store.run_again == 0


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.torture) for n in range(1, 30))])
def test_four_nodes_exceed_no_limit_whatever_the_groups(emptied_url: str, seed: int) -> None:
    """Jobs in several groups with weights, four nodes that tick and end at once; every job runs in the end."""
    chance = Random(seed)
    groups = tuple(GroupSettings(f"g{n}", limit=chance.randint(2, 4)) for n in range(4))
    jobs = [
        Job(
            id=f"job-{n:02}", schedule="0 * * * *", tasks=(Task(name="main", run="true"),),
            groups={one.name: chance.randint(1, 2) for one in chance.sample(groups, chance.randint(1, 2))},
        )
        for n in range(12)
    ]  # fmt: skip
    limits = {one.name: one.limit or 0 for one in groups}
    with ExitStack() as stack:
        stores = [stack.enter_context(PostgresStore.open(emptied_url)) for _ in range(4)]
        made = [RacingNode(store, f"node-{n}", 3) for n, store in enumerate(stores)]
        apply_jobs(stores[0], jobs, AT - 1000, owns=JobSource("", groups=groups))
        for node in made:
            node.register(AT)
        ran = run_out(made, limits)
        assert sorted(ran) == [job.id for job in jobs]
        assert broken(stores[0]) == []


def run_out(nodes: list[RacingNode], limits: dict[str, int]) -> list[str]:
    """Let all of them start and end at once until nothing is left; what each group holds is looked at in between."""
    ran: list[str] = []

    def end(pair: tuple[RacingNode, Launch]) -> list[tuple[RacingNode, Launch]]:
        node, launch = pair
        update = node.engine.ended(launch.attempt, AttemptEnd(AttemptState.SUCCESS, exit_code=0), AT)
        orders = node.store.update(update, use_reserve=True, scope=scopes.of_jobs(launch.attempt.job))
        return [(node, one) for one in launches(orders)]

    running = tick_all(nodes, AT)
    with ThreadPoolExecutor(8) as pool:
        while running:
            for name, limit in limits.items():
                assert weight_held(nodes[0].store, name) <= limit
            ran += [launch.attempt.job for _, launch in running]
            running = [pair for started in pool.map(end, running) for pair in started] + tick_all(nodes, AT)
    return ran


def weight_held(store: PostgresStore, group: str) -> int:
    return store.view(lambda tx: sum(one.groups[group] for one in Reading(tx).holders(group)))
