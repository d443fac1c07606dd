"""`chronex nodes`, and the node that ran something in history, show and why."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from chronex.cli.commands.history import history
from chronex.cli.commands.nodes import nodes
from chronex.cli.commands.show import run_show
from chronex.cli.commands.status import run_status
from chronex.cli.commands.why import run_why
from chronex.clock import wall_ms
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.run import identity_of
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from chronex_store import LmdbStore
from tests.cli.past import Past


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store on which this process works, beside one that died and one that stopped."""
    past = Past(tmp_path_factory.mktemp("nodes") / "store")
    here = identity_of(os.getpid())
    assert here is not None
    gone, now = ProcessIdentity(2**22 + 1, "another-boot", 1), wall_ms()
    rows = [
        Node(id="node-1", process=here, host="desk", chronex="0.1", started_ms=past.now, seen_ms=now - 5_000),
        Node(id="node-2", process=here, host="desk", chronex="0.1", started_ms=past.now + 1, seen_ms=now - 3_600_000),
        Node(id="node-3", process=gone, host="desk", started_ms=past.now, seen_ms=past.now),
        Node(id="node-4", process=gone, host="desk", started_ms=past.now, seen_ms=past.now, stopped_ms=past.now + 5),
    ]
    with LmdbStore.open(past.place) as store:
        for row in rows:
            store.update(partial(put, row))
    return str(past.place)


def put(row: Node, tx: Transaction) -> None:
    Records(tx, row.started_ms).put(row)


def test_nodes_are_listed_with_process_host_version_and_heartbeat(worked: str, printed: Callable[..., str]) -> None:
    living = json.loads(printed(nodes, store=worked, form="json"))
    assert [(row["id"], row["state"], row["is_alive"]) for row in living] == [
        ("node-2", "silent", True), ("node-1", "alive", True),
    ]  # fmt: skip
    assert (living[1]["pid"], living[1]["host"], living[1]["version"]) == (os.getpid(), "desk", "0.1")
    assert living[1]["heartbeat_age_ms"] >= 5_000
    assert living[1]["running"] > 0
    every = json.loads(printed(nodes, every=True, store=worked, form="json"))
    assert {row["id"]: row["state"] for row in every} == {
        "node-1": "alive", "node-2": "silent", "node-3": "dead", "node-4": "stopped",
    }  # fmt: skip
    lines = printed(nodes, every=True, store=worked).splitlines()
    assert lines[0].split() == ["STATE", "NODE", "PID", "HOST", "VERSION", "STARTED", "HEARTBEAT", "RUNNING"]
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["silent", "node-2"], ["alive", "node-1"], ["dead", "node-3"], ["stopped", "node-4"],
    ]  # fmt: skip


def test_where_nodes_have_names_they_are_listed_with_them(tmp_path: Path, printed: Callable[..., str]) -> None:
    here = identity_of(os.getpid())
    assert here is not None
    named = Node(id="node-1", process=here, host="desk", name="db-2", started_ms=wall_ms(), seen_ms=wall_ms())
    plain = Node(id="node-2", process=here, host="desk", started_ms=wall_ms(), seen_ms=wall_ms())
    with LmdbStore.open(tmp_path / "store") as store:
        for row in (named, plain):
            store.update(partial(put, row))
    lines = printed(nodes, store=str(tmp_path / "store")).splitlines()
    assert lines[0].split()[:3] == ["STATE", "NAME", "NODE"]
    assert {tuple(line.split()[1:3]) for line in lines[1:3]} == {("db-2", "node-1"), ("-", "node-2")}


def test_status_tells_the_nodes_that_live(worked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_status(worked, "json", watch=False, check=False) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)["nodes"]] == ["node-2", "node-1"]
    assert run_status(worked, "text", watch=False, check=False) == 0
    text = capsys.readouterr().out
    assert f"  silent   node-2, pid {os.getpid()} on desk, heartbeat 1h" in text


def test_without_a_scheduler_it_says_so(tmp_path: Path, printed: Callable[..., str]) -> None:
    LmdbStore.open(tmp_path / "store").close()
    assert printed(nodes, store=str(tmp_path / "store")) == "no scheduler works on this store\n"


def test_history_show_and_why_name_the_node_that_ran_it(worked: str, printed: Callable[..., str]) -> None:
    rows = json.loads(printed(history, "hello", store=worked, form="json"))
    assert [(row["node"], row["attempts"][0]["node"]) for row in rows] == [("node-1", "node-1")] * 3
    plain = printed(history, "hello", store=worked).splitlines()
    wide = printed(history, "hello", store=worked, wide=True).splitlines()
    assert all(" hello node-1 " in line for line in wide)
    assert [line.replace(" node-1 ", " ") for line in wide] == plain
    text = printed(run_show, "hello", worked, "text")
    assert ", for " in text
    assert " on node-1" in text
    shown = json.loads(printed(run_show, "hello", worked, "json"))
    assert shown["running"][0]["attempts"][0]["node"] == "node-1"
    assert {one["node"] for one in shown["last"]} == {"node-1"}
    told = json.loads(printed(run_why, "hello", None, worked, "json"))["answers"][0]["names"]
    assert told["node"] == {"id": "node-1", "host": "desk", "pid": os.getpid()}
    assert f"  run by node-1 (pid {os.getpid()} on desk)" in printed(run_why, "hello", None, worked, "text")
