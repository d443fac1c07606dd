"""What a daemon finds in the store when it writes its own record for the first time."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from chronex.daemon.registration import Registration, watched_since
from chronex.engine.commands.nodes import RESTART, drain_node
from chronex.engine.membership import LEASE_MS
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Reading, Records
from chronex.testing import FakeClock
from chronex_store import MemoryStore
from tests.kit.machine import ANN, START

HERE = Node(
    id="first", process=ProcessIdentity(1, "boot", 1), host_id="machine", name="db-1", lease_ms=LEASE_MS,
    started_ms=START, seen_ms=START,
)  # fmt: skip


async def begun(store: MemoryStore, node: Node) -> Node:
    await Registration(store, node, FakeClock(START), lambda node: node).put(node)
    found = store.view(lambda tx: Reading(tx).node(node.id))
    assert found is not None
    return found


async def drained(store: MemoryStore) -> None:
    await begun(store, HERE)
    store.update(lambda tx: drain_node(Records(tx, START), "first", ANN, draining=True))


async def test_a_node_that_was_drained_stays_so_over_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    """Else the machine that was to be left alone begins work when it is started again."""
    caplog.set_level(logging.INFO)
    store = MemoryStore()
    await drained(store)
    second = await begun(store, replace(HERE, id="second", started_ms=START + 1))
    assert (second.draining, second.drained_by) == (True, str(ANN))
    (told,) = (record.fields for record in caplog.records if record.message == "drained")  # type: ignore[attr-defined]
    assert told == {"node": "second", "so": "begins nothing until: chronex nodes undrain db-1"}
    third = await begun(store, replace(HERE, id="third", started_ms=START + 2))
    assert third.draining
    store.update(lambda tx: drain_node(Records(tx, START), "third", ANN, draining=False))
    assert not (await begun(store, replace(HERE, id="fourth", started_ms=START + 3))).draining


@pytest.mark.parametrize("other", [{"host_id": "another"}, {"name": "db-2"}], ids=["machine", "name"])
async def test_a_drain_is_that_of_one_machine_and_name(other: dict[str, str]) -> None:
    store = MemoryStore()
    await drained(store)
    assert not (await begun(store, replace(HERE, id="second", **other))).draining


async def test_one_that_was_forgotten_and_comes_back_begins_anew() -> None:
    store = MemoryStore()
    await drained(store)
    found = store.view(lambda tx: Reading(tx).node("first"))
    assert found is not None
    store.update(lambda tx: Records(tx, START).put(replace(found, forgotten_ms=START, stopped_ms=START)))
    assert not (await begun(store, replace(HERE, id="second", started_ms=START + 1))).draining


# A daemon that was asked for a restart 800 ms ago, and that has been awake for an hour.
BEFORE = replace(HERE, stop_mode=RESTART, stop_asked_ms=START - 800, awake_since_ms=START - 3_600_000)
# In the same process and begun 10 s ago: the restart before that one.
EARLIER = replace(BEFORE, id="earlier", stop_asked_ms=START - 10_000, awake_since_ms=START - 7_200_000)


@pytest.mark.parametrize(
    ("nodes", "since_ms"),
    [
        pytest.param([BEFORE], START - 3_600_000, id="as its predecessor"),
        pytest.param([EARLIER, BEFORE], START - 3_600_000, id="as the last of its predecessors"),
        pytest.param([], START, id="the first of all"),
        pytest.param([replace(BEFORE, stop_mode="leave")], START, id="it was stopped, and begun later"),
        pytest.param([replace(BEFORE, process=ProcessIdentity(2, "boot", 1))], START, id="of another process"),
        pytest.param([replace(BEFORE, stop_asked_ms=START - 61_000)], START, id="over a minute is a downtime"),
        pytest.param([replace(BEFORE, stop_asked_ms=START + 1)], START, id="the clock was set back meanwhile"),
        pytest.param([replace(BEFORE, awake_since_ms=None)], START, id="a version that did not say it"),
    ],
)
def test_a_restart_goes_on_watching_the_clock(nodes: list[Node], since_ms: int) -> None:
    """A machine so busy that an instant was not decided for seconds before the restart has missed nothing."""
    assert watched_since(nodes, replace(HERE, id="second"), START) == since_ms
