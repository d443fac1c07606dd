"""The worked cases of specs/timing.md, read from the page itself so that it cannot go stale."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import chronex
from chronex.timing.dst import wall_to_instant
from chronex.timing.zones import load_zone

PAGE = Path(__file__).parents[2] / "specs" / "timing.md"
ROW = re.compile(r"\| (\S+) \| (\d{4}-\d\d-\d\d) \| (posix )?`([^`]+)` \| (.+) \|")
CASES = [match.groups() for match in map(ROW.fullmatch, PAGE.read_text("utf-8").splitlines()) if match]


def test_the_page_has_its_cases() -> None:
    assert len(CASES) >= 30


@pytest.mark.parametrize(("zone", "date", "dialect", "text", "expected"), CASES)
def test_worked_case(zone: str, date: str, dialect: str | None, text: str, expected: str) -> None:
    midnight = int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()) * 1000
    start = datetime.fromtimestamp(wall_to_instant(midnight, load_zone(zone)) // 1000, UTC)
    wanted = expected.split(", ")
    expression = chronex.parse(text, dialect=(dialect or "chronex").strip(), tz=zone)
    found = expression.upcoming(start, inclusive=True, limit=len(wanted))
    assert [moment.isoformat(timespec="minutes") for moment in found] == wanted
