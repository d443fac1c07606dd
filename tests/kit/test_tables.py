"""A table as one test shows what a test of each row would show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.tables import MOST_SHOWN, folded, table


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
    assert "three  (line 13: assert number % 2 == 0" in told
    assert "AssertionError: 3 is odd" in told
    assert "nothing  (line 13: " in told
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


@pytest.mark.parametrize(("number", "divisor"), [(4, 2), pytest.param(9, 2, id="odd"), (9, 3)], ids=str)
def divides(number: int, divisor: int) -> None:
    assert number % divisor == 0


def test_a_folded_test_tries_every_row_and_names_those_that_are_wrong() -> None:
    made = folded(divides)
    assert made is not None
    with pytest.raises(
        AssertionError, match=r"1 of 3 rows are wrong:\n{'number': 9, 'divisor': 2}  \(line \d+: assert n"
    ):
        made()


def with_marked_rows() -> object:
    return pytest.mark.parametrize("number", [2, pytest.param(4, marks=pytest.mark.torture)])(lambda number: None)


async def of_a_loop(number: int) -> None:
    halves(number)


@pytest.mark.parametrize(
    "test",
    [
        halves,
        with_marked_rows(),
        pytest.mark.parametrize("number", [2])(of_a_loop),
        pytest.mark.parametrize("number", [2])(lambda number, tmp_path: None),
        pytest.mark.parametrize("number", iter([2]))(lambda number: None),
        pytest.mark.parametrize("number", [])(lambda number: None),
        pytest.mark.usefixtures("painted")(pytest.mark.parametrize("number", [2])(lambda number: None)),
    ],
)
def test_what_needs_more_than_its_row_is_not_folded(test: Callable[..., None]) -> None:
    assert folded(test) is None


def skips_three(number: int) -> None:
    if number == 3:
        pytest.skip("three")
    halves(number)


@pytest.mark.parametrize(
    ("rows", "ending", "words"),
    [([2, 3, 4], pytest.skip.Exception, "three"), ([3, 5], AssertionError, "5 is odd")],
    ids=["others are right", "another is wrong"],
)
def test_a_row_that_is_skipped_hides_no_other(
    rows: list[int], ending: type[BaseException], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = pytest.mark.parametrize("number", rows).mark
    monkeypatch.setattr(skips_three, "pytestmark", [mark], raising=False)
    made = folded(skips_three)
    assert made is not None
    with pytest.raises(ending, match=words):
        made()
