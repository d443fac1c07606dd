"""`chronex stop` and `restart` where machines share a store: they speak of the daemon of this machine alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.cli.commands.stop import follows, running_with
from chronex.engine.membership import LEASE_MS
from chronex.model.job import Job, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Reading
from tests.kit.cluster import Cluster
from tests.kit.machine import START

ASKED = 5_000
BEFORE = Node(id="node-1", process=ProcessIdentity(1, "boot", 1), host_id="here", lease_ms=LEASE_MS, started_ms=1_000)


@pytest.mark.parametrize(
    ("changes", "is_successor"),
    [
        ({"started_ms": 5_001}, True),
        ({"started_ms": 5_001, "host_id": "elsewhere"}, False),
        ({"started_ms": 4_000}, False),
        ({"started_ms": 5_001, "stopped_ms": 6_000}, False),
        ({"id": "node-1", "started_ms": 5_001}, False),
    ],
)
def test_a_restart_is_answered_by_the_successor_here_and_by_no_other_node(
    changes: dict[str, Any], is_successor: bool
) -> None:
    node = replace(BEFORE, **{"id": "node-2", **changes})
    assert follows(node, BEFORE, ASKED) is is_successor


def test_what_runs_on_other_machines_is_not_told_as_left_here() -> None:
    jobs = [
        Job(id=f"on-{host}", schedule="@every 10s", tasks=(Task(name="main", run=("true",)),), nodes=(host,))
        for host in ("host-0", "host-1")
    ]
    cluster = Cluster(jobs, 2, 3, START, {job.id: 60_000 for job in jobs})
    cluster.random.seed(1)
    cluster.run(13_000)
    here = cluster.machines[0].node
    assert here is not None
    running = cluster.store.view(lambda tx: {one.job for one in Reading(tx).active_attempts()})
    assert running == {"on-host-0", "on-host-1"}
    assert cluster.store.view(lambda tx: running_with(Reading(tx), here)) == ["on-host-0"]
