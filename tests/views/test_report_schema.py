"""The schema of the execution report is that of its types, and a report is valid by it."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest

from chronex.engine.execution_report import report_of
from chronex.model.policies import RetryPolicy
from chronex.model.states import AttemptState
from chronex.views.report_schema import FILE, schema_text
from tests.kit.machine import FIRST, ONE, TWO, SteppedEngine

SCHEMA = json.loads(schema_text())


def test_the_file_is_that_of_the_types() -> None:
    """After a change of a field: python -m chronex.views.report_schema"""
    assert FILE.read_text("utf-8") == schema_text()
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("state", [None, AttemptState.SUCCESS, AttemptState.FAILED, AttemptState.CANCELED])
def test_a_report_is_valid_and_one_of_another_shape_is_not(state: str | None) -> None:
    machine = SteppedEngine(tasks=(ONE, TWO), retry=RetryPolicy(max=0))
    (launch,) = machine.tick(FIRST)
    if state is not None:
        machine.end(launch, state, FIRST + 1)
    occurrence = machine.occurrence(FIRST)
    found = machine.read(lambda reading: report_of(reading, reading.version_run(occurrence), occurrence))
    plain = json.loads(msgspec.json.encode(found))
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.validate(plain)
    validator.validate({**plain, "a_key_of_a_later_version": 1})
    assert not validator.is_valid({**plain, "tasks": "none"})
    assert not validator.is_valid({key: value for key, value in plain.items() if key != "state"})
