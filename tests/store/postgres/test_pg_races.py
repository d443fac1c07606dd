"""Engines of four processes race for one shared store, beside people who give commands: every instant once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from chronex.engine.commands import trigger
from chronex.engine.commands.actor import Actor
from chronex.engine.commands.control import pause, resume
from chronex.engine.update import apply_jobs
from chronex.errors import ChronexError, StoreBusyError
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy, RetryPolicy
from chronex.storage import journal, scopes
from chronex.storage.records import Reading, Records
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.racing import Racers, RacingNode, RacingThreads
from tests.verify.assertion import assert_verified

AT = 1_798_761_600_000
MINUTE = 60_000
STEP = 600  # so that nodes with a full pool have their turn, and retries
_OVERLAPS = (OverlapPolicy.SKIP, OverlapPolicy.QUEUE, OverlapPolicy.ALLOW, OverlapPolicy.CANCEL_RUNNING)


def jobs_due_each_minute(count: int) -> list[Job]:
    return [
        Job(
            id=f"job-{number:04}", schedule="* * * * *", overlap=_OVERLAPS[number % 4],
            retry=RetryPolicy(max=1, interval_ms=1000),
            tasks=(Task(name="main", run="true"), Task(name="then", run="true")),
        )
        for number in range(count)
    ]  # fmt: skip


def race(
    url: str,
    jobs: list[Job],
    instants: int,
    slots: int,
    *,
    seed: int = 0,
    make: Callable[[str, int, int], Racers | RacingThreads] = RacingThreads,
) -> Counter[str]:
    """How many attempts each node launched; that every instant was decided once is asserted."""
    with PostgresStore.open(url) as store:
        apply_jobs(store, jobs, AT - 1000)
        racers = make(url, 4, slots)
        shares: Counter[str] = Counter()
        launched: Counter[str] = Counter()
        for number in range(instants):
            now = AT + number * MINUTE
            people = threading.Thread(target=_command, args=(store, jobs, now, Random(seed + number)))
            people.start()
            for later in range(0, 4 * STEP, STEP):
                for place, some in enumerate(racers.at(now + later)):
                    shares[f"node-{place}"] += len(some)
                    launched.update(some)
                if later == 0:
                    people.join()
        racers.close()
        assert racers.run_again == 0, "a scope was too small"
        assert set(launched.values()) == {1}, "an attempt was handed out twice"
        wanted = {AT + number * MINUTE for number in range(instants)}
        for job in jobs:
            found = store.view(lambda tx, name=job.id: Reading(tx).occurrences(name))  # type: ignore[misc]
            assert {one.nominal_ms for one in found if not one.manual} == wanted, "an instant was lost"
        assert_verified(store)
    return shares


def _command(store: PostgresStore, jobs: list[Job], now: int, random: Random) -> None:
    """What people do meanwhile: trigger, pause, resume, and apply the same jobs again."""
    actor = Actor("somebody", "cli", "here")
    for _ in range(10):
        name = random.choice(jobs).id
        scope = scopes.of_jobs(name)
        if random.random() < 0.2:
            apply_jobs(store, jobs, now)
            continue
        try:
            store.update(lambda tx, name=name: trigger(Records(tx, now), name, actor), scope=scope)  # type: ignore[misc]
            store.update(lambda tx, name=name: pause(Records(tx, now), name, actor), scope=scope)  # type: ignore[misc]
            store.update(lambda tx, name=name: resume(Records(tx, now), name, actor), scope=scope)  # type: ignore[misc]
        except ChronexError:
            pass  # it was paused already


def test_four_nodes_share_what_is_due_and_decide_every_instant_once(postgres_url: str) -> None:
    shares = race(postgres_url, jobs_due_each_minute(24), instants=2, slots=8)
    assert len(shares) == 4


@pytest.mark.parametrize("slots", [1, 3])
def test_four_nodes_race_for_the_queue_of_one_job(postgres_url: str, slots: int) -> None:
    race(postgres_url, jobs_due_each_minute(2), instants=2, slots=slots)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(20))
def test_four_nodes_race_for_many_jobs(postgres_url: str, seed: int) -> None:
    shares = race(postgres_url, jobs_due_each_minute(300), instants=6, slots=50, seed=seed, make=Racers)
    fair = sum(shares.values()) / 4
    assert all(0.5 * fair < share < 1.5 * fair for share in shares.values()), shares


def test_nothing_is_decided_by_a_time_that_the_database_does_not_have_any_more(postgres_url: str) -> None:
    """Its clock was set back, which another node has found first: by the old time all of the jobs would be due."""
    with PostgresStore.open(postgres_url) as store:
        apply_jobs(store, jobs_due_each_minute(2), store.now())
        node = RacingNode(store, "node-1", 5)
        node.register(store.now())
        boot_ms = store.clock().boottime_ms()
        store._clock.learn(store.now() + 600_000, boot_ms, boot_ms)  # what it was a moment ago
        decided_ms = store.now()
        before = store.view(journal.tail)
        with pytest.raises(StoreBusyError, match="was set meanwhile"):
            node.engine.tick(decided_ms, decided_ms - 1000)
        assert store.view(journal.tail) == before
        assert node.engine.tick(store.now(), store.now()).orders == ()
