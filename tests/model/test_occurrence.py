"""Ids are a promise: the same thing has the same id on every machine and in every release."""

from __future__ import annotations

from uuid import NAMESPACE_DNS, NAMESPACE_OID, NAMESPACE_URL, uuid5

import pytest

from chronex.model import Attempt, Occurrence, Run, attempt_id, occurrence_id, run_id


def test_an_occurrence_is_named_by_job_and_second() -> None:
    assert occurrence_id("backup", 1_700_000_000_000) == f"occ_{uuid5(NAMESPACE_DNS, 'backup:1700000000')}"


@pytest.mark.parametrize(
    ("nominal_ms", "name"),
    [(1_700_000_000_001, "1700000000.001"), (1_700_000_000_999, "1700000000.999"), (-1, "-1.999"), (0, "0")],
)
def test_the_name_carries_milliseconds_only_where_there_are_some(nominal_ms: int, name: str) -> None:
    assert occurrence_id("j", nominal_ms) == f"occ_{uuid5(NAMESPACE_DNS, f'j:{name}')}"


def test_runs_and_attempts_follow_from_their_parents() -> None:
    occurrence = occurrence_id("backup", 0)
    run = run_id(occurrence, "dump")
    assert run == f"run_{uuid5(NAMESPACE_URL, f'{occurrence}:dump')}"
    assert attempt_id(run, 2) == f"attempt_{uuid5(NAMESPACE_OID, f'{run}:2')}"


def test_records_know_their_ids() -> None:
    assert Occurrence(job="j", nominal_ms=5, due_ms=5).id == occurrence_id("j", 5)
    run = Run(job="j", nominal_ms=5, task="t")
    assert run.id == run_id(occurrence_id("j", 5), "t")
    assert Attempt(job="j", nominal_ms=5, task="t", number=3).id == attempt_id(run.id, 3)
