"""Our own vectors, each checked twice: against the decision core and against the slow reference."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from chronex import errors
from chronex.decision import DECISION_VERSION, DecisionError, DecisionRequest, DecisionResult, decide
from tests.decision import reference
from tests.decision.requests import by_name, request_of, rows
from tests.kit.tables import table

DECIDED = [row for name in ("windows", "seeds", "distributions", "constraints") for row in rows(name)]
BY_NAME = [(by_name(row), row) for row in DECIDED]


@table(BY_NAME)
def test_decides_as_the_vector_says(row: dict[str, Any]) -> None:
    result = decide(request_of(row["request"])).to_dict()
    assert result == row["expected"]
    assert json.loads(json.dumps(result)) == result


@table(BY_NAME)
def test_the_vector_is_what_the_reference_computes(row: dict[str, Any]) -> None:
    assert reference.decide(row["request"]) == row["expected"]


@table([(by_name(row), row) for row in rows("errors")])
def test_bad_input_is_a_typed_error(row: dict[str, Any]) -> None:
    expected: type[DecisionError] = getattr(errors, row["error"])
    with pytest.raises(DecisionError) as caught:
        decide(request_of(row["request"]))
    error = caught.value
    assert type(error) is expected
    assert error.field == row["field"]
    assert str(error).startswith(f"{row['field']}: ")
    if "suggestion" in row:
        assert error.suggestion == row["suggestion"]
    if isinstance(error, errors.ConstraintError):
        assert error.position == row["position"]
        text: str = row["request"][row["field"]]
        assert text[error.position :].startswith(str(error.value))


@pytest.mark.parametrize("path", sorted(reference.VECTORS.glob("decision-*.json")), ids=lambda path: path.stem)
def test_a_vector_file_has_one_row_to_a_line_and_no_name_twice(path: Path) -> None:
    content = json.loads(path.read_text())
    assert path.read_text() == reference.page(content)
    names = [row["name"] for row in content["rows"]]
    assert len(names) == len(set(names))


def test_the_specification_names_what_exists() -> None:
    text = (reference.VECTORS.parent / "decision.md").read_text()
    assert f"`DECISION_VERSION` is {DECISION_VERSION}." in text
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DecisionError)]
    names = [kind.__name__ for kind in kinds]
    names += [field.name for record in (DecisionRequest, DecisionResult) for field in dataclasses.fields(record)]
    assert [name for name in names if f"`{name}`" not in text] == []
