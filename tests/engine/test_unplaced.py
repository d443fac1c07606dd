"""Jobs that no node of a shared store can run: they wait with the reason, start when a node comes, or are missed."""

from __future__ import annotations

from typing import Any

import pytest

from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy
from chronex.model.reasons import ReasonCode, text_of
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading
from chronex.views.why import Cause, why
from tests.kit.cluster import Cluster
from tests.kit.machine import START
from tests.verify.assertion import broken

MINUTE = 60_000
PLAIN = Task(name="main", run=("true",))
SECRET = Task(name="main", run=("true",), secrets=("TOKEN",))


def cluster_of(task: Task = PLAIN, machines: int = 2, **keys: Any) -> Cluster:
    job = Job(id="job", schedule="*/5 * * * *", tasks=(task,), **keys)
    return Cluster([job], machines, 5, START, {"job": 2_000})


def history(cluster: Cluster) -> list[Occurrence]:
    return list(reversed(cluster.store.view(lambda tx: Reading(tx).occurrences("job"))))


@pytest.mark.parametrize(
    ("keys", "task", "words"),
    [
        ({"nodes": ("db-*",)}, PLAIN, "no node that works here can run it: nodes db-*"),
        ({"node_labels": {"disk": "ssd"}}, PLAIN, "no node that works here can run it: nodes with disk=ssd"),
        ({}, SECRET, "no node that works here can run it: no node here has the secret env:TOKEN"),
    ],
)
def test_what_no_node_can_run_is_queued_with_what_is_missing(keys: dict[str, Any], task: Task, words: str) -> None:
    cluster = cluster_of(task, **keys)
    cluster.run(6 * MINUTE)
    (waits,) = history(cluster)
    assert (waits.state, waits.reason.code, text_of(waits.reason)) == (
        OccurrenceState.QUEUED, ReasonCode.NO_NODE, words,
    )  # fmt: skip
    answer = cluster.store.view(lambda tx: why(Reading(tx), "job", waits.nominal_ms, cluster.now))
    assert answer is not None
    assert (answer.cause, answer.summary) == (Cause.QUEUED, f"it waits in its job's queue: {words}")
    assert cluster.begun == []
    ahead = cluster.store.view(lambda tx: why(Reading(tx), "job", waits.nominal_ms + 5 * MINUTE, cluster.now))
    assert ahead is not None
    assert ahead.cause is Cause.NO_NODE, "what lies ahead is not promised either"
    assert ahead.summary == f"it will wait for a node: {waits.reason.detail}"


def test_it_starts_when_a_node_comes_that_can_run_it() -> None:
    cluster = cluster_of(SECRET)
    cluster.run(6 * MINUTE)
    cluster.machines[1].secrets.add("env:TOKEN")
    cluster.run(MINUTE)
    assert [one.host for one in cluster.begun] == [cluster.machines[1].name]
    assert [one.state for one in history(cluster)] == [OccurrenceState.COMPLETED]
    assert broken(cluster.store) == []


def test_without_a_bound_it_waits_until_the_next_instant_and_is_missed() -> None:
    cluster = cluster_of(nodes=("nowhere",))
    cluster.run(16 * MINUTE)
    assert [(one.state, one.reason.code) for one in history(cluster)] == [
        (OccurrenceState.MISSED, ReasonCode.NO_NODE),
        (OccurrenceState.MISSED, ReasonCode.NO_NODE),
        (OccurrenceState.QUEUED, ReasonCode.NO_NODE),
    ]
    first = history(cluster)[0]
    assert first.finished_ms == first.nominal_ms + 5 * MINUTE
    answer = cluster.store.view(lambda tx: why(Reading(tx), "job", first.nominal_ms, cluster.now))
    assert answer is not None
    assert answer.cause is Cause.NO_NODE
    assert broken(cluster.store) == []


@pytest.mark.parametrize(
    ("overlap", "states"),
    [
        (OverlapPolicy.SKIP, ["queued", "skipped"]),
        (OverlapPolicy.QUEUE, ["queued", "queued"]),
        (OverlapPolicy.QUEUE_ONE, ["queued", "skipped"]),
    ],
)
def test_with_a_longer_bound_the_overlap_policy_decides_about_the_next_ones(
    overlap: OverlapPolicy, states: list[str]
) -> None:
    cluster = cluster_of(nodes=("nowhere",), wait_for_node_ms=12 * MINUTE, overlap=overlap)
    cluster.run(11 * MINUTE)
    assert [one.state.value for one in history(cluster)] == states
    cluster.run(8 * MINUTE)
    assert history(cluster)[0].state is OccurrenceState.MISSED
    assert broken(cluster.store) == []


def test_a_shorter_bound_ends_the_wait_before_the_next_instant() -> None:
    cluster = cluster_of(nodes=("nowhere",), wait_for_node_ms=MINUTE)
    cluster.run(7 * MINUTE)
    (missed,) = history(cluster)
    assert missed.state is OccurrenceState.MISSED
    assert missed.finished_ms is not None
    assert MINUTE <= missed.finished_ms - missed.nominal_ms <= MINUTE + 2_000


def test_a_node_that_drains_will_be_back_so_nothing_is_missed_for_its_sake() -> None:
    cluster = cluster_of(nodes=("host-1",), recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_LAST))
    cluster.drain("host-1")
    cluster.run(6 * MINUTE)
    assert history(cluster) == []
    cluster.drain("host-1", draining=False)
    cluster.run(MINUTE)
    assert [one.host for one in cluster.begun] == ["host-1"]


def test_a_node_without_the_secret_leaves_the_job_to_one_that_has_it() -> None:
    cluster = cluster_of(SECRET, machines=3)
    cluster.machines[2].secrets.add("env:TOKEN")
    cluster.run(31 * MINUTE)
    assert {one.host for one in cluster.begun} == {"host-2"}
    assert {one.state for one in history(cluster)} == {OccurrenceState.COMPLETED}
    assert len(history(cluster)) == 6
    lacking = cluster.store.view(lambda tx: {node.name: node.lacking_secrets for node in Reading(tx).nodes()})
    assert lacking == {"host-0": ("env:TOKEN",), "host-1": ("env:TOKEN",), "host-2": ()}
