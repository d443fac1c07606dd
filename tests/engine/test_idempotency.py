"""A key is executed at most once while it lives: by run, by task, over retries, replays and races."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.engine.idempotency import key_of
from chronex.engine.orders import Launch
from chronex.model.job import Job, Task, unknown_key_fields
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, TaskMode
from chronex.model.reasons import ReasonCode
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage.records import Reading, Records
from chronex.testing import MINUTE
from tests.kit.machine import FIRST, ONE, THREE, TWO, SteppedEngine, steady

DAILY = replace(ONE, idempotency_key="{job}:{date}", idempotency_ttl_ms=5 * MINUTE)


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("nightly", "nightly"),
        ("{job}:{task}", "backup:dump"),
        ("{scheduled}", "2027-01-01T23:30:00Z"),
        ("{date}", "2027-01-02"),
        ("{job}/{occurrence}", f"backup/{Occurrence(job='backup', nominal_ms=1_798_846_200_000, due_ms=0).id}"),
        ("{unknown} {}", "{unknown} {}"),
    ],
)
def test_a_template_becomes_a_key(template: str, key: str) -> None:
    job, task = (
        Job(id="backup", schedule="@daily", timezone="Europe/Berlin"),
        Task(name="dump", idempotency_key=template),
    )
    assert key_of(job, task, Occurrence(job="backup", nominal_ms=1_798_846_200_000, due_ms=0)) == key


def test_places_that_no_key_can_be_made_of_are_named() -> None:
    assert unknown_key_fields("{job}:{schedule}:{}") == ["schedule", ""]


def test_the_second_execution_with_a_live_key_is_skipped_with_that_reason() -> None:
    machine = SteppedEngine(tasks=(DAILY,))
    (first,) = machine.tick(FIRST)
    assert first.idempotency_key == "job:2027-01-01"
    machine.end(first, AttemptState.SUCCESS, FIRST + 1)
    assert machine.tick(FIRST + MINUTE) == []
    skipped = machine.occurrence(FIRST + MINUTE)
    assert skipped.state is OccurrenceState.SKIPPED
    assert skipped.reason.code is ReasonCode.IDEMPOTENT
    assert "OccurrenceSkipped" in machine.event_names()


def test_a_key_that_has_expired_executes_again() -> None:
    machine = SteppedEngine(tasks=(DAILY,))
    (first,) = machine.tick(FIRST)
    machine.end(first, AttemptState.SUCCESS, FIRST + 1)
    launches = [len(machine.tick(FIRST + n * MINUTE)) for n in range(1, 6)]
    assert launches == [0, 0, 0, 0, 1]


def test_attempts_of_one_run_share_its_key() -> None:
    machine = SteppedEngine("0 * * * *", tasks=(DAILY,), retry=steady(1, 1_000))
    hour = FIRST + 59 * MINUTE
    (first,) = machine.tick(hour)
    machine.end(first, AttemptState.FAILED, hour + 1)
    (second,) = machine.tick(hour + 1_001)
    assert (second.attempt.number, second.idempotency_key) == (2, first.idempotency_key)


def test_a_failed_run_does_not_give_its_key_back() -> None:
    machine = SteppedEngine(tasks=(DAILY,))
    (first,) = machine.tick(FIRST)
    machine.end(first, AttemptState.FAILED, FIRST + 1)
    assert machine.tick(FIRST + MINUTE) == []


@pytest.mark.parametrize("mode", TaskMode)
def test_a_task_that_was_done_already_is_left_out_and_its_peers_go_on(mode: TaskMode) -> None:
    machine = SteppedEngine(tasks=(DAILY, TWO, replace(THREE, idempotency_key="fixed")), mode=mode)
    for nominal, expected in ((FIRST, ["one", "three", "two"]), (FIRST + MINUTE, ["two"])):
        ran: list[str] = []
        launches = machine.tick(nominal)
        while launches:
            launch = launches.pop(0)
            ran.append(launch.task.name)
            following = machine.end(launch, AttemptState.SUCCESS, nominal + len(ran))
            launches += [order for order in following if isinstance(order, Launch)]
        assert sorted(ran) == expected
        assert machine.occurrence(nominal).state is OccurrenceState.COMPLETED
    left_out = machine.run(FIRST + MINUTE, "one")
    assert left_out.state is RunState.CANCELED
    assert left_out.reason.code is ReasonCode.IDEMPOTENT
    assert "TaskRunSkipped" in machine.event_names()


def test_two_occurrences_that_are_due_at_once_are_decided_in_one_transaction_and_one_wins() -> None:
    machine = SteppedEngine("* * * * * *", tasks=(DAILY,), overlap=OverlapPolicy.ALLOW)
    launches = machine.tick(FIRST + 2_000)
    assert len(launches) == 1
    held = machine.store.view(lambda tx: Reading(tx).idempotency(launches[0].idempotency_key, FIRST + 2_000))
    assert held is not None
    assert held.holder == machine.run(launches[0].occurrence.nominal_ms).id


def test_a_replay_has_a_key_of_its_own() -> None:
    machine = SteppedEngine("0 0 1 1 *", tasks=(DAILY,), overlap=OverlapPolicy.QUEUE)
    again = Occurrence(
        job="job", nominal_ms=FIRST + 1, due_ms=FIRST, manual=True, replay_of="occ_1", stands_for_ms=FIRST
    )
    first = Occurrence(job="job", nominal_ms=FIRST + 2, due_ms=FIRST, manual=True)
    for occurrence in (first, again):
        machine.store.update(lambda tx, o=occurrence: Records(tx, FIRST).create(o))  # type: ignore[misc]
    (launch,) = machine.tick(FIRST + 10)
    (later,) = machine.end(launch, AttemptState.SUCCESS, FIRST + 20)
    assert isinstance(later, Launch)
    keys = [launch.idempotency_key, later.idempotency_key]
    assert sorted(keys) == ["job:2027-01-01", f"job:2027-01-01#{again.id}"]


def test_a_task_without_a_key_takes_none() -> None:
    machine = SteppedEngine()
    (launch,) = machine.tick(FIRST)
    assert launch.idempotency_key == machine.run(FIRST).idempotency_key == ""
