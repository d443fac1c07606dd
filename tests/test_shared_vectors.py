"""Expression vectors of other projects, row by row, from the directory that CHRONEX_VECTORS names.

specs/vectors has rows of our own for every topic of theirs; tests/test_spec_vectors.py runs those always.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import chronex
from chronex.expr.meaning import Cron
from chronex.text.durations import parse_duration

FOLDER = Path(os.environ["CHRONEX_VECTORS"]) if os.environ.get("CHRONEX_VECTORS") else None
FIELD_NAMES = {
    "seconds": "second",
    "minutes": "minute",
    "hours": "hour",
    "days": "day_of_month",
    "months": "month",
    "weekdays": "day_of_week",
}
SPEC_WARNINGS = {"E022", "E025", "W001"}
pytestmark = pytest.mark.skipif(FOLDER is None, reason="CHRONEX_VECTORS names no directory")


def _rows() -> list[tuple[str, dict[str, Any]]]:
    if FOLDER is None:
        return []
    return [
        (f"{path.stem.removeprefix('expression-')}-{number}", row)
        for path in sorted(FOLDER.glob("expression-*.json"))
        for number, row in enumerate(json.loads(path.read_text()))
    ]


ROWS = _rows()


def of_kind(*kinds: str) -> Any:
    found = [pytest.param(row, id=f"{name}-{row['expr'].strip()}") for name, row in ROWS if row["kind"] in kinds]
    return pytest.mark.parametrize("row", found or [pytest.param({}, marks=pytest.mark.skip(reason="no such rows"))])


def parsed(row: dict[str, Any], key: str = "expr") -> chronex.Expression:
    reference = row.get("reference")
    return chronex.parse(row[key], reference=datetime.fromisoformat(reference) if reference else None)


def same_instant(found: datetime | None, expected: str | None) -> bool:
    if found is None or expected is None:
        return found is None and expected is None
    wanted = datetime.fromisoformat(expected)
    return found.timestamp() == wanted.timestamp() and found.utcoffset() == wanted.utcoffset()


def test_every_kind_of_row_has_a_test() -> None:
    known = {
        "next", "previous", "valid", "invalid", "matches", "equal", "not_equal", "canonical", "roundtrip", "describe",
        "duration_ms", "warning", "field_set",
    }  # fmt: skip
    assert {row["kind"] for _, row in ROWS} <= known


@of_kind("next")
def test_next_is_the_instant_of_the_row(row: dict[str, Any]) -> None:
    expression = parsed(row)
    found: datetime | None = datetime.fromisoformat(row["from"])
    inclusive = row.get("inclusive", False)
    for _ in range(row.get("index", 0) + 1):
        assert found is not None
        found = expression.next(found, inclusive=inclusive, tz=row.get("tz"))
        inclusive = False
    assert same_instant(found, row.get("expected")), found


@of_kind("previous")
def test_previous_is_the_instant_of_the_row(row: dict[str, Any]) -> None:
    start = datetime.fromisoformat(row["from"])
    found = parsed(row).previous(start, inclusive=row.get("inclusive", False), tz=row.get("tz"))
    assert same_instant(found, row.get("expected")), found


@of_kind("valid")
def test_the_text_is_valid(row: dict[str, Any]) -> None:
    assert chronex.validate(row["expr"]).is_valid
    parsed(row)


@of_kind("invalid")
def test_the_text_is_refused_with_the_codes_of_the_row(row: dict[str, Any]) -> None:
    result = chronex.validate(row["expr"])
    assert not result.is_valid
    assert set(row["expected"]["codes"]) <= {d.code for d in result.errors}
    with pytest.raises(chronex.ExpressionError):
        parsed(row)


@of_kind("matches")
def test_matches_answers_as_the_row(row: dict[str, Any]) -> None:
    assert parsed(row).matches(datetime.fromisoformat(row["from"]), tz=row.get("tz")) is row["expected"]


@of_kind("equal")
def test_both_texts_mean_the_same(row: dict[str, Any]) -> None:
    assert parsed(row) == parsed(row, "expected")
    assert hash(parsed(row)) == hash(parsed(row, "expected"))


@of_kind("not_equal")
def test_the_texts_mean_different_things(row: dict[str, Any]) -> None:
    assert parsed(row) != parsed(row, "expected")


@of_kind("canonical")
def test_the_canonical_text_is_that_of_the_row(row: dict[str, Any]) -> None:
    assert str(parsed(row)) == row["expected"]


@of_kind("roundtrip", "canonical", "valid")
def test_the_canonical_text_reads_back_as_an_equal_value(row: dict[str, Any]) -> None:
    expression = parsed(row)
    assert chronex.parse(str(expression)) == expression


@of_kind("describe")
def test_the_description_is_that_of_the_row(row: dict[str, Any]) -> None:
    assert parsed(row).describe() == row["expected"]


@of_kind("duration_ms")
def test_the_duration_has_as_many_milliseconds(row: dict[str, Any]) -> None:
    assert parse_duration(row["expr"]) == row["expected"]


@of_kind("warning")
def test_the_warnings_of_the_specification_are_those_of_the_row(row: dict[str, Any]) -> None:
    found = {d.code for d in chronex.validate(row["expr"]).warnings} & SPEC_WARNINGS
    expected = set(row["expected"]["codes"])
    assert expected <= found if expected else not found


@of_kind("field_set")
def test_the_field_has_the_values_of_the_row(row: dict[str, Any]) -> None:
    cron = parsed(row).meaning.body
    assert isinstance(cron, Cron)
    name, values = row["expected"]["field"], row["expected"]["values"]
    field = getattr(cron, FIELD_NAMES[name])
    if name == "weekdays":
        values = sorted({value % 7 for value in values})  # 0 and 7 are both Sunday; a set here holds it once
    assert [value for value in range(64) if field.values >> value & 1] == values
