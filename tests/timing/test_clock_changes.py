"""The picture of a local day around a clock change, and the notes on runs that it touched."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

import chronex
from chronex.timing.clock_changes import day_cells, effect_of, note_of
from chronex.timing.zones import ClockChange, load_zone


def change_on(zone: str, year: int, month: int, day: int) -> ClockChange:
    start = int(datetime(year, month, day, tzinfo=ZoneInfo(zone)).timestamp()) - 86_400
    (change,) = load_zone(zone).changes(start, start + 3 * 86_400)
    return change


def drawn(expression: str, zone: str, change: ClockChange) -> str:
    signs = {"plain": ".", "missing": "x", "first": "1", "second": "2"}
    cells = day_cells(chronex.parse(expression).occurrences(zone), change)
    return "".join(
        str(cell.runs) if cell.runs > 2 else "*" * cell.runs if cell.runs else signs[cell.kind] for cell in cells
    )


@pytest.mark.parametrize(
    ("zone", "date", "expression", "start", "cells"),
    [
        ("America/New_York", (2027, 3, 14), "30 2 * * *", "....xx*...", 48),
        ("America/New_York", (2027, 11, 7), "30 1 * * *", "..1*22....", 50),
        ("America/New_York", (2027, 11, 7), "30 * * * *", ".*1*2*.*.*", 50),
        ("Australia/Lord_Howe", (2027, 10, 3), "15 2 * * *", "....x*....", 48),
        ("Australia/Lord_Howe", (2027, 4, 4), "45 1 * * *", "...*2.....", 49),
        ("America/Havana", (2025, 3, 9), "30 0 * * *", "xx*.......", 48),
    ],
)
def test_the_day_is_drawn_in_the_order_it_is_lived(
    zone: str, date: tuple[int, int, int], expression: str, start: str, cells: int
) -> None:
    picture = drawn(expression, zone, change_on(zone, *date))
    assert picture.startswith(start)
    assert len(picture) == cells


def test_a_skipped_day_is_all_missing() -> None:
    picture = drawn("0 9 * * *", "Pacific/Apia", change_on("Pacific/Apia", 2011, 12, 31))
    assert picture == "x" * 48


def test_elapsed_time_is_not_touched() -> None:
    change = change_on("America/New_York", 2027, 3, 14)
    effect = effect_of(chronex.parse("@every 1h").occurrences("America/New_York"), change)
    assert effect == (False, "counts elapsed time: not touched")


def test_a_run_on_an_ordinary_day_has_no_note() -> None:
    timing = chronex.parse("0 9 * * *").occurrences("America/New_York")
    instant = timing.nearest(1_800_000_000_000, 1)
    assert instant is not None
    assert note_of(timing, instant) == ""
