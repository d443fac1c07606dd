"""The schemas for editors: their files are those of the tables, and what the reader takes they take."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from chronex.jobfile.json_schema import files, job_file_schema, trigger_schema

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_the_file_is_that_of_the_tables(path: Path) -> None:
    """After a change of a key: python -m chronex.jobfile.json_schema"""
    text = files()[path]
    assert path.read_text("utf-8") == text
    jsonschema.Draft7Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("**/*.toml")), ids=lambda path: path.name)
def test_the_examples_are_valid(path: Path) -> None:
    jsonschema.Draft7Validator(job_file_schema()).validate(tomllib.loads(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "definition",
    [
        json.loads((EXAMPLES / "trigger.json").read_text("utf-8")),
        {"$schema": "x", "id": "a", "expression": "@daily", "owner": 1},
        [{"id": "a", "expression": "@daily"}, {"id": "b", "expression": "@daily", "retry": 3}],
    ],
)
def test_definitions_are_valid(definition: Any) -> None:
    jsonschema.Draft7Validator(trigger_schema()).validate(definition)


@pytest.mark.parametrize(
    "table",
    [
        {"jobs": {"a": {"schedule": "@daily", "run": "x", "overlab": "skip"}}},
        {"jobs": {"a": {"schedule": "@daily", "run": "x", "overlap": "skipp"}}},
        {"jobs": {"a b": {"schedule": "@daily", "run": "x"}}},
        {"scheduler": {"max_concurrent_jobs": 0}},
        {"scheduler": {"grace_period": "1 hour"}},
        {"jobs": {"a": {"tasks": [{"name": "x", "run": []}]}}},
    ],
)
def test_what_the_reader_refuses_by_its_shape_is_not_valid(table: Any) -> None:
    assert not jsonschema.Draft7Validator(job_file_schema()).is_valid(table)


@pytest.mark.parametrize(
    "definition",
    [{"id": "a"}, {"expression": "@daily"}, {"id": "a b", "expression": "@daily"}, {"id": "a", "expression": 5},
     {"id": "a", "expression": "@daily", "metadata": {"n": 1}}, {"id": "a", "expression": "@daily", "enabled": "yes"}],
)  # fmt: skip
def test_a_definition_against_the_schema_is_not_valid(definition: Any) -> None:
    assert not jsonschema.Draft7Validator(trigger_schema()).is_valid(definition)
