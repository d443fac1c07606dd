"""R1: a record that was edited, or is gone, is found by the journal; what retention and people remove is not taken for that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from chronex.engine.commands import drop_dead_letter
from chronex.engine.orders import Launch
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, RetryPolicy, SpreadPolicy
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage import keys
from chronex.storage.codec import encode
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, MINUTE, ProcessOutcome, RandomOutcomes, SimulatedMachine
from chronex.verify import PropertyVerdict, verify_store
from chronex_store.history_retention import RetentionPolicy, trim
from tests.kit.machine import ANN
from tests.verify.random_histories import random_history

JOB = Job(id="job", schedule="* * * * *", tasks=(Task(name="main", run=("true",)),), retry=RetryPolicy(max=0))


def half_an_hour() -> SimulatedMachine:
    machine = SimulatedMachine([JOB], outcome=RandomOutcomes(2, fail_share=0.4, longest_ms=5_000))
    machine.run_for(30 * MINUTE)
    return machine


def the_fifth(machine: SimulatedMachine, state: OccurrenceState) -> Occurrence:
    return [one for one in machine.occurrences("job") if one.state is state][4]


def complaint(machine: SimulatedMachine) -> list[tuple[str, int | None]]:
    """What R1 says, and of which instant."""
    (result,) = (one for one in verify_store(machine.store).properties if one.property == "R1")
    return [(finding.message, finding.evidence[-1][1].nominal_ms) for finding in result.findings]


def call_it_completed(tx: Transaction, failed: Occurrence) -> None:
    key = keys.occurrence_key(failed.job, failed.nominal_ms)
    tx.put(key, encode(key, replace(failed, state=OccurrenceState.COMPLETED)))


def call_its_attempt_a_success(tx: Transaction, failed: Occurrence) -> None:
    (attempt,) = Reading(tx).attempts(failed.job, failed.nominal_ms)
    key = keys.attempt_key(failed.job, failed.nominal_ms, "main", 1)
    tx.put(key, encode(key, replace(attempt, state=AttemptState.SUCCESS)))


def remove_it(tx: Transaction, occurrence: Occurrence) -> None:
    tx.delete(keys.occurrence_key(occurrence.job, occurrence.nominal_ms))


def remove_its_attempt(tx: Transaction, occurrence: Occurrence) -> None:
    tx.delete(keys.attempt_key(occurrence.job, occurrence.nominal_ms, "main", 1))


@pytest.mark.parametrize(
    ("edit", "state", "said"),
    [
        (call_it_completed, OccurrenceState.FAILED, "the journal says failed, and its record completed"),
        (
            call_its_attempt_a_success,
            OccurrenceState.FAILED,
            "the journal says failed, and the record of this attempt",
        ),
        (remove_it, OccurrenceState.FAILED, "its record is gone"),
        (remove_it, OccurrenceState.COMPLETED, "its record is gone"),
        (remove_its_attempt, OccurrenceState.COMPLETED, "the record of this attempt is gone"),
    ],
)
def test_a_record_that_was_edited_or_removed_is_found(
    edit: Callable[[Transaction, Occurrence], None], state: OccurrenceState, said: str
) -> None:
    machine = half_an_hour()
    assert complaint(machine) == []
    chosen = the_fifth(machine, state)
    machine.store.update(lambda tx: edit(tx, chosen))
    ((message, nominal_ms),) = complaint(machine)
    assert message.startswith(said)
    assert nominal_ms == chosen.nominal_ms
    assert verify_store(machine.store).verdict is PropertyVerdict.VIOLATED


def test_a_record_that_is_damaged_is_left_to_doctor() -> None:
    machine = half_an_hour()
    chosen = the_fifth(machine, OccurrenceState.COMPLETED)
    key = keys.occurrence_key("job", chosen.nominal_ms)
    machine.store.update(lambda tx: tx.put(key, b"nonsense"))
    assert complaint(machine) == []
    machine.store.update(lambda tx: Records(tx, machine.now).occurrence("job", chosen.nominal_ms))
    assert machine.store.view(lambda tx: tx.get(key)) is None, "it was put aside"
    assert complaint(machine) == []


@pytest.mark.parametrize("kept", [0, 1, 7, 29])
def test_what_retention_removes_is_not_missed(kept: int) -> None:
    machine = half_an_hour()
    trim(machine.store, RetentionPolicy(max_count=kept), machine.now)
    assert complaint(machine) == []
    machine.run_for(10 * MINUTE)
    trim(machine.store, RetentionPolicy(max_count=None, max_age_ms=kept * MINUTE), machine.now)
    assert complaint(machine) == []


def test_a_dead_letter_that_outlived_its_neighbours_and_was_dropped_is_no_witness() -> None:
    machine = half_an_hour()
    trim(machine.store, RetentionPolicy(max_count=3), machine.now)
    letter = machine.read(lambda reading: reading.dead_letters())[0]
    machine.store.update(lambda tx: drop_dead_letter(Records(tx, machine.now), letter.id, ANN))
    assert complaint(machine) == []


def test_one_that_ran_while_its_successors_were_removed_is_no_witness() -> None:
    job = replace(JOB, overlap=OverlapPolicy.ALLOW)
    machine = SimulatedMachine([job], outcome=_the_first_is_long)
    machine.run_for(20 * MINUTE)
    trim(machine.store, RetentionPolicy(max_count=3), machine.now)
    machine.run_for(20 * MINUTE)
    assert machine.occurrences("job")[0].state is OccurrenceState.COMPLETED
    assert complaint(machine) == []


def _the_first_is_long(launch: Launch) -> ProcessOutcome:
    return ProcessOutcome(30 * MINUTE if launch.occurrence.nominal_ms % HOUR == MINUTE else 1_000)


def test_what_an_edit_withdraws_and_its_undoing_restores_is_not_missed() -> None:
    early = replace(JOB, schedule="0 3 * * *", spread=SpreadPolicy(mode="before", duration_ms=2 * HOUR))
    machine = SimulatedMachine([early])
    machine.run_for(DAY + HOUR + MINUTE)
    apply_jobs(machine.store, [replace(early, schedule="0 5 * * *")], machine.now)
    apply_jobs(machine.store, [early], machine.now + 1)
    machine.run_for(3 * HOUR)
    assert [one.state for one in machine.occurrences("job")] == [OccurrenceState.COMPLETED] * 2
    assert complaint(machine) == []


@pytest.mark.parametrize("seed", range(40))
def test_histories_that_are_trimmed_while_they_grow_are_never_refused(seed: int) -> None:
    machine = random_history(seed)
    for kept in (9, 5, 2):
        trim(machine.store, RetentionPolicy(max_count=kept), machine.now)
        machine.run_for(2 * MINUTE)
        assert complaint(machine) == []
