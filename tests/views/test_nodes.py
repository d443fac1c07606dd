"""The schedulers of a store: which live, which hang, which are gone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.membership import LEASE_MS
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Records
from chronex.views.nodes import (
    SILENT_AFTER_MS,
    NodeConcern,
    NodeHealth,
    NodeRow,
    called,
    concern_words,
    concerns_of,
    nodes_of,
    owner_facts,
)
from chronex.views.status import store_status
from tests.kit.machine import FIRST, START, SteppedEngine

NOW = START + 3_600_000


@pytest.mark.parametrize(
    ("pid", "seen_ms", "stopped_ms", "state"),
    [
        (7, NOW - 30_000, None, NodeHealth.ALIVE),
        (7, NOW - SILENT_AFTER_MS - 1, None, NodeHealth.SILENT),
        (8, NOW - 30_000, None, NodeHealth.DEAD),
        (7, NOW - 30_000, NOW, NodeHealth.STOPPED),
        (8, NOW - 30_000, NOW, NodeHealth.STOPPED),
        (7, NOW + 60_000, None, NodeHealth.ALIVE),  # the clock was set back
    ],
)
def test_how_a_scheduler_is(pid: int, seen_ms: int, stopped_ms: int | None, state: NodeHealth) -> None:
    machine = SteppedEngine()
    node = Node(
        id="node-7", process=ProcessIdentity(pid, "boot", 1), started_ms=START, seen_ms=seen_ms, stopped_ms=stopped_ms
    )
    machine.store.update(lambda tx: Records(tx, NOW).put(node))
    rows = machine.read(lambda reading: nodes_of(reading, NOW, lambda process: process.pid == 7))
    (row,) = (row for row in rows if row.node.id == "node-7")
    assert (row.state, row.silent_ms) == (state, max(0, NOW - seen_ms))
    assert row.is_alive == (state in ("alive", "silent"))


def test_the_living_come_first_and_each_tells_how_much_it_runs() -> None:
    machine = SteppedEngine()
    machine.tick(FIRST)
    machine.boot("node-2")
    rows = machine.read(lambda reading: nodes_of(reading, NOW, lambda process: process.pid == 2))
    assert [(row.node.id, row.is_alive, row.running) for row in rows] == [("node-2", True, 0), ("node-1", False, 1)]


def test_who_ran_it_is_known_as_long_as_its_node_is() -> None:
    machine = SteppedEngine()
    assert machine.read(lambda reading: owner_facts(reading, "node-1")) == {"id": "node-1", "host": None, "pid": 1}
    assert machine.read(lambda reading: owner_facts(reading, "node-9")) == {"id": "node-9", "host": None, "pid": None}
    assert machine.read(lambda reading: owner_facts(reading, "")) is None


@pytest.mark.parametrize(
    ("silent_ms", "runs", "needs_attention"), [(30_000, True, 0), (3_600_000, True, 1), (3_600_000, False, 0)]
)
def test_a_scheduler_that_hangs_while_it_runs_something_needs_attention(
    silent_ms: int, runs: bool, needs_attention: int
) -> None:
    """Without a timeout nothing ends what it runs, however long that takes."""
    machine = SteppedEngine()
    if runs:
        machine.tick(FIRST)
    node = Node(id="node-1", process=ProcessIdentity(1, "boot", 1), started_ms=START, seen_ms=NOW - silent_ms)
    machine.store.update(lambda tx: Records(tx, NOW).put(node))
    found = machine.read(lambda reading: store_status(reading, NOW, lambda process: True)).attention()
    assert sum("has given no heartbeat for 1h" in sentence for sentence in found) == needs_attention


def shared(number: int, **changes: Any) -> Node:
    """A node of a store that machines share, heard a second ago."""
    node = Node(
        id=f"node-{number}", process=ProcessIdentity(number, f"boot-{number}", 1), host=f"db-{number}",
        host_id=f"host-{number}", name=f"db-{number}", lease_ms=LEASE_MS, started_ms=START, seen_ms=NOW - 1_000,
        chronex="1.2.0", tzdata="2025b", clock_ahead_ms=3, clock_within_ms=2,
    )  # fmt: skip
    return replace(node, **changes)


@pytest.mark.parametrize(
    ("changes", "concern", "words"),
    [
        ({}, None, ""),
        ({"seen_ms": NOW - 8_000}, NodeConcern.LATE, "has not been heard for 8.0s"),
        ({"clock_ahead_ms": 101}, NodeConcern.CLOCK_OFF, "a clock 101 ms ahead of the database's"),
        ({"clock_ahead_ms": -3_600_000}, NodeConcern.CLOCK_OFF, "a clock 1h behind the database's"),
        ({"clock_ahead_ms": 100, "clock_within_ms": 100}, None, ""),
        ({"clock_within_ms": 140}, NodeConcern.CLOCK_UNSURE, "only within 140 ms"),
        ({"tzdata": "2024a"}, NodeConcern.OLD_ZONE_DATA, "has zone data 2024a"),
        ({"tzdata": ""}, None, ""),
        ({"chronex": "1.1.9"}, NodeConcern.OLD_VERSION, "runs chronex 1.1.9"),
        ({"chronex": "1.10.0"}, None, ""),
        ({"lost_ms": NOW - 500}, NodeConcern.GIVEN_UP, "was given up"),
        ({"lost_ms": NOW - 500, "refused_ms": NOW}, NodeConcern.REFUSED, "came back and was refused"),
        ({"lease_ms": 0, "clock_ahead_ms": 5_000}, None, ""),
    ],
)
def test_what_is_odd_about_a_node_of_a_shared_store(
    changes: dict[str, Any], concern: NodeConcern | None, words: str
) -> None:
    node, other = shared(1, **changes), shared(2)
    assert concerns_of(node, [node, other], NOW) == (() if concern is None else (concern,))
    if concern is not None:
        assert words in concern_words(NodeRow(node, NodeHealth.ALIVE, NOW - node.seen_ms, 0), concern)


def of_nodes(*nodes: Node) -> SteppedEngine:
    machine = SteppedEngine()
    for node in nodes:
        machine.store.update(lambda tx, node=node: Records(tx, NOW).put(node))  # type: ignore[misc]
    return machine


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ({"lost_ms": NOW - 60_000}, True),
        ({"lost_ms": NOW - 60_000, "stopped_ms": NOW - 1_000}, True),
        ({"lost_ms": NOW - 60_000, "stopped_ms": NOW - 1_000, "forgotten_ms": NOW - 1_000}, False),
        ({"lost_ms": NOW - 60_000, "host_id": "host-2"}, False),
        ({"lost_ms": NOW - 2 * 86_400_000}, False),
    ],
)
def test_a_machine_that_was_given_up_needs_attention_until_it_is_back_or_forgotten(
    lost: dict[str, Any], told: bool
) -> None:
    machine = of_nodes(shared(1, **lost), shared(2))
    status = machine.read(lambda reading: store_status(reading, NOW, lambda process: True))
    sentences = [one for one in status.attention() if "was given up; start it again" in one]
    assert sentences == (
        ["db-1 gave no sign of life and was given up; start it again, or: chronex nodes forget db-1"] if told else []
    )


def test_a_clock_that_is_off_is_told_and_each_node_says_what_it_runs() -> None:
    machine = of_nodes(shared(7, clock_ahead_ms=3_600_000))
    machine.tick(FIRST)
    status = machine.read(lambda reading: store_status(reading, NOW, lambda process: True))
    assert any(one.startswith("db-7 has a clock 1h ahead of the database's") for one in status.attention())
    (row,) = (row for row in status.nodes if row.node.id == "node-1")
    assert [(one.job, one.number) for one in row.work] == [("job", 1)]


@pytest.mark.parametrize(
    ("text", "means_it"),
    [("db-7", True), ("node-7", True), ("node-", False), ("node", False), ("db", False), ("elsewhere", True)],
)
def test_what_a_person_calls_a_node(text: str, means_it: bool) -> None:
    assert called(shared(7, host="elsewhere"), text) is means_it
