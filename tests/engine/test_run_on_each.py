"""`run_on = "each"`: one occurrence for every instant and every node that fits, each with a cursor of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from chronex.engine.commands import Actor, Triggered, TriggerRequest, pause, resume, trigger_all
from chronex.engine.commands.control import cancel_job
from chronex.engine.commands.nodes import forget_node
from chronex.engine.engine import Engine
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence, occurrence_id
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy, RunOn
from chronex.model.states import OccurrenceState
from chronex.storage.records import EVERYTHING, Reading, Records
from chronex.views.why import Cause, why
from chronex_store import MemoryStore
from tests.kit.cluster import Cluster, Machine
from tests.kit.machine import START
from tests.verify.assertion import broken

MINUTE = 60_000
ALL = RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL)


def each(**keys: Any) -> Job:
    keys = {"schedule": "*/5 * * * *", "recovery": ALL, **keys}
    return Job(id="backup", tasks=(Task(name="main", run=("true",)),), run_on=RunOn.EACH, **keys)


def cluster_of(machines: int = 3, **keys: Any) -> Cluster:
    return Cluster([each(**keys)], machines, 9, START, {f"backup:host-{number}": 2_000 for number in range(5)})


def names(cluster: Cluster) -> list[str]:
    return cluster.store.view(lambda tx: [job.id for job in Reading(tx).jobs()])


def instants(cluster: Cluster, job: str) -> list[int]:
    found = cluster.store.view(lambda tx: Reading(tx).occurrences(job, limit=EVERYTHING))
    return sorted((one.nominal_ms - START) // MINUTE for one in found if one.state is OccurrenceState.COMPLETED)


def test_every_fitting_node_runs_every_instant_once() -> None:
    cluster = cluster_of()
    cluster.run(16 * MINUTE)
    assert names(cluster) == ["backup", "backup:host-0", "backup:host-1", "backup:host-2"]
    assert Counter(one.host for one in cluster.begun) == {"host-0": 3, "host-1": 3, "host-2": 3}
    for number in range(3):
        assert instants(cluster, f"backup:host-{number}") == [5, 10, 15]
    assert instants(cluster, "backup") == []
    assert broken(cluster.store) == []


def test_the_id_of_an_occurrence_is_made_of_job_target_and_instant() -> None:
    cluster = cluster_of(1)
    cluster.run(6 * MINUTE)
    (found,) = cluster.store.view(lambda tx: Reading(tx).occurrences("backup:host-0"))
    assert found.id == occurrence_id("backup:host-0", START + 5 * MINUTE)
    assert found.id != occurrence_id("backup", START + 5 * MINUTE)


def test_only_nodes_that_fit_have_it() -> None:
    cluster = cluster_of(nodes=("host-*", "!host-1"))
    cluster.run(6 * MINUTE)
    assert names(cluster) == ["backup", "backup:host-0", "backup:host-2"]


def test_a_node_that_joins_later_does_not_redo_the_past() -> None:
    cluster = cluster_of(2)
    cluster.machines[1].kill()
    cluster.run(12 * MINUTE)
    assert names(cluster) == ["backup", "backup:host-0"]
    cluster.machines[1].boot()
    cluster.run(10 * MINUTE)
    assert instants(cluster, "backup:host-0") == [5, 10, 15, 20]
    assert instants(cluster, "backup:host-1") == [15, 20]
    assert broken(cluster.store) == []


def test_a_node_that_was_away_goes_by_its_recovery_and_nobody_else_runs_its_own() -> None:
    cluster = cluster_of(2)
    cluster.run(6 * MINUTE)
    cluster.machines[1].switch_off()
    cluster.run(20 * MINUTE)
    assert instants(cluster, "backup:host-1") == [5]
    cluster.heal()
    cluster.run(5 * MINUTE)
    assert instants(cluster, "backup:host-1") == [5, 10, 15, 20, 25, 30]
    assert {one.host for one in cluster.begun if one.attempt.job == "backup:host-1"} == {"host-1"}
    assert broken(cluster.store) == []


def test_an_edit_and_a_removal_reach_the_jobs_of_all_nodes() -> None:
    cluster = cluster_of(2)
    cluster.run(6 * MINUTE)
    apply_jobs(cluster.store, [each(schedule="*/3 * * * *")], cluster.now)
    cluster.run(7 * MINUTE)
    assert instants(cluster, "backup:host-0") == [5, 6, 9, 12] or instants(cluster, "backup:host-0") == [5, 9, 12]
    assert instants(cluster, "backup:host-0") == instants(cluster, "backup:host-1")
    assert apply_jobs(cluster.store, [each(schedule="*/3 * * * *")], cluster.now)[1].change.value == "preserved"
    apply_jobs(cluster.store, [], cluster.now)
    assert names(cluster) == []
    begun = len(cluster.begun)
    cluster.run(7 * MINUTE)
    assert len(cluster.begun) == begun
    assert broken(cluster.store) == []


def test_a_job_that_is_on_any_node_again_has_no_jobs_of_nodes() -> None:
    cluster = cluster_of(2)
    cluster.run(6 * MINUTE)
    plain = Job(id="backup", schedule="*/5 * * * *", tasks=each().tasks, recovery=ALL)
    apply_jobs(cluster.store, [plain], cluster.now)
    assert names(cluster) == ["backup"]
    cluster.run(10 * MINUTE)
    assert instants(cluster, "backup") == [10, 15]
    assert broken(cluster.store) == []


def test_a_node_that_is_forgotten_loses_its_job_at_the_next_instant() -> None:
    cluster = cluster_of(2)
    cluster.run(6 * MINUTE)
    cluster.machines[1].switch_off()
    cluster.run(MINUTE)
    person = Actor("alice", "cli", "desk")
    cluster.store.update(lambda tx: forget_node(Records(tx, cluster.now), "host-1", person))
    cluster.run(5 * MINUTE)
    assert names(cluster) == ["backup", "backup:host-0"]
    assert instants(cluster, "backup:host-1") == [5], "its history stays"


@pytest.mark.parametrize("ends", [Machine.kill, Machine.leave], ids=["killed", "stopped"])
def test_also_where_it_had_several_daemons_and_however_the_last_one_ended(ends: Callable[[Machine], None]) -> None:
    cluster = cluster_of(2)
    cluster.run(MINUTE)
    leaving = cluster.machines[1]
    for end in (Machine.leave, Machine.kill):
        end(leaving)
        leaving.boot()
        cluster.run(MINUTE)
    cluster.run(3 * MINUTE)
    ends(leaving)
    leaving.switch_off()
    cluster.run(MINUTE)
    person = Actor("alice", "cli", "desk")
    cluster.store.update(lambda tx: forget_node(Records(tx, cluster.now), "host-1", person))
    cluster.run(5 * MINUTE)
    assert names(cluster) == ["backup", "backup:host-0"]
    assert broken(cluster.store) == []


def test_on_a_store_of_one_machine_each_is_that_machine() -> None:
    store = MemoryStore()
    apply_jobs(store, [each()], START)
    engine = Engine(store, "node-1", 5)
    orders = engine.tick(START + 5 * MINUTE, START).orders
    assert [order.attempt.job for order in orders] == ["backup"]  # type: ignore[union-attr]


def test_why_answers_for_the_job_of_a_node() -> None:
    cluster = cluster_of(2)
    cluster.run(6 * MINUTE)
    at = START + 5 * MINUTE
    answer = cluster.store.view(lambda tx: why(Reading(tx), "backup:host-1", at, cluster.now))
    assert answer is not None
    assert answer.cause is Cause.COMPLETED
    assert any("on host-1" in link.fact for link in answer.links)
    parent = cluster.store.view(lambda tx: why(Reading(tx), "backup", at, cluster.now))
    assert parent is not None
    assert parent.cause is Cause.ON_EACH
    assert parent.summary == "each node has it for itself: backup:host-0, backup:host-1"


def ask(cluster: Cluster, act: Any, *arguments: Any, **keys: Any) -> Any:
    person = Actor("alice", "cli", "desk")
    return cluster.store.update(lambda tx: act(Records(tx, cluster.now), "backup", *arguments, person, **keys))


def test_a_trigger_a_pause_and_a_cancel_are_for_every_node() -> None:
    cluster = cluster_of(2)
    cluster.run(6 * MINUTE)
    assert [one.occurrence.job for one in ask_all(cluster, "k")] == ["backup:host-0", "backup:host-1"]
    assert [one.answer.value for one in ask_all(cluster, "k")] == ["skipped", "skipped"], "each key was taken"
    cluster.run(MINUTE)
    assert len(instants(cluster, "backup:host-0")) == len(instants(cluster, "backup:host-1")) == 2
    ask(cluster, pause)
    cluster.machines.append(newcomer(cluster))
    cluster.run(5 * MINUTE)
    skipped = [one.state.value for number in range(3) for one in latest(cluster, f"backup:host-{number}")]
    assert skipped == ["skipped"] * 3, "a node that joins finds it paused"
    ask(cluster, resume)
    cluster.run(5 * MINUTE)
    run = [one.state.value for number in range(3) for one in latest(cluster, f"backup:host-{number}")]
    assert run == ["completed"] * 3
    ask_all(cluster, "")
    cluster.longest_ms = {f"backup:host-{number}": 3_600_000 for number in range(3)}
    cluster.run(3_000)
    assert {one.occurrence.job for one in ask(cluster, cancel_job)} == {
        f"backup:host-{number}" for number in range(3)
    }
    assert broken(cluster.store) == []


def ask_all(cluster: Cluster, key: str) -> list[Triggered]:
    request, person = TriggerRequest(idempotency_key=key), Actor("alice", "cli", "desk")
    return cluster.store.update(lambda tx: trigger_all(Records(tx, cluster.now), "backup", person, request))


def newcomer(cluster: Cluster) -> Machine:
    machine = Machine(f"host-{len(cluster.machines)}", cluster)
    machine.boot()
    return machine


def latest(cluster: Cluster, job: str) -> list[Occurrence]:
    return cluster.store.view(lambda tx: Reading(tx).occurrences(job, limit=1))


def test_a_trigger_before_the_first_instant_reaches_every_node_too() -> None:
    cluster = cluster_of(2, schedule="0 0 1 1 *")
    cluster.run(MINUTE)
    assert [one.occurrence.job for one in ask_all(cluster, "")] == ["backup:host-0", "backup:host-1"]
    cluster.run(MINUTE)
    ran = [one.state.value for number in range(2) for one in latest(cluster, f"backup:host-{number}")]
    assert ran == ["completed"] * 2
    assert broken(cluster.store) == []
