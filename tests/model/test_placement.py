"""On which nodes a job may run."""

from __future__ import annotations

import pytest

from chronex.model.job import Job, Task
from chronex.model.placement import describe_placement, fits


def job(nodes: tuple[str, ...] = (), labels: dict[str, str] | None = None) -> Job:
    run = (Task(name="one", run=("true",)),)
    return Job(id="job", schedule="* * * * *", tasks=run, nodes=nodes, node_labels=labels or {})


@pytest.mark.parametrize(
    ("nodes", "labels", "name", "own", "wanted"),
    [
        ((), {}, "web-1", {}, True),
        (("web-1",), {}, "web-1", {}, True),
        (("web-1",), {}, "web-10", {}, False),
        (("db-*",), {}, "db-2", {}, True),
        (("db-*",), {}, "web-1", {}, False),
        (("db-*", "!db-3"), {}, "db-3", {}, False),
        (("db-*", "!db-3"), {}, "db-2", {}, True),
        (("!db-*",), {}, "web-1", {}, True),
        (("!db-*",), {}, "db-1", {}, False),
        ((), {"zone": "eu"}, "web-1", {"zone": "eu", "disk": "ssd"}, True),
        ((), {"zone": "eu"}, "web-1", {"zone": "us"}, False),
        ((), {"zone": "eu"}, "web-1", {}, False),
        (("db-*",), {"zone": "eu"}, "db-1", {"zone": "us"}, False),
    ],
)
def test_where_a_job_may_run(
    nodes: tuple[str, ...], labels: dict[str, str], name: str, own: dict[str, str], wanted: bool
) -> None:
    assert fits(job(nodes, labels), name, own) is wanted


@pytest.mark.parametrize(
    ("nodes", "labels", "words"),
    [
        ((), {}, ""),
        (("db-*", "!db-3"), {}, "nodes db-*, !db-3"),
        ((), {"zone": "eu"}, "nodes with zone=eu"),
        (("db-*",), {"zone": "eu", "disk": "ssd"}, "nodes db-* with zone=eu, disk=ssd"),
    ],
)
def test_how_that_is_said(nodes: tuple[str, ...], labels: dict[str, str], words: str) -> None:
    assert describe_placement(job(nodes, labels)) == words
