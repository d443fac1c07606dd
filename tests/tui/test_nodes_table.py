"""The nodes of a store in words: who runs what, who is late, who was fenced, who drains."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.views.nodes import NodeConcern, NodeHealth, NodeRow, NodeWork
from chronex_tui.app import StartOptions
from chronex_tui.model.display import UNICODE, DisplaySettings
from chronex_tui.model.layout import plain
from chronex_tui.model.nodes_table import NodesTable, no_nodes, node_lines
from tests.tui.driving import app_on, driven
from tests.tui.examples import HOME, MINUTE, NOW

DISPLAY = DisplaySettings(NOW, UNICODE, HOME)
PROCESS = ProcessIdentity(4711, "boot", 1)


def item(state: NodeHealth, *work: NodeWork, concerns: tuple[NodeConcern, ...] = (), **facts: object) -> NodeRow:
    known = {
        "host": "db-2",
        "places": 50,
        "started_ms": NOW - 60 * MINUTE,
        "seen_ms": NOW - 2000,
        "chronex": "1.0",
    } | facts
    node = Node(id="node-7", process=PROCESS, **known)  # type: ignore[arg-type]
    return NodeRow(node, state, NOW - node.seen_ms, len(work), work, concerns)


RUNNING = NodeWork("etl", NOW, "load", 2, NOW - MINUTE)

ROWS = [
    (item(NodeHealth.ALIVE, RUNNING), "● alive", "1 of 50", "2.0s ago", "works on this store"),
    (item(NodeHealth.ALIVE, concerns=(NodeConcern.LATE,), seen_ms=NOW - 4000, lease_ms=17_000), "↻ late", "0 of 50",
     "4.0s ago", "late: no heartbeat for 4.0s"),
    (item(NodeHealth.SILENT, RUNNING, seen_ms=NOW - 3 * MINUTE, lease_ms=17_000), "↻ late", "1 of 50", "3m00s ago",
     "late: no heartbeat for 3m00s; it hangs, or is cut off; when it stays silent, others take over what it runs"),
    (item(NodeHealth.DRAINING, draining=True, drained_by="maria"), "‖ draining", "0 of 50", "2.0s ago",
     "drains: it begins nothing more (asked by maria); what runs here goes on to its end"),
    (item(NodeHealth.LOST, lost_ms=NOW - MINUTE), "✖ fenced", "0", "fenced 14:55:04",
     "fenced since Sun 15 Nov 14:55:04 CET: it was silent, others gave it up, and it may change nothing any more"),
    (item(NodeHealth.DEAD), "✖ dead", "0", "2.0s ago", "died: its process is gone, and it did not say that it stops"),
    (item(NodeHealth.STOPPED, stopped_ms=NOW - MINUTE, stop_mode="drain", stop_by="maria"), "◼ stopped", "0",
     "stopped 14:55:04", "stopped in good order Sun 15 Nov 14:55:04 CET, asked to drain by maria"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "state", "runs", "beat", "sentence"), ROWS, ids=[f"{row[0].state}-{row[1]}" for row in ROWS]
)
def test_a_node_says_how_it_is(node: NodeRow, state: str, runs: str, beat: str, sentence: str) -> None:
    line = plain([NodesTable([node], DISPLAY).line(0, 118, "…")])
    assert line.startswith(state)
    assert f" {runs}  " in line
    assert beat in line
    told = " ".join(plain(node_lines(node, DISPLAY, 60)).split())
    assert sentence in told


def test_a_node_lists_what_it_runs_and_since_when() -> None:
    told = plain(node_lines(item(NodeHealth.ALIVE, RUNNING), DISPLAY, 60))
    assert "runs   etl load  1:00  since 14:55:04, try 2" in told
    assert "runs   nothing now" in plain(node_lines(item(NodeHealth.ALIVE), DISPLAY, 60))


@pytest.mark.parametrize("state", [NodeHealth.STOPPED, NodeHealth.DEAD, NodeHealth.LOST])
def test_of_what_a_node_began_that_is_gone_no_time_is_counted(state: NodeHealth) -> None:
    told = plain(node_lines(item(state, RUNNING), DISPLAY, 60))
    assert "began  etl load  outcome unknown  since 14:55:04, try 2" in told


def test_labels_and_lease_are_shown_where_machines_share_the_store() -> None:
    told = plain(node_lines(item(NodeHealth.ALIVE, labels={"disk": "ssd"}, lease_ms=17_000, epoch=3), DISPLAY, 60))
    assert "labels disk=ssd" in told
    assert "epoch  3" in told
    assert "lease" not in plain(node_lines(item(NodeHealth.ALIVE), DISPLAY, 60))


def test_hostile_names_are_shown_inert() -> None:
    told = plain([NodesTable([item(NodeHealth.ALIVE, host="a\x1b[2Jb")], DISPLAY).line(0, 118, "…")])
    assert "\x1b" not in told


def test_without_nodes_it_says_how_to_start_one() -> None:
    assert "chronex run --headless" in plain(no_nodes(is_daemon_expected=True, command="chronex run --headless"))


async def test_the_screen_of_nodes_asks_before_it_drains_and_tells_why_not(
    example_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, told = app_on(example_store, StartOptions(screen="nodes")), list[str]()
    monkeypatch.setattr(app, "notify", lambda text, **_: told.append(text))
    async with driven(app, (80, 24)) as driver:
        await driver.until(lambda frame: "● alive" in frame and "node-1" in frame)
        frame = await driver.press("D")
        assert "Let node-1 begin nothing more?" in frame
        assert "chronex nodes drain node-1" in frame
        await driver.press("y")
        await driver.until(lambda _: told)
        assert told == ["node-1 has its store to itself; to let it end what runs: chronex stop --drain"]
