"""`why` on a store that machines share: who tried it, who took it over from whom and why, and who was refused."""

from __future__ import annotations

from chronex.engine.commands import Actor
from chronex.engine.commands.nodes import forget_node
from chronex.engine.membership import TAKEOVER_MS
from chronex.model.job import Job, Task
from chronex.model.policies import RetryPolicy
from chronex.storage.records import Reading, Records
from chronex.timing.zones import load_zone
from chronex.views.why import WhyAnswer, why
from chronex.views.wording import stamp
from tests.kit.cluster import Cluster, Machine
from tests.kit.machine import START

MINUTE = 60_000


def one_long_command() -> tuple[Cluster, Machine, Machine]:
    """Two machines; on one of them a command runs that takes an hour."""
    job = Job(id="job", schedule="@every 1h", tasks=(Task(name="dump", run=("true",)),), retry=RetryPolicy(5, 1_000))
    cluster = Cluster([job], 2, 3, START)
    cluster.run(60 * MINUTE - 30_000)
    while not cluster.begun:
        cluster.run(1_000)
    cluster.begun[0].stops_ms = cluster.now + 60 * MINUTE
    owner = next(machine for machine in cluster.machines if machine.name == cluster.begun[0].host)
    other = next(machine for machine in cluster.machines if machine is not owner)
    return cluster, owner, other


def asked(cluster: Cluster) -> WhyAnswer:
    nominal_ms = cluster.begun[0].attempt.nominal_ms
    answer = cluster.store.view(lambda tx: why(Reading(tx), "job", nominal_ms, cluster.now))
    assert answer is not None
    return answer


def told(ms: int) -> str:
    return stamp(ms, load_zone("UTC"))


def test_it_says_who_took_over_from_whom_since_when_that_one_was_silent_and_that_it_was_refused() -> None:
    cluster, owner, other = one_long_command()
    cut_ms = cluster.now
    owner.cut_until = cluster.now + TAKEOVER_MS + 2 * MINUTE
    cluster.run(TAKEOVER_MS + 4 * MINUTE)
    first, second = cluster.begun[:2]
    former = cluster.store.view(lambda tx: Reading(tx).node(first.attempt.owner))
    assert former is not None
    assert cut_ms - 4_000 <= former.seen_ms <= cut_ms
    facts = {link.fact: link.at_ms for link in asked(cluster).links}
    taken = f"dump: {other.name} took it over because {owner.name} had not been seen since {told(former.seen_ms)}"
    assert facts[taken] == second.attempt.created_ms
    assert facts[f"{owner.name} came back and was refused"] == former.refused_ms
    assert (former.refused_ms or 0) > second.attempt.created_ms
    assert any(f"dump: attempt 2 runs on {other.name}" in fact or f"on {other.name}" in fact for fact in facts)
    (names,) = asked(cluster).names["taken_over"]
    assert (names["from"], names["by"]) == (first.attempt.owner, second.attempt.owner)


def test_a_node_that_was_forgotten_is_not_said_to_have_been_silent_for_longer_than_it_was() -> None:
    cluster, owner, other = one_long_command()
    owner.switch_off()
    cluster.run(MINUTE)
    lost = cluster.begun[0].attempt.owner
    seen_ms = cluster.store.view(lambda tx: Reading(tx).node(lost)).seen_ms  # type: ignore[union-attr]
    person = Actor("alice", "cli", "desk")
    cluster.store.update(lambda tx: forget_node(Records(tx, cluster.now), owner.name, person))
    forgotten_ms = cluster.now
    cluster.run(2 * MINUTE)
    assert len(cluster.begun) == 2, "nobody waits for it any more"
    assert cluster.store.view(lambda tx: Reading(tx).node(lost)).seen_ms == seen_ms  # type: ignore[union-attr]
    wanted = f"dump: {other.name} took it over because {owner.name} was given up for good by a person"
    assert any(link.fact.startswith(f"{wanted} at {told(forgotten_ms)}") for link in asked(cluster).links)


def test_without_a_fault_it_only_says_where_it_ran() -> None:
    cluster, owner, _ = one_long_command()
    answer = asked(cluster)
    assert any(link.fact == f"dump: attempt 1 runs on {owner.name}" for link in answer.links)
    assert "taken_over" not in answer.names
    assert not any("took it over" in link.fact for link in answer.links)
