"""Our own vectors: every row against Chronex, and every row of plain fields against the oracle as well."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import chronex
from chronex.expr.fields import SIX_FIELDS
from chronex.expr.meaning import Cron
from chronex.text.durations import format_duration, parse_duration
from tests.kit.tables import table
from tests.timing import oracle

VECTORS = Path(__file__).parent.parent / "specs" / "vectors"
FILES = sorted([*VECTORS.glob("expression-*.json"), *VECTORS.glob("timing-*.json")])
ROWS = [
    (f"{path.stem}-{number}-{row['expr'].strip()}", row)
    for path in FILES
    for number, row in enumerate(json.loads(path.read_text())["rows"])
]
KINDS = {
    "valid", "values", "invalid", "refused", "canonical", "duration", "equal", "not_equal", "describe", "next", "previous", "matches", "warning",
}  # fmt: skip

LANGUAGE_WARNINGS = {"E022", "E025", "W001"}  # the others are advice of Chronex


def of_kind(*kinds: str) -> Any:
    return table([(name, row) for name, row in ROWS if row["kind"] in kinds])


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def parsed(row: dict[str, Any], key: str = "expr") -> chronex.Expression:
    return chronex.parse(row[key], row.get("dialect", "chronex"), row.get("tz"), moment(row.get("reference")))


def shown(found: datetime | None) -> str | None:
    return None if found is None else found.isoformat()


def test_every_row_has_a_kind_that_is_run() -> None:
    assert {row["kind"] for _, row in ROWS} == KINDS
    assert len(ROWS) > 500


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_vector_file_has_one_row_to_a_line_and_no_row_twice(path: Path) -> None:
    content = json.loads(path.read_text())
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in content["rows"])
    assert path.read_text() == f'{{"about": {json.dumps(content["about"])}, "rows": [\n{lines}\n]}}\n'
    assert len({json.dumps(row, sort_keys=True) for row in content["rows"]}) == len(content["rows"])


def test_the_page_about_the_vectors_names_every_file_and_kind() -> None:
    text = (VECTORS / "README.md").read_text()
    assert [path.stem for path in FILES if f"`{path.stem}`" not in text] == []
    assert [kind for kind in sorted(KINDS) if f"`{kind}`" not in text] == []


@of_kind("valid")
def test_the_text_is_valid_and_its_canonical_text_reads_back(row: dict[str, Any]) -> None:
    expression = parsed(row)
    assert chronex.validate(row["expr"], row.get("dialect", "chronex")).is_valid
    assert chronex.parse(str(expression), expression.dialect) == expression


@of_kind("values")
def test_the_field_has_the_values(row: dict[str, Any]) -> None:
    cron = parsed(row).meaning.body
    assert isinstance(cron, Cron)
    number = [spec.name for spec in SIX_FIELDS].index(row["expected"]["field"])
    fields = (cron.second, cron.minute, cron.hour, cron.day_of_month, cron.month, cron.day_of_week)
    assert [value for value in range(64) if fields[number].values >> value & 1] == row["expected"]["values"]


@of_kind("invalid")
def test_the_text_is_refused_with_every_fault_in_its_place(row: dict[str, Any]) -> None:
    found = chronex.validate(row["expr"], row.get("dialect", "chronex")).errors
    keys = ("code", "field", "value", "start", "end", "fix")
    assert [{key: getattr(d, key) for key in keys} for d in found] == row["expected"]
    assert all(row["expr"][d.start : d.end] == d.value for d in found)


@of_kind("refused")
def test_the_text_is_refused_with_the_codes(row: dict[str, Any]) -> None:
    assert [d.code for d in chronex.validate(row["expr"], row["dialect"]).errors] == row["expected"]


@of_kind("canonical")
def test_the_canonical_text_is_that_of_the_row(row: dict[str, Any]) -> None:
    expression = parsed(row)
    assert str(expression) == row["expected"]
    assert chronex.parse(row["expected"]) == expression
    assert str(chronex.parse(row["expected"])) == row["expected"]


@of_kind("duration")
def test_the_duration_has_its_length_and_text(row: dict[str, Any]) -> None:
    assert parse_duration(row["expr"]) == row["expected"]["ms"]
    assert format_duration(row["expected"]["ms"]) == row["expected"]["text"]


@of_kind("equal")
def test_both_texts_mean_the_same(row: dict[str, Any]) -> None:
    assert parsed(row) == parsed(row, "expected")
    assert hash(parsed(row)) == hash(parsed(row, "expected"))


@of_kind("not_equal")
def test_the_texts_mean_different_things(row: dict[str, Any]) -> None:
    assert parsed(row) != parsed(row, "expected")


@of_kind("describe")
def test_the_description_is_that_of_the_row(row: dict[str, Any]) -> None:
    assert parsed(row).describe() == row["expected"]


@of_kind("warning")
def test_the_text_is_valid_with_these_warnings_of_the_language(row: dict[str, Any]) -> None:
    found = chronex.validate(row["expr"])
    assert found.is_valid
    assert sorted(d.code for d in found.warnings if d.code in LANGUAGE_WARNINGS) == row["expected"]


@of_kind("matches")
def test_the_pattern_fires_in_this_second_or_not(row: dict[str, Any]) -> None:
    assert parsed(row).matches(datetime.fromisoformat(row["from"])) is row["expected"]


@of_kind("next", "previous")
def test_the_occurrences_are_those_of_the_row(row: dict[str, Any]) -> None:
    expression, anchor = parsed(row), moment(row.get("anchor"))
    step = expression.next if row["kind"] == "next" else expression.previous
    at, inclusive = datetime.fromisoformat(row["from"]), row.get("inclusive", False)
    for expected in row["expected"]:
        found = step(at, inclusive=inclusive, anchor=anchor)
        assert shown(found) == expected
        if found is not None:
            at, inclusive = found, False
    if row["kind"] == "next":
        begin = datetime.fromisoformat(row["from"])
        runs = expression.upcoming(begin, inclusive=row.get("inclusive", False), anchor=anchor)
        assert [shown(next(runs, None)) for _ in row["expected"]] == row["expected"]


PLAIN = [
    (name, row)
    for name, row in ROWS
    if row["kind"] in {"next", "previous"} and row["expr"][0] not in "@PRT" and "{" not in row["expr"]
]


@table(PLAIN)
def test_the_row_is_what_the_oracle_computes(row: dict[str, Any]) -> None:
    spec = oracle.read(row["expr"], posix=row.get("dialect") == "posix")
    zone, start = ZoneInfo(row["tz"]), int(datetime.fromisoformat(row["from"]).timestamp())
    skip = 0 if row.get("inclusive") else 1
    if row["expected"] == [None]:
        days = [datetime.fromisoformat(row["from"]).toordinal() + n for n in range(1400)]
        assert not any(oracle.day_matches(spec, datetime.fromordinal(day).date()) for day in days if day <= 3_652_059)
        return
    last = int(datetime.fromisoformat(row["expected"][-1]).timestamp())
    if row["kind"] == "next":
        found = oracle.scan(spec, start + skip, last, zone)
    else:
        found = oracle.scan_back(spec, start - skip, last, zone)
    assert [datetime.fromtimestamp(second, zone).isoformat() for second in found] == row["expected"]
