"""What a person may ask of the nodes of a shared store."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.engine.commands.nodes import drain_node, forget_node
from chronex.engine.membership import LEASE_MS
from chronex.engine.orders import Launch
from chronex.errors import NotPossibleError
from chronex.model.job import Job, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Reading, Records
from chronex_store import MemoryStore
from tests.engine.test_cluster import one_long_command
from tests.kit.cluster import Cluster
from tests.kit.machine import ANN, START

MINUTE = 60_000
NOW = START + MINUTE


def store_with(*nodes: Node) -> MemoryStore:
    store = MemoryStore()
    for node in nodes:
        store.update(lambda tx, node=node: Records(tx, NOW).put(node))  # type: ignore[misc]
    return store


def node(name: str, host: str = "db", seen: int = NOW, **more: object) -> Node:
    base = Node(
        id=name, process=ProcessIdentity(1, "boot", 1), host=host, host_id=host, lease_ms=LEASE_MS, seen_ms=seen
    )
    return replace(base, **more)


@pytest.mark.parametrize("name", ["node-1", "node-1"[:6], "db"], ids=["id", "its beginning", "host"])
def test_a_node_is_drained_by_any_name_that_is_its_own(name: str) -> None:
    store = store_with(node("node-1"), node("other", "elsewhere"))
    store.update(lambda tx: drain_node(Records(tx, NOW), name, ANN, draining=True))
    found = store.view(lambda tx: Reading(tx).node("node-1"))
    assert found is not None
    assert (found.draining, found.drained_by) == (True, str(ANN))
    store.update(lambda tx: drain_node(Records(tx, NOW), name, ANN, draining=False))
    found = store.view(lambda tx: Reading(tx).node("node-1"))
    assert found is not None
    assert (found.draining, found.drained_by) == (False, "")


def test_of_daemons_that_have_all_left_the_newest_of_the_machine_is_meant() -> None:
    """It is that one whose place the next daemon takes; its name would else be of no use to undrain it."""
    left = [node(f"node-{n}", started_ms=NOW + n % 3, stopped_ms=NOW + n) for n in range(4)]
    store = store_with(*left, node("elsewhere", "far", stopped_ms=NOW))
    assert store.update(lambda tx: drain_node(Records(tx, NOW), "db", ANN, draining=True)).id == "node-2"


@pytest.mark.parametrize(
    ("nodes", "name", "why"),
    [
        ([node("node-1")], "node-2", "no node is called node-2; did you mean node-1"),
        ([node("node-1"), node("node-2")], "node-", "could be node-1, node-2"),
        ([node("node-1", stopped_ms=NOW), node("node-2", "far", stopped_ms=NOW)], "node-", "could be node-1, node-2"),
        ([node("node-1", lease_ms=0)], "node-1", "has its store to itself"),
    ],
)
def test_what_cannot_be_drained_is_told(nodes: list[Node], name: str, why: str) -> None:
    with pytest.raises(NotPossibleError, match=why):
        store_with(*nodes).update(lambda tx: drain_node(Records(tx, NOW), name, ANN, draining=True))


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (node("node-1"), "lives"),
        (node("node-1", stopped_ms=NOW, lease_ms=0), "not counted on any more"),
        (node("node-1", stopped_ms=NOW, forgotten_ms=NOW), "not counted on any more"),
    ],
)
def test_only_a_node_that_is_silent_or_has_left_can_be_forgotten(one: Node, why: str) -> None:
    with pytest.raises(NotPossibleError, match=why):
        store_with(one).update(lambda tx: forget_node(Records(tx, NOW), "node-1", ANN))


def test_a_drained_node_begins_nothing_and_the_others_all() -> None:
    job = Job(id="job", schedule="@every 5s", tasks=(Task(name="one", run=("true",)),))
    cluster = Cluster([job], 2, 1, START, {"job": 1_000})
    cluster.run(MINUTE)
    drained, other = cluster.machines
    assert {one.host for one in cluster.begun} == {drained.name, other.name}
    assert drained.node is not None
    name = drained.node.id
    cluster.store.update(lambda tx: drain_node(Records(tx, cluster.now), name, ANN, draining=True))
    drained.node = replace(drained.node, draining=True)
    before = len(cluster.begun)
    cluster.run(MINUTE)
    assert {one.host for one in cluster.begun[before:]} == {other.name}
    assert len(cluster.begun) - before >= 10
    assert not any(isinstance(order, Launch) for order in drained.claimed)


def test_the_work_of_a_forgotten_node_need_not_wait() -> None:
    cluster, owner, other = one_long_command()
    assert owner.node is not None
    gone = owner.node.id
    owner.switch_off()
    cluster.run(MINUTE)
    assert len(cluster.begun) == 1
    cluster.store.update(lambda tx: forget_node(Records(tx, cluster.now), gone, ANN))
    cluster.run(MINUTE)
    assert [one.host for one in cluster.begun] == [owner.name, other.name]


def test_neither_need_that_of_one_that_left_in_good_order() -> None:
    """A machine that is taken out of service is stopped first: what it left running is not waited for."""
    cluster, owner, other = one_long_command()
    owner.leave()
    owner.switch_off()
    cluster.run(MINUTE)
    assert len(cluster.begun) == 1
    cluster.store.update(lambda tx: forget_node(Records(tx, cluster.now), owner.name, ANN))
    cluster.run(MINUTE)
    assert [one.host for one in cluster.begun] == [owner.name, other.name]
