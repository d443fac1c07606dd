"""The schedulers of a store: which live, which hang, which are gone."""

from __future__ import annotations

import pytest

from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Records
from chronex.views.nodes import SILENT_AFTER_MS, NodeHealth, nodes_of, owner_facts
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
