"""Several machines on one store: whatever becomes of some of them, every instant is decided once, and no occurrence runs
in two places at a time."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from random import Random

import pytest

from chronex.engine.membership import LEASE_MS, RENEW_MS, SLACK_MS, TAKEOVER_MS
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy, RetryPolicy
from chronex.model.reasons import text_of
from chronex.model.states import is_final
from chronex.storage.records import EVERYTHING, Reading
from tests.kit.cluster import STEP_MS, Cluster, Machine
from tests.kit.machine import START
from tests.verify.assertion import broken

MINUTE = 60_000
SPAN = 15 * MINUTE
# Until what was taken over, tried again and delayed has ended.
QUIET = TAKEOVER_MS + 16 * MINUTE


def jobs() -> list[Job]:
    one = Task(name="one", run=("true",))
    two = Task(name="two", run=("true",))
    patient = RetryPolicy(5, 1_000, backoff=1, jitter=0)
    return [
        Job(id="often", schedule="@every 7s", tasks=(one,), retry=patient),
        Job(id="minute", schedule="* * * * *", tasks=(one, two), retry=patient),
        Job(id="long", schedule="@every 2m", tasks=(one,), retry=patient, overlap=OverlapPolicy.ALLOW),
    ]


def hurt(machine: Machine, random: Random) -> None:
    """One fault, of any length that matters: shorter than a lease, longer than it, longer than a takeover."""
    now = machine.cluster.now
    lasting = now + random.choice((2_000, 9_000, 20_000, 60_000, TAKEOVER_MS + 30_000, TAKEOVER_MS + 30_000))
    match random.randrange(6):
        case 0:
            machine.frozen_until = lasting
        case 1:
            machine.cut_until = lasting
        case 2:
            machine.kill()
        case 3:
            machine.switch_off()
        case 4 if machine.engine is None or not machine.is_on:
            machine.is_on = True
            machine.boot()
        case _:
            pass


def lived_through(seed: int, machines: int = 3) -> Cluster:
    random = Random(seed)
    cluster = Cluster(jobs(), machines, seed, START, {"long": 12 * MINUTE})
    end = cluster.now + SPAN
    while cluster.now < end:
        cluster.run(random.randrange(500, 40_000))
        hurt(random.choice(cluster.machines), random)
    cluster.heal()
    cluster.run(QUIET)
    return cluster


def findings(cluster: Cluster) -> list[str]:
    found = [str(one) for one in broken(cluster.store)]
    by_run = defaultdict(list)
    for execution in cluster.begun:
        attempt = execution.attempt
        by_run[attempt.job, attempt.nominal_ms, attempt.task].append(execution)
    for run, executions in by_run.items():
        executions.sort(key=lambda one: one.started_ms)
        for before, after in pairwise(executions):
            if before.ended_ms is None or before.ended_ms > after.started_ms:
                found.append(f"{run} ran on {before.host} and on {after.host} at the same time")
    starts = [execution.attempt.id for execution in cluster.begun]
    found += [f"{one} began twice" for one in set(starts) if starts.count(one) > 1]
    return found + cluster.store.view(lambda tx: _left_open(Reading(tx), cluster.now))


def _left_open(reading: Reading, now: int) -> list[str]:
    old = now - 14 * MINUTE
    return [
        f"{occurrence.id} of {occurrence.nominal_ms} is still {occurrence.state}"
        for job in reading.jobs()
        for occurrence in reading.occurrences(job.id, limit=EVERYTHING)
        if occurrence.nominal_ms < old and not is_final(occurrence.state)
    ]


@pytest.mark.parametrize("seed", range(2))
def test_no_fault_of_machines_doubles_or_loses_a_run(seed: int) -> None:
    assert findings(lived_through(seed, machines=2 + seed % 3)) == []


@pytest.mark.torture
@pytest.mark.parametrize("first", range(100, 1100, 20))
def test_a_thousand_clusters(first: int) -> None:
    for seed in range(first, first + 20):
        assert findings(lived_through(seed, machines=2 + seed % 3)) == [], seed


def test_a_frozen_node_lets_nothing_begin_that_was_taken_from_it() -> None:
    """SIGSTOP between claim and start, until others have run it: after SIGCONT its barrier stays shut."""
    cluster = Cluster([Job(id="job", schedule="@every 1m", tasks=(Task(name="one", run=("true",)),))], 2, 1, START)
    first = cluster.machines[0]
    cluster.run(MINUTE - 1_000)
    while not first.claimed and not any(machine.claimed for machine in cluster.machines):
        cluster.run(500)
    frozen = next(machine for machine in cluster.machines if machine.claimed)
    frozen.frozen_until = cluster.now + 40_000
    cluster.run(40_000)
    other = next(machine for machine in cluster.machines if machine is not frozen)
    assert [one.host for one in cluster.begun] == [other.name]
    cluster.run(5_000)
    assert [one.host for one in cluster.begun] == [other.name]
    assert findings(cluster) == []


@pytest.mark.parametrize("phase_ms", [0, 1_000, 2_000])
def test_a_claim_of_a_dead_node_moves_at_once_when_its_silence_is_over(phase_ms: int) -> None:
    """Whenever the other one's own heartbeats are: 17 s after the last one of the dead node, and a step."""
    job = Job(id="job", schedule="@every 1h", tasks=(Task(name="one", run=("true",)),))
    cluster = Cluster([job], 2, 1, START)
    dead, other = cluster.machines
    other.is_on = False
    cluster.run(RENEW_MS + phase_ms)
    other.is_on = True
    cluster.run(60 * MINUTE - RENEW_MS - phase_ms - 20_000)
    cluster.drain(other.name)
    cluster.run(2 * RENEW_MS)
    while not dead.claimed:
        cluster.run(1_000)
    cluster.drain(other.name, draining=False)
    dead.switch_off()
    silent_since_ms = dead.word_sent_ms
    cluster.run(20_000)
    (moved,) = cluster.begun
    assert moved.host == other.name
    assert moved.attempt.created_ms - silent_since_ms == LEASE_MS + SLACK_MS + STEP_MS
    assert findings(cluster) == []


def one_long_command() -> tuple[Cluster, Machine, Machine]:
    """Two machines, on one of which a command runs that would take an hour."""
    job = Job(id="job", schedule="@every 1h", tasks=(Task(name="one", run=("true",)),), retry=RetryPolicy(5, 1_000))
    cluster = Cluster([job], 2, 3, START)
    cluster.run(60 * MINUTE - 30_000)
    cluster.longest_ms = {"job": 60 * MINUTE}
    cluster.random.seed(7)
    while not cluster.begun:
        cluster.run(1_000)
    cluster.begun[0].stops_ms = cluster.now + 60 * MINUTE
    owner = next(machine for machine in cluster.machines if machine.name == cluster.begun[0].host)
    other = next(machine for machine in cluster.machines if machine is not owner)
    return cluster, owner, other


@pytest.mark.parametrize("fault", ["killed", "stopped", "frozen", "cut"])
def test_a_silent_node_has_ended_its_work_before_others_begin_it(fault: str) -> None:
    cluster, owner, other = one_long_command()
    if fault == "killed":
        owner.kill()
    elif fault == "stopped":
        owner.leave()
    elif fault == "frozen":
        owner.frozen_until = cluster.now + TAKEOVER_MS + MINUTE
    else:
        owner.cut_until = cluster.now + TAKEOVER_MS + MINUTE
    cluster.run(TAKEOVER_MS - 20_000)
    assert len(cluster.begun) == 1, "nobody begins it before its time"
    cluster.run(80_000)
    first, second = cluster.begun
    assert second.host == other.name
    assert first.ended_ms is not None
    assert first.ended_ms < second.started_ms
    attempts = cluster.store.view(lambda tx: Reading(tx).attempts("job", first.attempt.nominal_ms))
    assert text_of(attempts[0].reason) == (
        f"{owner.name} gave no sign of life for so long that another node took its work over"
    )


def test_a_node_that_comes_back_in_time_keeps_what_runs() -> None:
    """A minute without a word: it was given up, registers anew, and takes up its own command."""
    cluster, owner, _ = one_long_command()
    before = owner.node
    owner.cut_until = cluster.now + MINUTE
    cluster.run(2 * MINUTE)
    assert before is not None
    assert owner.node is not None
    assert owner.node.id != before.id
    assert len(cluster.begun) == 1
    assert cluster.begun[0].ended_ms is None
    found = cluster.store.view(lambda tx: Reading(tx).active_attempts())
    assert [attempt.owner for attempt in found] == [owner.node.id]
    assert findings(cluster) == []
