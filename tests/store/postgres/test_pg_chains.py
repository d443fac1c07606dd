"""Jobs that follow others where machines share a store: an end locks what it decides, and no child is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage.records import Reading
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.racing import RacingNode

AT = 1_798_761_600_000
Two = tuple[PostgresStore, PostgresStore]


def job(name: str, schedule: str = "", after: tuple[str, ...] = ()) -> Job:
    return Job(id=name, schedule=schedule, after=after, tasks=(Task(name="main", run="true"),))


@pytest.fixture
def two(emptied_url: str) -> Iterator[Two]:
    jobs = [
        job("a", "0 * * * *"),
        job("b", "0 * * * *"),
        job("both", after=("a", "b")),
        job("aa", "0 * * * *", ("b",)),
    ]
    with PostgresStore.open(emptied_url) as one, PostgresStore.open(emptied_url) as other:
        apply_jobs(one, jobs, AT - 1000)
        yield one, other


def nodes(two: Two) -> list[RacingNode]:
    made = [RacingNode(store, f"node-{number}", 10) for number, store in enumerate(two)]
    for node in made:
        node.register(AT)
    return made


def begin(node: RacingNode, at: int) -> dict[str, Launch]:
    orders = node.engine.tick(at, AT - 1000).orders
    return {order.job.id: order for order in orders if isinstance(order, Launch)}


def test_two_parents_that_end_on_two_machines_have_one_child(two: Two) -> None:
    first, second = nodes(two)
    begun = {**begin(first, AT), **begin(second, AT)}
    assert set(begun) == {"a", "b"}
    waiting = two[0].view(lambda tx: Reading(tx).occurrence("aa", AT))
    assert waiting is not None
    assert (waiting.state, waiting.waits_for) == (OccurrenceState.QUEUED, ("b",))
    owner = {node.engine.node: node for node in (first, second)}
    for name in "ab":
        node = owner[begun[name].attempt.owner]
        node.engine.store.update(node.engine.ended(begun[name].attempt, AttemptEnd(AttemptState.SUCCESS), AT + 5))
    (child,) = two[1].view(lambda tx: Reading(tx).occurrences("both"))
    assert child.parents == {"a": AT, "b": AT}
    started = {**begin(second, AT + 6), **begin(first, AT + 6)}
    assert set(started) == {"both", "aa"}


def test_who_follows_a_job_is_known_with_the_job_itself(two: Two) -> None:
    """The index entries of followers are found by their parent, so that an end asks for them with its own records."""
    assert two[0].view(lambda tx: Reading(tx).children("a")) == ["both"]
    assert two[0].view(lambda tx: Reading(tx).children("b")) == ["aa", "both"]
