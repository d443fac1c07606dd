"""A table as one test shows what a test of each row would show."""

from __future__ import annotations

import pytest

from tests.kit.tables import MOST_SHOWN, table


def halves(number: int) -> None:
    assert number % 2 == 0, f"{number} is odd"


def test_a_table_that_holds_passes_after_every_row() -> None:
    seen: list[int] = []
    table([("a", 2), ("b", 4)])(seen.append)()
    assert seen == [2, 4]


def test_every_wrong_row_is_named_with_what_is_wrong_and_the_line_that_noticed() -> None:
    with pytest.raises(AssertionError) as failed:
        table([("two", 2), ("three", 3), ("four", 4), ("nothing", None)])(halves)()
    told = str(failed.value)
    assert told.startswith("2 of 4 rows are wrong:\nthree  (line ")
    assert "three  (line 11: assert number % 2 == 0" in told
    assert "AssertionError: 3 is odd" in told
    assert "nothing  (line 11: " in told
    assert "TypeError: unsupported operand" in told


def test_of_very_many_wrong_rows_the_first_are_shown() -> None:
    with pytest.raises(AssertionError) as failed:
        table([(f"row {number}", 1) for number in range(MOST_SHOWN + 5)])(halves)()
    assert str(failed.value).startswith(f"{MOST_SHOWN + 5} of {MOST_SHOWN + 5} rows are wrong:")
    assert "and 5 more" in str(failed.value)


def test_an_empty_table_shows_nothing_and_so_fails() -> None:
    with pytest.raises(AssertionError, match="the table is empty"):
        table([])(halves)()


def test_the_test_keeps_its_name() -> None:
    assert table([])(halves).__name__ == "halves"
